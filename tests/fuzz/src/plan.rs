//! Plans, from any desired set over any state of the cluster.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use reeve_core::health::Gate;
use reeve_core::kind::{GroupVersionKind, ObjectReference};
use reeve_core::ownership::{
    APPLIED_ANNOTATION, Owner, PRIMARY_ANNOTATION, PRUNE_ANNOTATION, Stamped,
};
use reeve_core::plan::{Hooks, Observed, Owned, Plan, Situation, Step, Wanted, plan as decide};
use reeve_core::unit::UnitKey;
use reeve_core::waves::{Member, Mode, Sequence, order};
use reeve_ssa::Schema;
use reeve_ssa::typed::field_set;
use serde_json::{Value, json};

use crate::choices::Choices;

const KINDS: &[&str] = &["ConfigMap", "Secret", "Namespace", "PersistentVolumeClaim"];
const NAMES: &[&str] = &["a", "b", "c"];

/// Rounds in which every plan of so few objects must be carried out.
const ROUNDS: usize = 50;

/// The input decides what is desired, in which waves, and what is there.
///
/// No object is written twice in one plan or deleted while it is desired; nothing
/// is deleted that is not provably the unit's; no wave is applied before those
/// before it are; and carrying out plan after plan comes to an end, after which
/// there is nothing left to do.
pub fn plan(input: &[u8]) {
    let mut choices = Choices::new(input);
    let owner = owner("p");
    let desired = desired(&mut choices, &owner);
    let mut observed = observed(&mut choices, &desired);
    let settled = choices.one_in(4);
    for _ in 0..ROUNDS {
        let plan = next(&owner, &desired, &observed, settled);
        check(&owner, &desired, &observed, &plan);
        if !settled {
            check_order(&owner, &desired, &observed, &plan);
        }
        // What was being deleted is gone at the next look.
        observed.retain(|object| !object.deleting);
        if plan.is_empty() {
            let again = next(&owner, &desired, &observed, settled);
            if again.is_empty() {
                return;
            }
        }
        observed = carried_out(&observed, &desired, &plan);
    }
    panic!("{ROUNDS} plans have not come to an end");
}

fn sequence(desired: &[Wanted]) -> Sequence {
    let members: Vec<Member> = desired.iter().map(|one| one.member.clone()).collect();
    let Ok(sequence) = order(&members, Mode::Waves) else {
        panic!("waves alone always have an order");
    };
    sequence
}

fn next(owner: &Owner, desired: &[Wanted], observed: &[Observed], settled: bool) -> Plan {
    let sequence = sequence(desired);
    decide(&Situation {
        schemas: &reeve_core::plan::Schemas::default(),
        stubborn: &reeve_core::plan::Stubborn::new(),
        contributions: reeve_core::plan::Contributions::default(),
        owner,
        wanted: desired,
        sequence: &sequence,
        observed,
        gate: &|_, _| Gate::Pass,
        hooks: &Hooks::new(),
        settled,
        unserved: &BTreeSet::new(),
        left_alone: &BTreeSet::new(),
        failing: false,
        keeps: false,
    })
}

fn check(owner: &Owner, desired: &[Wanted], observed: &[Observed], plan: &Plan) {
    let there: HashMap<String, &Observed> = observed
        .iter()
        .map(|object| (object.reference.to_string(), object))
        .collect();
    let wanted: BTreeSet<String> = desired
        .iter()
        .map(|one| one.stamped.reference.to_string())
        .collect();
    let mut touched = BTreeSet::new();
    for step in plan.steps() {
        match step {
            Step::Apply { wanted, uid, .. } => {
                let name = desired[*wanted].stamped.reference.to_string();
                if let Some(uid) = uid {
                    assert_eq!(there.get(&name).map(|object| &object.uid), Some(uid));
                }
                assert!(touched.insert(name.clone()), "{name} twice");
            }
            Step::Contribute { .. } | Step::Release { .. } => panic!("nothing is contributed"),
            Step::Delete { object, uid, .. } => {
                let name = object.to_string();
                assert!(!wanted.contains(&name), "{name} is desired");
                let found = there.get(&name);
                assert!(found.is_some_and(|o| may_go(o, owner, uid)), "{name}");
                assert!(touched.insert(name.clone()), "{name} twice");
            }
        }
    }
}

