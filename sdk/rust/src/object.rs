//! The parts that objects of all kinds have: what a plugin writes of them, and
//! what it reads.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::kind::Strings;
use crate::words::Words;
use crate::{BadLabel, Metadata, ObjectReference, parse_bool};

/// The label by which an agent finds what its plugins own.
const PLUGIN_LABEL: &str = "reeve.dev/plugin";

/// The metadata of an object that a plugin returns. The host adds the marks of
/// ownership to it.
///
/// ```
/// use reeve_sdk::prelude::*;
///
/// #[output]
/// struct ConfigMap {
///     api_version: &'static str,
///     kind: &'static str,
///     metadata: ObjectMeta,
/// }
///
/// let metadata = Kind::new("v1", "ConfigMap").object("x").in_namespace("alice").into();
/// let map = ConfigMap { api_version: "v1", kind: "ConfigMap", metadata };
/// assert_eq!(
///     Outcome::of([map]).objects_json()[0]["metadata"],
///     json!({"name": "x", "namespace": "alice"}),
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ObjectMeta {
    /// Its name.
    pub name: String,
    /// Its namespace; none for a cluster-scoped object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels that the plugin decides.
    #[serde(skip_serializing_if = "Strings::is_empty")]
    pub labels: Strings,
    /// Annotations that the plugin decides.
    #[serde(skip_serializing_if = "Strings::is_empty")]
    pub annotations: Strings,
}

impl From<ObjectReference> for ObjectMeta {
    fn from(object: ObjectReference) -> Self {
        Self {
            name: object.name,
            namespace: object.namespace,
            labels: Strings::new(),
            annotations: Strings::new(),
        }
    }
}

/// An object of a kind that keeps what it wants in `spec`, as most do.
///
/// ```
/// use reeve_sdk::prelude::*;
///
/// let claim = Kind::new("v1", "PersistentVolumeClaim").object("data").in_namespace("alice");
/// let outcome = Outcome::of([Object::new(claim, json!({"volumeName": "alice-data"}))]);
/// assert_eq!(outcome.objects_json()[0]["spec"]["volumeName"], "alice-data");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Object<S> {
    api_version: Cow<'static, str>,
    kind: Cow<'static, str>,
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// What it wants, as far as the plugin decides it.
    pub spec: S,
}

impl<S> Object<S> {
    /// The object of this kind, namespace and name.
    pub fn new(object: ObjectReference, spec: S) -> Self {
        Self {
            api_version: object.kind.api_version.clone(),
            kind: object.kind.kind.clone(),
            metadata: object.into(),
            spec,
        }
    }
}

/// An ownerReference of an object that a plugin reads, for use in a type of its
/// own. On objects that a plugin returns, the host sets them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerReference {
    /// Group and version of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// Unique id of the owner.
    pub uid: String,
    /// Whether it is the one owner that controls the object.
    pub controller: bool,
}

// By hand, as Metadata, of which it is a part.
impl<'de> Deserialize<'de> for OwnerReference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = OwnerReference;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an ownerReference")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OwnerReference, A::Error> {
        const NAMES: Words = Words::among(&["apiVersion", "kind", "name", "uid", "controller"]);
        let mut owner = OwnerReference::default();
        while let Some(index) = map.next_key_seed(NAMES)? {
            match index {
                0 => owner.api_version = map.next_value()?,
                1 => owner.kind = map.next_value()?,
                2 => owner.name = map.next_value()?,
                3 => owner.uid = map.next_value()?,
                4 => owner.controller = map.next_value()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(owner)
    }
}

impl Metadata {
    /// The boolean in a label, as [`parse_bool`] reads it; none without the label.
    ///
    /// # Errors
    ///
    /// When the label holds something else.
    pub fn flag(&self, label: &str) -> Result<Option<bool>, BadLabel> {
        self.labels
            .get(label)
            .map(|value| {
                parse_bool(value).map_err(|_| BadLabel {
                    label: label.to_owned(),
                    value: value.clone(),
                })
            })
            .transpose()
    }

    /// Whether the object belongs to a plugin of an agent, this one or another. It
    /// can be told where the labels are read.
    pub fn belongs_to_plugin(&self) -> bool {
        self.labels.contains_key(PLUGIN_LABEL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use serde_json::json;

    #[test]
    fn an_object_has_just_what_was_said() {
        const POLICY: Kind = Kind::new("networking.k8s.io/v1", "NetworkPolicy");
        let mut object = Object::new(POLICY.object("x").in_namespace("alice"), json!({"a": 1}));
        let expected = json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "x", "namespace": "alice"},
            "spec": {"a": 1},
        });
        assert_eq!(json!(object), expected);
        object.metadata.namespace = None;
        let labels = [("a".to_owned(), "b".to_owned())];
        object.metadata.labels = labels.into();
        assert_eq!(
            json!(object)["metadata"],
            json!({"name": "x", "labels": {"a": "b"}})
        );
    }

    #[test]
    fn flags_are_true_false_absent_or_named_as_bad() {
        let metadata = |value: Option<&str>| Metadata {
            labels: value
                .map(|value| ("a.com/on".to_owned(), value.to_owned()))
                .into_iter()
                .collect(),
            ..Metadata::default()
        };
        for (value, flag) in [
            (None, None),
            (Some("T"), Some(true)),
            (Some("false"), Some(false)),
        ] {
            assert_eq!(metadata(value).flag("a.com/on"), Ok(flag));
        }
        assert_eq!(
            metadata(Some("yes"))
                .flag("a.com/on")
                .unwrap_err()
                .to_string(),
            "label a.com/on=yes: not a boolean; set it to true or false, or remove it"
        );
    }

    #[test]
    fn owner_references_are_read_from_the_names_of_kubernetes() {
        let json = r#"{"apiVersion": "a/v1", "kind": "K", "name": "n", "uid": "u",
            "controller": true, "blockOwnerDeletion": true}"#;
        let owner: OwnerReference = serde_json::from_str(json).unwrap();
        assert_eq!((&*owner.api_version, &*owner.uid), ("a/v1", "u"));
        assert!(owner.controller);
    }
}
