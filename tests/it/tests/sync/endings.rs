//! How units end: in order, with hooks, where garbage collection does not follow, and
//! without any of that.

use reeve_it::NAMESPACE;
use serde_json::{Value, json};

use crate::stage::{Happened, OTHER, Stage, bundle, config_map, job, widget, with};

pub(crate) const FINALIZER: &str = "reeve.dev/courier";
const HOOKS: &str = "hooks.reeve.dev/courier";

/// Lets the plugin have its primaries wait.
pub(crate) async fn let_hold(stage: &Stage) {
    let rules =
        json!([{"apiGroups": ["example.com"], "resources": ["bundles"], "verbs": ["patch"]}]);
    let account = json!({"kind": "ServiceAccount", "name": "courier", "namespace": NAMESPACE});
    stage.world.role("courier-hold", &rules, &account).await;
    // The agent asks again once its answers are no longer fresh.
    stage.pass(700).await;
}

async fn stage() -> Stage {
    let stage = Stage::new().await;
    let_hold(&stage).await;
    stage
}

pub(crate) async fn finalizers(stage: &Stage) -> Value {
    let bundle = stage.world.get(&bundle("one")).await.unwrap();
    bundle["metadata"]["finalizers"].clone()
}

fn held(name: &str, wave: i64) -> Value {
    let mut widget = widget(name, wave);
    widget["metadata"]["finalizers"] = json!(["example.com/hold"]);
    widget
}

async fn let_go(stage: &Stage, name: &str) {
    let patch = json!({"metadata": {"finalizers": null}});
    stage.world.edit(&widget(name, 0), patch).await;
}

fn far(name: &str) -> Value {
    let mut object = config_map(name, 0);
    object["metadata"]["namespace"] = json!(OTHER);
    object
}

fn hook(name: &str, phase: &str) -> Value {
    with(job(name, 0), &[("reeve.dev/hook", phase)])
}

fn owners(object: &Value) -> &Value {
    &object["metadata"]["ownerReferences"]
}

#[tokio::test(start_paused = true)]
async fn a_unit_with_an_order_ends_in_reverse_before_its_primary_does() {
    let mut stage = stage().await;
    stage
        .bundle("one", &[held("a", -1), held("b", 0), held("c", 3)])
        .await;
    stage.pass(20).await;
    assert_eq!(finalizers(&stage).await, json!([FINALIZER]));
    let live = stage.world.get(&widget("a", 0)).await.unwrap();
    assert_eq!(owners(&live), &Value::Null);
    assert_eq!(stage.unit("one").await, None);
    stage.world.delete(&bundle("one")).await;
    for (name, before) in [("c", "b"), ("b", "a"), ("a", "")] {
        stage.pass(10).await;
        let deleting = stage.all(Happened::Deleting);
        assert!(deleting.contains(&format!("Widget/{name}")), "{deleting:?}");
        assert!(
            !deleting.contains(&format!("Widget/{before}")),
            "{deleting:?}"
        );
        let (reason, message) = stage.said("one", "Ready").await;
        assert_eq!(reason, "Waiting", "{message}");
        let way_out = "the annotation reeve.dev/release: \"true\" on Bundle apps/one";
        assert!(message.contains(way_out), "{message}");
        // Where it is does not depend on what the agent remembers.
        stage.restart().await;
        assert!(stage.exists(&bundle("one")).await);
        let_go(&stage, name).await;
    }
    stage.pass(10).await;
    assert_eq!(
        stage.all(Happened::Gone),
        ["Widget/c", "Widget/b", "Widget/a"]
    );
    assert!(!stage.exists(&bundle("one")).await);
    assert_eq!(stage.unit("one").await, None);
}

