//! What is found before the first object of a sync is written.

use reeve_sim::Verb;
use serde_json::{Value, json};

use crate::stage::{APPS, Happened, OTHER, Stage, config_map, job, with};

/// Requests since this was last asked that only tried an apply.
fn tries(stage: &Stage) -> u64 {
    let requests = stage.world.server.requests();
    stage.world.server.reset_requests();
    let tries = requests
        .iter()
        .filter(|(call, _)| call.dry_run && call.verb == Verb::Patch);
    tries.map(|(_, count)| count).sum()
}

/// One that no API server takes.
fn wrong(name: &str, wave: i64) -> Value {
    let mut wrong = config_map(name, wave);
    wrong["data"] = json!({"key": {"is": "no text"}});
    wrong
}

#[tokio::test(start_paused = true)]
async fn what_a_later_wave_would_be_refused_for_keeps_the_first_from_beginning() {
    let mut stage = Stage::new().await;
    tries(&stage);
    let rescue = with(job("rescue", 0), &[("reeve.dev/hook", "SyncFail")]);
    let objects = |last| {
        let later = [config_map("b", 1), config_map("c", 2), last];
        let mut all = vec![config_map("a", 0), rescue.clone()];
        all.extend(later);
        all
    };
    stage.bundle("one", &objects(wrong("d", 3))).await;
    stage.pass(1).await;
    assert!(!stage.exists(&config_map("a", 0)).await);
    let (reason, message) = stage.said("one", "Ready").await;
    assert_eq!(reason, "ApplyFailed", "{message}");
    for part in ["ConfigMap apps/d", "nothing is applied for this revision"] {
        assert!(message.contains(part), "{message}");
    }
    // It has failed, for which there are hooks.
    stage.pass(20).await;
    assert_eq!(stage.all(Happened::Made), ["Job/rescue"]);
    assert!(!stage.exists(&config_map("a", 0)).await);

    // What is mended begins, and each of its later objects was asked about once.
    tries(&stage);
    stage.bundle("one", &objects(config_map("d", 3))).await;
    stage.pass(10).await;
    assert!(stage.exists(&config_map("d", 3)).await);
    assert_eq!(stage.unit("one").await, None);
    assert_eq!(tries(&stage), 3);

    // Nothing to do is nothing to ask.
    stage.restart().await;
    assert_eq!(tries(&stage), 0);
    // Nor is drift asked about.
    let edit = json!({"data": {"key": "edited"}});
    stage.world.edit(&config_map("c", 2), edit).await;
    stage.pass(5).await;
    assert_eq!(
        stage.world.get(&config_map("c", 2)).await.unwrap()["data"]["key"],
        "value"
    );
    assert_eq!(tries(&stage), 0);
}

#[tokio::test(start_paused = true)]
async fn a_unit_that_applies_all_at_once_asks_nothing() {
    let stage = Stage::new().await;
    tries(&stage);
    let objects = [config_map("a", 0), config_map("b", 0), wrong("c", 0)];
    stage.bundle("one", &objects).await;
    stage.pass(1).await;
    assert!(stage.exists(&config_map("a", 0)).await);
    assert_eq!(stage.said("one", "Ready").await.0, "ApplyFailed");
    assert_eq!(tries(&stage), 0);
}

#[tokio::test(start_paused = true)]
async fn an_object_may_say_that_it_is_not_asked_about() {
    let stage = Stage::new().await;
    let skips = ("reeve.dev/sync-options", "SkipDryRun=true");
    let objects = [config_map("a", 0), with(wrong("b", 1), &[skips])];
    stage.bundle("one", &objects).await;
    stage.pass(5).await;
    assert!(stage.exists(&config_map("a", 0)).await);
    let (reason, message) = stage.said("one", "Ready").await;
    assert_eq!(reason, "ApplyFailed", "{message}");
    assert!(!message.contains("nothing is applied"), "{message}");
}

/// What is not there yet may come before its turn.
#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_not_there_keeps_nothing_from_beginning() {
    let stage = Stage::new().await;
    let namespace = reeve_test_support::samples::namespace(OTHER);
    stage.world.delete(&namespace).await;
    let mut there = config_map("there", 1);
    there["metadata"]["namespace"] = json!(OTHER);
    stage
        .bundle("one", &[config_map("a", 0), there.clone()])
        .await;
    stage.pass(5).await;
    assert!(stage.exists(&config_map("a", 0)).await);
    assert_eq!(stage.said("one", "Ready").await.0, "NamespaceAbsent");
    stage.world.apply(&namespace).await;
    stage.pass(20).await;
    assert!(stage.exists(&there).await);
    assert_eq!(stage.unit("one").await, None);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_to_be_ours_alone_keeps_all_from_beginning() {
    let alone = (
        "argocd.argoproj.io/sync-options",
        "FailOnSharedResource=true",
    );
    for (options, begins) in [(&[][..], true), (&[alone], false)] {
        let stage = Stage::new().await;
        let mut theirs = config_map("shared", 0);
        theirs["data"] = json!({"key": "theirs"});
        stage.world.apply(&theirs).await;
        let shared = with(config_map("shared", 0), options);
        let objects = [config_map("a", -1), shared, config_map("b", 0)];
        stage.bundle("one", &objects).await;
        stage.pass(10).await;
        let (reason, message) = stage.said("one", "Ready").await;
        assert_eq!(reason, "Conflict", "{message}");
        assert!(message.contains("ConfigMap apps/shared"), "{message}");
        for name in ["a", "b"] {
            let made = stage.exists(&config_map(name, 0)).await;
            assert_eq!(made, begins, "{name}: {message}");
        }
        let live = stage.world.get(&theirs).await.unwrap();
        assert_eq!(live["data"]["key"], "theirs");
        // They let go of it.
        stage.world.delete(&theirs).await;
        stage.pass(120).await;
        assert!(stage.exists(&config_map("b", 0)).await, "{APPS}");
        assert_eq!(stage.unit("one").await, None);
    }
}
