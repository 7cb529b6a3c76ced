//! A version of the store in which what a plugin has just answered is done.
//!
//! What the API server and other controllers would make of it (defaults, status) is not
//! in it: a plugin sees its objects as they are the moment after they were made, or as
//! they are with its fields in the place of what they have.

use super::super::observe::find;
use crate::active::Active;
use crate::memo::Answers;
use crate::reads::Read;
use reeve_cluster::{Object, Snapshot};
use reeve_core::outcome::Outcome;
use reeve_core::ownership::Owner;
use reeve_core::plan::{Wanted, prepare};
use reeve_core::waves::ApplyMode;
use reeve_core::{Desired, Digest, ObjectReference, UnitKey};
use serde_json::{Value, json};
use std::sync::Arc;

/// The snapshot with an answer in it. None where the call behind the answer did not ask
/// for any of it, or it is refused: that is told elsewhere.
pub(super) fn fed(
    unit: &UnitKey,
    active: &Active,
    snapshot: &Snapshot,
    primary: &Object,
    outcome: &Outcome,
    reads: &Answers,
) -> Option<Snapshot> {
    let namespaced = |object: &ObjectReference| match active.resource(&object.kind) {
        Some(resource) => resource.namespaced,
        None => object.namespace.is_some(),
    };
    let desired = Desired::check(outcome.clone(), &active.manifest, &unit.primary, namespaced);
    let mut objects = desired.ok()?.objects;
    objects.retain(|object| asks_for(reads, &object.reference));
    if objects.is_empty() {
        return None;
    }
    let owner = Owner {
        unit: unit.clone(),
        uid: primary.uid().to_owned(),
    };
    let whole = |reference: &ObjectReference| {
        find(active, snapshot, reference).map(|object| object.whole())
    };
    let manager = &active.field_manager;
    let prepared = prepare(&owner, manager, objects, &active.policy, &whole).ok()?;
    let ours = prepared.wanted.into_iter();
    // Of what is contributed to somebody's object the rest is not ours to make up.
    let ours = ours.filter(|one| one.member.options.apply != ApplyMode::Contribute);
    let made = ours.filter_map(|one| made(active, snapshot, one));
    Some(snapshot.with(made.map(Arc::new)))
}

/// Whether what was read has this object in it.
fn asks_for(reads: &Answers, object: &ObjectReference) -> bool {
    reads.keys().any(|read| match read {
        Read::Object(read, _) => read == object,
        Read::List {
            kind, namespace, ..
        } => *kind == object.kind && (namespace.is_none() || *namespace == object.namespace),
        Read::Clock | Read::Source(_) | Read::SourceAge(_) => false,
    })
}

/// An object as it would be.
fn made(active: &Active, snapshot: &Snapshot, wanted: Wanted) -> Option<Object> {
    let reference = wanted.stamped.reference;
    let resource = active.resource(&reference.kind)?;
    let mut value = match find(active, snapshot, &reference) {
        Some(live) => live.value(),
        // A name of its own, and the same each time.
        None => json!({"metadata": {"uid": Digest::of(reference.to_string().as_bytes()).short()}}),
    };
    put(&mut value, wanted.stamped.body);
    Object::parse(resource, value.to_string().as_bytes()).ok()
}

/// Puts what is wanted in the place of what is there, map by map.
fn put(there: &mut Value, wanted: Value) {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => {
            for (key, value) in wanted {
                put(there.entry(key).or_insert(Value::Null), value);
            }
        }
        (there, wanted) => *there = wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::GroupVersionKind;
    use reeve_core::projection::Projection;

    #[test]
    fn maps_are_put_together_and_all_else_is_replaced() {
        let mut there = json!({"a": {"b": 1, "c": [1, 2]}, "d": "x", "status": {}});
        put(
            &mut there,
            json!({"a": {"c": [3]}, "d": {"e": 1}, "f": null}),
        );
        let expected = json!({"a": {"b": 1, "c": [3]}, "d": {"e": 1}, "f": null, "status": {}});
        assert_eq!(there, expected);
    }

    #[test]
    fn what_was_not_asked_for_is_not_fed() {
        let config_map = GroupVersionKind::new("", "v1", "ConfigMap");
        let object = |namespace: &str, name: &str| {
            ObjectReference::new(config_map.clone(), Some(namespace.to_owned()), name)
        };
        let list = |namespace: Option<&str>| Read::List {
            kind: config_map.clone(),
            namespace: namespace.map(str::to_owned),
            selector: "".parse().unwrap(),
            projection: None,
        };
        let get = |name: &str| Read::Object(object("a", name), Projection::default());
        for (read, asked) in [
            (get("b"), true),
            (get("c"), false),
            (list(None), true),
            (list(Some("a")), true),
            (list(Some("b")), false),
            (Read::Clock, false),
        ] {
            let reads = Answers::from([(read.clone(), Digest::of(b""))]);
            assert_eq!(asks_for(&reads, &object("a", "b")), asked, "{read:?}");
        }
    }
}
