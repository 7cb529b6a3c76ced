//! ApplySets: the labels and annotations by which kubectl knows what belongs
//! together (KEP-3659).
//!
//! The text of the KEP names the keys `applyset.k8s.io/…`; kubectl was released
//! with `applyset.kubernetes.io/…`, and so that is what is written here. A parent
//! says of which kinds and in which namespaces its members are. It has to say at
//! least that much at every moment, or a pruning kubectl would miss some: widen
//! it before applying, narrow it after pruning.

use crate::digest::Digest;
use crate::kind::{GroupVersionKind, ObjectReference};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Label of a parent: the id of its set.
pub const ID_LABEL: &str = "applyset.kubernetes.io/id";
/// Label of a member: the id of the set that it is in.
pub const PART_OF_LABEL: &str = "applyset.kubernetes.io/part-of";
/// Label of a CustomResourceDefinition whose objects may be parents; any value.
pub const PARENT_TYPE_LABEL: &str = "applyset.kubernetes.io/is-parent-type";
/// Annotation of a parent: the tool that manages the set, as `name/version`.
/// (The KEP calls it a label in one place; kubectl reads an annotation.)
pub const TOOLING_ANNOTATION: &str = "applyset.kubernetes.io/tooling";
/// Annotation of a parent: the kinds of its members.
pub const KINDS_ANNOTATION: &str = "applyset.kubernetes.io/contains-group-kinds";
/// Annotation of a parent: namespaces of members other than its own.
pub const NAMESPACES_ANNOTATION: &str = "applyset.kubernetes.io/additional-namespaces";

/// A kind without its version, as `Kind.group`, or `Kind` in the core group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKind(String);

impl GroupKind {
    /// That of a kind.
    pub fn of(kind: &GroupVersionKind) -> Self {
        if kind.group.is_empty() {
            Self(kind.kind.clone())
        } else {
            Self(format!("{}.{}", kind.kind, kind.group))
        }
    }

    /// How it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a parent says of its members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Their kinds.
    pub kinds: BTreeSet<GroupKind>,
    /// Their namespaces, other than that of the parent.
    pub namespaces: BTreeSet<String>,
}

impl Extent {
    /// The extent of some members of a parent's set.
    pub fn of<'a>(
        parent: &ObjectReference,
        members: impl IntoIterator<Item = &'a ObjectReference>,
    ) -> Self {
        let mut extent = Self::default();
        for member in members {
            extent.kinds.insert(GroupKind::of(&member.kind));
            let elsewhere = member
                .namespace
                .as_ref()
                .filter(|of| Some(*of) != parent.namespace.as_ref());
            extent.namespaces.extend(elsewhere.cloned());
        }
        extent
    }

    /// What covers both: what a parent has to say before anything is applied.
    #[must_use]
    pub fn union(mut self, other: &Self) -> Self {
        self.kinds.extend(other.kinds.iter().cloned());
        self.namespaces.extend(other.namespaces.iter().cloned());
        self
    }
}

/// Why a set is not touched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplySetError {
    /// The parent has the id of another set.
    #[error(
        "{parent}: label {ID_LABEL} is `{found}` instead of `{expected}`; it was copied from \
         another object, remove it"
    )]
    OtherId {
        /// The parent.
        parent: Box<ObjectReference>,
        /// What it says.
        found: String,
        /// The id of its set.
        expected: String,
    },
    /// Another tool manages the set.
    #[error("{parent}: its ApplySet is managed by `{found}`, not by `{tool}`; it is left alone")]
    OtherTool {
        /// The parent.
        parent: Box<ObjectReference>,
        /// The tool that manages it.
        found: String,
        /// The one that asks.
        tool: String,
    },
    /// A parent does not say what it has to.
    #[error(
        "{parent}: it has an ApplySet, but no annotation {annotation} of the form {form}; \
         restore it, or remove the label {ID_LABEL} to begin anew"
    )]
    Incomplete {
        /// The parent.
        parent: Box<ObjectReference>,
        /// What is missing.
        annotation: &'static str,
        /// What it has to look like.
        form: &'static str,
    },
    /// An object to be applied says itself what set it is in.
    #[error("{object}: label {PART_OF_LABEL} is set already; remove it from the object")]
    PartOfAnother {
        /// The object.
        object: Box<ObjectReference>,
    },
}

/// The id of a parent's set: `applyset-`, the SHA-256 of
/// `<name>.<namespace>.<Kind>.<group>` in base64url without padding, and `-v1`.
/// An empty namespace or group leaves its place empty.
pub fn id(parent: &ObjectReference) -> String {
    let text = format!(
        "{}.{}.{}.{}",
        parent.name,
        parent.namespace.as_deref().unwrap_or(""),
        parent.kind.kind,
        parent.kind.group
    );
    let digest = URL_SAFE_NO_PAD.encode(Digest::of(text.as_bytes()).bytes());
    format!("applyset-{digest}-v1")
}

