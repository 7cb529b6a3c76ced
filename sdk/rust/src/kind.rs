//! How a plugin names kinds and objects.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::OwnerReference;
use crate::words::Words;

/// The kind of a Kubernetes object.
///
/// ```
/// use reeve_sdk::Kind;
///
/// const RESOURCE_QUOTA: Kind = Kind::new("v1", "ResourceQuota");
/// const PROFILE: Kind = Kind::new("kubeflow.org/v1", "Profile");
///
/// assert_eq!(PROFILE.group(), "kubeflow.org");
/// assert_eq!(RESOURCE_QUOTA.object("quotas").in_namespace("alice").to_string(),
///            "ResourceQuota alice/quotas");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    pub(crate) api_version: Cow<'static, str>,
    pub(crate) kind: Cow<'static, str>,
}

impl Kind {
    /// The kind `kind` of `api_version`, both as they stand in a YAML file.
    pub const fn new(api_version: &'static str, kind: &'static str) -> Self {
        Self {
            api_version: Cow::Borrowed(api_version),
            kind: Cow::Borrowed(kind),
        }
    }

    /// A kind whose name is known only at run time, such as from the
    /// configuration.
    pub fn parse(api_version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            api_version: Cow::Owned(api_version.into()),
            kind: Cow::Owned(kind.into()),
        }
    }

    /// The kind of a type of `k8s-openapi`.
    #[cfg(feature = "k8s-openapi")]
    pub const fn of<T: k8s_openapi::Resource>() -> Self {
        Self::new(T::API_VERSION, T::KIND)
    }

    /// Group and version, as in `apiVersion`.
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
    }

    /// Version within the group.
    pub fn version(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or(&*self.api_version, |(_, version)| version)
    }

    /// The kind in its singular CamelCase form.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The cluster-scoped object of this kind and name; for one in a namespace,
    /// continue with [`ObjectReference::in_namespace`].
    pub fn object(&self, name: impl Into<String>) -> ObjectReference {
        ObjectReference {
            kind: self.clone(),
            namespace: None,
            name: name.into(),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)
    }
}

/// Names one object, which may or may not exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectReference {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; none for a cluster-scoped object.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl ObjectReference {
    /// The object of the same kind and name in this namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }
}

impl fmt::Display for ObjectReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

/// The part of an object's metadata that plugins usually read, for use in a type
/// of their own:
///
/// ```
/// #[derive(serde::Deserialize)]
/// struct Profile {
///     metadata: reeve_sdk::Metadata,
/// }
/// ```
///
/// Name, namespace and uid are always there. What the projection of the manifest
/// leaves out is empty here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Its name.
    pub name: String,
    /// Its namespace; none for a cluster-scoped object.
    pub namespace: Option<String>,
    /// Its unique id.
    pub uid: String,
    /// Its labels.
    pub labels: Strings,
    /// Its annotations.
    pub annotations: Strings,
    /// What it goes with.
    pub owner_references: Vec<OwnerReference>,
    /// Since when it is being deleted, if it is.
    pub deletion_timestamp: Option<String>,
}

// By hand, since each plugin has it, and derived it is four times the code.
impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Metadata;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the metadata of an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metadata, A::Error> {
        const NAMES: Words = Words::among(&[
            "name",
            "namespace",
            "uid",
            "labels",
            "annotations",
            "ownerReferences",
            "deletionTimestamp",
        ]);
        let mut metadata = Metadata::default();
        while let Some(index) = map.next_key_seed(NAMES)? {
            match index {
                0 => metadata.name = map.next_value()?,
                1 => metadata.namespace = map.next_value()?,
                2 => metadata.uid = map.next_value()?,
                3 => metadata.labels = map.next_value_seed(Entries)?,
                4 => metadata.annotations = map.next_value_seed(Entries)?,
                5 => metadata.owner_references = map.next_value()?,
                6 => metadata.deletion_timestamp = map.next_value()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(metadata)
    }
}

/// Reads [`Strings`].
///
/// They come in the order of their keys, as Go writes maps, and a tree takes the least of
/// all keys with one comparison for each of its levels, any other with as many as half of a
/// node has. Comparing texts is a third of what a plugin computes that reads labels, so
/// they go in from the last to the first.
struct Entries;

impl<'de> DeserializeSeed<'de> for Entries {
    type Value = Strings;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Strings, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Entries {
    type Value = Strings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Strings, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry::<String, String>()? {
            entries.push(entry);
        }
        let mut strings = Strings::new();
        while let Some((key, value)) = entries.pop() {
            // Of entries with the same key the last one counts.
            strings.entry(key).or_insert(value);
        }
        Ok(strings)
    }
}

/// Labels or annotations, by key.
pub type Strings = std::collections::BTreeMap<String, String>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_versions_split_into_group_and_version() {
        for (api_version, group, version) in [
            ("v1", "", "v1"),
            ("apps/v1", "apps", "v1"),
            ("kubeflow.org/v1alpha1", "kubeflow.org", "v1alpha1"),
        ] {
            let kind = Kind::parse(api_version, "X");
            assert_eq!((kind.group(), kind.version()), (group, version));
            assert_eq!(kind.api_version(), api_version);
        }
    }

    #[test]
    fn metadata_reads_what_is_there() {
        let json = r#"{"name": "alice", "uid": "1", "generation": 3, "labels": {"a": "b"}}"#;
        let metadata: Metadata = serde_json::from_str(json).unwrap();
        assert_eq!(metadata.name, "alice");
        assert_eq!(metadata.labels["a"], "b");
        assert!(metadata.annotations.is_empty() && metadata.namespace.is_none());
    }

    #[test]
    fn labels_are_read_in_any_order_and_the_last_of_a_key_counts() {
        let json = r#"{"labels": {"b": "1", "c": "2", "a": "3", "b": "4"}}"#;
        let metadata: Metadata = crate::parse_json(json).unwrap();
        let labels = [("a", "3"), ("b", "4"), ("c", "2")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(metadata.labels, Strings::from(labels));
        let error = crate::parse_json::<Metadata>(r#"{"labels": {"a": 1}}"#).unwrap_err();
        assert_eq!(
            error.to_string(),
            "/labels/a: invalid type: number, expected a string"
        );
    }

    #[cfg(feature = "k8s-openapi")]
    #[test]
    fn kinds_come_from_k8s_openapi() {
        use k8s_openapi::api::networking::v1::NetworkPolicy;
        let kind = Kind::of::<NetworkPolicy>();
        assert_eq!(kind, Kind::new("networking.k8s.io/v1", "NetworkPolicy"));
    }
}
