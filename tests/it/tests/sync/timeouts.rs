//! Waves that take too long, and what a person can do about it.

use serde_json::{Value, json};

use crate::stage::{Stage, bundle, job, widget, with};

/// Becomes ready long after anybody has lost patience.
const SLOW: (&str, &str) = ("actor.reeve.dev/ready-after", "10h");

async fn reason(stage: &Stage, kind: &str) -> String {
    stage.said("one", kind).await.0
}

#[tokio::test(start_paused = true)]
async fn a_wave_that_takes_too_long_is_stalled() {
    let mut stage = Stage::new().await;
    let stuck = with(widget("a", 3), &[SLOW]);
    stage.bundle("one", &[stuck, widget("b", 4)]).await;
    stage.pass(240).await;
    assert_eq!(reason(&stage, "Ready").await, "Waiting");
    assert_eq!(reason(&stage, "Reconciling").await, "Waiting");
    assert_eq!(
        stage.counts().await,
        json!({"total": 1, "ready": 0, "failing": 0, "waiting": 1})
    );
    // The time that it has had already counts after a restart, too.
    stage.restart().await;
    stage.pass(70).await;
    let (reason, message) = stage.said("one", "Stalled").await;
    assert_eq!(reason, "WaveTimedOut", "{message}");
    for part in [
        "Sync wave 3",
        "Widget apps/a",
        "300 s",
        "reeve.dev/retry-at",
    ] {
        assert!(message.contains(part), "{part} is not in {message}");
    }
    assert!(!stage.exists(&widget("b", 4)).await);
    let failing = json!({"total": 1, "ready": 0, "failing": 1});
    assert_eq!(stage.counts().await, failing);
    let unit = stage.unit("one").await.unwrap();
    assert!(unit["status"]["failures"].as_u64().unwrap() <= 2, "{unit}");

    // A new attempt gets its time anew.
    let key = "reeve.dev/retry-at";
    stage.annotate(&bundle("one"), key, json!("1")).await;
    stage.pass(5).await;
    assert_eq!(self::reason(&stage, "Ready").await, "Waiting");
    stage.pass(290).await;
    assert_eq!(self::reason(&stage, "Ready").await, "Waiting");
    stage.pass(10).await;
    assert_eq!(self::reason(&stage, "Ready").await, "WaveTimedOut");

    // And so does another revision.
    stage
        .bundle(
            "one",
            &[with(
                widget("a", 3),
                &[("actor.reeve.dev/ready-after", "1s")],
            )],
        )
        .await;
    stage.pass(20).await;
    assert_eq!(stage.unit("one").await, None);
}

#[tokio::test(start_paused = true)]
async fn what_comes_late_still_counts() {
    let stage = Stage::new().await;
    let late = with(widget("a", 0), &[("actor.reeve.dev/ready-after", "400s")]);
    stage.bundle("one", &[late, widget("b", 1)]).await;
    stage.pass(350).await;
    assert_eq!(reason(&stage, "Ready").await, "WaveTimedOut");
    stage.pass(100).await;
    assert!(stage.exists(&widget("b", 1)).await);
    assert_eq!(stage.unit("one").await, None);
}

#[tokio::test(start_paused = true)]
async fn an_annotation_sets_the_time() {
    let stage = Stage::new().await;
    let timed =
        |name: &str, time: &str| with(widget(name, 0), &[SLOW, ("reeve.dev/wave-timeout", time)]);
    let objects = [timed("a", "20s"), timed("b", "1m"), timed("c", "soon")];
    stage.bundle("one", &objects).await;
    stage.pass(50).await;
    assert_eq!(
        reason(&stage, "Ready").await,
        "Waiting",
        "the longest counts"
    );
    stage.pass(15).await;
    let (reason, message) = stage.said("one", "Ready").await;
    assert_eq!(reason, "WaveTimedOut", "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_sync_that_a_hook_has_ended_begins_again_when_asked() {
    let stage = Stage::new().await;
    let hook = with(
        job("before", 0),
        &[
            ("reeve.dev/hook", "PreSync"),
            ("actor.reeve.dev/fail", "exit"),
        ],
    );
    stage.bundle("one", &[hook, widget("a", 0)]).await;
    stage.pass(30).await;
    assert_eq!(reason(&stage, "Ready").await, "HookFailed");
    let uid = |job: Option<Value>| job.unwrap()["metadata"]["uid"].clone();
    let first = uid(stage.world.get(&job("before", 0)).await);
    // What ails it is mended elsewhere; the desired objects are the same.
    let plugin = reeve_it::plugin_reference("courier");
    stage
        .annotate(&plugin, "reeve.dev/retry-at", json!("now"))
        .await;
    stage.pass(30).await;
    let second = uid(stage.world.get(&job("before", 0)).await);
    assert_ne!(first, second, "the hook has run once more");
    assert_eq!(reason(&stage, "Ready").await, "HookFailed");
}

#[tokio::test(start_paused = true)]
async fn a_suspended_primary_is_left_alone() {
    let stage = Stage::new().await;
    stage.bundle("one", &[widget("a", 0)]).await;
    stage.pass(10).await;
    let key = "reeve.dev/suspend";
    stage.annotate(&bundle("one"), key, json!("true")).await;
    let size = json!({"spec": {"size": 5}});
    stage.world.edit(&widget("a", 0), size).await;
    stage.bundle("two", &[widget("b", 0)]).await;
    stage.pass(600).await;
    let size = |widget: Option<Value>| widget.unwrap()["spec"]["size"].clone();
    assert_eq!(size(stage.world.get(&widget("a", 0)).await), 5);
    assert!(stage.exists(&widget("b", 0)).await, "the others go on");
    let (reason, message) = stage.said("one", "Ready").await;
    assert_eq!(reason, "Suspended");
    assert!(message.contains("reeve.dev/suspend"), "{message}");
    assert_eq!(
        stage.counts().await,
        json!({"total": 2, "ready": 1, "failing": 0, "waiting": 1})
    );
    stage.annotate(&bundle("one"), key, json!(null)).await;
    stage.pass(10).await;
    assert_eq!(size(stage.world.get(&widget("a", 0)).await), 1);
    assert_eq!(stage.unit("one").await, None);
}

/// A request of a person changes nothing where all is well, and writes no object.
#[tokio::test(start_paused = true)]
async fn reconcile_now_looks_and_writes_nothing() {
    let stage = Stage::new().await;
    stage.bundle("one", &[widget("a", 0)]).await;
    stage.pass(10).await;
    let runs = || stage.world.agent().status().borrow().runs;
    // The Plugin notes which request was answered.
    for (object, writes) in [
        (bundle("one"), 1),
        (reeve_it::plugin_reference("courier"), 2),
    ] {
        let before = runs();
        stage.world.writes();
        stage
            .annotate(&object, "reeve.dev/reconcile-at", json!("1"))
            .await;
        stage.pass(1).await;
        assert!(runs() > before, "{object}");
        assert_eq!(stage.world.writes(), writes, "{object}");
    }
}
