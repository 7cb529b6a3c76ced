//! From the objects of an answer to what is sent of them.

use super::Wanted;
use super::ending::{EndNeeds, is_tied};
use super::policy::Policy;
use crate::desired::DesiredObject;
use crate::digest::Digest;
use crate::ignore::{self, AnnotationError, Rule, RuleText};
use crate::kind::ObjectReference;
use crate::ownership::Owner;
use crate::waves::{ApplyMode, Member};
use reeve_ssa::ManagedFields;
use serde_json::Value;

/// What of an object is left to others.
#[derive(Clone, Debug, PartialEq)]
pub struct Ignored {
    /// The object as the plugin returned it.
    pub original: Value,
    /// JSON Pointers into it.
    pub removed: Vec<String>,
}

/// An answer, ready to be planned.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// What is sent.
    pub wanted: Vec<Wanted>,
    /// What a sync is one of. What others own of the objects just now does not
    /// change it.
    pub revision: Digest,
    /// What its end needs.
    pub needs: EndNeeds,
    /// What in annotations and rules is not understood.
    pub warnings: Vec<String>,
}

/// Makes of the objects of an answer what is sent: what is ignored is left out,
/// marks of ownership are added.
///
/// `live` gives the object of a name as it is now, with its `managedFields`, if
/// there is one. It is asked only where a rule names managers, or an object leaves
/// fields of others alone (`Merge`).
pub fn prepare(
    owner: &Owner,
    manager: &str,
    objects: Vec<DesiredObject>,
    policy: &Policy,
    live: &dyn Fn(&ObjectReference) -> Option<Value>,
) -> Result<Prepared, AnnotationError> {
    let mut warnings = Vec::new();
    let mut steady = Vec::with_capacity(objects.len());
    let mut wanted = Vec::with_capacity(objects.len());
    let members: Vec<_> = objects
        .iter()
        .map(|object| Member::of(object.reference.clone(), &object.body))
        .collect();
    let needs = EndNeeds::of(owner, members.iter().map(|(member, _)| member));
    for (object, (member, unclear)) in objects.into_iter().zip(members) {
        let DesiredObject {
            reference, body, ..
        } = object;
        let unclear = unclear.iter();
        warnings.extend(unclear.map(|text| format!("{reference}: {text}")));
        let mode = member.options.apply;
        let stamp = |body| match mode {
            ApplyMode::Contribute => owner.contribute(reference.clone(), body),
            _ => owner.stamp_as(reference.clone(), body, is_tied(needs, &member)),
        };
        let mut rules: Vec<Rule> = Rule::of(&reference, &body)?.into_iter().collect();
        let general = policy
            .ignore
            .iter()
            .filter(|rule| rule.applies_to(&reference));
        rules.extend(general.cloned());
        let of_managers = rules.iter().any(Rule::looks_at_managers) || mode == ApplyMode::Merge;
        if rules.is_empty() && !of_managers {
            let stamped = stamp(body);
            steady.push(super::part_of_revision(&stamped));
            wanted.push(Wanted {
                stamped,
                member,
                ignored: None,
            });
            continue;
        }
        let always = ignore::strip(&reference, &body, &rules, None);
        let found = if of_managers { live(&reference) } else { None };
        if mode == ApplyMode::Merge {
            rules.extend(found.as_ref().and_then(|live| others(live, manager)));
        }
        let now = match &found {
            Some(live) => ignore::strip(&reference, &body, &rules, Some(live)),
            None => always.clone(),
        };
        warnings.extend(now.problems);
        steady.push(super::part_of_revision(&stamp(always.object)));
        wanted.push(Wanted {
            stamped: stamp(now.object),
            member,
            ignored: (!now.removed.is_empty()).then_some(Ignored {
                original: body,
                removed: now.removed,
            }),
        });
    }
    let revision = super::revision_of(steady);
    super::mark_hooks(&mut wanted, &revision);
    Ok(Prepared {
        revision,
        wanted,
        needs,
        warnings,
    })
}

