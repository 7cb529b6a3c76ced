//! Handing fields over from one manager to another while their values stay.
//!
//! An API server takes the entries of an update that brings some as they are, and
//! adds nothing where no value changes. So ownership can be moved or given up by a
//! write of `managedFields` alone; it is how kubectl turns objects of client-side
//! apply into such of server-side apply.

use crate::managed::{ManagedFields, ManagerId, Operation, Owned};
use crate::set::FieldSet;

impl ManagedFields {
    /// The entries after `to` has taken over, as an applier, what the entries for
    /// which `from` says so own, beside what it owns already. Its next apply then
    /// removes what it does not mention. None when nothing is to be moved.
    ///
    /// Only entries of the object itself (no subresource) in terms of
    /// `api_version` move: the fields of another version may have other names.
    pub fn hand_over(
        &self,
        from: impl Fn(&ManagerId) -> bool,
        to: &str,
        api_version: &str,
    ) -> Option<Self> {
        let id = ManagerId::apply(to, "");
        let mut after = self.clone();
        let mut own = match after.0.remove(&id) {
            Some(own) if own.api_version != api_version => return None,
            Some(own) => own,
            None => Owned {
                set: FieldSet::new(),
                api_version: api_version.to_owned(),
                time: None,
            },
        };
        let mut moved = false;
        after.0.retain(|other, owned| {
            let moves =
                other.subresource.is_empty() && owned.api_version == api_version && from(other);
            if moves {
                own.set = own.set.union(&owned.set);
                own.time = own.time.take().max(owned.time.clone());
                moved = true;
            }
            !moves
        });
        after.0.insert(id, own);
        moved.then_some(after)
    }

    /// The entries after `manager`, an applier, has given up these fields. Nobody
    /// owns them then, unless others do, and the next apply does not remove them.
    /// None when it owns none of them.
    pub fn give_up(&self, manager: &str, fields: &FieldSet) -> Option<Self> {
        let id = ManagerId::apply(manager, "");
        let own = self.0.get(&id)?;
        let left = own.set.difference(fields);
        if left == own.set {
            return None;
        }
        let mut after = self.clone();
        if left.is_empty() {
            after.0.remove(&id);
        } else if let Some(own) = after.0.get_mut(&id) {
            own.set = left;
        }
        Some(after)
    }

