//! Syncs that fail, and what waits for a kind that is not served.

use super::*;

fn failed() -> Gate {
    Gate::Fail {
        reason: "exit 1".into(),
    }
}

#[test]
fn hooks_for_failures_run_when_a_wave_is_degraded() {
    let mut world = World::new(vec![
        at_wave("a", 0),
        at_wave("b", 1),
        hook("rescue", "SyncFail", ""),
    ]);
    assert_eq!(world.step(), "+a");
    world.sick.insert("a".into(), failed());
    assert_eq!(world.run(), ["+rescue"]);
    let plan = world.plan();
    assert_eq!((plan.progress, plan.waiting), (Progress::Waiting, 1));
    assert_eq!(plan.blocked.unwrap().object.name, "a");
    // What recovers goes on, and the hook is not run again.
    world.sick.clear();
    assert_eq!(world.run(), ["+b"]);
    assert_eq!(world.plan().progress, Progress::Complete);
    world.sick.insert("b".into(), failed());
    assert_eq!(world.run(), Vec::<String>::new());
}

#[test]
fn hooks_for_failures_run_when_the_sync_is_said_to_fail() {
    let all = vec![
        at_wave("a", 0),
        hook("rescue", "SyncFail", "HookSucceeded"),
        wanted(
            "Job",
            "then",
            &[("reeve.dev/hook", "SyncFail"), ("reeve.dev/wave", "1")],
        ),
    ];
    let mut world = World::new(all)
        .sick("a", HealthStatus::Progressing)
        .sick("rescue", HealthStatus::Progressing);
    assert_eq!(world.run(), ["+a"], "nothing has failed");
    world.failing = true;
    assert_eq!(world.run(), ["+rescue"]);
    // It all turns out well, and what was begun is ended.
    world.failing = false;
    world.sick.remove("a");
    assert_eq!(world.step(), "");
    assert_eq!(world.plan().progress, Progress::Applied);
    world.sick.clear();
    assert_eq!(world.step(), "+then, -rescue");
    assert_eq!(world.run(), Vec::<String>::new());
    assert_eq!(world.plan().progress, Progress::Complete);
}

/// A hook that tells of either end runs for the one that it comes to.
#[test]
fn hooks_of_other_phases_bring_on_none_for_failures() {
    let mut world = World::new(vec![
        at_wave("a", 0),
        hook("tell", "PostSync,SyncFail", ""),
        hook("rescue", "SyncFail", ""),
    ])
    .sick("tell", HealthStatus::Progressing);
    assert_eq!(world.run(), ["+a", "+tell"]);
    world.sick.clear();
    assert_eq!(world.run(), Vec::<String>::new());
    assert_eq!(world.plan().progress, Progress::Complete);
    assert!(!world.live.contains_key("rescue"));
}

#[test]
fn what_has_no_kind_yet_waits_and_keeps_only_what_comes_later() {
    let mut late = wanted("Widget", "late", &[("reeve.dev/wave", "1")]);
    late.stamped.reference.kind = GroupVersionKind::new("example.com", "v1", "Widget");
    late.member.reference = late.stamped.reference.clone();
    let kind = late.stamped.reference.kind.clone();
    let mut world = World::new(vec![at_wave("a", 0), late, at_wave("z", 2)]);
    world.unserved.insert(kind);
    assert_eq!(world.run(), ["+a"]);
    let plan = world.plan();
    let blocked = plan.blocked.unwrap();
    assert_eq!((plan.progress, plan.waiting), (Progress::Waiting, 1));
    assert_eq!(
        (blocked.wave, blocked.status, blocked.object.name.as_str()),
        (Some(1), HealthStatus::Missing, "late")
    );
    let expected = "the api server does not serve Widget.v1.example.com yet";
    assert!(blocked.reason.starts_with(expected), "{}", blocked.reason);
    // Whoever is to approve the sync is shown it.
    let revision = revision(&world.wanted);
    let preview = world.decide(|situation| Preview::of(situation, &revision));
    assert_eq!(preview.count(&[Act::Create]), 2);
    // Drift is repaired beside it.
    world.settled = true;
    world.live.clear();
    assert_eq!(world.step(), "+a, +z");
    assert_eq!(world.plan().progress, Progress::Applied);
    world.unserved.clear();
    assert_eq!(world.run(), ["+late"]);
}
