//! A kind as the API server serves it.

use reeve_core::{GroupVersionKind, ObjectReference};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A kind with what is needed to address its objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// The kind.
    pub kind: GroupVersionKind,
    /// Its name in paths and in RBAC rules, such as `resourcequotas`.
    pub plural: Arc<str>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// The rest follows from the kind, but for a while after its CRD was made anew.
impl Hash for Resource {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
    }
}

impl Resource {
    /// A reference to one of its objects. The namespace is left out for a
    /// cluster-scoped kind.
    pub fn reference(&self, namespace: Option<&str>, name: &str) -> ObjectReference {
        let namespace = namespace.filter(|_| self.namespaced).map(str::to_owned);
        ObjectReference::new(self.kind.clone(), namespace, name)
    }

    /// The path of the collection: all of it, or its part in a namespace.
    pub(crate) fn collection_path(&self, namespace: Option<&str>) -> String {
        // For a name as well.
        let mut path = String::with_capacity(128);
        push_version(&mut path, &self.kind);
        if let Some(namespace) = namespace.filter(|_| self.namespaced) {
            path.push_str("/namespaces/");
            push_segment(&mut path, namespace);
        }
        path.push('/');
        path.push_str(&self.plural);
        path
    }

    /// The path of one object.
    pub(crate) fn object_path(&self, namespace: Option<&str>, name: &str) -> String {
        let mut path = self.collection_path(namespace);
        path.push('/');
        push_segment(&mut path, name);
        path
    }
}

/// `resourcequotas`, or `profiles.kubeflow.org`, as RBAC rules and kubectl write it.
impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plural)?;
        if !self.kind.group.is_empty() {
            write!(f, ".{}", self.kind.group)?;
        }
        Ok(())
    }
}

/// The path below which a group's version is served.
pub(crate) fn version_path(kind: &GroupVersionKind) -> String {
    let mut path = String::new();
    push_version(&mut path, kind);
    path
}

fn push_version(path: &mut String, kind: &GroupVersionKind) {
    match kind.group.as_str() {
        "" => path.push_str("/api/"),
        group => {
            path.push_str("/apis/");
            path.push_str(group);
            path.push('/');
        }
    }
    path.push_str(&kind.version);
}

/// Appends text as one path segment or query value. Names of RBAC objects may
/// hold nearly any character, and a name must never become a second segment.
pub(crate) fn push_segment(path: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            path.push(char::from(byte));
        } else {
            const HEX: &[u8; 16] = b"0123456789ABCDEF";
            path.push('%');
            path.push(char::from(HEX[usize::from(byte >> 4)]));
            path.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(group: &str, plural: &str, namespaced: bool) -> Resource {
        Resource {
            kind: GroupVersionKind::new(group, "v1", "Thing"),
            plural: plural.into(),
            namespaced,
        }
    }

    #[test]
    fn paths_follow_group_and_scope() {
        for (resource, namespace, name, path) in [
            (
                resource("", "configmaps", true),
                Some("a"),
                "b",
                "/api/v1/namespaces/a/configmaps/b",
            ),
            (
                resource("apps", "deployments", true),
                Some("a"),
                "b",
                "/apis/apps/v1/namespaces/a/deployments/b",
            ),
            (
                resource("", "namespaces", false),
                None,
                "b",
                "/api/v1/namespaces/b",
            ),
            (
                resource("rbac", "clusterroles", false),
                Some("ignored"),
                "system:a/b%?",
                "/apis/rbac/v1/clusterroles/system%3Aa%2Fb%25%3F",
            ),
        ] {
            assert_eq!(resource.object_path(namespace, name), path);
        }
    }

    #[test]
    fn a_cluster_scoped_reference_has_no_namespace() {
        let namespaces = resource("", "namespaces", false);
        assert_eq!(namespaces.reference(Some("x"), "a").namespace, None);
    }
}
