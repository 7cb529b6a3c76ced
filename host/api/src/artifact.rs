//! Where a component is pulled from, and whose signature it must bear.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An artifact in an OCI registry that is a component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactSource {
    /// Its name, such as `registry.example/team/plugin:1.0`, with a tag or a digest or
    /// both. A tag is looked up again and again; with a digest (`@sha256:…`) it is pulled
    /// once.
    #[schemars(length(min = 1, max = 1024))]
    pub image: String,
    /// Name of a Secret in the agent's namespace with the login, of type
    /// `kubernetes.io/dockerconfigjson`. Without it the registry is asked by nobody in
    /// particular.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub pull_secret_name: Option<String>,
    /// Certificate authorities that the registry's certificate must come from, PEM;
    /// those of the agent's image by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 65_536))]
    pub ca_bundle: Option<String>,
    /// Whether the registry is spoken to without TLS. Default false, except for
    /// `localhost` and addresses of loopback without a `caBundle`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain_http: bool,
    /// How often a tag is looked up, in seconds. Default 300.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 86_400))]
    pub interval_seconds: Option<u32>,
}

/// Whose signature a component must bear.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignaturePolicy {
    /// Public keys in PEM, ECDSA on P-256 or Ed25519. A component that is signed with
    /// none of them is not loaded.
    #[schemars(length(min = 1, max = 8), inner(length(min = 1, max = 4096)))]
    pub keys: Vec<String>,
}

/// What was pulled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactStatus {
    /// The artifact as the policy names it.
    pub image: String,
    /// Digest of the manifest that its tag named when it was last pulled: what to pin,
    /// as in `registry.example/team/plugin@sha256:…`.
    pub digest: String,
}
