//! Ownership of what is written by other means than apply.

use serde_json::{Map, Value, json};

use crate::managed::{ManagedFields, ManagerId, Owned, keep_times, take_entries, unmanaged};
use crate::ownership::{Scope, Version};
use crate::schema::Schema;
use crate::set::FieldSet;
use crate::typed::{Duplicates, validate};

/// A create, update, or patch other than apply.
///
/// A server calls this when the request is decoded, patched and defaulted, and
/// before admission and before it fills in what it decides itself, so that
/// those belong to nobody.
#[derive(Clone, Debug)]
pub struct Update<'a> {
    /// The type of both objects.
    pub schema: &'a Schema,
    /// Other versions of the same resource.
    pub versions: &'a [Version<'a>],
    /// The object as it is stored; none when it is created.
    pub live: Option<&'a Value>,
    /// The object as it shall be stored, as far as the request decides it. Its
    /// `managedFields` count: an empty list (for custom resources, a list of
    /// one empty entry) drops all entries, absence keeps those of `live`,
    /// anything else replaces them.
    pub object: Value,
    /// `fieldManager`, or what stands for it (the first part of the user
    /// agent).
    pub manager: &'a str,
    /// The subresource that the request goes to; empty for the object itself.
    pub subresource: &'a str,
    /// The time of the request, RFC 3339 to the second, in UTC.
    pub now: &'a str,
    /// Fields that this request cannot set; see [`crate::Apply::reset`].
    pub reset: &'a FieldSet,
}

/// The object with the `managedFields` that it gets by this write.
///
/// It never fails: an object that does not fit its type loses its managed
/// fields, as in the server. Times stay as they are when nothing else changes.
pub fn update(request: Update<'_>) -> Value {
    let Update {
        schema,
        versions,
        live: stored,
        mut object,
        manager,
        subresource,
        now,
        reset,
    } = request;
    let entries = take_entries(&mut object);
    let mut live = stored.map_or_else(
        || json!({ "apiVersion": object["apiVersion"], "kind": object["kind"] }),
        unmanaged,
    );
    let native = schema.is_native();
    let mut managers = starting_point(stored, entries.as_ref(), subresource, native);
    schema.normalize(&mut live);
    schema.normalize(&mut object);

    // An object that exists without tracking stays so until the first apply.
    let untracked = managers.is_empty() && live.pointer("/metadata/uid").is_some();
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let scope = Scope {
        schema,
        versions,
        api_version,
        reset,
    };
    let id = ManagerId::update(manager, api_version, subresource);
    if !untracked && !track(&scope, id, now, [&live, &object], &mut managers) {
        return object;
    }
    managers.write_to(&mut object);
    if let Some(stored) = stored {
        keep_times(stored, &mut object);
    }
    object
}

/// Whether the objects, that before and that after the write of a manager, could be compared.
fn track(
    scope: &Scope<'_>,
    id: ManagerId,
    now: &str,
    [live, object]: [&Value; 2],
    managers: &mut ManagedFields,
) -> bool {
    let fits = |object| validate(scope.schema, object, Duplicates::Allowed).is_ok();
    if !fits(live) || !fits(object) {
        return false;
    }
    let Ok(touched) = scope.update(live, object, managers) else {
        return false;
    };
    if let Some(set) = touched {
        let set = match managers.0.remove(&id) {
            Some(before) => before.set.joined(set),
            None => set,
        };
        managers.0.insert(
            id,
            Owned {
                set,
                api_version: scope.api_version.to_owned(),
                time: Some(now.to_owned()),
            },
        );
    }
    managers.cap_updates();
    true
}

/// The entries before this write: those that the request brings, unless it
/// has none, cannot be read, or goes to a subresource.
fn starting_point(
    live: Option<&Value>,
    entries: Option<&Value>,
    subresource: &str,
    native: bool,
) -> ManagedFields {
    let of_live = || {
        let managers = live.map(ManagedFields::of).and_then(Result::ok);
        managers.unwrap_or_default()
    };
    if !subresource.is_empty() {
        return of_live();
    }
    if is_reset(entries, native) {
        return ManagedFields::default();
    }
    match ManagedFields::parse(entries) {
        Ok(managers) if !managers.is_empty() => managers,
        _ => of_live(),
    }
}

