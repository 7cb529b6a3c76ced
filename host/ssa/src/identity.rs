//! Fields that nobody owns: what identifies an object, and what the server
//! alone writes.

/// Such fields of an object. `metadata` itself is one as well, but not what is
/// in it.
pub(crate) const OBJECT: [&str; 2] = ["apiVersion", "kind"];

/// Such fields of its metadata.
pub(crate) const METADATA: [&str; 9] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];
