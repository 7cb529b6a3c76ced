//! Plans, carried out on a small world until nothing is left to do.

mod failures;

use super::*;
use crate::health::HealthStatus;
use crate::kind::GroupVersionKind;
use crate::ownership::{APPLIED_ANNOTATION, PRIMARY_ANNOTATION, PRUNE_ANNOTATION};
use crate::unit::UnitKey;
use crate::waves::{HookState, Mode, Phase, order};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

fn owner() -> Owner {
    let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
    Owner {
        unit: UnitKey::new("p", ObjectReference::new(kind, None, "alice")),
        uid: "u".into(),
    }
}

/// `Kind name`, with annotations.
fn wanted(kind: &str, name: &str, annotations: &[(&str, &str)]) -> Wanted {
    let group = if kind == "Job" { "batch" } else { "" };
    let kind = GroupVersionKind::new(group, "v1", kind);
    let reference = ObjectReference::new(kind.clone(), Some("alice".into()), name);
    let annotations: BTreeMap<_, _> = annotations.iter().copied().collect();
    let body = json!({
        "apiVersion": kind.api_version(), "kind": kind.kind,
        "metadata": {"name": name, "namespace": "alice", "annotations": annotations},
        "data": {"a": "1"},
    });
    let (member, _) = Member::of(reference.clone(), &body);
    Wanted {
        stamped: owner().stamp(reference, body),
        member,
        ignored: None,
    }
}

#[test]
fn a_label_of_flux_keeps_an_object_as_its_annotation_does() {
    let mut world = World::with_all_applied(vec![at_wave("kept", 0), at_wave("gone", 0)]);
    world.live.get_mut("kept").unwrap().flux_prune = Some("Disabled".to_owned());
    world.wanted = vec![at_wave("new", 0)];
    assert_eq!(world.run(), ["+new, -gone"]);
    assert!(world.live.contains_key("kept"));
    // At the end of the unit it goes, unless that may be a mistake.
    let observed: Vec<Observed> = world.live.values().cloned().collect();
    let deleted = |ending| removal(&owner(), &observed, ending).steps().count();
    assert_eq!(deleted(Ending::Deselected), 1, "only the new one");
    assert_eq!(deleted(Ending::Deleted), 2);
}

fn at_wave(name: &str, wave: i64) -> Wanted {
    wanted("ConfigMap", name, &[("reeve.dev/wave", &wave.to_string())])
}