/// Whether objects of a kind may be parents: ConfigMaps, Secrets, and custom
/// resources whose definition, of which these are the labels, says so.
pub fn may_be_parent(kind: &GroupVersionKind, definition_labels: Option<&Value>) -> bool {
    kind.group.is_empty() && matches!(kind.kind.as_str(), "ConfigMap" | "Secret")
        || definition_labels.is_some_and(|labels| labels.get(PARENT_TYPE_LABEL).is_some())
}

/// The labels of a parent.
pub fn parent_labels(parent: &ObjectReference) -> BTreeMap<&'static str, String> {
    BTreeMap::from([(ID_LABEL, id(parent))])
}

/// The annotations of a parent; `tool` and `version` are those of who manages it.
pub fn parent_annotations(
    tool: &str,
    version: &str,
    extent: &Extent,
) -> BTreeMap<&'static str, String> {
    let kinds: Vec<_> = extent.kinds.iter().map(GroupKind::as_str).collect();
    let namespaces: Vec<_> = extent.namespaces.iter().map(String::as_str).collect();
    BTreeMap::from([
        (TOOLING_ANNOTATION, format!("{tool}/{version}")),
        (KINDS_ANNOTATION, kinds.join(",")),
        (NAMESPACES_ANNOTATION, namespaces.join(",")),
    ])
}

/// What a parent in the cluster says of its members; none when it has no set yet.
///
/// # Errors
///
/// When the set is not `tool`'s to change, or the parent is incomplete.
pub fn read_parent(
    parent: &ObjectReference,
    live: &Value,
    tool: &str,
) -> Result<Option<Extent>, ApplySetError> {
    let metadata = |part: &str, key: &str| {
        live.pointer(&format!("/metadata/{part}"))
            .and_then(|map| map.get(key)?.as_str())
    };
    let Some(found) = metadata("labels", ID_LABEL) else {
        return Ok(None);
    };
    let expected = id(parent);
    if found != expected {
        return Err(ApplySetError::OtherId {
            parent: Box::new(parent.clone()),
            found: found.to_owned(),
            expected,
        });
    }
    let incomplete = |annotation, form| ApplySetError::Incomplete {
        parent: Box::new(parent.clone()),
        annotation,
        form,
    };
    let tooling = metadata("annotations", TOOLING_ANNOTATION)
        .and_then(|tooling| tooling.split_once('/'))
        .filter(|(name, _)| !name.is_empty());
    let Some((manager, _)) = tooling else {
        return Err(incomplete(TOOLING_ANNOTATION, "`name/version`"));
    };
    if manager != tool {
        return Err(ApplySetError::OtherTool {
            parent: Box::new(parent.clone()),
            found: manager.to_owned(),
            tool: tool.to_owned(),
        });
    }
    let Some(kinds) = metadata("annotations", KINDS_ANNOTATION) else {
        return Err(incomplete(KINDS_ANNOTATION, "`Kind.group,…`"));
    };
    let namespaces = metadata("annotations", NAMESPACES_ANNOTATION).unwrap_or("");
    let own = parent.namespace.as_deref();
    Ok(Some(Extent {
        kinds: entries(kinds)
            .map(|kind| GroupKind(kind.to_owned()))
            .collect(),
        namespaces: entries(namespaces)
            .filter(|namespace| Some(*namespace) != own)
            .map(str::to_owned)
            .collect(),
    }))
}

/// Checks an object before it is made a member.
///
/// # Errors
///
/// When it says itself what set it is in.
pub fn check_member(object: &ObjectReference, body: &Value) -> Result<(), ApplySetError> {
    let labels = body.pointer("/metadata/labels");
    match labels.and_then(|labels| labels.get(PART_OF_LABEL)) {
        None => Ok(()),
        Some(_) => Err(ApplySetError::PartOfAnother {
            object: Box::new(object.clone()),
        }),
    }
}

fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reference(group: &str, kind: &str, namespace: Option<&str>, name: &str) -> ObjectReference {
        let kind = GroupVersionKind::new(group, "v1", kind);
        ObjectReference::new(kind, namespace.map(Into::into), name)
    }

    fn pack() -> ObjectReference {
        reference("reeve.dev", "Pack", Some("sgp"), "istio")
    }

    fn marked(annotations: impl Into<Value>) -> Value {
        let annotations = annotations.into();
        json!({"metadata": {"labels": parent_labels(&pack()), "annotations": annotations}})
    }

    #[test]
    fn ids_are_those_of_kubectl() {
        let parent = reference("foo.bar", "Foo", Some("test-ns"), "test-foo");
        let expected = "applyset-f9Rk5tKHoB72oV1tU2iFKxDwL8MBZTjMHFQ8V9WNNlA-v1";
        assert_eq!(id(&parent), expected);
        // The empty places count: moving text from one to another is another id.
        let ids = [
            id(&reference("", "Secret", None, "a")),
            id(&reference("", "Secret", Some("a"), "")),
            id(&reference("Secret", "", None, "a")),
        ];
        assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
    }

    #[test]
    fn an_extent_comes_back_from_its_parent() {
        let members = [
            reference("apps", "Deployment", Some("istio-system"), "istiod"),
            reference("", "ConfigMap", Some("sgp"), "here"),
            reference("", "Namespace", None, "istio-system"),
            reference("", "ConfigMap", Some("istio-ingress"), "there"),
        ];
        let extent = Extent::of(&pack(), &members);
        let annotations = parent_annotations("reeve", "0.1.0", &extent);
        let expected = json!({
            "applyset.kubernetes.io/tooling": "reeve/0.1.0",
            "applyset.kubernetes.io/contains-group-kinds": "ConfigMap,Deployment.apps,Namespace",
            "applyset.kubernetes.io/additional-namespaces": "istio-ingress,istio-system",
        });
        assert_eq!(json!(annotations), expected);
        let live = marked(expected);
        assert_eq!(
            read_parent(&pack(), &live, "reeve"),
            Ok(Some(extent.clone()))
        );
        // Another version of the tool is the same tool.
        let grown = extent.clone().union(&Extent::of(
            &pack(),
            &[reference("batch", "Job", Some("x"), "j")],
        ));
        assert_eq!((grown.kinds.len(), grown.namespaces.len()), (4, 3));
        assert_eq!(extent.clone().union(&extent), extent);
    }

    #[test]
    fn a_set_of_somebody_else_is_left_alone() {
        let kinds = ("applyset.kubernetes.io/contains-group-kinds", "Secret");
        let with = |tooling: Option<&str>| {
            let mut annotations = json!({kinds.0: kinds.1});
            if let Some(tooling) = tooling {
                annotations[TOOLING_ANNOTATION] = json!(tooling);
            }
            marked(annotations)
        };
        let mut copied = with(Some("reeve/0.1.0"));
        copied["metadata"]["labels"][ID_LABEL] = json!("applyset-x-v1");
        let mut kindless = with(Some("reeve/0.1.0"));
        kindless["metadata"]["annotations"] = json!({TOOLING_ANNOTATION: "reeve/1"});
        for (live, expected) in [
            (
                with(Some("kubectl/v1.36.0")),
                "Pack sgp/istio: its ApplySet is managed by `kubectl`, not by `reeve`",
            ),
            (
                with(None),
                "Pack sgp/istio: it has an ApplySet, but no annotation applyset.kubernetes.io/tooling",
            ),
            (
                with(Some("reeve")),
                "Pack sgp/istio: it has an ApplySet, but no annotation applyset.kubernetes.io/tooling",
            ),
            (
                with(Some("/1")),
                "Pack sgp/istio: it has an ApplySet, but no annotation applyset.kubernetes.io/tooling",
            ),
            (
                copied,
                "Pack sgp/istio: label applyset.kubernetes.io/id is `applyset-x-v1` instead of",
            ),
            (
                kindless,
                "Pack sgp/istio: it has an ApplySet, but no annotation applyset.kubernetes.io/contains-group-kinds",
            ),
        ] {
            let error = read_parent(&pack(), &live, "reeve")
                .unwrap_err()
                .to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        for unmarked in [
            json!({}),
            json!(null),
            json!({"metadata": {"labels": {"a": "b"}}}),
        ] {
            assert_eq!(read_parent(&pack(), &unmarked, "reeve"), Ok(None));
        }
    }

    #[test]
    fn an_object_is_in_one_set() {
        let object = reference("", "ConfigMap", Some("a"), "b");
        assert_eq!(
            check_member(&object, &json!({"metadata": {"labels": {}}})),
            Ok(())
        );
        let taken = json!({"metadata": {"labels": {PART_OF_LABEL: "applyset-x-v1"}}});
        let error = check_member(&object, &taken).unwrap_err().to_string();
        assert_eq!(
            error,
            "ConfigMap a/b: label applyset.kubernetes.io/part-of is set already; remove it from \
             the object"
        );
    }

    #[test]
    fn some_kinds_may_be_parents() {
        let custom = GroupVersionKind::new("reeve.dev", "v1", "Pack");
        let labels = json!({PARENT_TYPE_LABEL: "true"});
        for (kind, labels, expected) in [
            (GroupVersionKind::new("", "v1", "Secret"), None, true),
            (GroupVersionKind::new("", "v1", "ConfigMap"), None, true),
            (GroupVersionKind::new("", "v1", "Pod"), None, false),
            (GroupVersionKind::new("x.dev", "v1", "Secret"), None, false),
            (custom.clone(), None, false),
            (custom.clone(), Some(&json!({})), false),
            (custom, Some(&labels), true),
        ] {
            assert_eq!(may_be_parent(&kind, labels), expected, "{kind}");
        }
    }
}
