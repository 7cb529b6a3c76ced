//! A version of the store in which what a plugin answers is done.
//!
//! It is a sketch: nobody adds defaults, a status or a time of creation, lists are as the
//! plugin wants them and not put together by keys, and nothing is taken away. That is
//! enough to see whether a plugin runs after itself, and too little to lay anything else to
//! it.

use super::super::observe::find;
use crate::active::Active;
use crate::memo::Answers;
use crate::reads::Read;
use reeve_cluster::{Object, Snapshot};
use reeve_core::outcome::Outcome;
use reeve_core::ownership::Owner;
use reeve_core::plan::{Wanted, prepare};
use reeve_core::waves::{ApplyMode, Options, Role};
use reeve_core::{Digest, ObjectReference, UnitKey};
use serde_json::{Value, json};
use std::sync::Arc;

/// What a plugin would see while what it answers is done.
pub(super) struct Feed<'a> {
    active: &'a Active,
    owner: Owner,
    seen: Snapshot,
    made: Vec<ObjectReference>,
}

impl<'a> Feed<'a> {
    /// Nothing is done yet.
    pub(super) fn new(
        unit: &UnitKey,
        active: &'a Active,
        primary: &Object,
        snapshot: &Snapshot,
    ) -> Self {
        Self {
            active,
            owner: Owner {
                unit: unit.clone(),
                uid: primary.uid().to_owned(),
            },
            seen: snapshot.clone(),
            made: Vec::new(),
        }
    }

    /// What the plugin would see now.
    pub(super) fn seen(&self) -> &Snapshot {
        &self.seen
    }

    /// Does what an answer wants. Returns whether it could be taken; what is refused is told
    /// elsewhere.
    pub(super) fn take_in(&mut self, outcome: &Outcome) -> bool {
        let Some(wanted) = self.prepare(outcome) else {
            return false;
        };
        let mut objects = Vec::new();
        for one in wanted {
            let live = self.live(&one.stamped.reference);
            if !is_written(&one.stamped.reference, &one.member.options, live.is_some()) {
                continue;
            }
            let reference = one.stamped.reference.clone();
            if let Some(object) = self.make(live.as_deref(), one) {
                objects.push(Arc::new(object));
                self.made.push(reference);
            }
        }
        self.seen = self.seen.with(objects);
        true
    }

    /// Whether what was read has any of what was done in it.
    pub(super) fn concerns(&self, reads: &Answers) -> bool {
        self.made.iter().any(|object| asks_for(reads, object))
    }

    fn prepare(&self, outcome: &Outcome) -> Option<Vec<Wanted>> {
        let active = self.active;
        let desired = active.check(outcome.clone(), &self.owner.unit.primary);
        let live = |reference: &ObjectReference| self.live(reference).map(|live| live.whole());
        let (manager, policy) = (&active.field_manager, &active.policy);
        let prepared = prepare(&self.owner, manager, desired.ok()?.objects, policy, &live);
        Some(prepared.ok()?.wanted)
    }

    /// What has this name: an object of the plugin, or any that it may read.
    fn live(&self, reference: &ObjectReference) -> Option<Arc<Object>> {
        let namespace = reference.namespace.as_deref();
        let read = || self.seen.get(&reference.kind, namespace, &reference.name);
        find(self.active, &self.seen, reference).or_else(|| read().found())
    }

    /// An object as it would be.
    fn make(&self, live: Option<&Object>, wanted: Wanted) -> Option<Object> {
        let reference = wanted.stamped.reference.clone();
        let resource = self.active.resource(&reference.kind)?;
        let uid = || Digest::of(reference.to_string().as_bytes()).short();
        let mut value = match live {
            Some(live) => live.value(),
            // The same each time.
            None => json!({"metadata": {"uid": uid()}}),
        };
        put(&mut value, wanted.stamped.into_body());
        Object::parse(resource, value.to_string().as_bytes()).ok()
    }
}

/// Whether an object would be written, and so that it stays as it is wanted. Values of
/// Secrets are not made up, and hooks come and go.
fn is_written(object: &ObjectReference, options: &Options, is_there: bool) -> bool {
    let applied = match options.apply {
        ApplyMode::Apply | ApplyMode::Merge | ApplyMode::Replace => true,
        ApplyMode::IfNotPresent => !is_there,
        // Of what is contributed to somebody's object, the rest is not ours to make up.
        ApplyMode::Contribute | ApplyMode::Ignore => false,
    };
    applied && options.role == Role::Resource && !options.skip_reconcile && !object.kind.is_secret()
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

    #[test]
    fn only_what_stays_as_it_is_wanted_is_shown() {
        let config_map = GroupVersionKind::new("", "v1", "ConfigMap");
        let secret = GroupVersionKind::new("", "v1", "Secret");
        let with = |apply| Options {
            apply,
            ..Options::default()
        };
        let skipped = Options {
            role: Role::Skipped,
            ..Options::default()
        };
        let suspended = Options {
            skip_reconcile: true,
            ..Options::default()
        };
        for (kind, options, is_there, written) in [
            (&config_map, Options::default(), true, true),
            (&config_map, with(ApplyMode::Merge), true, true),
            (&config_map, with(ApplyMode::Replace), true, true),
            (&config_map, with(ApplyMode::IfNotPresent), false, true),
            (&config_map, with(ApplyMode::IfNotPresent), true, false),
            (&config_map, with(ApplyMode::Contribute), true, false),
            (&config_map, with(ApplyMode::Ignore), false, false),
            (&config_map, skipped, false, false),
            (&config_map, suspended, true, false),
            (&secret, Options::default(), false, false),
        ] {
            let object = ObjectReference::new(kind.clone(), Some("a".to_owned()), "b");
            let found = is_written(&object, &options, is_there);
            assert_eq!(found, written, "{options:?}");
        }
    }
}
