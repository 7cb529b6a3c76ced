//! Hooks: once per sync, in their phases, and gone when their policy says so.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::stage::{Happened, Stage, bundle, config_map, job, widget, with};

/// When Jobs of tests begin and end.
const NOW: &str = "2026-01-01T00:00:00Z";

fn hook(name: &str, phase: &str) -> Value {
    with(job(name, 0), &[("reeve.dev/hook", phase)])
}

fn policy(hook: Value, policy: &str) -> Value {
    with(hook, &[("reeve.dev/hook-delete-policy", policy)])
}

fn sized(size: i64) -> Value {
    let mut widget = widget("a", 0);
    widget["spec"]["size"] = json!(size);
    widget
}

/// How often a Job of this name was made.
fn runs(stage: &Stage, name: &str) -> usize {
    let made = stage.all(Happened::Made);
    let name = format!("Job/{name}");
    made.iter().filter(|made| **made == name).count()
}

#[tokio::test(start_paused = true)]
async fn hooks_run_once_a_sync_in_their_phases() {
    let mut stage = Stage::new().await;
    let objects = |size| {
        [
            hook("after", "PostSync"),
            sized(size),
            hook("before", "PreSync"),
        ]
    };
    stage.bundle("one", &objects(1)).await;
    stage.pass(30).await;
    stage.one_after_another(&["Job/before", "Widget/a", "Job/after"]);
    let states = |sync: &Value| -> Vec<String> {
        let hooks = sync["hooks"].as_array().into_iter().flatten();
        hooks
            .map(|hook| format!("{} {}", hook["name"], hook["state"]).replace('"', ""))
            .collect()
    };
    let done = [
        "PostSync Job apps/after Succeeded",
        "PreSync Job apps/before Succeeded",
    ];
    assert_eq!(states(&stage.sync("one").await), done);

    // Neither drift nor a restart is a sync.
    stage
        .world
        .edit(&widget("a", 0), json!({"spec": {"size": 7}}))
        .await;
    stage.pass(10).await;
    let repaired = stage.world.get(&widget("a", 0)).await.unwrap();
    assert_eq!(repaired["spec"]["size"], 1);
    stage.restart().await;
    stage.pass(10).await;
    assert_eq!((runs(&stage, "before"), runs(&stage, "after")), (1, 1));
    // Nor is a hook that somebody has deleted drift.
    stage.world.delete(&job("before", 0)).await;
    stage.pass(10).await;
    assert_eq!(runs(&stage, "before"), 1);

    // Another revision is.
    stage.bundle("one", &objects(2)).await;
    stage.pass(30).await;
    let sync = stage.sync("one").await;
    assert_eq!(
        (runs(&stage, "before"), runs(&stage, "after")),
        (2, 2),
        "{sync:#}"
    );
    assert_eq!(states(&stage.sync("one").await), done);
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_goes_when_it_has_succeeded_is_not_run_again() {
    let mut stage = Stage::new().await;
    let before = policy(hook("before", "PreSync"), "HookSucceeded");
    stage.bundle("one", &[before, sized(1)]).await;
    stage.pass(30).await;
    assert_eq!(runs(&stage, "before"), 1);
    assert!(!stage.exists(&job("before", 0)).await);
    assert!(stage.exists(&widget("a", 0)).await);
    stage.restart().await;
    stage.pass(30).await;
    assert_eq!(runs(&stage, "before"), 1, "its end is remembered");
}

/// As a Job does that ends with `ttlSecondsAfterFinished: 0`: somebody else deletes it
/// before anybody has looked at how it ended.
#[tokio::test(start_paused = true)]
async fn a_hook_that_is_taken_away_has_ended_as_it_did() {
    for (end, reason) in [("Complete", "Running"), ("Failed", "HookFailed")] {
        let stage = Stage::new().await;
        let mut before = with(
            hook("before", "PreSync"),
            &[("actor.reeve.dev/complete-after", "3600s")],
        );
        before["metadata"]["finalizers"] = json!(["example.com/held"]);
        stage.bundle("one", &[before, sized(1)]).await;
        stage.pass(5).await;
        let made = job("before", 0);
        assert!(stage.exists(&made).await);
        stage.world.delete(&made).await;
        let conditions: Vec<Value> = match end {
            "Complete" => ["SuccessCriteriaMet", "Complete"].to_vec(),
            _ => ["FailureTarget", "Failed"].to_vec(),
        }
        .into_iter()
        .map(|kind| {
            json!({"type": kind, "status": "True", "lastTransitionTime": NOW,
            "lastProbeTime": NOW, "reason": "Test", "message": "test"})
        })
        .collect();
        let status = stage.world.get(&made).await.unwrap()["status"].clone();
        let began = status["startTime"].as_str().unwrap_or(NOW);
        let mut status = json!({"conditions": conditions, "startTime": began, "active": 0,
            "terminating": 0, "ready": 0, "uncountedTerminatedPods": {}});
        if end == "Complete" {
            status["completionTime"] = json!(began);
            status["succeeded"] = json!(1);
        } else {
            status["failed"] = json!(1);
        }
        let patch = Patch::Merge(json!({"status": status}));
        let api = stage.world.api(&made);
        let params = PatchParams::default();
        api.patch_status("before", &params, &patch).await.unwrap();
        stage.pass(5).await;
        let let_go = json!({"metadata": {"finalizers": null}});
        stage.world.edit(&made, let_go).await;
        stage.pass(10).await;
        assert!(!stage.exists(&made).await);
        assert_eq!(runs(&stage, "before"), 1);
        assert_eq!(
            stage.exists(&widget("a", 0)).await,
            end == "Complete",
            "{end}"
        );
        assert_eq!(stage.said("one", "Ready").await.0, reason, "{end}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_runs_while_the_agent_restarts_is_found_again() {
    let mut stage = Stage::new().await;
    let slow = with(
        hook("before", "PreSync"),
        &[("actor.reeve.dev/complete-after", "30s")],
    );
    stage.bundle("one", &[slow, sized(1)]).await;
    stage.pass(5).await;
    stage.restart().await;
    stage.pass(5).await;
    assert!(!stage.exists(&widget("a", 0)).await);
    stage.pass(40).await;
    assert!(stage.exists(&widget("a", 0)).await);
    assert_eq!(runs(&stage, "before"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_fails_ends_the_sync() {
    let stage = Stage::new().await;
    let failing = |name: &str| with(hook(name, "PreSync"), &[("actor.reeve.dev/fail", "exit")]);
    let objects = [
        failing("kept"),
        policy(failing("dropped"), "HookFailed"),
        sized(1),
        hook("sweeper", "SyncFail"),
        hook("after", "PostSync"),
    ];
    stage.bundle("one", &objects).await;
    stage.pass(60).await;
    let (reason, message) = stage.said("one", "Ready").await;
    assert_eq!(reason, "HookFailed", "{message}");
    assert!(
        message.contains("PreSync") && message.contains("nothing more is applied"),
        "{message}"
    );
    assert!(!stage.exists(&widget("a", 0)).await);
    assert!(stage.exists(&job("kept", 0)).await);
    assert!(!stage.exists(&job("dropped", 0)).await);
    assert_eq!((runs(&stage, "sweeper"), runs(&stage, "after")), (1, 0));
    assert_eq!(stage.sync("one").await["progress"], "Failed");
    assert_eq!(stage.said("one", "Stalled").await.0, "HookFailed");
    // Once is once.
    stage.pass(3600).await;
    assert_eq!((runs(&stage, "kept"), runs(&stage, "sweeper")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn hooks_without_a_name_are_named_by_what_they_are() {
    let mut stage = Stage::new().await;
    let objects = |size| {
        let mut unnamed = hook("", "PreSync");
        let metadata = unnamed["metadata"].as_object_mut().unwrap();
        metadata.remove("name");
        metadata.insert("generateName".to_owned(), json!("migrate-"));
        [unnamed, sized(size)]
    };
    stage.bundle("one", &objects(1)).await;
    stage.pass(30).await;
    let jobs = |made: &[String]| -> Vec<String> {
        let jobs = made.iter().filter(|name| name.starts_with("Job/migrate-"));
        jobs.cloned().collect()
    };
    let first = jobs(&stage.all(Happened::Made));
    assert_eq!(first.len(), 1, "{first:?}");
    stage.one_after_another(&[&first[0], "Widget/a"]);
    stage.restart().await;
    stage.pass(10).await;
    assert_eq!(jobs(&stage.all(Happened::Made)), first);
    // Another sync is another hook, and the first one goes.
    stage.bundle("one", &objects(2)).await;
    stage.pass(30).await;
    let both = jobs(&stage.all(Happened::Made));
    assert_eq!(both.len(), 2, "{both:?}");
    assert_ne!(both[0], both[1]);
    assert_eq!(jobs(&stage.all(Happened::Gone)), first);
    assert_eq!(stage.said("one", "Ready").await.0, "Running");
}

#[tokio::test(start_paused = true)]
async fn only_hooks_may_be_without_a_name() {
    let stage = Stage::new().await;
    let mut unnamed = config_map("", 0);
    unnamed["metadata"].as_object_mut().unwrap().remove("name");
    stage.bundle("one", &[unnamed]).await;
    stage.pass(5).await;
    let (reason, message) = stage.said("one", "Ready").await;
    assert_eq!(reason, "OutcomeRefused");
    assert!(
        message.contains("objects[0] (ConfigMap.v1): metadata.name: missing"),
        "{message}"
    );
}

/// A sync that is complete begins anew when a person asks for that, and only then.
#[tokio::test(start_paused = true)]
async fn hooks_of_a_complete_sync_run_again_when_asked_to() {
    let mut stage = Stage::new().await;
    let objects = [
        hook("before", "PreSync"),
        sized(1),
        hook("after", "PostSync"),
    ];
    stage.bundle("one", &objects).await;
    stage.bundle("two", &[widget("b", 0)]).await;
    stage.pass(30).await;
    let both = |stage: &Stage| (runs(stage, "before"), runs(stage, "after"));
    assert_eq!(both(&stage), (1, 1));
    let uid = async |stage: &Stage| {
        let widget = stage.world.get(&widget("a", 0)).await.unwrap();
        widget["metadata"]["resourceVersion"].clone()
    };
    let before = uid(&stage).await;

    // A new attempt is for what has failed, and this has not.
    let (one, retry, sync) = (bundle("one"), "reeve.dev/retry-at", "reeve.dev/sync-at");
    stage.annotate(&one, retry, json!("1")).await;
    stage.pass(20).await;
    assert_eq!(both(&stage), (1, 1));

    stage.annotate(&one, sync, json!("1")).await;
    stage.pass(20).await;
    assert_eq!(both(&stage), (2, 2));
    assert_eq!(
        uid(&stage).await,
        before,
        "what is as wanted is not written"
    );
    // Of the Plugin: of one unit, and of all.
    let plugin = reeve_it::plugin_reference("courier");
    for (text, expected) in [
        ("2 Bundle.example.com/apps/two", (2, 2)),
        ("3 Bundle.example.com/apps/one", (3, 3)),
        ("4", (4, 4)),
    ] {
        stage.annotate(&plugin, sync, json!(text)).await;
        stage.pass(20).await;
        assert_eq!(both(&stage), expected, "{text}");
        let plugin = stage.world.get(&plugin).await.unwrap();
        assert_eq!(plugin["status"]["lastHandledSyncAt"], text);
    }
    // A restart asks for nothing anew, and goes on with what was asked.
    stage.restart().await;
    stage.pass(20).await;
    assert_eq!(both(&stage), (4, 4));
    let slow = with(
        hook("before", "PreSync"),
        &[("actor.reeve.dev/complete-after", "10s")],
    );
    stage.bundle("one", &[slow, sized(1)]).await;
    stage.pass(30).await;
    assert_eq!(runs(&stage, "before"), 5);
    stage.annotate(&one, sync, json!("5")).await;
    stage.pass(3).await;
    stage.restart().await;
    stage.pass(30).await;
    assert_eq!(runs(&stage, "before"), 6);
    assert!(stage.exists(&widget("a", 0)).await);
}
