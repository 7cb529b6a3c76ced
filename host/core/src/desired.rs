//! A guest's answer, checked: what may be believed of an [`Outcome`].
//!
//! The manifest is a promise; here it is held to it. An answer with one bad
//! object is refused whole, because a desired set that lacks an object is a
//! request to delete it.

use crate::kind::{GroupVersionKind, ObjectReference};
use crate::manifest::{Manifest, is_dns_label};
use crate::outcome::{Absence, Condition, Event, Next, Outcome};
use crate::ownership::HOST_OWNED;
use serde_json::Value;
use std::collections::HashSet;

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
    /// Its body, as the guest wrote it.
    pub body: Value,
}

/// Why an answer is refused. Each names the object and the field.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DesiredError {
    /// An object is no JSON.
    #[error("{entry} is no JSON: {problem}")]
    Json {
        /// Position in the outcome.
        entry: Entry,
        /// What the parser says.
        problem: String,
    },
    /// A required field is missing or malformed.
    #[error("{entry}{described}: {field}: {problem}")]
    Field {
        /// Position in the outcome.
        entry: Entry,
        /// ` (ResourceQuota alice/quotas)`, as far as known.
        described: String,
        /// JSON path of the field.
        field: &'static str,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// The kind is not in the manifest's writes.
    #[error("{entry} ({object}): the manifest declares no write of {kind}; declare it in `writes`")]
    UndeclaredKind {
        /// Position in the outcome.
        entry: Entry,
        /// The object.
        object: Box<ObjectReference>,
        /// Its kind.
        kind: Box<GroupVersionKind>,
    },
    /// The place is not in the manifest's writes.
    #[error("{entry} ({object}): outside the declared scope: {allowed}")]
    OutsideScope {
        /// Position in the outcome.
        entry: Entry,
        /// The object.
        object: Box<ObjectReference>,
        /// Where the manifest lets it write this kind.
        allowed: String,
    },
    /// The object stands in the outcome twice.
    #[error(
        "objects[{index}] ({object}): returned twice, first as objects[{first}]; return each object once"
    )]
    Duplicate {
        /// Position in the outcome.
        index: usize,
        /// Position of the first.
        first: usize,
        /// The object.
        object: Box<ObjectReference>,
    },
    /// The object is both wanted and unwanted.
    #[error(
        "absent[{index}] ({object}): also returned as objects[{first}]; return it in one of the two"
    )]
    Contradiction {
        /// Position in `absent`.
        index: usize,
        /// Position in `objects`.
        first: usize,
        /// The object.
        object: Box<ObjectReference>,
    },
    /// More conditions or events than anybody reads.
    #[error("{list}: {got} entries, more than the {limit} that are recorded; return fewer")]
    TooMany {
        /// `conditions` or `events`.
        list: &'static str,
        /// How many there are.
        got: usize,
        /// How many there may be.
        limit: usize,
    },
    /// A type or reason that the Kubernetes API would refuse.
    #[error(
        "{list}[{index}]: {field}: `{value}` is not a CamelCase word of at most {MAX_WORD} characters"
    )]
    Word {
        /// `conditions` or `events`.
        list: &'static str,
        /// Position in the list.
        index: usize,
        /// `type` or `reason`.
        field: &'static str,
        /// Its beginning.
        value: String,
    },
    /// The outcome uses a part of the contract that this host does not carry out.
    #[error("{field}: this version of reeve does not carry out {what} yet; return none")]
    Unsupported {
        /// Field of the outcome.
        field: &'static str,
        /// What is not carried out.
        what: &'static str,
    },
}

/// Position of an entry in an outcome, such as `objects[3]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// `objects` or `absent`.
    pub list: &'static str,
    /// Position in the list.
    pub index: usize,
}

impl Entry {
    fn object(index: usize) -> Self {
        Self {
            list: "objects",
            index,
        }
    }
}

impl std::fmt::Display for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}[{}]", self.list, self.index)
    }
}

/// Conditions, and events, that one answer may carry: more than a person reads.
const MAX_REMARKS: usize = 32;
/// The API server's limit on the reason of an event.
const MAX_WORD: usize = 128;

/// Fields of `metadata` that the API server decides, not a plugin.
const SERVER_OWNED: [&str; 7] = [
    "managedFields",
    "resourceVersion",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "selfLink",
];

