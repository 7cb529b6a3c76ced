//! Objects of all kinds of owners, and who gets them.

use super::*;
use crate::kind::GroupVersionKind;
use crate::unit::UnitKey;
use proptest::prelude::*;
use serde_json::json;

fn owner() -> Owner {
    let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
    Owner {
        unit: UnitKey::new("quotas", ObjectReference::new(kind, None, "alice")),
        uid: "u-alice".into(),
    }
}

fn reference() -> ObjectReference {
    let kind = GroupVersionKind::new("", "v1", "ConfigMap");
    ObjectReference::new(kind, Some("alice".into()), "c")
}

fn entry(manager: &str, operation: &str) -> Value {
    json!({"manager": manager, "operation": operation, "apiVersion": "v1",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:k": {}}}})
}

fn object(mut metadata: Value, managers: &[Value]) -> Value {
    metadata["name"] = json!("c");
    metadata["managedFields"] = json!(managers);
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

fn judged(live: &Value, policy: &Policy) -> Whose {
    let owner = owner();
    let claim = Claim {
        owner: &owner,
        manager: "reeve/quotas",
        policy,
    };
    judge(&claim, &reference(), live)
}

fn check(live: &Value, adoption: Adoption, from: &[&str], expected: &str) {
    let policy = Policy {
        adoption,
        adopt_from: from.iter().map(|name| (*name).to_owned()).collect(),
        ..Policy::default()
    };
    let said = match judged(live, &policy) {
        Whose::Ours => "ours".to_owned(),
        Whose::Adoptable => "adoptable".to_owned(),
        Whose::Refused(refusal) => refusal.to_string(),
    };
    assert_eq!(said, expected, "{adoption}: {live}");
}

const PRIMARY: &str = "Profile.kubeflow.org//alice";

#[test]
fn the_primary_is_named_as_units_are() {
    assert_eq!(owner().unit.id(), PRIMARY);
}

#[test]
fn what_our_manager_applied_for_this_unit_is_ours() {
    let ours = [entry("reeve/quotas", "Apply")];
    let annotated = json!({"annotations": {PRIMARY_ANNOTATION: PRIMARY}});
    let owned = json!({"ownerReferences": [{"uid": "u-alice", "controller": true}]});
    let labelled = json!({"labels": {UNIT_LABEL: unit_label(&owner().unit)}});
    for metadata in [annotated, owned, labelled] {
        check(
            &object(metadata.clone(), &ours),
            Adoption::Never,
            &[],
            "ours",
        );
        // Marks prove nothing by themselves.
        let forged = object(metadata, &[entry("kubectl-create", "Update")]);
        let whose = judged(&forged, &Policy::default());
        assert!(matches!(whose, Whose::Refused(_)), "{whose:?}");
    }
}

#[test]
fn what_another_unit_has_stays_its_own_under_every_policy() {
    let metadata = json!({"annotations": {PRIMARY_ANNOTATION: "Profile.kubeflow.org//bob"}});
    for (manager, holder) in [("reeve/quotas", "quotas"), ("reeve/limits", "limits")] {
        let live = object(metadata.clone(), &[entry(manager, "Apply")]);
        for adoption in [Adoption::Never, Adoption::IfUnowned, Adoption::Always] {
            let expected = format!(
                "ConfigMap alice/c is wanted by plugin quotas for {PRIMARY}, and held by plugin \
                 {holder} for Profile.kubeflow.org//bob, which had it first; it is left alone. \
                 Return another name for each"
            );
            check(&live, adoption, &[], &expected);
        }
    }
}

/// The owner that a manager wrote goes with what that manager hands over.
#[test]
fn an_owner_that_a_listed_manager_wrote_is_no_sign() {
    let writes = |manager: &str, version: &str, operation: &str| {
        json!({"manager": manager, "operation": operation, "apiVersion": version,
        "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:ownerReferences": {
            ".": {}, r#"k:{"uid":"u-lab"}"#: {},
        }}}})
    };
    let owned = |managers: &[Value]| {
        let owner = json!({"kind": "Notebook", "name": "lab", "uid": "u-lab", "controller": true});
        object(json!({"ownerReferences": [owner]}), managers)
    };
    let refused = "ConfigMap alice/c exists already and is not this unit's: Notebook lab controls it; it is left \
                   alone. Set spec.adoption of Plugin quotas to Always (it is IfUnowned) to take it over, \
                   delete it, or return another name";
    let controller = || writes("notebooks", "v1", "Update");
    for (managers, from, said) in [
        (vec![controller()], &["notebooks"][..], "adoptable"),
        (vec![controller()], &[], refused),
        (vec![controller()], &["other"], refused),
        (
            vec![controller(), writes("other", "v1", "Update")],
            &["notebooks"],
            refused,
        ),
        (
            vec![controller(), writes("other", "v1", "Update")],
            &["notebooks", "other"],
            "adoptable",
        ),
        (
            vec![writes("notebooks", "v2", "Update")],
            &["notebooks"],
            refused,
        ),
        (vec![entry("notebooks", "Update")], &["notebooks"], refused),
    ] {
        check(&owned(&managers), Adoption::IfUnowned, from, said);
    }
}

#[test]
fn owned_is_what_a_tool_finds_again() {
    let update = [entry("manager", "Update")];
    let applied = [entry("argocd-controller", "Apply")];
    let client_side = [entry(CLIENT_SIDE_APPLY, "Update")];
    let last_applied = json!({"annotations": {LAST_APPLIED: "{}"}});
    let controlled = json!({"ownerReferences":
        [{"kind": "ReplicaSet", "name": "r", "uid": "u-r", "controller": true}]});
    for (live, from, sign) in [
        (
            object(controlled, &update),
            &[][..],
            "ReplicaSet r controls it",
        ),
        (
            object(
                json!({"labels": {"app.kubernetes.io/managed-by": "Helm"}}),
                &update,
            ),
            &[],
            "its label app.kubernetes.io/managed-by is Helm",
        ),
        (
            object(
                json!({"annotations": {"meta.helm.sh/release-name": "web"}}),
                &update,
            ),
            &[],
            "its annotation meta.helm.sh/release-name is web",
        ),
        (
            object(json!({}), &applied),
            &[],
            "\"argocd-controller\" applies it",
        ),
        (
            object(last_applied, &client_side),
            &["helm"],
            "kubectl applies it from the client",
        ),
    ] {
        for (adoption, advice) in [(Adoption::Never, "Always"), (Adoption::IfUnowned, "Always")] {
            let expected = format!(
                "ConfigMap alice/c exists already and is not this unit's: {sign}; it is left \
                 alone. Set spec.adoption of Plugin quotas to {advice} (it is {adoption}) to take \
                 it over, delete it, or return another name"
            );
            check(&live, adoption, from, &expected);
        }
        check(&live, Adoption::Always, from, "adoptable");
    }
}

#[test]
fn unowned_is_what_somebody_only_made_or_edited() {
    let mut status = entry("kubelet", "Apply");
    status["subresource"] = json!("status");
    let client_side = object(
        json!({"annotations": {LAST_APPLIED: "{}"}}),
        &[entry(CLIENT_SIDE_APPLY, "Update")],
    );
    for (live, from) in [
        (
            object(json!({}), &[entry("kubectl-create", "Update"), status]),
            &[][..],
        ),
        (object(json!({}), &[]), &[]),
        (
            object(
                json!({}),
                &[entry("reeve/other:0123456789abcdef0123", "Apply")],
            ),
            &[],
        ),
        (
            object(
                json!({"ownerReferences": [
                    {"kind": "Profile", "name": "alice", "uid": "u-alice", "controller": true},
                    {"kind": "Node", "name": "n", "uid": "u-n"},
                ]}),
                &[entry("profile-controller", "Update")],
            ),
            &[],
        ),
        (client_side, &[CLIENT_SIDE_APPLY]),
    ] {
        check(&live, Adoption::IfUnowned, from, "adoptable");
        let never = Policy {
            adopt_from: from.iter().map(|name| (*name).to_owned()).collect(),
            ..Policy::default()
        };
        let whose = judged(&live, &never);
        let Whose::Refused(refusal) = whose else {
            panic!("{live}");
        };
        assert!(
            refusal
                .to_string()
                .contains("IfUnowned or Always (it is Never)"),
            "{refusal}"
        );
    }
}

#[test]
fn only_updates_of_the_listed_move() {
    let policy = Policy {
        adopt_from: vec!["helm".into()],
        ..Policy::default()
    };
    let owner = owner();
    let claim = Claim {
        owner: &owner,
        manager: "reeve/quotas",
        policy: &policy,
    };
    let live = object(
        json!({}),
        &[
            entry("helm", "Update"),
            entry("helm", "Apply"),
            entry(CLIENT_SIDE_APPLY, "Update"),
        ],
    );
    for (migrate, left) in [
        (
            false,
            &[
                "helm Apply",
                "kubectl-client-side-apply Update",
                "reeve/quotas Apply",
            ][..],
        ),
        (true, &["helm Apply", "reeve/quotas Apply"]),
    ] {
        let after = adopted(&claim, &live, "v1", migrate).unwrap();
        let after = ManagedFields::parse(Some(&after)).unwrap();
        let names: Vec<String> = after
            .iter()
            .map(|(id, _)| format!("{} {}", id.manager, id.operation.as_str()))
            .collect();
        assert_eq!(names, left);
    }
    let none = object(json!({}), &[entry("other", "Update")]);
    assert_eq!(adopted(&claim, &none, "v1", true), None);
}

/// An object with some of all the marks there are.
fn any_object() -> impl Strategy<Value = Value> {
    let managers = [
        "reeve/quotas",
        "reeve/other",
        "reeve/other:0123456789abcdef0123",
        "argocd",
    ];
    let entries = prop::collection::vec((0..managers.len(), any::<bool>()), 0..4);
    let marks = prop::collection::vec(any::<bool>(), 6);
    (entries, marks).prop_map(move |(entries, marks)| {
        let mut metadata = json!({});
        let mut mark = |index: usize, kind: &str, key: &str, value: &str| {
            if marks[index] {
                metadata[kind][key] = json!(value);
            }
        };
        mark(0, "annotations", PRIMARY_ANNOTATION, PRIMARY);
        mark(
            1,
            "annotations",
            PRIMARY_ANNOTATION,
            "Profile.kubeflow.org//bob",
        );
        mark(2, "labels", UNIT_LABEL, unit_label(&owner().unit));
        mark(3, "labels", "app.kubernetes.io/managed-by", "Helm");
        mark(4, "annotations", LAST_APPLIED, "{}");
        if marks[5] {
            metadata["ownerReferences"] = json!([{"uid": "u-alice", "controller": true}]);
        }
        let entries: Vec<Value> = entries
            .into_iter()
            .map(|(manager, applies)| {
                entry(managers[manager], if applies { "Apply" } else { "Update" })
            })
            .collect();
        object(metadata, &entries)
    })
}

proptest! {
    #[test]
    fn a_wider_policy_gives_more_and_takes_nothing_from_other_units(live in any_object()) {
        let judged = |adoption| {
            judged(&live, &Policy { adoption, ..Policy::default() })
        };
        let never = judged(Adoption::Never);
        let unowned = judged(Adoption::IfUnowned);
        let always = judged(Adoption::Always);
        prop_assert_ne!(&never, &Whose::Adoptable);
        prop_assert_eq!(never == Whose::Ours, always == Whose::Ours);
        prop_assert_eq!(unowned == Whose::Ours, always == Whose::Ours);
        if unowned == Whose::Adoptable {
            prop_assert_eq!(&always, &Whose::Adoptable);
        }
        let managers = ManagedFields::of(&live).unwrap();
        let applies = |name: &str| managers.appliers().any(|applier| applier == name);
        if always == Whose::Ours {
            prop_assert!(applies("reeve/quotas"));
        }
        if always == Whose::Adoptable {
            prop_assert!(!applies("reeve/other"), "another plugin has it");
        }
        if unowned == Whose::Adoptable {
            prop_assert!(!applies("argocd"));
        }
    }
}
