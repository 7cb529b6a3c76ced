//! Kinds and the names of objects.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// The group, version and kind of a Kubernetes object.
///
/// Clones share the names: kinds are few, and each reference to an object has one.
#[derive(Clone, PartialEq, Eq)]
pub struct GroupVersionKind(Arc<KindNames>);

/// The names that make a kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename = "GroupVersionKind")]
pub struct KindNames {
    /// API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// Version within the group.
    pub version: String,
    /// Kind in singular CamelCase.
    pub kind: String,
}

impl GroupVersionKind {
    /// A kind by its three names.
    pub fn new(
        group: impl Into<String>,
        version: impl Into<String>,
        kind: impl Into<String>,
    ) -> Self {
        Self(Arc::new(KindNames {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
        }))
    }

    /// The same kind, with the names of one of `known` where that has it.
    pub fn shared<'a>(self, known: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut known = known.into_iter();
        known.find(|one| **one == self).cloned().unwrap_or(self)
    }

    /// From an object's `apiVersion` and `kind` fields.
    ///
    /// Returns none when either is empty or the version has more than one slash.
    pub fn from_fields(api_version: &str, kind: &str) -> Option<Self> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        if version.is_empty() || version.contains('/') || kind.is_empty() {
            return None;
        }
        Some(Self::new(group, version, kind))
    }

    /// Whether this is the kind of Secrets. No right to list or watch them is ever asked
    /// for, but by name.
    pub fn is_secret(&self) -> bool {
        self.group.is_empty() && self.kind == "Secret"
    }

    /// The value of an object's `apiVersion` field.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Whether both are one kind, whatever the version.
    pub fn same_kind(&self, other: &Self) -> bool {
        self.kind == other.kind && self.group == other.group
    }
}

impl Deref for GroupVersionKind {
    type Target = KindNames;

    fn deref(&self) -> &KindNames {
        &self.0
    }
}

/// What is changed is no longer shared.
impl DerefMut for GroupVersionKind {
    fn deref_mut(&mut self) -> &mut KindNames {
        Arc::make_mut(&mut self.0)
    }
}

impl fmt::Debug for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KindNames {
            group,
            version,
            kind,
        } = &**self;
        f.debug_struct("GroupVersionKind")
            .field("group", group)
            .field("version", version)
            .field("kind", kind)
            .finish()
    }
}

impl PartialOrd for GroupVersionKind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for GroupVersionKind {
    fn cmp(&self, other: &Self) -> Ordering {
        match Arc::ptr_eq(&self.0, &other.0) {
            true => Ordering::Equal,
            false => self.0.cmp(&other.0),
        }
    }
}

impl Serialize for GroupVersionKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for GroupVersionKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Arc::new(KindNames::deserialize(deserializer)?)))
    }
}

/// Kinds of one name in several groups or versions are few, and are hashed on each way to an
/// object.
impl Hash for GroupVersionKind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
    }
}

/// `ResourceQuota.v1` or `Profile.v1.kubeflow.org`, as kubectl writes kinds.
impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.kind, self.version)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        Ok(())
    }
}

/// Names one object, which may or may not exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectReference {
    /// Kind of the object.
    #[serde(flatten)]
    pub kind: GroupVersionKind,
    /// Namespace; none for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
}

impl ObjectReference {
    /// A reference by its parts.
    pub fn new(kind: GroupVersionKind, namespace: Option<String>, name: impl Into<String>) -> Self {
        Self {
            kind,
            namespace,
            name: name.into(),
        }
    }
}

/// `ResourceQuota alice/quotas`, or `Profile alice` for a cluster-scoped object.
impl fmt::Display for ObjectReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {}/{}", self.kind.kind, namespace, self.name),
            None => write!(f, "{} {}", self.kind.kind, self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_version_round_trips() {
        for (api_version, kind, printed) in [
            ("v1", "ConfigMap", "ConfigMap.v1"),
            ("apps/v1", "Deployment", "Deployment.v1.apps"),
            ("kubeflow.org/v1", "Profile", "Profile.v1.kubeflow.org"),
        ] {
            let gvk = GroupVersionKind::from_fields(api_version, kind).unwrap();
            assert_eq!(gvk.api_version(), api_version);
            assert_eq!(gvk.to_string(), printed);
        }
    }

    #[test]
    fn what_is_changed_is_not_what_it_was_cloned_from() {
        let first = GroupVersionKind::new("apps", "v1", "Deployment");
        let mut second = first.clone();
        second.version = "v2".to_owned();
        assert_eq!(&first.version, "v1");
        assert!(first < second);
        let known = [GroupVersionKind::new("", "v1", "Pod"), second.clone()];
        let again = GroupVersionKind::new("apps", "v2", "Deployment").shared(&known);
        assert!(Arc::ptr_eq(&again.0, &second.0));
        let written = serde_json::to_string(&again).unwrap();
        assert_eq!(
            written,
            r#"{"group":"apps","version":"v2","kind":"Deployment"}"#
        );
        assert_eq!(
            serde_json::from_str::<GroupVersionKind>(&written).unwrap(),
            second
        );
    }

    #[test]
    fn malformed_fields_are_no_kind() {
        for (api_version, kind) in [("", "A"), ("v1", ""), ("a/b/c", "A"), ("a/", "A")] {
            assert_eq!(GroupVersionKind::from_fields(api_version, kind), None);
        }
    }
}