impl Desired {
    /// Checks an outcome against the manifest.
    ///
    /// `namespaced` says for a kind of the manifest whether its objects live in
    /// namespaces.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong; the outcome is then to be refused whole.
    pub fn check(
        outcome: Outcome,
        manifest: &Manifest,
        primary: &ObjectReference,
        namespaced: impl Fn(&GroupVersionKind) -> bool,
    ) -> Result<Self, DesiredError> {
        let unsupported = |field, what| Err(DesiredError::Unsupported { field, what });
        if !outcome.actions.is_empty() {
            return unsupported("actions", "actions");
        }
        if outcome.status.is_some() {
            return unsupported("status", "a status of the primary");
        }
        check_remarks(&outcome)?;
        let mut seen: HashSet<(String, String, Option<String>, String)> = HashSet::new();
        let mut objects: Vec<DesiredObject> = Vec::with_capacity(outcome.objects.len());
        for (index, bytes) in outcome.objects.iter().enumerate() {
            let body: Value =
                serde_json::from_slice(bytes).map_err(|error| DesiredError::Json {
                    entry: Entry::object(index),
                    problem: error.to_string(),
                })?;
            let reference = reference_of(Entry::object(index), &body)?;
            check_metadata(Entry::object(index), &reference, &body)?;
            check_scope(
                Entry::object(index),
                &reference,
                manifest,
                primary,
                &namespaced,
            )?;
            let identity = (
                reference.kind.group.clone(),
                reference.kind.kind.clone(),
                reference.namespace.clone(),
                reference.name.clone(),
            );
            if !seen.insert(identity) {
                let same = |object: &DesiredObject| {
                    object.reference.kind.same_kind(&reference.kind)
                        && object.reference.namespace == reference.namespace
                        && object.reference.name == reference.name
                };
                return Err(DesiredError::Duplicate {
                    index,
                    first: objects.iter().position(same).unwrap_or_default(),
                    object: Box::new(reference),
                });
            }
            objects.push(DesiredObject { reference, body });
        }
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
        Ok(Self {
            absent: outcome.absent,
            objects,
            conditions: outcome.conditions,
            events: outcome.events,
            next: outcome.next.bounded(),
            empty_is_meant: outcome.empty_is_meant,
        })
    }
}

fn check_remarks(outcome: &Outcome) -> Result<(), DesiredError> {
    for (list, got) in [
        ("conditions", outcome.conditions.len()),
        ("events", outcome.events.len()),
    ] {
        if got > MAX_REMARKS {
            return Err(DesiredError::TooMany {
                list,
                got,
                limit: MAX_REMARKS,
            });
        }
    }
    let conditions = outcome
        .conditions
        .iter()
        .enumerate()
        .flat_map(|(index, c)| {
            [
                ("conditions", index, "type", &c.kind),
                ("conditions", index, "reason", &c.reason),
            ]
        });
    let events = outcome.events.iter().enumerate();
    let events = events.map(|(index, event)| ("events", index, "reason", &event.reason));
    for (list, index, field, word) in conditions.chain(events) {
        let well_formed = word.len() <= MAX_WORD
            && word.starts_with(|first: char| first.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !well_formed {
            return Err(DesiredError::Word {
                list,
                index,
                field,
                value: word.chars().take(40).collect(),
            });
        }
    }
    Ok(())
}

fn reference_of(entry: Entry, body: &Value) -> Result<ObjectReference, DesiredError> {
    let error = |field, problem: &str| DesiredError::Field {
        entry,
        described: String::new(),
        field,
        problem: problem.to_owned(),
    };
    if !body.is_object() {
        return Err(error("$", "not a JSON object"));
    }
    let text = |pointer: &str, field: &'static str| match body.pointer(pointer) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.as_str()),
        None | Some(Value::String(_) | Value::Null) => {
            Err(error(field, "missing; every object needs it"))
        }
        Some(_) => Err(error(field, "not a string")),
    };
    let api_version = text("/apiVersion", "apiVersion")?;
    let kind = text("/kind", "kind")?;
    let kind = GroupVersionKind::from_fields(api_version, kind)
        .ok_or_else(|| error("apiVersion", "not of the form `version` or `group/version`"))?;
    if body
        .pointer("/metadata")
        .is_some_and(|metadata| !metadata.is_object())
    {
        return Err(error("metadata", "not an object"));
    }
    let name = match text("/metadata/name", "metadata.name") {
        Ok(name) => name.to_owned(),
        Err(DesiredError::Field { problem, .. }) => {
            return Err(DesiredError::Field {
                entry,
                described: format!(" ({kind})"),
                field: "metadata.name",
                problem,
            });
        }
        Err(other) => return Err(other),
    };
    let namespace = match body.pointer("/metadata/namespace") {
        None | Some(Value::Null) => None,
        Some(Value::String(namespace)) => Some(namespace.clone()).filter(|n| !n.is_empty()),
        Some(_) => return Err(error("metadata.namespace", "not a string")),
    };
    Ok(ObjectReference::new(kind, namespace, name))
}