#[tokio::test(start_paused = true)]
async fn what_is_elsewhere_does_not_outlive_its_primary() {
    let stage = stage().await;
    stage.bundle("one", &[far("far"), widget("near", 0)]).await;
    stage.pass(10).await;
    assert_eq!(finalizers(&stage).await, json!([FINALIZER]));
    // Nothing orders them, so the cluster may collect what it can.
    let near = stage.world.get(&widget("near", 0)).await.unwrap();
    assert_eq!(owners(&near)[0]["name"], "one");
    let mut stage = stage;
    stage.world.stop().await;
    stage.world.delete(&bundle("one")).await;
    assert!(stage.exists(&bundle("one")).await, "it waits for an agent");
    stage.world.start();
    stage.pass(10).await;
    for object in [bundle("one"), far("far"), widget("near", 0)] {
        assert!(!stage.exists(&object).await, "{object}");
    }
    // One that no longer has such objects waits for nothing.
    stage.bundle("one", &[far("far"), widget("near", 0)]).await;
    stage.pass(10).await;
    stage.bundle("one", &[widget("near", 0)]).await;
    stage.pass(10).await;
    assert_eq!(finalizers(&stage).await, Value::Null);
}

#[tokio::test(start_paused = true)]
async fn hooks_run_before_and_after_the_end() {
    let mut stage = stage().await;
    let objects = [
        hook("before", "PreDelete"),
        hook("after", "PostDelete"),
        widget("a", 0),
    ];
    stage.bundle("one", &objects).await;
    stage.pass(10).await;
    assert_eq!(finalizers(&stage).await, json!([HOOKS]));
    assert_eq!(stage.world.list(&job("", 0)).await, Vec::<Value>::new());
    stage.world.delete(&bundle("one")).await;
    stage.pass(1).await;
    stage.restart().await;
    stage.pass(30).await;
    let [before, after, gone] = [
        stage.when(Happened::Healthy, "Job/before"),
        stage.when(Happened::Made, "Job/after"),
        stage.when(Happened::Gone, "Widget/a"),
    ]
    .map(|at| at.unwrap());
    assert!(
        before <= gone && gone <= after,
        "{before:?} {gone:?} {after:?}"
    );
    assert_eq!(
        stage.all(Happened::Made),
        ["Widget/a", "Job/before", "Job/after"]
    );
    assert!(!stage.exists(&bundle("one")).await);
    assert_eq!(stage.world.list(&job("", 0)).await, Vec::<Value>::new());
    assert_eq!(stage.unit("one").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_fails_before_the_end_stops_it_until_somebody_says_so() {
    let stage = stage().await;
    let failing = with(
        hook("before", "PreDelete"),
        &[("actor.reeve.dev/fail", "exit")],
    );
    stage.bundle("one", &[failing, widget("a", 0)]).await;
    stage.pass(10).await;
    stage.world.delete(&bundle("one")).await;
    stage.pass(600).await;
    assert!(stage.exists(&widget("a", 0)).await);
    let (reason, message) = stage.said("one", "Ready").await;
    assert_eq!(reason, "HookFailed", "{message}");
    assert!(
        message.contains("PreDelete Job apps/before is Degraded"),
        "{message}"
    );
    stage
        .annotate(&bundle("one"), "reeve.dev/release", json!("true"))
        .await;
    stage.pass(30).await;
    assert!(!stage.exists(&bundle("one")).await);
    assert!(!stage.exists(&widget("a", 0)).await, "swept up");
    assert_eq!(stage.unit("one").await, None);
}

#[tokio::test(start_paused = true)]
async fn without_the_right_to_wait_what_is_left_is_swept_up_in_order() {
    let stage = Stage::new().await;
    stage
        .bundle("one", &[held("a", -1), widget("b", 0), far("far")])
        .await;
    stage.pass(20).await;
    assert_eq!(finalizers(&stage).await, Value::Null);
    assert_eq!(stage.unit("one").await, None);
    stage.world.delete(&bundle("one")).await;
    stage.pass(20).await;
    assert!(!stage.exists(&bundle("one")).await);
    assert_eq!(stage.all(Happened::Gone), ["Widget/b"]);
    assert_eq!(stage.all(Happened::Deleting), ["Widget/b", "Widget/a"]);
    assert!(!stage.exists(&far("far")).await);
    let_go(&stage, "a").await;
    stage.pass(10).await;
    assert_eq!(stage.all(Happened::Gone), ["Widget/b", "Widget/a"]);
    // Hooks that would never run are told of.
    stage.bundle("two", &[hook("before", "PreDelete")]).await;
    stage.pass(10).await;
    let (reason, message) = stage.said("two", "Ready").await;
    assert_eq!(reason, "Forbidden", "{message}");
    assert!(
        message.contains("may not patch bundles.example.com"),
        "{message}"
    );
    let_hold(&stage).await;
    assert_eq!(stage.unit("two").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_unit_without_an_order_is_left_to_garbage_collection() {
    let stage = stage().await;
    let kept = with(config_map("kept", 0), &[("reeve.dev/delete", "never")]);
    stage.bundle("one", &[widget("a", 0), kept]).await;
    stage.pass(10).await;
    assert_eq!(finalizers(&stage).await, Value::Null);
    let live = stage.world.get(&widget("a", 0)).await.unwrap();
    assert_eq!(owners(&live)[0]["name"], "one");
    // But for what says that it stays.
    let live = stage.world.get(&config_map("kept", 0)).await.unwrap();
    assert_eq!(owners(&live), &Value::Null);
    stage.world.delete(&bundle("one")).await;
    stage.pass(30).await;
    assert!(!stage.exists(&widget("a", 0)).await);
    assert!(stage.exists(&config_map("kept", 0)).await);
    assert_eq!(stage.unit("one").await, None);
}

#[tokio::test(start_paused = true)]
async fn nothing_ends_where_nothing_is_written() {
    let stage = stage().await;
    stage.bundle("one", &[far("far")]).await;
    stage.pass(10).await;
    let mode = json!({"spec": {"mode": "PlanOnly"}});
    let plugin = reeve_it::plugin_reference("courier");
    stage.world.edit(&plugin, mode).await;
    stage.world.delete(&bundle("one")).await;
    stage.pass(60).await;
    assert_eq!(stage.said("one", "Ready").await.0, "PlanOnly");
    assert!(stage.exists(&far("far")).await);
    // Also when somebody else has deleted all of it.
    stage.world.delete(&far("far")).await;
    stage.pass(60).await;
    assert_eq!(finalizers(&stage).await, json!([FINALIZER]));
    let (reason, message) = stage.said("one", "Ready").await;
    assert_eq!(reason, "PlanOnly", "{message}");
    assert!(message.contains("reeve.dev/release: \"true\""), "{message}");
    stage
        .annotate(&bundle("one"), "reeve.dev/release", json!("true"))
        .await;
    stage.pass(10).await;
    assert!(!stage.exists(&bundle("one")).await);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_unit_waits_for_a_word_in_the_mode_that_asks_for_it() {
    let stage = Stage::with_plugin(json!({"mode": "OnRequest"})).await;
    let_hold(&stage).await;
    let plan = async || stage.unit("one").await.unwrap()["status"]["plan"].clone();
    let approve = async || {
        let unit = stage.unit("one").await.unwrap();
        let id = unit["status"]["plan"]["id"].clone();
        stage.annotate(&unit, "reeve.dev/approve-plan", id).await;
    };
    stage
        .bundle("one", &[widget("a", 0), widget("b", 1), far("far")])
        .await;
    stage.pass(10).await;
    assert_eq!(finalizers(&stage).await, Value::Null);
    approve().await;
    stage.pass(20).await;
    assert_eq!(finalizers(&stage).await, json!([FINALIZER]));
    stage.world.delete(&bundle("one")).await;
    stage.pass(60).await;
    assert!(stage.exists(&widget("b", 0)).await);
    assert_eq!(plan().await["delete"], 3);
    approve().await;
    stage.pass(30).await;
    for object in [bundle("one"), far("far"), widget("a", 0)] {
        assert!(!stage.exists(&object).await, "{object}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_fails_after_the_end_leaves_the_primary_waiting() {
    let stage = stage().await;
    let fails = with(
        hook("after", "PostDelete"),
        &[("actor.reeve.dev/fail", "exit")],
    );
    stage.bundle("one", &[fails, widget("a", 0)]).await;
    stage.pass(10).await;
    stage.world.delete(&bundle("one")).await;
    stage.pass(120).await;
    assert!(!stage.exists(&widget("a", 0)).await);
    assert_eq!(finalizers(&stage).await, json!([HOOKS]));
    let (reason, message) = stage.said("one", "Ready").await;
    assert_eq!(reason, "HookFailed", "{message}");
    for part in ["PostDelete Job apps/after is Degraded", "reeve.dev/release"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    stage
        .annotate(&bundle("one"), "reeve.dev/release", json!("true"))
        .await;
    stage.pass(10).await;
    assert!(!stage.exists(&bundle("one")).await);
}