    /// Those who own fields of the object itself by applying it.
    pub fn appliers(&self) -> impl Iterator<Item = &str> {
        self.0.keys().filter_map(|id| {
            let applies = id.operation == Operation::Apply && id.subresource.is_empty();
            applies.then_some(id.manager.as_str())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn entry(manager: &str, operation: &str, version: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": version,
            "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    fn managers(entries: &[Value]) -> ManagedFields {
        ManagedFields::parse(Some(&json!(entries))).unwrap()
    }

    fn words(managers: &ManagedFields) -> Vec<String> {
        let entries = managers.iter().map(|(id, owned)| {
            let fields = owned.set.to_fields_v1_json();
            format!("{} {} {fields}", id.operation.as_str(), id.manager)
        });
        entries.collect()
    }

    #[test]
    fn the_listed_entries_become_one() {
        let mut status = entry("kubectl", "Update", "v1", &json!({"f:status": {}}));
        status["subresource"] = json!("status");
        let before = managers(&[
            entry("kubectl", "Update", "v1", &json!({"f:data": {"f:a": {}}})),
            entry("helm", "Update", "v1", &json!({"f:data": {"f:b": {}}})),
            entry("other", "Update", "v1", &json!({"f:data": {"f:c": {}}})),
            entry("kubectl", "Update", "v2", &json!({"f:info": {}})),
            entry("me", "Apply", "v1", &json!({"f:data": {"f:d": {}}})),
            status,
        ]);
        let listed = |id: &ManagerId| ["kubectl", "helm"].contains(&id.manager.as_str());
        let after = before.hand_over(listed, "me", "v1").unwrap();
        assert_eq!(
            words(&after),
            [
                r#"Update kubectl {"f:status":{}}"#,
                r#"Update kubectl {"f:info":{}}"#,
                r#"Apply me {"f:data":{"f:a":{},"f:b":{},"f:d":{}}}"#,
                r#"Update other {"f:data":{"f:c":{}}}"#,
            ]
        );
        assert_eq!(after.hand_over(listed, "me", "v1"), None);
        assert_eq!(after.appliers().collect::<Vec<_>>(), ["me"]);
    }

    #[test]
    fn nothing_moves_into_an_entry_of_another_version() {
        let before = managers(&[
            entry("kubectl", "Update", "v1", &json!({"f:data": {"f:a": {}}})),
            entry("me", "Apply", "v2", &json!({"f:info": {"f:d": {}}})),
        ]);
        assert_eq!(before.hand_over(|_| true, "me", "v1"), None);
    }

    #[test]
    fn what_is_given_up_is_nobodys() {
        let before = managers(&[
            entry(
                "me",
                "Apply",
                "v1",
                &json!({"f:data": {"f:a": {}, "f:b": {}}}),
            ),
            entry("other", "Update", "v1", &json!({"f:data": {"f:a": {}}})),
        ]);
        let fields = |names: &[&str]| -> FieldSet {
            names
                .iter()
                .map(|name| Path::fields(["data", *name]))
                .collect()
        };
        let after = before.give_up("me", &fields(&["a"])).unwrap();
        assert_eq!(
            words(&after),
            [
                r#"Apply me {"f:data":{"f:b":{}}}"#,
                r#"Update other {"f:data":{"f:a":{}}}"#
            ]
        );
        let after = before.give_up("me", &fields(&["a", "b"])).unwrap();
        assert_eq!(words(&after), [r#"Update other {"f:data":{"f:a":{}}}"#]);
        assert_eq!(before.give_up("me", &fields(&["z"])), None);
        assert_eq!(before.give_up("nobody", &fields(&["a"])), None);
    }

    fn any_managers() -> impl Strategy<Value = ManagedFields> {
        let entry = (
            0..3usize,
            any::<bool>(),
            prop::collection::btree_set(0..5u8, 1..4),
        );
        prop::collection::vec(entry, 0..5).prop_map(|entries| {
            let entries: Vec<Value> = entries
                .into_iter()
                .map(|(name, applies, keys)| {
                    let keys = keys.into_iter().map(|key| (format!("f:{key}"), json!({})));
                    let fields: serde_json::Map<_, _> = keys.collect();
                    let operation = if applies { "Apply" } else { "Update" };
                    entry_of(
                        ["a", "b", "me"][name],
                        operation,
                        &json!({"f:data": fields}),
                    )
                })
                .collect();
            managers(&entries)
        })
    }

    fn entry_of(manager: &str, operation: &str, fields: &Value) -> Value {
        entry(manager, operation, "v1", fields)
    }

    proptest! {
        #[test]
        fn no_field_is_lost_by_handing_over(before in any_managers()) {
            let updates = |id: &ManagerId| id.operation == Operation::Update && id.manager == "a";
            let Some(after) = before.hand_over(updates, "me", "v1") else {
                prop_assert!(!before.iter().any(|(id, _)| updates(id)));
                return Ok(());
            };
            prop_assert_eq!(after.union(), before.union());
            for (id, owned) in before.iter().filter(|(id, _)| !updates(id)) {
                let now = after.get(id).map(|now| now.set.clone()).unwrap_or_default();
                prop_assert!(owned.set.difference(&now).is_empty(), "{id} lost fields");
            }
        }

        #[test]
        fn only_the_one_who_gives_up_owns_less(before in any_managers()) {
            let fields: FieldSet = [Path::fields(["data", "0"]), Path::fields(["data", "1"])]
                .into_iter()
                .collect();
            let after = before.give_up("me", &fields).unwrap_or_else(|| before.clone());
            let own = ManagerId::apply("me", "");
            for (id, owned) in before.iter().filter(|(id, _)| **id != own) {
                prop_assert_eq!(after.get(id), Some(owned));
            }
            let set = after.get(&own).map(|owned| owned.set.clone()).unwrap_or_default();
            prop_assert!(set.intersection(&fields).is_empty());
        }
    }
}