/// Whatever comes before what is applied is there, ours, and as it was sent.
fn check_order(owner: &Owner, desired: &[Wanted], observed: &[Observed], plan: &Plan) {
    let in_place = |reference: &ObjectReference| {
        let wanted = desired
            .iter()
            .find(|one| one.stamped.reference == *reference);
        let found = observed.iter().find(|one| one.reference == *reference);
        wanted.zip(found).is_some_and(|(wanted, found)| {
            let applied = found.annotations.get(APPLIED_ANNOTATION);
            may_go(found, owner, &found.uid) && applied == Some(&wanted.stamped.applied)
        })
    };
    let applied: BTreeSet<&ObjectReference> = plan
        .steps()
        .filter_map(|step| match step {
            Step::Apply { wanted, .. } => Some(&desired[*wanted].stamped.reference),
            _ => None,
        })
        .collect();
    let sequence = sequence(desired);
    let last = sequence
        .steps
        .iter()
        .rposition(|step| step.objects().any(|object| applied.contains(object)));
    for step in sequence.steps.iter().take(last.unwrap_or_default()) {
        for object in step.objects() {
            assert!(in_place(object), "{object} is not in place yet: {plan:?}");
        }
    }
}

/// Whether this is ours, and is there.
fn may_go(object: &Observed, owner: &Owner, uid: &str) -> bool {
    let annotation = object.annotations.get(PRIMARY_ANNOTATION);
    let ours = annotation.is_none_or(|id| *id == owner.unit.id());
    ours && object.owned_fields.is_some() && object.uid == uid && !object.deleting
}

/// The cluster after the steps, as it would be observed.
fn carried_out(observed: &[Observed], desired: &[Wanted], plan: &Plan) -> Vec<Observed> {
    let mut after: BTreeMap<String, Observed> = observed
        .iter()
        .map(|object| (object.reference.to_string(), object.clone()))
        .collect();
    for step in plan.steps() {
        match step {
            Step::Apply { wanted, uid, .. } => {
                let stamped = &desired[*wanted].stamped;
                let mut now = as_observed(stamped);
                if let Some(uid) = uid {
                    now.uid.clone_from(uid);
                }
                after.insert(stamped.reference.to_string(), now);
            }
            Step::Contribute { .. } | Step::Release { .. } => {}
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

fn desired(choices: &mut Choices<'_>, owner: &Owner) -> Vec<Wanted> {
    let mut out: BTreeMap<String, Wanted> = BTreeMap::new();
    for _ in 0..choices.below(5) {
        let reference = reference(choices);
        let mut body = json!({
            "apiVersion": "v1", "kind": reference.kind.kind,
            "metadata": {"name": reference.name, "namespace": reference.namespace},
        });
        if choices.one_in(2) {
            body["data"] = json!({choices.text(): choices.text()});
        }
        if choices.one_in(2) {
            let wave = choices.pick(&["-1", "0", "1", "2", "no number"]);
            body["metadata"]["annotations"] = json!({"reeve.dev/wave": wave});
        }
        let (member, _) = Member::of(reference.clone(), &body);
        let stamped = owner.stamp(reference, body);
        let name = stamped.reference.to_string();
        let ignored = None;
        out.insert(
            name,
            Wanted {
                stamped,
                member,
                ignored,
            },
        );
    }
    out.into_values().collect()
}

fn observed(choices: &mut Choices<'_>, desired: &[Wanted]) -> Vec<Observed> {
    let mut out: BTreeMap<String, Observed> = BTreeMap::new();
    for stamped in desired.iter().map(|one| &one.stamped) {
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
        3 => object.owned_fields = Some(Owned::Fields(choices.json(3))),
        4 => object.owned_fields = Some(Owned::Fields(json!({"f:data": {"f:a": {}}}))),
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
    let annotations = stamped.body()["metadata"]["annotations"].as_object();
    let kind = &stamped.reference.kind;
    let untyped = Schema::untyped();
    let schema = reeve_ssa::builtin::schema(&kind.group, &kind.version, &kind.kind);
    let owned = field_set(schema.unwrap_or(&untyped), stamped.body());
    Observed {
        reference: stamped.reference.clone(),
        uid: format!("uid-{}", stamped.reference.name),
        flux_prune: None,
        annotations: annotations
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect(),
        owned_fields: Some(Owned::Fields(owned.to_fields_v1())),
        generation: None,
        deleting: false,
        owners: vec!["u".to_owned()],
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
