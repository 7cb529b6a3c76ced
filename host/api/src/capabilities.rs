//! What a plugin may reach outside of the cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a plugin may reach outside of the cluster. Nothing unless it stands here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// Where HTTP requests may go, those of sources and of actions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub http: Vec<HttpGrant>,
    /// Folders of the agent's pod below which sources may be files. What Kubernetes
    /// mounts for the agent's own identity is never read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub files: Vec<String>,
    /// PostgreSQL databases that actions may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub sql: Vec<SqlGrant>,
    /// Keys with which the agent signs requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub keys: Vec<KeyGrant>,
}

/// Where HTTP requests may go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpGrant {
    /// URL such as `https://example.com/v1/`: requests to the same scheme, host and
    /// port, to this path and below.
    pub url: String,
    /// Methods that may be used, such as `GET`; all when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub methods: Vec<String>,
    /// Networks such as `10.0.0.0/8` whose addresses the host may have: just these.
    /// Without any: all addresses but loopback, link-local and reserved ones and the
    /// metadata services of clouds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub addresses: Vec<String>,
    /// Certificate authorities in PEM: only these are trusted. Without them, those of
    /// the agent's pod are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 262_144))]
    pub ca_bundle: Option<String>,
    /// Name of the key with which the agent signs these requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// A PostgreSQL database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SqlGrant {
    /// Name by which the plugin asks for it.
    pub name: String,
    /// Secret with `host`, `username` and `password`, and if needed `port`, `database`
    /// and `ca.crt`.
    pub secret: SecretReference,
    /// As `addresses` of `http`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub addresses: Vec<String>,
}

/// A key with which the agent signs requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyGrant {
    /// Name by which `http` refers to it.
    pub name: String,
    /// How it signs.
    #[serde(rename = "type")]
    pub kind: KeyType,
    /// Secret with `token` or the entry that `entry` names (Bearer),
    /// `azurestorageaccountname` and
    /// `azurestorageaccountkey` (AzureSharedKey), or `AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY` and if needed `AWS_SESSION_TOKEN` (AwsSigV4).
    pub secret: SecretReference,
    /// Entry of the Secret that is the token, `token` unless set; for Bearer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub entry: Option<String>,
    /// Region, such as `us-east-1`; for AwsSigV4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Service, such as `s3`; for AwsSigV4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
}

/// How a key signs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum KeyType {
    /// A token that is sent as it is.
    #[default]
    Bearer,
    /// The shared key of an Azure storage account.
    AzureSharedKey,
    /// An access key of AWS, with version 4 of its signature.
    AwsSigV4,
}

/// Names a Secret, which the agent itself must be able to get.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretReference {
    /// Its name.
    pub name: String,
    /// Its namespace; the agent's own if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}
