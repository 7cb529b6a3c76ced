//! One call of a plugin as a file: what it was given, what it read, what it answered.
//!
//! A call is a pure function of its inputs, so a file that holds all of them holds the
//! call: the same component answers the same, byte for byte, wherever the file is. The
//! form of the file is described in `docs/testing.md`.
//!
//! ```text
//! call ─▶ Recording ─▶ to_text ─▶ file ─▶ read ─▶ Recording ─▶ call again
//!                                                                  │
//!                               recorded Answer ─▶ compare ◀─ Answer
//! ```

mod answer;
mod body;
mod declared;
mod difference;
mod error;
mod file;
mod read;
mod redact;
#[cfg(test)]
mod tests;

pub use answer::{Answer, FaultRecord};
pub use body::Body;
pub use declared::declares;
pub use difference::{Difference, Extent, compare};
pub use error::RecordingError;
pub use file::{API_VERSION, KIND, MAX_BYTES, ReadBack};
pub use read::{Question, Read, ReadFailure, ReadFailureKind, Told};
pub use redact::{redact, secrets};

use crate::digest::Digest;
use crate::kind::{GroupVersionKind, ObjectReference};
use crate::manifest::ConfigMapEntry;
use serde::{Deserialize, Serialize};

/// One call of `reconcile`, whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// What was called for what, when, and by which reeve.
    pub metadata: About,
    /// The component that was called.
    pub component: CalledComponent,
    /// The generation of the contract that it speaks, such as `reeve:plugin@0.1`.
    pub contract: String,
    /// Everything that the answer follows from.
    pub input: Input,
    /// The bounds of the call.
    pub limits: CallLimits,
    /// What of the input is not as it was in the cluster; empty when all of it is.
    pub redacted: Vec<Redaction>,
    /// The answer to this input.
    pub answer: Answer,
}

/// What was called for what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct About {
    /// Name under which the plugin is installed.
    pub plugin: String,
    /// The primary.
    pub primary: Named,
    /// When, in the form of RFC 3339.
    pub recorded_at: String,
    /// Version of the reeve that wrote this.
    pub reeve: String,
}

/// An object in the file: its kind, and where it is.
///
/// The same as an [`ObjectReference`], without the flattening that would let an
/// unknown field pass.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Named {
    /// API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    group: String,
    version: String,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    name: String,
}

impl From<&ObjectReference> for Named {
    fn from(object: &ObjectReference) -> Self {
        Self {
            group: object.kind.group.clone(),
            version: object.kind.version.clone(),
            kind: object.kind.kind.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
        }
    }
}

impl From<Named> for ObjectReference {
    fn from(object: Named) -> Self {
        let kind = GroupVersionKind::new(object.group, object.version, object.kind);
        Self::new(kind, object.namespace, object.name)
    }
}

impl Named {
    /// The object.
    pub fn reference(&self) -> ObjectReference {
        self.clone().into()
    }
}

/// Which component was called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CalledComponent {
    /// Digest of its bytes, unpacked.
    pub digest: Digest,
    /// How many these are.
    pub bytes: u64,
    /// What it calls itself.
    pub name: String,
    /// Its version, by its own account.
    pub version: String,
}

/// Everything that the answer of a call follows from.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The primary as the plugin saw it.
    pub primary: Body,
    /// What of the primary that is, as JSON Pointers; none stand for all but the
    /// status.
    pub projection: Vec<String>,
    /// The configuration.
    pub config: Body,
    /// What finished actions have reported, in order.
    pub facts: Vec<RecordedFact>,
    /// What it read and was told, in order of the questions.
    pub reads: Vec<Read>,
    /// The kinds of its manifest as the cluster served them.
    pub kinds: Vec<ServedKind>,
    /// Sources that are entries of ConfigMaps; the others are documents from outside
    /// of the cluster.
    pub config_map_sources: Vec<ConfigMapSource>,
}

/// What a finished action has reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RecordedFact {
    /// The action's key.
    pub key: String,
    /// What it reported.
    pub value: Body,
}

/// A kind as a cluster serves it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ServedKind {
    /// API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Plural name in paths.
    pub plural: String,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
}

/// A source that is an entry of a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ConfigMapSource {
    /// Name of the source.
    pub name: String,
    /// Namespace of the ConfigMap.
    pub namespace: String,
    /// Its name.
    pub config_map: String,
    /// The entry.
    pub key: String,
}

impl ConfigMapSource {
    /// The source of this name, read from there.
    pub fn new(name: &str, entry: &ConfigMapEntry) -> Self {
        Self {
            name: name.to_owned(),
            namespace: entry.namespace.clone(),
            config_map: entry.name.clone(),
            key: entry.key.clone(),
        }
    }
}

/// The bounds of a call, by the names that they have in `Plugin.spec.limits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(
    missing_docs,
    reason = "described where they are set, in docs/resources.md"
)]
pub struct CallLimits {
    pub run_milliseconds: u64,
    pub wall_milliseconds: u64,
    pub memory_bytes: u64,
    pub stack_bytes: u64,
    pub output_bytes: u64,
    pub output_objects: u64,
    pub host_calls: u64,
    pub host_call_bytes: u64,
    pub log_bytes: u64,
}

/// Values of a Secret that the plugin was not shown for this recording: each was
/// replaced before the call was made, so that the answer is the one to what stands in
/// the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Redaction {
    /// The Secret.
    pub object: Named,
    /// Its fields of which values were replaced, as JSON Pointers, in order.
    pub fields: Vec<String>,
}
