//! Plans, from any desired set over any state of the cluster.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use reeve_core::kind::{GroupVersionKind, ObjectReference};
use reeve_core::ownership::{Owner, PRIMARY_ANNOTATION, PRUNE_ANNOTATION, Stamped};
use reeve_core::plan::{Observed, Step, is_precious, plan as decide};
use reeve_core::unit::UnitKey;
use reeve_ssa::Schema;
use reeve_ssa::typed::field_set;
use serde_json::{Value, json};

use crate::choices::Choices;

const KINDS: &[&str] = &["ConfigMap", "Secret", "Namespace", "PersistentVolumeClaim"];
const NAMES: &[&str] = &["a", "b", "c"];

/// The input decides what is desired and what is there.
///
/// No object is written twice or deleted while it is desired; nothing is deleted
/// that belongs to others, is precious without permission, or was only forgotten;
/// and when the plan has been carried out, there is nothing left to do.
pub fn plan(input: &[u8]) {
    let mut choices = Choices::new(input);
    let owner = owner("p");
    let desired = desired(&mut choices, &owner);
    let observed = observed(&mut choices, &desired);
    let meant = choices.one_in(2);
    let plan = decide(&owner, desired.clone(), &observed, meant);

    let wanted: BTreeSet<String> = desired.iter().map(|d| d.reference.to_string()).collect();
    let there: HashMap<String, &Observed> = observed
        .iter()
        .map(|object| (object.reference.to_string(), object))
        .collect();
    let mut touched = BTreeSet::new();
    for step in &plan.steps {
        match step {
            Step::Apply { object, uid, .. } => {
                let name = object.reference.to_string();
                assert!(wanted.contains(&name), "{name} is not desired");
                if let Some(uid) = uid {
                    assert_eq!(there.get(&name).map(|object| &object.uid), Some(uid));
                }
                assert!(touched.insert(name.clone()), "{name} twice");
            }
            Step::Delete { object, uid } => {
                let name = object.to_string();
                assert!(!wanted.contains(&name), "{name} is desired");
                assert!(!desired.is_empty() || meant, "an empty set was not meant");
                let found = there.get(&name);
                assert!(found.is_some_and(|o| may_go(o, &owner, uid)), "{name}");
                assert!(touched.insert(name.clone()), "{name} twice");
            }
        }
    }
    let after = carried_out(&observed, &plan.steps);
    let again = decide(&owner, desired, &after, meant);
    assert_eq!(again.steps, [], "not settled after {:?}", plan.steps);
}

/// Whether this is ours, is there, and may be deleted.
fn may_go(object: &Observed, owner: &Owner, uid: &str) -> bool {
    let annotation = |name| object.annotations.get(name).map(String::as_str);
    let ours = annotation(PRIMARY_ANNOTATION).is_none_or(|id| id == owner.unit.id());
    let permitted = annotation(PRUNE_ANNOTATION) == Some("allow");
    ours && object.owned_fields.is_some()
        && object.uid == uid
        && !object.deleting
        && (permitted || !is_precious(&object.reference.kind))
}

/// The cluster after the steps, as it would be observed.
fn carried_out(observed: &[Observed], steps: &[Step]) -> Vec<Observed> {
    let mut after: BTreeMap<String, Observed> = observed
        .iter()
        .map(|object| (object.reference.to_string(), object.clone()))
        .collect();
    for step in steps {
        match step {
            Step::Apply { object, uid, .. } => {
                let mut now = as_observed(object);
                if let Some(uid) = uid {
                    now.uid.clone_from(uid);
                }
                after.insert(object.reference.to_string(), now);
            }
            Step::Delete { object, .. } => {
                after.remove(&object.to_string());
            }
        }
    }
    after.into_values().collect()
}

fn owner(plugin: &str) -> Owner {
    let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
    Owner {
        unit: UnitKey::new(plugin, ObjectReference::new(kind, None, "alice")),
        uid: "u".to_owned(),
    }
}

fn desired(choices: &mut Choices<'_>, owner: &Owner) -> Vec<Stamped> {
    let mut out: BTreeMap<String, Stamped> = BTreeMap::new();
    for _ in 0..choices.below(5) {
        let reference = reference(choices);
        let mut body = json!({
            "apiVersion": "v1", "kind": reference.kind.kind,
            "metadata": {"name": reference.name, "namespace": reference.namespace},
        });
        if choices.one_in(2) {
            body["data"] = json!({choices.text(): choices.text()});
        }
        let stamped = owner.stamp(reference, body);
        out.insert(stamped.reference.to_string(), stamped);
    }
    out.into_values().collect()
}

fn observed(choices: &mut Choices<'_>, desired: &[Stamped]) -> Vec<Observed> {
    let mut out: BTreeMap<String, Observed> = BTreeMap::new();
    for stamped in desired {
        if choices.one_in(2) {
            out.insert(stamped.reference.to_string(), as_observed(stamped));
        }
    }
    for _ in 0..choices.below(4) {
        let reference = reference(choices);
        let body = json!({"metadata": {"name": reference.name}, "data": {"old": "1"}});
        let stamped = owner("p").stamp(reference, body);
        out.insert(stamped.reference.to_string(), as_observed(&stamped));
    }
    for object in out.values_mut() {
        disturb(choices, object);
    }
    out.into_values().collect()
}

fn disturb(choices: &mut Choices<'_>, object: &mut Observed) {
    let annotations = &mut object.annotations;
    match choices.below(10) {
        1 => object.deleting = true,
        2 => object.owned_fields = None,
        3 => object.owned_fields = Some(choices.json(3)),
        4 => object.owned_fields = Some(json!({"f:data": {"f:a": {}}})),
        5 => annotations.clear(),
        6 => drop(annotations.insert(PRUNE_ANNOTATION.into(), "allow".into())),
        7 => drop(annotations.insert(PRIMARY_ANNOTATION.into(), "another".into())),
        _ => {}
    }
}

fn reference(choices: &mut Choices<'_>) -> ObjectReference {
    let kind = choices.pick(KINDS);
    let namespace = (kind != "Namespace").then(|| "alice".to_owned());
    let name = choices.pick(NAMES);
    ObjectReference::new(GroupVersionKind::new("", "v1", kind), namespace, name)
}

/// The object as it is after `stamped` was applied and nobody touched it.
fn as_observed(stamped: &Stamped) -> Observed {
    let annotations = stamped.body["metadata"]["annotations"].as_object();
    let owned = field_set(&Schema::untyped(), &stamped.body);
    Observed {
        reference: stamped.reference.clone(),
        uid: format!("uid-{}", stamped.reference.name),
        annotations: annotations
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect(),
        owned_fields: Some(owned.to_fields_v1()),
        deleting: false,
        owners: vec!["u".to_owned()],
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
