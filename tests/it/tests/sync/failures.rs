//! Syncs that fail though no hook does: hooks for that case, and what waits for
//! whoever holds a field.

use serde_json::{Value, json};

use crate::stage::{APPS, Happened, OTHER, Stage, bundle, config_map, job, widget, with};

fn rescue() -> Value {
    with(job("rescue", 0), &[("reeve.dev/hook", "SyncFail")])
}

/// How often the hook has run.
fn runs(stage: &Stage) -> usize {
    let made = stage.all(Happened::Made);
    made.iter().filter(|name| **name == "Job/rescue").count()
}

#[tokio::test(start_paused = true)]
async fn hooks_run_for_an_object_that_is_refused() {
    let mut stage = Stage::new().await;
    let mut wrong = config_map("wrong", 1);
    wrong["data"] = json!({"key": {"is": "no text"}});
    // Found at its turn, and not before.
    let wrong = with(wrong, &[("reeve.dev/sync-options", "SkipDryRun=true")]);
    let objects = [config_map("a", 0), wrong, config_map("b", 2), rescue()];
    stage.bundle("one", &objects).await;
    stage.pass(30).await;
    assert_eq!(stage.said("one", "Ready").await.0, "ApplyFailed");
    assert_eq!(runs(&stage), 1);
    assert!(stage.exists(&config_map("a", 0)).await);
    assert!(!stage.exists(&config_map("b", 2)).await);
    // Once is once, also for another agent.
    stage.pass(600).await;
    stage.restart().await;
    stage.pass(600).await;
    assert_eq!(runs(&stage), 1);
    // What is right goes on where it was.
    let right = [config_map("a", 0), config_map("b", 2), rescue()];
    stage.bundle("one", &right).await;
    stage.pass(30).await;
    assert!(stage.exists(&config_map("b", 2)).await);
    assert_eq!(runs(&stage), 1);
}

#[tokio::test(start_paused = true)]
async fn hooks_run_for_a_wave_that_is_degraded_and_for_one_that_takes_too_long() {
    let slow = ("actor.reeve.dev/ready-after", "400s");
    let failing = ("actor.reeve.dev/fail", "exit");
    for (first, early, late) in [
        (with(widget("a", 0), &[slow]), 0, 1),
        (with(job("a", 0), &[failing]), 1, 1),
    ] {
        let stage = Stage::new().await;
        stage
            .bundle("one", &[first.clone(), widget("b", 1), rescue()])
            .await;
        stage.pass(200).await;
        assert_eq!(runs(&stage), early, "{first}");
        stage.pass(150).await;
        assert_eq!(runs(&stage), late, "{first}");
        assert!(!stage.exists(&widget("b", 1)).await, "{first}");
        // A new attempt may fail anew.
        stage
            .annotate(&bundle("one"), "reeve.dev/retry-at", json!("1"))
            .await;
        stage.pass(30).await;
        assert_eq!(runs(&stage), late + early, "{first}");
        stage.pass(100).await;
        let came = early == 0;
        assert_eq!(stage.exists(&widget("b", 1)).await, came, "{first}");
    }
}

/// A field that somebody else applies is not contributed, and what comes after it waits.
#[tokio::test(start_paused = true)]
async fn a_contribution_that_is_refused_holds_what_comes_later() {
    let stage = Stage::new().await;
    let mut shared = config_map("shared", 0);
    shared["metadata"]["namespace"] = json!(OTHER);
    shared["data"] = json!({"key": "theirs"});
    stage.world.apply(&shared).await;
    let mut ours = with(shared.clone(), &[("reeve.dev/apply", "Contribute")]);
    ours["data"] = json!({"key": "ours"});
    let after = with(job("after", 0), &[("reeve.dev/hook", "PostSync")]);
    let objects = [ours, config_map("later", 1), after, rescue()];
    stage.bundle("one", &objects).await;
    stage.pass(30).await;
    let (reason, message) = stage.said("one", "Ready").await;
    assert_eq!(reason, "Conflict", "{message}");
    let sync = stage.sync("one").await;
    assert_eq!(sync["progress"], "Waiting", "{sync}");
    let blocked = &sync["blockedBy"];
    assert_eq!(
        blocked["object"],
        format!("ConfigMap {OTHER}/shared"),
        "{sync}"
    );
    assert_eq!(blocked["wave"], 0, "{sync}");
    let reason = blocked["reason"].as_str().unwrap();
    assert!(reason.contains(".data.key by \"test\""), "{sync}");
    assert!(!stage.exists(&config_map("later", 1)).await, "{APPS}");
    assert!(!stage.exists(&job("after", 0)).await);
    assert_eq!(runs(&stage), 1);
    // They give it up.
    shared.as_object_mut().unwrap().remove("data");
    stage.world.apply(&shared).await;
    stage.pass(30).await;
    assert!(stage.exists(&config_map("later", 1)).await);
    assert!(stage.exists(&job("after", 0)).await);
    assert_eq!(stage.said("one", "Ready").await.0, "Running");
}
