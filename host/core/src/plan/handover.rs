//! Who owns what of an object of ours, before it is applied.

use super::{Taken, Wanted};
use crate::ignore::{ignored_fields, locate};
use crate::waves::ApplyMode;
use reeve_ssa::{ManagedFields, ManagerId, Operation, PathElement};
use serde_json::Value;

/// The `managedFields` that an object must have before `one` is applied to it by
/// `manager`; none where they may stay as they are.
///
/// What is ignored is given up: left out of an apply by its only owner it would be
/// removed, but it is to keep its value. An object that is replaced as a whole is
/// taken over from everybody, so that the apply removes what it does not mention;
/// status and other subresources stay with whom they are.
pub fn handover(one: &Wanted, live: &Value, manager: &str) -> Option<Value> {
    let before = ManagedFields::of(live).ok()?;
    Some(entries_after(one, &before, manager)?.to_value())
}

/// The fields of others that `one`, which replaces the whole object, does not mention:
/// with the apply they go.
pub fn replaced(one: &Wanted, live: &Value, manager: &str) -> Vec<Taken> {
    if one.member.options.apply != ApplyMode::Replace {
        return Vec::new();
    }
    // Where nothing is taken over nothing goes.
    let Ok(before) = ManagedFields::of(live) else {
        return Vec::new();
    };
    let Some(after) = entries_after(one, &before, manager) else {
        return Vec::new();
    };
    let Some(own) = after.get(&ManagerId::apply(manager, "")) else {
        return Vec::new();
    };
    let mut gone = Vec::new();
    for (id, owned) in before.iter() {
        if id.manager == manager || after.get(id).is_some() {
            continue;
        }
        for path in owned.set.leaves().intersection(&own.set).iter() {
            let is_in = |object| locate(object, &path).is_some();
            // An item of a list is told by what it has.
            let item = matches!(path.0.last(), Some(PathElement::Key(_)));
            if !item && is_in(live) && !is_in(one.stamped.body()) {
                gone.push(Taken {
                    field: path.to_string(),
                    manager: id.manager.clone(),
                    subresource: id.subresource.clone(),
                    applied: id.operation == Operation::Apply,
                    overwrites: true,
                });
            }
        }
    }
    gone.sort_unstable();
    gone.dedup();
    gone
}

/// Who owns what by then; none where all stays as it is.
fn entries_after(one: &Wanted, before: &ManagedFields, manager: &str) -> Option<ManagedFields> {
    let mut after = None;
    if one.member.options.apply == ApplyMode::Replace {
        let api_version = one.stamped.reference.kind.api_version();
        after = before.hand_over(|id| id.manager != manager, manager, &api_version);
    }
    // What is taken over is ignored no less than what was ours.
    let entries = after.as_ref().unwrap_or(before);
    if let Some(ignored) = &one.ignored
        && let Some(own) = entries.get(&ManagerId::apply(manager, ""))
    {
        let fields = ignored_fields(&ignored.original, &ignored.removed, &own.set);
        after = entries.give_up(manager, &fields).or(after);
    }
    after
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::{GroupVersionKind, ObjectReference};
    use crate::ownership::Owner;
    use crate::plan::Ignored;
    use crate::unit::UnitKey;
    use crate::waves::Member;
    use serde_json::json;

    fn entry(manager: &str, operation: &str, data: &[&str]) -> Value {
        let fields: serde_json::Map<String, Value> = data
            .iter()
            .map(|key| (format!("f:{key}"), json!({})))
            .collect();
        json!({"manager": manager, "operation": operation, "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:data": fields}})
    }

    fn one(mode: &str, removed: &[&str]) -> Wanted {
        let kind = GroupVersionKind::new("", "v1", "ConfigMap");
        let reference = ObjectReference::new(kind, Some("n".into()), "c");
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "c", "annotations": {"reeve.dev/apply": mode}},
            "data": {"a": "1", "b": "2"},
        });
        let (member, _) = Member::of(reference.clone(), &body);
        let owner = Owner {
            unit: UnitKey::new("p", reference.clone()),
            uid: String::new(),
        };
        let mut sent = body.clone();
        for pointer in removed {
            let key = pointer.rsplit('/').next().unwrap();
            sent["data"].as_object_mut().unwrap().remove(key);
        }
        Wanted {
            stamped: owner.stamp(reference, sent),
            member,
            ignored: (!removed.is_empty()).then(|| Ignored {
                original: body,
                removed: removed.iter().map(|text| (*text).to_owned()).collect(),
            }),
        }
    }

    fn live() -> Value {
        json!({"data": {"a": "1", "b": "2", "c": "3"}, "metadata": {"managedFields": [
            entry("me", "Apply", &["a", "b"]),
            entry("you", "Update", &["b", "c"]),
        ]}})
    }

    fn check(mode: &str, removed: &[&str], expected: Option<&[Value]>) {
        let entries = handover(&one(mode, removed), &live(), "me");
        assert_eq!(
            entries,
            expected.map(|list| json!(list)),
            "{mode} {removed:?}"
        );
    }

    #[test]
    fn the_ignored_is_given_up_and_the_replaced_taken_over() {
        let you = entry("you", "Update", &["b", "c"]);
        check("Apply", &[], None);
        check("Apply", &["/data/c"], None);
        check(
            "Apply",
            &["/data/b"],
            Some(&[entry("me", "Apply", &["a"]), you.clone()]),
        );
        check("Apply", &["/data"], Some(&[you]));
        check(
            "Replace",
            &[],
            Some(&[entry("me", "Apply", &["a", "b", "c"])]),
        );
        check(
            "Replace",
            &["/data/a"],
            Some(&[entry("me", "Apply", &["b", "c"])]),
        );
        // It keeps its value, whoever had set it.
        check(
            "Replace",
            &["/data/b"],
            Some(&[entry("me", "Apply", &["a", "c"])]),
        );
    }

    #[test]
    fn what_goes_of_a_replaced_object_is_told() {
        let gone = |mode, removed: &[&str]| -> Vec<String> {
            let gone = replaced(&one(mode, removed), &live(), "me");
            gone.iter().map(ToString::to_string).collect()
        };
        assert_eq!(gone("Replace", &[]), [".data.c by \"you\""]);
        assert_eq!(gone("Replace", &["/data/b"]), [".data.c by \"you\""]);
        assert_eq!(gone("Apply", &[]), Vec::<String>::new());
    }
}