/// An empty list, or a list of one empty entry, asks to forget all owners.
fn is_reset(entries: Option<&Value>, native: bool) -> bool {
    match entries {
        Some(Value::Array(entries)) => match entries.as_slice() {
            // Reading a custom resource drops an empty list on the way.
            [] => native,
            [one] => one.as_object().is_some_and(Map::is_empty),
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    /// The entries after a write, as `manager fields` in order.
    fn check(live: Option<&Value>, object: &Value, subresource: &str, expected: &[&str]) -> Value {
        let kind = object["kind"].as_str().unwrap();
        let written = update(Update {
            schema: builtin::schema("", "v1", kind).unwrap(),
            versions: &[],
            live,
            object: object.clone(),
            manager: "me",
            subresource,
            now: "2026-01-01T00:00:09Z",
            reset: &crate::reset::built_in("", kind, subresource),
        });
        let managers = ManagedFields::of(&written).unwrap();
        let mut entries: Vec<_> = managers
            .iter()
            .map(|(id, owned)| format!("{} {}", id.manager, owned.set.to_fields_v1_json()))
            .collect();
        entries.sort();
        assert_eq!(entries, expected, "{object}");
        written
    }

    fn quota(pods: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "uid": "1"},
            "spec": {"hard": {"pods": pods}},
        })
    }

    fn owned(mut object: Value, manager: &str) -> Value {
        object["metadata"]["managedFields"] = json!([{
            "manager": manager, "operation": "Update", "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:hard": {".": {}, "f:pods": {}}}},
        }]);
        object
    }

    #[test]
    fn a_create_owns_all_it_brings_but_identity_and_what_is_always_there() {
        check(
            None,
            &quota("1"),
            "",
            &[r#"me {"f:spec":{"f:hard":{".":{},"f:pods":{}}}}"#],
        );
    }

    #[test]
    fn a_change_moves_ownership() {
        let live = owned(quota("1"), "other");
        check(
            Some(&live),
            &quota("2"),
            "",
            &[
                r#"me {"f:spec":{"f:hard":{"f:pods":{}}}}"#,
                r#"other {"f:spec":{"f:hard":{}}}"#,
            ],
        );
    }

    #[test]
    fn no_change_changes_nothing() {
        let mut live = owned(quota("1"), "other");
        live["status"] = json!({});
        let written = check(
            Some(&live),
            &live,
            "",
            &[r#"other {"f:spec":{"f:hard":{".":{},"f:pods":{}}}}"#],
        );
        assert_eq!(written, live);
    }

    #[test]
    fn a_removed_field_belongs_to_nobody() {
        let live = owned(quota("1"), "other");
        let mut object = quota("1");
        object["spec"] = json!({});
        check(Some(&live), &object, "", &[]);
    }

    #[test]
    fn an_untracked_object_stays_untracked() {
        check(Some(&quota("1")), &quota("2"), "", &[]);
    }

    #[test]
    fn a_status_write_owns_status_alone() {
        let live = owned(quota("1"), "other");
        let mut object = owned(quota("2"), "forged");
        object["status"] = json!({"used": {"pods": "1"}});
        check(
            Some(&live),
            &object,
            "status",
            &[
                r#"me {"f:status":{"f:used":{".":{},"f:pods":{}}}}"#,
                r#"other {"f:spec":{"f:hard":{".":{},"f:pods":{}}}}"#,
            ],
        );
    }

    #[test]
    fn the_managed_fields_of_a_request_count() {
        let live = owned(quota("1"), "other");
        let kept = r#"other {"f:spec":{"f:hard":{".":{},"f:pods":{}}}}"#;
        let with = |entries: Value| {
            let mut object = quota("1");
            object["metadata"]["managedFields"] = entries;
            object
        };
        check(Some(&live), &with(json!(null)), "", &[kept]);
        check(
            Some(&live),
            &with(json!([{"operation": "Own"}])),
            "",
            &[kept],
        );
        check(Some(&live), &with(json!([])), "", &[]);
        check(Some(&live), &with(json!([{}])), "", &[]);
        let renamed = owned(quota("1"), "renamed");
        let renamed_entry = kept.replace("other", "renamed");
        check(Some(&live), &renamed, "", &[renamed_entry.as_str()]);
    }

    #[test]
    fn an_object_that_does_not_fit_loses_its_owners() {
        let live = owned(quota("1"), "other");
        let mut object = quota("1");
        object["spec"]["undeclared"] = 1.into();
        check(Some(&live), &object, "", &[]);
    }
}