fn check_metadata(
    entry: Entry,
    reference: &ObjectReference,
    body: &Value,
) -> Result<(), DesiredError> {
    let error = |field, problem: String| DesiredError::Field {
        entry,
        described: format!(" ({reference})"),
        field,
        problem,
    };
    check_names(entry, reference)?;
    let metadata = &body["metadata"];
    for field in SERVER_OWNED {
        if metadata.get(field).is_some_and(|value| !value.is_null()) {
            return Err(error(
                "metadata",
                format!("`{field}` is decided by the API server; leave it out"),
            ));
        }
    }
    for (field, path) in [
        ("labels", "metadata.labels"),
        ("annotations", "metadata.annotations"),
    ] {
        let Some(value) = metadata.get(field) else {
            continue;
        };
        let Some(entries) = value.as_object() else {
            return Err(error(path, "not a map of strings".to_owned()));
        };
        for (key, value) in entries {
            if !value.is_string() {
                return Err(error(path, format!("the value of `{key}` is not a string")));
            }
            if HOST_OWNED.contains(&key.as_str()) {
                return Err(error(
                    path,
                    format!("`{key}` is set by the host; leave it out"),
                ));
            }
        }
    }
    if metadata.get("ownerReferences").is_some() {
        return Err(error(
            "metadata.ownerReferences",
            "set by the host; leave it out".to_owned(),
        ));
    }
    Ok(())
}

fn check_names(entry: Entry, reference: &ObjectReference) -> Result<(), DesiredError> {
    let error = |field, problem: String| DesiredError::Field {
        entry,
        described: format!(" ({reference})"),
        field,
        problem,
    };
    // The API server checks names by kind; these would already mislead us when a
    // name becomes part of a URL.
    let name = &reference.name;
    if name.is_empty() || name.contains(['/', '%']) || name == "." || name == ".." {
        return Err(error(
            "metadata.name",
            format!("`{name}` cannot be part of a URL path"),
        ));
    }
    match &reference.namespace {
        Some(namespace) if !is_dns_label(namespace) => Err(error(
            "metadata.namespace",
            format!("`{namespace}` is not the name of a namespace (a DNS-1123 label)"),
        )),
        _ => Ok(()),
    }
}

fn check_scope(
    entry: Entry,
    reference: &ObjectReference,
    manifest: &Manifest,
    primary: &ObjectReference,
    namespaced: impl Fn(&GroupVersionKind) -> bool,
) -> Result<(), DesiredError> {
    let mut rules = manifest
        .writes
        .iter()
        .filter(|rule| rule.kind == reference.kind)
        .peekable();
    if rules.peek().is_none() {
        return Err(DesiredError::UndeclaredKind {
            entry,
            object: Box::new(reference.clone()),
            kind: Box::new(reference.kind.clone()),
        });
    }
    let error = |problem: &str| DesiredError::Field {
        entry,
        described: format!(" ({reference})"),
        field: "metadata.namespace",
        problem: problem.to_owned(),
    };
    match (&reference.namespace, namespaced(&reference.kind)) {
        (None, true) => return Err(error("missing; the kind lives in namespaces")),
        (Some(_), false) => return Err(error("set, but the kind is cluster-scoped; leave it out")),
        _ => {}
    }
    let mut allowed = Vec::new();
    for rule in rules {
        let namespaces = rule
            .scope
            .namespaces(primary.namespace.as_deref(), &primary.name);
        match (namespaces, &reference.namespace) {
            (None, _) => return Ok(()),
            (Some(names), Some(namespace)) if names.contains(&namespace.as_str()) => return Ok(()),
            (Some(names), _) => allowed.extend(names.into_iter().map(str::to_owned)),
        }
    }
    Err(DesiredError::OutsideScope {
        entry,
        object: Box::new(reference.clone()),
        allowed: format!(
            "{} may be written in namespace {}",
            reference.kind.kind,
            allowed.join(", ")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{RawManifest, RawPrimary, Scope, WriteRule};
    use serde_json::json;

    fn manifest() -> Manifest {
        let write = |kind: &str, scope| WriteRule {
            kind: GroupVersionKind::new("", "v1", kind),
            scope,
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
        Desired::check(outcome, &manifest(), &primary, |kind| {
            kind.kind != "Namespace"
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
                vec![quota(&json!({"name": "q"}))],
                "objects[0] (ResourceQuota q): metadata.namespace: missing",
            ),
            (
                vec![quota(&json!({"name": "q", "namespace": "bob"}))],
                "objects[0] (ResourceQuota bob/q): outside the declared scope: ResourceQuota may be written in namespace alice",
            ),
            (
                vec![
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "q", "namespace": "c"}}),
                ],
                "objects[0] (ConfigMap c/q): outside the declared scope: ConfigMap may be written in namespace a, b",
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
