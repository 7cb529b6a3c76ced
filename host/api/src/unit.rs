//! `Unit`: one primary of one plugin that somebody should know about.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One primary of one plugin that somebody should know about. It exists only
/// while the unit is not ready or its plugin has something to say about it, so
/// that nothing grows with the number of healthy units.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "reeve.dev",
    version = "v1alpha1",
    kind = "Unit",
    namespaced,
    status = "UnitStatus",
    category = "reeve",
    doc = "One primary of one plugin that somebody should know about.",
    printcolumn = r#"{"name":"Plugin","type":"string","jsonPath":".spec.plugin"}"#,
    printcolumn = r#"{"name":"Kind","type":"string","jsonPath":".spec.primary.kind"}"#,
    printcolumn = r#"{"name":"Primary","type":"string","jsonPath":".spec.primary.name"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct UnitSpec {
    /// Name of the plugin.
    pub plugin: String,
    /// The object that the unit is about.
    pub primary: PrimaryReference,
}

/// Names a primary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrimaryReference {
    /// Its API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; absent for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// What the agent observed of a unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnitStatus {
    /// Digest of the component that ran last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Failures in a row.
    #[serde(default)]
    pub failures: u32,
    /// `Ready`, and what the plugin reports.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}
