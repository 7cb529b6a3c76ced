//! A guest's answer, checked: what may be believed of an [`Outcome`].
//!
//! The manifest is a promise; here it is held to it. An answer with one bad
//! object is refused whole, because a desired set that lacks an object is a
//! request to delete it.

mod actions;
mod checks;
mod error;
mod hook_names;
mod secret_texts;

pub use actions::LEAST_VERIFY;
pub use error::{DesiredError, Entry};

use crate::kind::ObjectReference;
use crate::manifest::Manifest;
use crate::outcome::{Absence, Action, Condition, Event, Next, Outcome};
use actions::check_actions;
use checks::{check_metadata, check_names, check_remarks, check_scope, reference_of};
use foldhash::{HashMap, HashMapExt as _};
use hook_names::HookNames;
use serde_json::Value;

/// A checked desired set.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// The objects, each of a declared kind, in a declared place, once.
    pub objects: Vec<DesiredObject>,
    /// What must not exist, each of a declared kind, in a declared place.
    pub absent: Vec<Absence>,
    /// Conditions about the primary.
    pub conditions: Vec<Condition>,
    /// Events on the primary.
    pub events: Vec<Event>,
    /// Outside effects, each declared.
    pub actions: Vec<Action>,
    /// When to run again.
    pub next: Next,
    /// Whether an empty set is meant.
    pub empty_is_meant: bool,
}

/// One desired object.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredObject {
    /// Its kind, namespace and name.
    pub reference: ObjectReference,
    /// Its body, as the guest wrote it; a hook without a name has got one, and texts of a
    /// Secret are encoded.
    pub body: Value,
    /// The JSON that the body was read from, where the body is as the guest wrote it.
    pub text: Option<Vec<u8>>,
}

impl Desired {
    /// Checks an outcome against the manifest.
    ///
    /// `namespaced` says for an object of a kind of the manifest whether that lives in
    /// a namespace.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong; the outcome is then to be refused whole.
    pub fn check(
        outcome: Outcome,
        manifest: &Manifest,
        primary: &ObjectReference,
        namespaced: impl Fn(&ObjectReference) -> bool,
    ) -> Result<Self, DesiredError> {
        let unsupported = |field, what| Err(DesiredError::Unsupported { field, what });
        if outcome.status.is_some() {
            return unsupported("status", "a status of the primary");
        }
        check_remarks(&outcome)?;
        check_actions(&outcome.actions, manifest, primary)?;
        let mut objects: Vec<DesiredObject> = Vec::with_capacity(outcome.objects.len());
        let mut changed = Vec::with_capacity(outcome.objects.len());
        let names = HookNames::of(&outcome.objects);
        for (index, bytes) in outcome.objects.iter().enumerate() {
            let mut body: Value =
                serde_json::from_slice(bytes).map_err(|error| DesiredError::Json {
                    entry: Entry::object(index),
                    problem: error.to_string(),
                })?;
            let named = names.name(&mut body);
            let mut reference = reference_of(Entry::object(index), &body)?;
            let kinds = manifest.writes.iter().map(|write| &write.kind);
            reference.kind = reference.kind.shared(kinds);
            let encoded = secret_texts::encode(&reference, &mut body);
            changed.push(named || encoded);
            check_metadata(Entry::object(index), &reference, &body)?;
            check_scope(
                Entry::object(index),
                &reference,
                manifest,
                primary,
                &namespaced,
            )?;
            objects.push(DesiredObject {
                reference,
                body,
                text: None,
            });
        }
        check_duplicates(&objects)?;
        for (index, absence) in outcome.absent.iter().enumerate() {
            let entry = Entry {
                list: "absent",
                index,
            };
            check_names(entry, &absence.object)?;
            check_scope(entry, &absence.object, manifest, primary, &namespaced)?;
            let wanted = |object: &DesiredObject| {
                object.reference.kind.same_kind(&absence.object.kind)
                    && object.reference.namespace == absence.object.namespace
                    && object.reference.name == absence.object.name
            };
            if let Some(first) = objects.iter().position(wanted) {
                return Err(DesiredError::Contradiction {
                    index,
                    first,
                    object: Box::new(absence.object.clone()),
                });
            }
        }
        let texts = outcome.objects.into_iter().zip(changed);
        for (object, (text, changed)) in objects.iter_mut().zip(texts) {
            object.text = (!changed).then_some(text);
        }
        Ok(Self {
            absent: outcome.absent,
            objects,
            conditions: outcome.conditions,
            events: outcome.events,
            actions: outcome.actions,
            next: outcome.next.bounded(),
            empty_is_meant: outcome.empty_is_meant,
        })
    }
}

