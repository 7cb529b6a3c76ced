//! Claims on volumes: what has to be known to tell how one is.

use super::Manifest;
use crate::kind::GroupVersionKind;
use std::sync::LazyLock;

impl Manifest {
    /// Whether it writes PersistentVolumeClaims. Whether one of them has to be bound
    /// before anything uses it, its StorageClass says.
    pub fn writes_claims(&self) -> bool {
        self.writes.iter().any(|rule| is_claim(&rule.kind))
    }
}

/// Whether this is the kind of a PersistentVolumeClaim.
pub fn is_claim(kind: &GroupVersionKind) -> bool {
    kind.group.is_empty() && kind.kind == "PersistentVolumeClaim"
}

/// The kind of a StorageClass.
pub fn storage_class_kind() -> &'static GroupVersionKind {
    static KIND: LazyLock<GroupVersionKind> =
        LazyLock::new(|| GroupVersionKind::new("storage.k8s.io", "v1", "StorageClass"));
    &KIND
}