/// The object as it is after `one` was applied and nobody touched it.
fn applied(one: &Wanted) -> Observed {
    let stamped = &one.stamped;
    let metadata = &stamped.body()["metadata"];
    let keys = |map: &Value| -> Value {
        map.as_object()
            .unwrap()
            .keys()
            .map(|key| (format!("f:{key}"), json!({})))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    Observed {
        reference: stamped.reference.clone(),
        uid: format!("uid-{}", stamped.reference.name),
        annotations: metadata["annotations"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(k, v)| (k.clone(), v.as_str().unwrap().to_owned()))
            .collect(),
        flux_prune: None,
        owned_fields: Some(Owned::Fields(json!({
            "f:metadata": {
                "f:labels": keys(&metadata["labels"]),
                "f:annotations": keys(&metadata["annotations"]),
                "f:ownerReferences": {"k:{\"uid\":\"u\"}": {}},
            },
            "f:data": {"f:a": {}},
        }))),
        generation: None,
        deleting: false,
        owners: vec!["u".into()],
    }
}

/// The fields of it that are ours.
fn fields(observed: &mut Observed) -> &mut Value {
    match &mut observed.owned_fields {
        Some(Owned::Fields(fields)) => fields,
        owned => panic!("{owned:?}"),
    }
}

/// A unit, and a cluster that does what plans say.
struct World {
    wanted: Vec<Wanted>,
    live: BTreeMap<String, Observed>,
    sick: BTreeMap<String, Gate>,
    hooks: Hooks,
    settled: bool,
    stubborn: Stubborn,
    unserved: BTreeSet<GroupVersionKind>,
    left_alone: BTreeSet<ObjectReference>,
    keeps: bool,
    failing: bool,
    mode: Mode,
}

impl World {
    fn new(wanted: Vec<Wanted>) -> Self {
        Self {
            wanted,
            live: BTreeMap::new(),
            sick: BTreeMap::new(),
            hooks: Hooks::new(),
            settled: false,
            stubborn: Stubborn::new(),
            unserved: BTreeSet::new(),
            left_alone: BTreeSet::new(),
            keeps: false,
            failing: false,
            mode: Mode::Waves,
        }
    }

    fn with_all_applied(wanted: Vec<Wanted>) -> Self {
        let mut world = Self::new(wanted);
        for one in &world.wanted {
            let live = applied(one);
            world.live.insert(live.reference.name.clone(), live);
        }
        world
    }

    fn sick(mut self, name: &str, status: HealthStatus) -> Self {
        let gate = Gate::Wait {
            status,
            reason: "not yet".into(),
            recheck_after: Some(Duration::from_secs(5)),
        };
        self.sick.insert(name.into(), gate);
        self
    }

    fn plan(&self) -> Plan {
        self.decide(plan)
    }

    fn decide<T>(&self, decide: impl FnOnce(&Situation<'_>) -> T) -> T {
        let members: Vec<Member> = self.wanted.iter().map(|one| one.member.clone()).collect();
        let sequence = order(&members, self.mode).unwrap();
        let observed: Vec<Observed> = self.live.values().cloned().collect();
        let gate = |object: &Observed, _: Option<Applied<'_>>| {
            let name = object.reference.name.as_str();
            self.sick.get(name).cloned().unwrap_or(Gate::Pass)
        };
        decide(&Situation {
            owner: &owner(),
            wanted: &self.wanted,
            sequence: &sequence,
            observed: &observed,
            gate: &gate,
            hooks: &self.hooks,
            schemas: &Schemas::default(),
            stubborn: &self.stubborn,
            contributions: Contributions::default(),
            unserved: &self.unserved,
            left_alone: &self.left_alone,
            keeps: self.keeps,
            failing: self.failing,
            settled: self.settled,
        })
    }

    /// Does what the plan says, and returns it in words, stage by stage.
    fn step(&mut self) -> String {
        let plan = self.plan();
        // Whoever was shown the whole has seen each step.
        let revision = revision(&self.wanted);
        let preview = self.decide(|situation| Preview::of(situation, &revision));
        let shown: Vec<_> = preview.steps.iter().map(|step| &step.object).collect();
        for step in plan.steps() {
            let object = match step {
                Step::Apply { wanted, .. } | Step::Contribute { wanted, .. } => {
                    &self.wanted[*wanted].stamped.reference
                }
                Step::Delete { object, .. } | Step::Release { object, .. } => object,
            };
            assert!(shown.contains(&object), "{step:?} is not in {preview:?}");
        }
        let mut words = Vec::new();
        for stage in &plan.stages {
            let mut stage_words = Vec::new();
            for step in stage {
                stage_words.push(self.carry_out(step));
            }
            words.push(stage_words.join(" "));
        }
        self.hooks = plan.hooks;
        words.join(", ")
    }

    fn carry_out(&mut self, step: &Step) -> String {
        match step {
            Step::Apply { wanted, .. } => {
                let live = applied(&self.wanted[*wanted]);
                let name = live.reference.name.clone();
                self.live.insert(name.clone(), live);
                format!("+{name}")
            }
            Step::Contribute { .. } | Step::Release { .. } => panic!("{step:?}"),
            Step::Delete { object, uid, .. } => {
                assert_eq!(self.live[&object.name].uid, *uid);
                self.live.remove(&object.name);
                format!("-{}", object.name)
            }
        }
    }

    /// All steps until nothing is left to do.
    fn run(&mut self) -> Vec<String> {
        std::iter::from_fn(|| Some(self.step()).filter(|words| !words.is_empty()))
            .take(100)
            .collect()
    }
}

#[test]
fn a_converged_unit_needs_nothing() {
    let world = World::with_all_applied(vec![wanted("ConfigMap", "a", &[])]);
    let plan = world.plan();
    assert!(plan.is_empty() && plan.refusals.is_empty(), "{plan:?}");
    assert_eq!((plan.unchanged, plan.progress), (1, Progress::Complete));
}

#[test]
fn what_is_left_alone_holds_nothing_up() {
    let one = wanted("ConfigMap", "a", &[("reeve.dev/apply", "IfNotPresent")]);
    let mut world = World::new(vec![one.clone(), at_wave("b", 1)]);
    world.left_alone.insert(one.stamped.reference);
    assert_eq!(world.run(), ["+b"]);
    world.left_alone.clear();
    assert_eq!(world.run(), ["+a"]);
}

#[test]
fn what_may_be_missing_by_mistake_stays_and_is_told() {
    let mut world = World::with_all_applied(vec![at_wave("a", 0), at_wave("b", 1)]);
    world.wanted = vec![at_wave("b", 1), at_wave("c", 1)];
    world.keeps = true;
    assert_eq!(world.run(), ["+c"]);
    let plan = world.plan();
    let kept: Vec<&str> = plan.kept.iter().map(|one| one.name.as_str()).collect();
    assert_eq!((kept, plan.progress), (vec!["a"], Progress::Complete));
    let preview = world.decide(|situation| Preview::of(situation, &revision(&world.wanted)));
    assert_eq!(preview.steps, []);
    world.keeps = false;
    assert_eq!(world.run(), ["-a"]);
}

#[test]
fn each_difference_has_its_reason() {
    let one = wanted("ConfigMap", "a", &[]);
    let mut changed = applied(&one);
    changed
        .annotations
        .insert(APPLIED_ANNOTATION.into(), "sha256:other".into());
    let mut drifted = applied(&one);
    fields(&mut drifted)["f:data"] = json!({"f:b": {}});
    let mut answered = changed.clone();
    answered.owned_fields = Some(Owned::AllSent);
    for (observed, expected) in [
        (None, ApplyReason::Absent),
        (Some(changed), ApplyReason::Changed),
        (Some(answered), ApplyReason::Changed),
        (Some(drifted), ApplyReason::Drifted),
    ] {
        for settled in [false, true] {
            let mut world = World::new(vec![one.clone()]);
            world.settled = settled;
            if let Some(observed) = observed.clone() {
                world.live.insert("a".into(), observed);
            }
            let plan = world.plan();
            let reasons: Vec<_> = plan
                .steps()
                .map(|step| match step {
                    Step::Apply { reason, .. } => *reason,
                    _ => panic!("{step:?}"),
                })
                .collect();
            assert_eq!(reasons, [expected]);
            assert_eq!(plan.progress, Progress::Applying);
        }
    }
}

#[test]
fn what_is_no_longer_wanted_goes_after_what_replaces_it() {
    let (kept, dropped) = (wanted("ConfigMap", "a", &[]), wanted("ConfigMap", "b", &[]));
    let new = wanted("ConfigMap", "c", &[]);
    let mut world = World::with_all_applied(vec![kept.clone(), dropped]);
    world.wanted = vec![kept, new];
    assert_eq!(world.run(), ["+c, -b"]);
}

#[test]
fn forged_labels_are_none_of_our_business_and_other_units_are_left_alone() {
    let one = wanted("ConfigMap", "a", &[]);
    let mut world = World::with_all_applied(vec![one]);
    world.wanted.clear();
    world.live.get_mut("a").unwrap().owned_fields = None;
    assert_eq!(world.plan(), Plan::default());

    let mut world = World::with_all_applied(vec![wanted("ConfigMap", "a", &[])]);
    world.wanted.clear();
    let annotations = &mut world.live.get_mut("a").unwrap().annotations;
    annotations.insert(
        PRIMARY_ANNOTATION.into(),
        "Profile.kubeflow.org//bob".into(),
    );
    let plan = world.plan();
    assert!(plan.is_empty());
    let text = plan.refusals[0].to_string();
    assert!(
        text.starts_with("ConfigMap alice/a belongs to Profile.kubeflow.org//bob"),
        "{text}"
    );
}

#[test]
fn what_an_object_says_about_its_deletion_goes_along() {
    for (annotations, expected) in [
        (&[][..], Some(Removal::Unsaid)),
        (&[(PRUNE_ANNOTATION, "allow")], Some(Removal::Permitted)),
        (
            &[("argocd.argoproj.io/sync-options", "Prune=confirm")],
            Some(Removal::Confirm),
        ),
        (&[("argocd.argoproj.io/sync-options", "Prune=false")], None),
    ] {
        let mut world = World::with_all_applied(vec![wanted("ConfigMap", "a", annotations)]);
        world.wanted.clear();
        let plan = world.plan();
        let found = plan.steps().find_map(|step| match step {
            Step::Delete { removal, .. } => Some(*removal),
            _ => None,
        });
        assert_eq!(found, expected, "{annotations:?}");
    }
}

#[test]
fn an_object_that_is_going_is_waited_for() {
    let mut world = World::with_all_applied(vec![wanted("ConfigMap", "a", &[])]);
    world.live.get_mut("a").unwrap().deleting = true;
    let plan = world.plan();
    assert!(plan.is_empty());
    assert_eq!(plan.blocked.unwrap().status, HealthStatus::Terminating);
    assert_eq!(plan.progress, Progress::Applied);
}

#[test]
fn waves_are_gated_and_their_blocker_is_named() {
    let waves = vec![at_wave("c", 1), at_wave("a", -1), at_wave("b", 0)];
    let mut world = World::new(waves).sick("a", HealthStatus::Progressing);
    assert_eq!(world.step(), "+a");
    let plan = world.plan();
    assert!(plan.is_empty());
    assert_eq!((plan.waiting, plan.progress), (2, Progress::Waiting));
    assert_eq!(plan.recheck_after, Some(Duration::from_secs(5)));
    let blocked = plan.blocked.unwrap();
    assert_eq!(
        (blocked.phase, blocked.wave, blocked.object.name.as_str()),
        (Phase::Sync, Some(-1), "a")
    );
    world.sick.clear();
    assert_eq!(world.run(), ["+b", "+c"]);
    assert_eq!(world.plan().progress, Progress::Complete);
}

#[test]
fn the_last_wave_is_gated_too() {
    let mut world = World::new(vec![at_wave("a", 0)]).sick("a", HealthStatus::Degraded);
    assert_eq!(world.run(), ["+a"]);
    let plan = world.plan();
    assert_eq!((plan.progress, plan.waiting), (Progress::Applied, 0));
    assert_eq!(plan.blocked.unwrap().status, HealthStatus::Degraded);
}

#[test]
fn a_newer_state_replaces_one_that_waits() {
    let mut world =
        World::new(vec![at_wave("a", 0), at_wave("b", 1)]).sick("a", HealthStatus::Degraded);
    assert_eq!(world.run(), ["+a"]);
    world.wanted = vec![at_wave("fixed", 0), at_wave("b", 1)];
    assert_eq!(world.run(), ["+fixed", "+b, -a"]);
}

#[test]
fn drift_is_repaired_without_gates_once_a_revision_was_complete() {
    let waves = vec![at_wave("a", 0), at_wave("b", 1)];
    let mut world = World::with_all_applied(waves).sick("a", HealthStatus::Degraded);
    world.settled = true;
    world.live.remove("b");
    assert_eq!(world.run(), ["+b"]);
    let plan = world.plan();
    assert_eq!(plan.progress, Progress::Applied);
    assert_eq!(plan.blocked.unwrap().object.name, "a");
}

#[test]
fn surplus_goes_in_reverse_and_each_step_is_gone_before_the_next() {
    let mut world =
        World::with_all_applied(vec![at_wave("a", 0), at_wave("b", 1), at_wave("c", 2)]);
    world.wanted = vec![at_wave("new", 0)];
    assert_eq!(world.step(), "+new, -c");
    world.live.get_mut("b").unwrap().deleting = true;
    assert_eq!(world.step(), "", "b is not gone yet");
    world.live.remove("b");
    assert_eq!(world.run(), ["-a"]);
}

#[test]
fn what_is_pruned_last_waits_for_health() {
    let last = wanted(
        "ConfigMap",
        "old",
        &[("reeve.dev/sync-options", "PruneLast=true")],
    );
    let new = wanted("ConfigMap", "new", &[]);
    let mut world = World::with_all_applied(vec![last]).sick("new", HealthStatus::Progressing);
    world.wanted = vec![new];
    assert_eq!(world.run(), ["+new"]);
    world.sick.clear();
    assert_eq!(world.run(), ["-old"]);
}

#[test]
fn the_end_of_a_unit_takes_dependents_first() {
    let mut world = World::with_all_applied(vec![
        at_wave("a", 0),
        at_wave("b", 1),
        wanted(
            "ConfigMap",
            "kept",
            &[("reeve.dev/sync-options", "Delete=false")],
        ),
    ]);
    let mut order = Vec::new();
    loop {
        let observed: Vec<Observed> = world.live.values().cloned().collect();
        let plan = removal(&owner(), &observed, Ending::Deleted);
        if plan.is_empty() {
            break;
        }
        for step in plan.steps() {
            order.push(world.carry_out(step));
        }
    }
    assert_eq!(order, ["-b", "-a"]);
    assert_eq!(world.live.len(), 1);
}

fn hook(name: &str, phase: &str, policy: &str) -> Wanted {
    wanted(
        "Job",
        name,
        &[
            ("argocd.argoproj.io/hook", phase),
            ("argocd.argoproj.io/hook-delete-policy", policy),
        ],
    )
}

#[test]
fn hooks_run_once_per_revision_around_the_sync() {
    let mut world = World::new(vec![
        hook("after", "PostSync", "HookSucceeded"),
        wanted("ConfigMap", "a", &[]),
        hook("before", "PreSync", ""),
    ])
    .sick("before", HealthStatus::Progressing)
    .sick("after", HealthStatus::Progressing);
    assert_eq!(world.run(), ["+before"]);
    assert_eq!(world.plan().progress, Progress::Waiting);
    world.sick.remove("before");
    assert_eq!(world.run(), ["+a", "+after"]);
    world.sick.remove("after");
    assert_eq!(world.step(), "-after", "its policy says so");
    assert_eq!(world.plan().progress, Progress::Complete);
    assert_eq!(world.step(), "", "neither runs again");
    // Somebody deletes the first: it has run, and that is remembered.
    world.live.remove("before");
    assert_eq!(world.step(), "");
    // Once the revision is complete, drift runs no hook.
    world.settled = true;
    world.live.remove("a");
    assert_eq!(world.run(), ["+a"]);
    // The next revision makes room for its hook first.
    let mut next = hook("before", "PreSync", "");
    next.stamped = owner().stamp(next.stamped.reference.clone(), {
        let mut body = next.stamped.body().clone();
        body["data"]["a"] = json!("2");
        body
    });
    let before = world.wanted.pop().unwrap();
    world.live.insert("before".into(), applied(&before));
    world.wanted.push(next);
    (world.settled, world.hooks) = (false, Hooks::new());
    assert_eq!(world.run(), ["-before", "+before", "+after", "-after"]);
}

#[test]
fn a_failed_hook_stops_the_sync_and_runs_those_for_failures() {
    let mut world = World::new(vec![
        hook("before", "PreSync", ""),
        wanted("ConfigMap", "a", &[]),
        hook("rescue", "SyncFail", ""),
    ]);
    assert_eq!(world.step(), "+before");
    let failed = Gate::Fail {
        reason: "exit 1".into(),
    };
    world.sick.insert("before".into(), failed);
    assert_eq!(world.run(), ["+rescue"]);
    let plan = world.plan();
    assert_eq!(plan.progress, Progress::Failed);
    assert_eq!(plan.blocked.unwrap().reason, "exit 1");
    assert!(matches!(
        plan.hooks.get("PreSync Job alice/before"),
        Some(HookState::Failed { .. })
    ));
    assert!(!world.live.contains_key("a"));
}

#[test]
fn dependencies_alone_hold_only_what_waits() {
    let depends = |name: &str, on: &str| wanted("ConfigMap", name, &[("reeve.dev/depends-on", on)]);
    let mut world = World::new(vec![
        wanted("ConfigMap", "a", &[]),
        depends("b", "ConfigMap/a"),
        wanted("ConfigMap", "c", &[]),
    ])
    .sick("a", HealthStatus::Progressing);
    world.mode = Mode::Dependencies;
    assert_eq!(world.run(), ["+a +c"]);
    world.sick.clear();
    assert_eq!(world.run(), ["+b"]);
}

proptest! {
    /// Whatever is wanted and whatever is there, carrying out plans ends, and ends
    /// with exactly what is wanted.
    #[test]
    fn plans_lead_to_what_is_wanted(
        old in proptest::collection::btree_map("[a-f]", -2_i64..3, 0..6),
        new in proptest::collection::btree_map("[a-f]", -2_i64..3, 1..6),
    ) {
        let all = |waves: &BTreeMap<String, i64>| -> Vec<Wanted> {
            waves.iter().map(|(name, wave)| at_wave(name, *wave)).collect()
        };
        let mut world = World::with_all_applied(all(&old));
        world.wanted = all(&new);
        let steps = world.run();
        prop_assert!(steps.len() < 50);
        let names: Vec<&String> = world.live.keys().collect();
        prop_assert_eq!(names, new.keys().collect::<Vec<_>>());
        prop_assert_eq!(world.plan().progress, Progress::Complete);
    }

    /// The order in which a plugin returns its objects decides nothing.
    #[test]
    fn the_order_of_the_answer_decides_nothing(
        waves in proptest::collection::btree_map("[a-f]", -2_i64..3, 1..6),
        seed in any::<u64>(),
    ) {
        let mut one: Vec<Wanted> = waves.iter().map(|(name, wave)| at_wave(name, *wave)).collect();
        let mut world = World::new(one.clone());
        let expected = world.run();
        let revision_before = revision(&one);
        let turn = usize::try_from(seed % one.len() as u64).unwrap();
        one.rotate_left(turn);
        prop_assert_eq!(revision(&one), revision_before);
        prop_assert_eq!(World::new(one).run(), expected);
    }
}

#[test]
fn what_was_answered_to_is_as_it_was_sent() {
    let one = wanted("ConfigMap", "a", &[]);
    let mut world = World::with_all_applied(vec![one]);
    let live = world.live.get_mut("a").unwrap();
    live.owned_fields = Some(Owned::AllSent);
    assert!(world.plan().is_empty());
    assert_eq!(world.plan().progress, Progress::Complete);
}

#[test]
fn what_sending_does_not_change_is_sent_when_it_changes() {
    let mut world = World::with_all_applied(vec![wanted("ConfigMap", "a", &[])]);
    // The API server owns up to nothing of the data.
    let live = world.live.get_mut("a").unwrap();
    fields(live)["f:data"] = json!({});
    let (reference, fingerprint) = (live.reference.clone(), live.fingerprint());
    assert_eq!(world.plan().steps().count(), 1);
    world.stubborn.insert(reference, fingerprint);
    assert!(world.plan().is_empty());
    assert_eq!(world.plan().progress, Progress::Complete);
    // Somebody takes a label of ours.
    let live = world.live.get_mut("a").unwrap();
    fields(live)["f:metadata"]["f:labels"] = json!({});
    assert_eq!(world.plan().steps().count(), 1);
    // The annotation with what was sent is edited.
    let mut world = World::with_all_applied(vec![wanted("ConfigMap", "a", &[])]);
    let live = world.live.get_mut("a").unwrap();
    let before = live.fingerprint();
    live.annotations
        .insert(APPLIED_ANNOTATION.into(), "x".into());
    world.stubborn.insert(live.reference.clone(), before);
    assert_eq!(world.plan().steps().count(), 1);
}

#[test]
fn a_preview_has_an_id_of_its_own() {
    let all = [
        wanted("Job", "hook", &[("reeve.dev/hook", "PreSync")]),
        at_wave("b", 1),
        at_wave("a", 0),
    ];
    let mut world = World::new(all.to_vec());
    let preview = |world: &World| {
        let revision = revision(&world.wanted);
        world.decide(|situation| Preview::of(situation, &revision))
    };
    let first = preview(&world);
    let steps = |preview: &Preview| -> Vec<String> {
        let steps = preview.steps.iter();
        steps
            .map(|step| format!("{} {}", step.act, step.object.name))
            .collect()
    };
    assert_eq!(steps(&first), ["Run hook", "Create a", "Create b"]);
    assert_eq!(first.count(&[Act::Create]), 2);
    assert_eq!(first.id(None), preview(&world).id(None));
    assert_ne!(first.id(None), first.id(Some("used")));
    world.run();
    assert_eq!(steps(&preview(&world)), Vec::<String>::new());
    // What is withdrawn goes last, and so it is shown.
    world.wanted = vec![at_wave("c", 0)];
    world.hooks.clear();
    let second = preview(&world);
    assert_eq!(
        steps(&second),
        ["Create c", "Delete a", "Delete b", "Delete hook"]
    );
    assert_ne!(first.id(None), second.id(None));
    let uid = |preview: &Preview| preview.steps[1].uid.clone();
    assert_eq!(uid(&second), Some("uid-a".to_owned()));
    // Another object of the same name is another plan.
    world.live.get_mut("a").unwrap().uid = "other".to_owned();
    assert_ne!(preview(&world).id(None), second.id(None));
}
