//! Who owns what of an object of ours, before it is applied.

use super::Wanted;
use crate::ignore::ignored_fields;
use crate::waves::ApplyMode;
use reeve_ssa::{ManagedFields, ManagerId};
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
    let mut after = None;
    if let Some(ignored) = &one.ignored
        && let Some(own) = before.get(&ManagerId::apply(manager, ""))
    {
        let fields = ignored_fields(&ignored.original, &ignored.removed, &own.set);
        after = before.give_up(manager, &fields);
    }
    if one.member.options.apply == ApplyMode::Replace {
        let api_version = one.stamped.reference.kind.api_version();
        let entries = after.as_ref().unwrap_or(&before);
        let all = entries.hand_over(|id| id.manager != manager, manager, &api_version);
        after = all.or(after);
    }
    after.map(|entries| entries.to_value())
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

    fn check(mode: &str, removed: &[&str], expected: Option<&[Value]>) {
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
        let one = Wanted {
            stamped: owner.stamp(reference, body.clone()),
            member,
            ignored: (!removed.is_empty()).then(|| Ignored {
                original: body,
                removed: removed.iter().map(|text| (*text).to_owned()).collect(),
            }),
        };
        let live = json!({"metadata": {"managedFields": [
            entry("me", "Apply", &["a", "b"]),
            entry("you", "Update", &["b", "c"]),
        ]}});
        let entries = handover(&one, &live, "me");
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
    }
}
