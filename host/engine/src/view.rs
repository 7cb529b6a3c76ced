//! What one call sees, as the caller provides it.

use bytes::Bytes;
use reeve_core::{GroupVersionKind, ObjectReference};

/// What one call sees. All answers within one call must come from one version
/// of the world. Implemented by the caller, which also records what was asked.
///
/// The functions run on the guest's own stack while it waits, so they must not
/// block: they answer from memory.
pub trait View: Send + Sync + 'static {
    /// The object as one JSON text, or none when it does not exist. An empty
    /// projection stands for all but `/status`.
    ///
    /// # Errors
    ///
    /// When the object may not be read, or it cannot be told whether it exists.
    fn get(
        &self,
        object: &ObjectReference,
        projection: &[String],
    ) -> Result<Option<Bytes>, ReadError>;

    /// All objects that match, ordered by namespace and name.
    ///
    /// # Errors
    ///
    /// When not all of them may be read, or not all of them are known.
    fn list(&self, query: &ListQuery) -> Result<Vec<Bytes>, ReadError>;

    /// The names of all objects that match, ordered by namespace and name. The
    /// query's projection is empty and means nothing.
    ///
    /// # Errors
    ///
    /// When not all of them may be read, or not all of them are known.
    fn list_keys(&self, query: &ListQuery) -> Result<Vec<ObjectReference>, ReadError>;

    /// Milliseconds since 1970-01-01T00:00:00Z; the same all through one call.
    fn now(&self) -> u64;

    /// A declared outside document.
    ///
    /// # Errors
    ///
    /// When the document may not be read or has never been fetched.
    fn source(&self, name: &str) -> Result<Document, SourceError>;

    /// Seconds since a declared outside document was last confirmed to be current, in
    /// whole intervals.
    ///
    /// # Errors
    ///
    /// As [`View::source`].
    fn source_age(&self, name: &str) -> Result<u64, SourceError>;
}

/// Which objects to list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListQuery {
    /// Kind to list.
    pub kind: GroupVersionKind,
    /// Namespace; none lists all namespaces.
    pub namespace: Option<String>,
    /// Label selector in Kubernetes' text form, not parsed yet; empty selects all.
    pub selector: String,
    /// JSON Pointers to what is read, not parsed yet; empty stands for all but
    /// `/status`.
    pub projection: Vec<String>,
}

/// Why a read gave no answer. The text is for the plugin's author.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The plugin's account may not read this, or not all of it.
    #[error("forbidden: {0}")]
    Forbidden(String),
    /// The manifest does not declare this read.
    #[error("undeclared: {0}")]
    Undeclared(String),
    /// Not all objects of the kind are known yet, or the kind is not served.
    #[error("not synced: {0}")]
    NotSynced(String),
    /// The question is malformed.
    #[error("invalid: {0}")]
    Invalid(String),
}

/// The last good version of an outside document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its body.
    pub body: Bytes,
    /// Its media type, as the server said it; empty if nobody did.
    pub media_type: String,
}

/// Why there is no document. The text is for the plugin's author.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The manifest does not declare this source.
    #[error("undeclared: {0}")]
    Undeclared(String),
    /// The operator has not granted it.
    #[error("forbidden: {0}")]
    Forbidden(String),
    /// It has not been fetched successfully yet.
    #[error("not synced: {0}")]
    NotSynced(String),
}
