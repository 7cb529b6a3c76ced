//! `JournalEntry`: what was deleted or overwritten, so that it can be restored.

use crate::unit::PrimaryReference;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One deletion, or one overwriting of what somebody else had set, written down
/// before it was done. `reeve undo` restores from it. The agent keeps the newest
/// thousand entries of its namespace.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "reeve.dev",
    version = "v1alpha1",
    kind = "JournalEntry",
    plural = "journalentries",
    singular = "journalentry",
    shortname = "journal",
    namespaced,
    category = "reeve",
    doc = "Something that Reeve deleted or overwrote, as it was before.",
    printcolumn = r#"{"name":"Operation","type":"string","jsonPath":".spec.operation"}"#,
    printcolumn = r#"{"name":"Kind","type":"string","jsonPath":".spec.object.kind"}"#,
    printcolumn = r#"{"name":"Namespace","type":"string","jsonPath":".spec.object.namespace"}"#,
    printcolumn = r#"{"name":"Object","type":"string","jsonPath":".spec.object.name"}"#,
    printcolumn = r#"{"name":"Plugin","type":"string","jsonPath":".spec.plugin"}"#,
    printcolumn = r#"{"name":"Primary","type":"string","priority":1,"jsonPath":".spec.primary.name"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","priority":1,"jsonPath":".spec.reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct JournalEntrySpec {
    /// What was done to the object.
    pub operation: Operation,
    /// Name of the plugin on whose behalf.
    pub plugin: String,
    /// The primary of the unit on whose behalf.
    pub primary: PrimaryReference,
    /// The object that was deleted or overwritten.
    pub object: PrimaryReference,
    /// Why, for people.
    pub reason: String,
    /// The object as it was: its JSON without `metadata.managedFields`, compressed
    /// (zstd) and encoded (base64). Absent when all of it was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// JSON Pointers of what was left out of the content, and so cannot be
    /// restored: the data of a Secret, or everything of an object that is too
    /// large.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<String>,
}

/// What was done to an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Operation {
    /// It was deleted.
    #[default]
    Delete,
    /// It was deleted to be made anew, since a field of it cannot be changed.
    Recreate,
    /// Fields that somebody else had set were overwritten.
    Overwrite,
}