/// A rule that ignores what anybody but us owns of an object.
fn others(live: &Value, manager: &str) -> Option<Rule> {
    let managers = ManagedFields::of(live).ok()?;
    let names = managers.iter().map(|(id, _)| id.manager.clone());
    let rule = RuleText {
        group: "*".to_owned(),
        kind: "*".to_owned(),
        managed_fields_managers: names.filter(|name| name != manager).collect(),
        ..RuleText::default()
    };
    // Nobody else is there.
    Rule::try_from(rule).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::GroupVersionKind;
    use crate::unit::UnitKey;
    use serde_json::json;

    fn reference() -> ObjectReference {
        let kind = GroupVersionKind::new("", "v1", "ConfigMap");
        ObjectReference::new(kind, Some("alice".into()), "c")
    }

    fn prepared(annotations: &Value, policy: &Policy, live: Option<&Value>) -> Prepared {
        let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
        let owner = Owner {
            unit: UnitKey::new("quotas", ObjectReference::new(kind, None, "alice")),
            uid: "u".into(),
        };
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "c", "namespace": "alice", "annotations": annotations},
            "data": {"a": "1", "b": "2"},
        });
        let objects = vec![DesiredObject {
            reference: reference(),
            body,
            text: None,
        }];
        prepare(&owner, "reeve/quotas", objects, policy, &|_| live.cloned()).unwrap()
    }

    fn policy(rule: &Value) -> Policy {
        let text: RuleText = serde_json::from_value(rule.clone()).unwrap();
        Policy {
            ignore: vec![Rule::try_from(text).unwrap()],
            ..Policy::default()
        }
    }

    fn theirs(manager: &str) -> Value {
        json!({"metadata": {"managedFields": [
            {"manager": manager, "operation": "Update", "apiVersion": "v1",
             "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:b": {}}}},
        ]}})
    }

    fn check(annotations: &Value, policy: &Policy, live: Option<&Value>, data: &Value) -> Digest {
        let prepared = prepared(annotations, policy, live);
        let one = &prepared.wanted[0];
        assert_eq!(one.stamped.body()["data"], *data, "{annotations}");
        let removed = one.ignored.as_ref().map(|ignored| ignored.removed.clone());
        let expected = (data.get("b").is_none()).then(|| vec!["/data/b".to_owned()]);
        assert_eq!(removed, expected, "{annotations}");
        prepared.revision
    }

    #[test]
    fn ignored_fields_are_not_sent() {
        let (all, rest) = (json!({"a": "1", "b": "2"}), json!({"a": "1"}));
        let none = Policy::default();
        let plain = check(&json!({}), &none, None, &all);
        let general = policy(&json!({"kind": "ConfigMap", "jsonPointers": ["/data/b"]}));
        assert_ne!(check(&json!({}), &general, None, &rest), plain);
        check(&json!({"reeve.dev/ignore": ".data.b"}), &none, None, &rest);
        let elsewhere = policy(&json!({"kind": "Secret", "jsonPointers": ["/data/b"]}));
        assert_eq!(check(&json!({}), &elsewhere, None, &all), plain);
    }

    #[test]
    fn what_others_own_just_now_is_no_new_revision() {
        let (all, rest) = (json!({"a": "1", "b": "2"}), json!({"a": "1"}));
        let by_manager = policy(&json!({"kind": "*", "group": "*",
            "managedFieldsManagers": ["hpa"]}));
        let alone = check(&json!({}), &by_manager, None, &all);
        let shared = check(&json!({}), &by_manager, Some(&theirs("hpa")), &rest);
        let other = check(&json!({}), &by_manager, Some(&theirs("x")), &all);
        assert_eq!((alone, alone), (shared, other));
        let merge = json!({"reeve.dev/apply": "Merge"});
        let none = Policy::default();
        let alone = check(&merge, &none, None, &all);
        let shared = check(&merge, &none, Some(&theirs("x")), &rest);
        let ours = check(&merge, &none, Some(&theirs("reeve/quotas")), &all);
        assert_eq!((alone, alone), (shared, ours));
    }

    #[test]
    fn a_contribution_is_sent_without_marks() {
        let of = |annotations: Value| prepared(&annotations, &Policy::default(), None);
        let contribution = of(json!({"reeve.dev/apply": "Contribute"}));
        let body = contribution.wanted[0].stamped.body();
        assert_eq!(body["metadata"], json!({"name": "c", "namespace": "alice"}));
        let plain = of(json!({}));
        let labels = &plain.wanted[0].stamped.body()["metadata"]["labels"];
        assert_eq!(labels["reeve.dev/plugin"], "quotas");
    }
}