/// Whether each object is there once, in one version.
fn check_duplicates(objects: &[DesiredObject]) -> Result<(), DesiredError> {
    let mut seen: HashMap<(&str, &str, Option<&str>, &str), usize> = HashMap::new();
    for (index, DesiredObject { reference, .. }) in objects.iter().enumerate() {
        let ObjectReference {
            kind,
            namespace,
            name,
        } = reference;
        let identity = (&*kind.group, &*kind.kind, namespace.as_deref(), &**name);
        if let Some(first) = seen.insert(identity, index) {
            return Err(DesiredError::Duplicate {
                index,
                first,
                object: Box::new(reference.clone()),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::GroupVersionKind;
    use crate::manifest::{RawManifest, RawPrimary, Scope, WriteRule};
    use serde_json::json;

    fn manifest() -> Manifest {
        let write = |kind: &str, scope| WriteRule {
            kind: GroupVersionKind::new("", "v1", kind),
            scope,
        };
        let in_version = |version: &str| WriteRule {
            kind: GroupVersionKind::new("autoscaling", version, "HorizontalPodAutoscaler"),
            scope: Scope::NamespaceNamedLikePrimary,
        };
        Manifest::try_from(RawManifest {
            primary: Some(RawPrimary {
                kind: GroupVersionKind::new("kubeflow.org", "v1", "Profile"),
                selector: String::new(),
                projection: vec![],
            }),
            reads: vec![],
            writes: vec![
                write("ResourceQuota", Scope::NamespaceNamedLikePrimary),
                write("Namespace", Scope::Cluster),
                write("ConfigMap", Scope::Namespaces(vec!["a".into(), "b".into()])),
                in_version("v1"),
                in_version("v2"),
            ],
            sources: vec![],
            actions: vec![],
        })
        .unwrap()
    }

    fn check(objects: &[Value]) -> Result<Desired, DesiredError> {
        let outcome = Outcome {
            objects: objects.iter().map(|o| o.to_string().into_bytes()).collect(),
            ..Outcome::default()
        };
        let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
        let primary = ObjectReference::new(kind, None, "alice");
        Desired::check(outcome, &manifest(), &primary, |object| {
            object.kind.kind != "Namespace"
        })
    }

    fn quota(metadata: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata})
    }

    #[test]
    fn declared_objects_pass() {
        let desired = check(&[
            quota(&json!({"name": "q", "namespace": "alice", "labels": {"a": "b"}})),
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "alice"}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "q", "namespace": "b"}}),
        ])
        .unwrap();
        assert_eq!(desired.objects.len(), 3);
        assert_eq!(
            desired.objects[0].reference.to_string(),
            "ResourceQuota alice/q"
        );
    }

    /// What is remembered of an answer instead of its bodies says the same.
    #[test]
    fn texts_are_those_of_the_bodies() {
        let hook = |name: Option<&str>| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
                "name": name, "namespace": "a", "annotations": {"reeve.dev/hook": "Sync"}}})
        };
        let objects = [
            quota(&json!({"name": "q", "namespace": "alice"})),
            hook(Some("named")),
            hook(None),
        ];
        let desired = check(&objects).unwrap();
        let texts = desired.objects.iter().map(|object| object.text.as_deref());
        let written = |index: usize| Some(objects[index].to_string().into_bytes());
        let expected = [written(0), written(1), None];
        assert!(texts.eq(expected.iter().map(Option::as_deref)));
        assert_ne!(desired.objects[2].reference.name, "");
    }

    #[test]
    fn an_object_is_the_same_in_each_version_and_another_in_each_namespace() {
        let autoscaler = |version: &str| {
            json!({
                "apiVersion": format!("autoscaling/{version}"), "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "q", "namespace": "alice"},
            })
        };
        let error = check(&[autoscaler("v1"), autoscaler("v2")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "objects[1] (HorizontalPodAutoscaler alice/q): returned twice, first as objects[0]; \
             return each object once"
        );
        let config_map = |namespace: &str| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "q", "namespace": namespace},
            })
        };
        assert_eq!(
            check(&[config_map("a"), config_map("b")])
                .unwrap()
                .objects
                .len(),
            2
        );
    }

    #[test]
    fn each_refusal_names_object_and_field() {
        let good = json!({"name": "q", "namespace": "alice"});
        for (objects, expected) in [
            (vec![json!(3)], "objects[0]: $: not a JSON object"),
            (
                vec![json!({"kind": "A"})],
                "objects[0]: apiVersion: missing",
            ),
            (
                vec![json!({"apiVersion": "v1"})],
                "objects[0]: kind: missing",
            ),
            (
                vec![quota(&json!({}))],
                "objects[0] (ResourceQuota.v1): metadata.name: missing",
            ),
            (
                vec![quota(&json!({"name": 3}))],
                "objects[0] (ResourceQuota.v1): metadata.name: not a string",
            ),
            (
                vec![quota(&json!({"name": "a/b", "namespace": "alice"}))],
                "objects[0] (ResourceQuota alice/a/b): metadata.name: `a/b`",
            ),
            (
                vec![quota(&json!({"name": "a\nb", "namespace": "alice"}))],
                "objects[0] (ResourceQuota alice/a\nb): metadata.name: `a\nb` has characters",
            ),
            (
                vec![quota(&json!({"name": "q"}))],
                "objects[0] (ResourceQuota q): metadata.namespace: missing",
            ),
            (
                vec![quota(&json!({"name": "q", "namespace": "bob"}))],
                "objects[0] (ResourceQuota bob/q): outside the declared scope: ResourceQuota may be written in namespace alice; return it there, or declare a wider scope in `writes`",
            ),
            (
                vec![
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "q", "namespace": "c"}}),
                ],
                "objects[0] (ConfigMap c/q): outside the declared scope: ConfigMap may be written in namespace a, b; return it there, or declare a wider scope in `writes`",
            ),
            (
                vec![
                    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "q", "namespace": "alice"}}),
                ],
                "objects[0] (Secret alice/q): the manifest declares no write of Secret.v1",
            ),
            (
                vec![
                    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "q", "namespace": "a"}}),
                ],
                "objects[0] (Namespace a/q): metadata.namespace: set, but",
            ),
            (
                vec![quota(&good), quota(&good)],
                "objects[1] (ResourceQuota alice/q): returned twice, first as objects[0]",
            ),
            (
                vec![quota(
                    &json!({"name": "q", "namespace": "alice", "uid": "x"}),
                )],
                "objects[0] (ResourceQuota alice/q): metadata: `uid` is decided",
            ),
            (
                vec![quota(
                    &json!({"name": "q", "namespace": "alice", "labels": {"reeve.dev/plugin": "x"}}),
                )],
                "objects[0] (ResourceQuota alice/q): metadata.labels: `reeve.dev/plugin` is set by the host",
            ),
            (
                vec![quota(
                    &json!({"name": "q", "namespace": "alice", "labels": {"reeve.dev/plugin-part-of": "x"}}),
                )],
                "objects[0] (ResourceQuota alice/q): metadata.labels: `reeve.dev/plugin-part-of` is set by the host",
            ),
            (
                vec![quota(
                    &json!({"name": "q", "namespace": "alice", "annotations": {"reeve.dev/generated-for": "x"}}),
                )],
                "objects[0] (ResourceQuota alice/q): metadata.annotations: `reeve.dev/generated-for` is set by the host",
            ),
            (
                vec![quota(
                    &json!({"name": "q", "namespace": "alice", "annotations": {"reeve.dev/generated-by": "x"}}),
                )],
                "objects[0] (ResourceQuota alice/q): metadata.annotations: `reeve.dev/generated-by` is set by the host",
            ),
            (
                vec![quota(
                    &json!({"name": "q", "namespace": "alice", "annotations": {"reeve.dev/suspend": "true"}}),
                )],
                "objects[0] (ResourceQuota alice/q): metadata.annotations: `reeve.dev/suspend` is for people to set",
            ),
            (
                vec![quota(
                    &json!({"name": "q", "namespace": "alice", "finalizers": ["a/b", "not-reeve.dev/x", "reeve.dev/x"]}),
                )],
                "objects[0] (ResourceQuota alice/q): metadata.finalizers: `reeve.dev/x` is set by the host",
            ),
            (
                vec![quota(
                    &json!({"name": "q", "namespace": "alice", "finalizers": ["hooks.reeve.dev/x"]}),
                )],
                "objects[0] (ResourceQuota alice/q): metadata.finalizers: `hooks.reeve.dev/x` is set by the host",
            ),
            (
                vec![quota(
                    &json!({"name": "q", "namespace": "alice", "annotations": {"n": 3}}),
                )],
                "objects[0] (ResourceQuota alice/q): metadata.annotations: the value of `n`",
            ),
            (
                vec![quota(
                    &json!({"name": "q", "namespace": "alice", "ownerReferences": []}),
                )],
                "objects[0] (ResourceQuota alice/q): metadata.ownerReferences: set by the host",
            ),
        ] {
            let text = check(&objects).unwrap_err().to_string();
            assert!(
                text.starts_with(expected),
                "{text}\nshould start with\n{expected}"
            );
        }
    }

    #[test]
    fn absences_are_held_to_the_manifest_too() {
        let check = |kind: &str, namespace: &str, name: &str, objects: &[Value]| {
            let object = ObjectReference::new(
                GroupVersionKind::new("", "v1", kind),
                Some(namespace.into()),
                name,
            );
            let outcome = Outcome {
                objects: objects.iter().map(|o| o.to_string().into_bytes()).collect(),
                absent: vec![Absence {
                    object,
                    preconditions: vec![],
                }],
                ..Outcome::default()
            };
            let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
            let primary = ObjectReference::new(kind, None, "alice");
            Desired::check(outcome, &manifest(), &primary, |_| true)
        };
        let wanted = quota(&json!({"name": "q", "namespace": "alice"}));
        assert_eq!(
            check("ResourceQuota", "alice", "q", &[])
                .unwrap()
                .absent
                .len(),
            1
        );
        for (found, expected) in [
            (
                check("Secret", "alice", "q", &[]),
                "absent[0] (Secret alice/q): the manifest declares",
            ),
            (
                check("ResourceQuota", "bob", "q", &[]),
                "absent[0] (ResourceQuota bob/q): outside",
            ),
            (
                check("ResourceQuota", "alice", "", &[]),
                "absent[0] (ResourceQuota alice/): metadata.name",
            ),
            (
                check("ResourceQuota", "alice", "q", &[wanted]),
                "absent[0] (ResourceQuota alice/q): also returned as objects[0]",
            ),
        ] {
            let text = found.unwrap_err().to_string();
            assert!(text.starts_with(expected), "{text}");
        }
    }

    #[test]
    fn remarks_are_bounded() {
        let remark = |kind: &str, reason: &str| Condition {
            kind: kind.into(),
            status: crate::outcome::ConditionStatus::False,
            reason: reason.into(),
            message: String::new(),
        };
        let event = || Event {
            warning: true,
            reason: "R".into(),
            message: String::new(),
        };
        for (conditions, events, expected) in [
            (vec![remark("A", "R"); 33], vec![], "conditions: 33 entries"),
            (vec![], vec![event(); 33], "events: 33 entries"),
            (
                vec![remark("no type", "R")],
                vec![],
                "conditions[0]: type: `no type`",
            ),
            (vec![remark("A", "")], vec![], "conditions[0]: reason: ``"),
            (
                vec![remark("A", &"R".repeat(200))],
                vec![],
                "conditions[0]: reason: `RRRR",
            ),
        ] {
            let outcome = Outcome {
                conditions,
                events,
                ..Outcome::default()
            };
            let text = check_remarks(&outcome).unwrap_err().to_string();
            assert!(text.starts_with(expected), "{text}");
        }
    }

    #[test]
    fn bytes_that_are_no_json_are_refused() {
        let outcome = Outcome {
            objects: vec![b"{\"a\"".to_vec()],
            ..Outcome::default()
        };
        let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
        let primary = ObjectReference::new(kind, None, "alice");
        let error = Desired::check(outcome, &manifest(), &primary, |_| true).unwrap_err();
        assert!(error.to_string().starts_with("objects[0] is no JSON"));
    }
}
