//! Contributions to objects of others, step by step.

use super::*;
use crate::health::{Applied, Gate};
use crate::kind::GroupVersionKind;
use crate::ownership::{Owner, contributor};
use crate::plan::{Hooks, Observed, Schemas, Stubborn, plan};
use crate::unit::UnitKey;
use crate::waves::{Member, Mode, order};
use serde_json::json;

fn owner() -> Owner {
    let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
    Owner {
        unit: UnitKey::new("p", ObjectReference::new(kind, None, "alice")),
        uid: "u".into(),
    }
}

fn reference(group: &str, kind: &str) -> ObjectReference {
    let kind = GroupVersionKind::new(group, "v1", kind);
    ObjectReference::new(kind, Some("n".into()), "c")
}

fn wanted(group: &str, kind: &str, data: &Value) -> Wanted {
    let reference = reference(group, kind);
    let body = json!({
        "apiVersion": reference.kind.api_version(), "kind": kind,
        "metadata": {"name": "c", "namespace": "n",
            "annotations": {"reeve.dev/apply": "Contribute"}},
        "data": data,
    });
    let (member, _) = Member::of(reference.clone(), &body);
    Wanted {
        stamped: owner().contribute(reference, body),
        member,
        ignored: None,
    }
}

fn target(group: &str, kind: &str, data: &Value, managers: &[(&str, &str, &[&str])]) -> Target {
    let reference = reference(group, kind);
    let version = reference.kind.api_version();
    let entries: Vec<Value> = managers
        .iter()
        .map(|(manager, operation, keys)| {
            let keys = keys.iter().map(|key| (format!("f:{key}"), json!({})));
            let fields: serde_json::Map<_, _> = keys.collect();
            json!({"manager": manager, "operation": operation, "apiVersion": version,
                "fieldsType": "FieldsV1", "fieldsV1": {"f:data": fields}})
        })
        .collect();
    Target {
        uid: "uid-c".into(),
        deleting: false,
        live: json!({
            "apiVersion": version, "kind": kind,
            "metadata": {"name": "c", "namespace": "n", "uid": "uid-c", "managedFields": entries},
            "data": data,
        }),
        reference,
    }
}

/// The steps and refusals of a plan, in words.
fn words(wanted: &[Wanted], targets: &[Target], sent: &[(ObjectReference, String)]) -> String {
    let members: Vec<Member> = wanted.iter().map(|one| one.member.clone()).collect();
    let sequence = order(&members, Mode::Waves).unwrap();
    let owner = owner();
    let manager = contributor(&owner.unit);
    let gate = |_: &Observed, _: Option<Applied<'_>>| Gate::Pass;
    let plan = plan(&Situation {
        owner: &owner,
        wanted,
        sequence: &sequence,
        observed: &[],
        gate: &gate,
        hooks: &Hooks::new(),
        settled: false,
        unserved: &std::collections::BTreeSet::new(),
        left_alone: &std::collections::BTreeSet::new(),
        failing: false,
        keeps: false,
        schemas: &Schemas::default(),
        stubborn: &Stubborn::new(),
        contributions: Contributions {
            manager: &manager,
            targets,
            sent,
        },
    });
    let mut words: Vec<String> = plan
        .steps()
        .map(|step| match step {
            Step::Contribute { again, uid, .. } => format!("contribute to {uid}, again: {again}"),
            Step::Release { uid, .. } => format!("release {uid}"),
            other => format!("{other:?}"),
        })
        .collect();
    words.extend(plan.refusals.iter().map(ToString::to_string));
    words.extend(
        plan.blocked
            .map(|blocked| format!("waits: {}", blocked.reason)),
    );
    words.join("; ")
}

#[test]
fn an_object_that_is_not_there_is_waited_for() {
    for (group, kind) in [("", "ConfigMap"), ("example.com", "Widget")] {
        let one = [wanted(group, kind, &json!({"a": "1"}))];
        let said = words(&one, &[], &[]);
        assert!(said.contains("waits: it does not exist"), "{said}");
        let mut going = target(group, kind, &json!({}), &[]);
        going.deleting = true;
        let said = words(&one, &[going], &[]);
        assert!(said.contains("waits: it is being deleted"), "{said}");
    }
}

#[test]
fn fields_are_contributed_once_and_taken_back() {
    let manager = contributor(&owner().unit);
    for (group, kind) in [("", "ConfigMap"), ("example.com", "Widget")] {
        let one = [wanted(group, kind, &json!({"a": "1"}))];
        let sent = [(reference(group, kind), one[0].stamped.applied.clone())];
        let of =
            |data: Value, managers: &[(&str, &str, &[&str])]| target(group, kind, &data, managers);
        let untouched = of(json!({"b": "x"}), &[("edit", "Update", &["b"])]);
        let first = "contribute to uid-c, again: false";
        assert_eq!(words(&one, std::slice::from_ref(&untouched), &[]), first);
        let ours = of(json!({"a": "1", "b": "x"}), &[(&manager, "Apply", &["a"])]);
        assert_eq!(words(&one, std::slice::from_ref(&ours), &[]), "");
        // An edit takes it, and we take it back.
        let edited = of(json!({"a": "x"}), &[("edit", "Update", &["a"])]);
        let again = "contribute to uid-c, again: true";
        assert_eq!(words(&one, &[edited], &sent), again);
        // More than is wanted now is given up by applying less.
        let more = of(
            json!({"a": "1", "z": "1"}),
            &[(&manager, "Apply", &["a", "z"])],
        );
        assert_eq!(words(&one, &[more], &[]), first);
        // A value that the API server writes in its own way is sent once.
        let rewritten = of(json!({"a": "one"}), &[(&manager, "Apply", &["a"])]);
        assert_eq!(words(&one, std::slice::from_ref(&rewritten), &[]), first);
        assert_eq!(words(&one, &[rewritten], &sent), "");
        // Not wanted any more, or not of this object.
        assert_eq!(words(&[], &[ours, untouched], &[]), "release uid-c");
    }
}

#[test]
fn whoever_applies_a_field_keeps_it() {
    for manager in ["argocd", "reeve/other", "reeve/p:0123456789abcdef0123"] {
        for (group, kind) in [("", "ConfigMap"), ("example.com", "Widget")] {
            let one = [wanted(group, kind, &json!({"a": "1"}))];
            let theirs = target(
                group,
                kind,
                &json!({"a": "x"}),
                &[(manager, "Apply", &["a"])],
            );
            let expected = format!(
                "ConfigMap n/c: plugin p for Profile.kubeflow.org//alice wants fields that others \
                 had first: .data.a by {manager:?}; they are left alone. Return other fields, or \
                 have the others give them up"
            );
            let expected = expected.replace("ConfigMap n/c", &reference(group, kind).to_string());
            // What comes later waits for whoever has them.
            let expected = format!("{expected}; waits: {expected}");
            assert_eq!(words(&one, &[theirs], &[]), expected);
            // One value is no quarrel.
            let same = target(
                group,
                kind,
                &json!({"a": "1"}),
                &[(manager, "Apply", &["a"])],
            );
            assert_eq!(
                words(&one, &[same], &[]),
                "contribute to uid-c, again: false"
            );
        }
    }
}
