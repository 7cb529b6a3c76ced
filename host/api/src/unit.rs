//! `Unit`: one primary of one plugin that somebody should know about.

use crate::plan::PlanStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One primary of one plugin that somebody should know about. It exists only
/// while the unit is not ready, its plugin has something to say about it, or there is
/// something to remember of it that the cluster does not show (outside effects, names of
/// Secrets; one that does nothing but remember has no conditions), so that nothing else
/// grows with the number of healthy units.
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
    /// How far the newest desired revision is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncStatus>,
    /// What would be done, where that waits for a person or the mode of the
    /// plugin is `PlanOnly`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanStatus>,
    /// Outside effects: those that are in place, that are to be, and that are to be
    /// taken away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<ActionStatus>,
    /// Secrets that the unit has, or may have, in the cluster. Nobody may list Secrets, so
    /// their names are remembered, before they are made and until they are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<KeptSecret>,
    /// `Ready`, and what the plugin reports.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// How far a desired revision of a unit is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncStatus {
    /// Digest of the desired objects, `sha256:` and 64 hexadecimal digits.
    pub revision: String,
    /// `Applying`, `Waiting` (something must be healthy before the rest is
    /// applied), `Applied` (all is applied, not all is healthy), `Complete`, or
    /// `Failed` (a hook failed).
    pub progress: String,
    /// Whether this revision was complete once. What differs since then is drift:
    /// it is repaired, and no hook runs for it.
    #[serde(default)]
    pub settled: bool,
    /// What is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<BlockedBy>,
    /// Since when the wave of that is waited for (RFC 3339). A wave that takes
    /// longer than five minutes, or than the annotation `reeve.dev/wave-timeout`
    /// of its objects says, makes the unit `Stalled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wave_since: Option<String>,
    /// What a person has approved, while it is being carried out: `Sync`, this
    /// revision, or `End`, the end of the unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<String>,
    /// The id of the plan that was approved last. It approves nothing a second time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_approval: Option<String>,
    /// Hooks of this revision, by phase and object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookStatus>,
}

/// What a sync waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockedBy {
    /// Phase of the object: `PreSync`, `Sync` or `PostSync`.
    pub phase: String,
    /// Its wave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wave: Option<i64>,
    /// The object, as kind, namespace and name.
    pub object: String,
    /// How it is, such as `Progressing`, `Degraded` or `Suspended`.
    pub status: String,
    /// Why, for people.
    pub reason: String,
    /// Since when it has been waited for without an end (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// How far one hook is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookStatus {
    /// Phase and object.
    pub name: String,
    /// `Pending`, `Running`, `Succeeded` or `Failed`.
    pub state: String,
    /// Uid of the object that ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How an outside effect stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionStatus {
    /// Its key among those of the primary.
    pub key: String,
    /// Name of the action.
    pub name: String,
    /// `Pending`, `InPlace`, `Failing` or `Retiring`.
    pub state: String,
    /// What was asked for last, as JSON text; kept so that it can be taken away when
    /// nobody asks any more. It holds no secret.
    pub request: String,
    /// Digest of what was carried out, generated values included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// What it reported, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fact: Option<String>,
    /// When it was carried out (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_at: Option<String>,
    /// When it was last found to be in place (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_at: Option<String>,
    /// `Apply` or `Retire`: what a person has approved and has not come about yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<String>,
    /// Failures in a row.
    #[serde(default)]
    pub failures: u32,
    /// What went wrong last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Secrets that were generated for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<KeptSecret>,
}

/// Names a Secret.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct KeptSecret {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}
