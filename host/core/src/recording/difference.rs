//! What differs between two answers.

use super::Answer;
use crate::fields::{FieldChange, changes};
use crate::kind::{GroupVersionKind, ObjectReference};
use crate::outcome::{Next, Outcome, Precondition};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// One thing that differs.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// The answers are of two sorts, or failures with two texts.
    Answer {
        /// What was recorded, in words.
        recorded: String,
        /// What is answered now.
        now: String,
    },
    /// An object.
    Object {
        /// Its name, or its place where it has none.
        object: String,
        /// How it differs.
        extent: Extent,
    },
    /// What is said beside objects: conditions, events, actions and the like. Where
    /// there is none to show, it is the same in other bytes.
    Rest(Vec<FieldChange>),
}

/// How an object differs.
#[derive(Clone, Debug, PartialEq)]
pub enum Extent {
    /// It was not returned before.
    Added(Vec<FieldChange>),
    /// It is no longer returned.
    Gone,
    /// It has other fields. Where these are none that are compared one by one, such as
    /// the status, there is none to show.
    Changed(Vec<FieldChange>),
    /// It says the same in other bytes, such as in another order of its fields.
    Bytes,
    /// It is the same at another place among the objects.
    Place,
}

impl Difference {
    /// Whether the host would notice: whether other objects would come of it.
    pub fn has_meaning(&self) -> bool {
        match self {
            Self::Object { extent, .. } => !matches!(extent, Extent::Bytes | Extent::Place),
            Self::Rest(fields) => !fields.is_empty(),
            Self::Answer { .. } => true,
        }
    }
}

/// All that differs. Nothing differs just where the answers are equal in each byte.
/// Of Secrets it is told that values differ, never what they are.
pub fn compare(recorded: &Answer, now: &Answer) -> Vec<Difference> {
    if recorded == now {
        return Vec::new();
    }
    match (recorded, now) {
        (Answer::Outcome(recorded), Answer::Outcome(now)) => outcomes(recorded, now),
        _ => vec![Difference::Answer {
            recorded: recorded.summary(),
            now: now.summary(),
        }],
    }
}

fn outcomes(recorded: &Outcome, now: &Outcome) -> Vec<Difference> {
    let mut differences = Vec::new();
    let (old, new) = (named(&recorded.objects), named(&now.objects));
    for (name, (place, bytes)) in &old {
        let object = name.clone();
        let Some((new_place, new_bytes)) = new.get(name) else {
            differences.push(Difference::Object {
                object,
                extent: Extent::Gone,
            });
            continue;
        };
        let extent = if bytes == new_bytes {
            if place == new_place {
                continue;
            }
            Extent::Place
        } else {
            match (json_of(bytes), json_of(new_bytes)) {
                (Some(old), Some(new)) if old == new => Extent::Bytes,
                (Some(old), Some(new)) => Extent::Changed(changes(Some(&old), Some(&new))),
                _ => Extent::Changed(Vec::new()),
            }
        };
        differences.push(Difference::Object { object, extent });
    }
    for (name, (_, bytes)) in &new {
        if !old.contains_key(name) {
            differences.push(Difference::Object {
                object: name.clone(),
                extent: Extent::Added(changes(None, json_of(bytes).as_ref())),
            });
        }
    }
    let rest = changes(Some(&rest(recorded)), Some(&rest(now)));
    // The status of the primary may be the same in other bytes.
    if !rest.is_empty() || differences.is_empty() {
        differences.push(Difference::Rest(rest));
    }
    differences
}

/// Objects by their names; one without, or with that of another, by its place.
fn named(objects: &[Vec<u8>]) -> BTreeMap<String, (usize, &[u8])> {
    let mut named = BTreeMap::new();
    for (index, bytes) in objects.iter().enumerate() {
        let name = json_of(bytes).and_then(|object| name_of(&object));
        let name = name
            .filter(|name| !named.contains_key(name))
            .unwrap_or_else(|| format!("objects[{index}]"));
        named.insert(name, (index, &**bytes));
    }
    named
}

fn json_of(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice(bytes).ok()
}

fn name_of(object: &Value) -> Option<String> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let kind = GroupVersionKind::from_fields(text("/apiVersion")?, text("/kind")?)?;
    let namespace = text("/metadata/namespace").map(str::to_owned);
    let reference = ObjectReference::new(kind, namespace, text("/metadata/name")?);
    // Two groups may have kinds of one name.
    Some(match reference.kind.group.as_str() {
        "" => reference.to_string(),
        group => format!("{reference} of {group}"),
    })
}

/// What an outcome says beside objects.
fn rest(outcome: &Outcome) -> Value {
    let absent: Vec<Value> = outcome
        .absent
        .iter()
        .map(|absence| {
            let preconditions = absence.preconditions.iter().map(|one| match one {
                Precondition::Uid(uid) => json!({"uid": uid}),
                Precondition::OwnedBy(uid) => json!({"ownedBy": uid}),
                Precondition::Phase(phases) => json!({"phase": phases}),
            });
            json!({
                "object": absence.object.to_string(),
                "kind": absence.object.kind.to_string(),
                "preconditions": preconditions.collect::<Vec<_>>(),
            })
        })
        .collect();
    let actions: Vec<Value> = outcome
        .actions
        .iter()
        .map(|action| {
            // Such as they were asked for: by their keys, and not by their names.
            let mut value = serde_json::to_value(action).unwrap_or_default();
            if let Some(fields) = value.as_object_mut()
                && let Some(name) = fields.remove("name")
            {
                fields.insert("action".to_owned(), name);
            }
            value
        })
        .collect();
    json!({
        "conditions": outcome.conditions,
        "events": outcome.events,
        "absent": absent,
        "actions": actions,
        // At the root, `status` would be passed over.
        "primary": {"status": outcome.status.as_deref().map(|bytes| {
            json_of(bytes).unwrap_or_else(|| String::from_utf8_lossy(bytes).into())
        })},
        "after": match outcome.next {
            Next::OnChange => Value::Null,
            Next::After(time) => json!(format!("{time:?}")),
        },
        "emptyIsMeant": outcome.empty_is_meant,
    })
}
