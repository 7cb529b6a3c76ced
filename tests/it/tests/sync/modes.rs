//! Modes: what is written only when a person has approved it, and what never is.

use reeve_it::{NAMESPACE, plugin_reference};
use serde_json::{Value, json};

use crate::stage::{Happened, OTHER, Stage, config_map, job, widget, with};

async fn stage(mode: &str) -> Stage {
    Stage::with_plugin(json!({"mode": mode})).await
}

/// The plan that the Unit of a Bundle shows.
async fn plan(stage: &Stage, bundle: &str) -> Value {
    let unit = stage.unit(bundle).await.unwrap_or_default();
    unit["status"]["plan"].clone()
}

/// `Action Kind/name` of each step.
fn steps(plan: &Value) -> Vec<String> {
    let steps = plan["steps"].as_array().into_iter().flatten();
    steps
        .map(|step| {
            let object = &step["object"];
            let text = format!("{} {}/{}", step["action"], object["kind"], object["name"]);
            text.replace('"', "")
        })
        .collect()
}

fn counts(plan: &Value) -> [u64; 3] {
    ["create", "change", "delete"].map(|count| plan[count].as_u64().unwrap())
}

/// Approves a plan as a person does.
async fn approve(stage: &Stage, bundle: &str, id: &Value) {
    let name = stage.unit(bundle).await.unwrap()["metadata"]["name"].clone();
    let unit = json!({"apiVersion": "reeve.dev/v1alpha1", "kind": "Unit",
        "metadata": {"name": name, "namespace": NAMESPACE}});
    stage
        .annotate(&unit, "reeve.dev/approve-plan", id.clone())
        .await;
}

async fn approve_shown(stage: &Stage, bundle: &str) {
    let plan = plan(stage, bundle).await;
    approve(stage, bundle, &plan["id"]).await;
}

fn sized(name: &str, wave: i64, size: i64) -> Value {
    let mut widget = widget(name, wave);
    widget["spec"]["size"] = json!(size);
    widget
}

async fn size(stage: &Stage, name: &str) -> Value {
    let found = stage.world.get(&widget(name, 0)).await.unwrap();
    found["spec"]["size"].clone()
}

#[tokio::test(start_paused = true)]
async fn on_request_a_whole_sync_waits_for_one_word() {
    let mut stage = stage("OnRequest").await;
    let hook = with(job("before", 0), &[("reeve.dev/hook", "PreSync")]);
    let objects = [hook, widget("a", 0), widget("b", 1), config_map("c", 2)];
    stage.bundle("one", &objects).await;
    stage.pass(60).await;
    assert_eq!(stage.all(Happened::Made), Vec::<String>::new());
    let shown = plan(&stage, "one").await;
    assert_eq!(counts(&shown), [4, 0, 0]);
    let expected = [
        "Run Job/before",
        "Create Widget/a",
        "Create Widget/b",
        "Create ConfigMap/c",
    ];
    assert_eq!(steps(&shown), expected);
    let (reason, message) = stage.said("one", "Ready").await;
    assert_eq!(reason, "AwaitingApproval");
    let command = format!("`reeve approve courier {}`", shown["id"].as_str().unwrap());
    assert!(message.contains(&command), "{message}");
    assert_eq!(stage.counts().await["waiting"], 1);

    // Another word is none.
    approve(&stage, "one", &json!("0123456789abcdef0123")).await;
    stage.pass(10).await;
    assert_eq!(stage.all(Happened::Made), Vec::<String>::new());

    // Waves and hooks need no further word, nor does a restart amid them.
    approve(&stage, "one", &shown["id"]).await;
    stage.pass(1).await;
    assert_eq!(stage.sync("one").await["approved"], "Sync");
    stage.restart().await;
    stage.pass(60).await;
    stage.one_after_another(&["Job/before", "Widget/a", "Widget/b"]);
    assert!(stage.exists(&config_map("c", 0)).await);
    let (reason, message) = stage.said("one", "Ready").await;
    assert_eq!(reason, "Running", "{message}");
    assert_eq!(plan(&stage, "one").await, Value::Null);
}

/// What goes does so wave by wave, and is waited for: that takes no word for each.
#[tokio::test(start_paused = true)]
async fn on_request_a_removal_in_waves_waits_for_one_word() {
    let mut stage = stage("OnRequest").await;
    let mut later = widget("b", 1);
    later["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let objects = [widget("a", 0), later, widget("stays", 2)];
    stage.bundle("one", &objects).await;
    stage.pass(5).await;
    approve_shown(&stage, "one").await;
    stage.pass(10).await;
    stage.bundle("one", &[widget("stays", 2)]).await;
    stage.pass(5).await;
    let shown = plan(&stage, "one").await;
    assert_eq!(counts(&shown)[2], 2);
    approve(&stage, "one", &shown["id"]).await;
    stage.pass(600).await;
    assert!(stage.exists(&widget("a", 0)).await && stage.exists(&widget("b", 0)).await);
    assert_eq!(stage.sync("one").await["approved"], "Sync");
    stage.restart().await;
    let patch = json!({"metadata": {"finalizers": null}});
    stage.world.edit(&widget("b", 0), patch).await;
    stage.pass(60).await;
    assert!(!stage.exists(&widget("a", 0)).await);
    // Nothing is left of it.
    assert_eq!(stage.unit("one").await, None);
}

#[tokio::test(start_paused = true)]
async fn drift_is_a_plan_too_and_a_word_is_good_once() {
    let stage = stage("OnRequest").await;
    stage.bundle("one", &[widget("a", 0)]).await;
    stage.pass(5).await;
    approve_shown(&stage, "one").await;
    stage.pass(10).await;
    assert_eq!(size(&stage, "a").await, 1);
    assert_eq!(stage.unit("one").await, None);

    let drift = json!({"spec": {"size": 7}});
    let mut ids = Vec::new();
    for _ in 0..2 {
        stage.world.edit(&widget("a", 0), drift.clone()).await;
        stage.pass(120).await;
        assert_eq!(size(&stage, "a").await, 7);
        let shown = plan(&stage, "one").await;
        assert_eq!(steps(&shown), ["Repair Widget/a"]);
        assert_eq!(counts(&shown), [0, 1, 0]);
        approve(&stage, "one", &shown["id"]).await;
        stage.pass(10).await;
        assert_eq!(size(&stage, "a").await, 1);
        ids.push(shown["id"].clone());
    }
    assert_ne!(ids[0], ids[1], "each repair takes a word of its own");
}

#[tokio::test(start_paused = true)]
async fn a_newer_state_makes_an_approval_void() {
    let stage = stage("OnRequest").await;
    stage.bundle("one", &[sized("a", 0, 1)]).await;
    stage.pass(5).await;
    let old = plan(&stage, "one").await["id"].clone();
    stage.bundle("one", &[sized("a", 0, 2)]).await;
    stage.pass(5).await;
    let new = plan(&stage, "one").await["id"].clone();
    assert_ne!(old, new);
    approve(&stage, "one", &old).await;
    stage.pass(30).await;
    assert!(!stage.exists(&widget("a", 0)).await);
    // One that comes while an approved sync waits ends that.
    let slow = |size| {
        let slow = [("actor.reeve.dev/ready-after", "600s")];
        [with(sized("a", 0, size), &slow), config_map("b", 1)]
    };
    stage.bundle("one", &slow(3)).await;
    stage.pass(5).await;
    approve_shown(&stage, "one").await;
    stage.pass(5).await;
    assert_eq!(size(&stage, "a").await, 3);
    stage.bundle("one", &slow(4)).await;
    stage.pass(5).await;
    assert_eq!(size(&stage, "a").await, 3);
    let shown = plan(&stage, "one").await;
    assert_eq!(steps(&shown), ["Change Widget/a", "Create ConfigMap/b"]);
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_none_once_nothing_is_to_be_written() {
    let stage = stage("OnRequest").await;
    let slow = [("actor.reeve.dev/ready-after", "60s")];
    let objects = [with(widget("a", 0), &slow), config_map("b", 1)];
    stage.bundle("one", &objects).await;
    stage.pass(5).await;
    approve_shown(&stage, "one").await;
    stage.pass(5).await;
    assert!(stage.exists(&widget("a", 0)).await);
    let plugin = plugin_reference("courier");
    let mode = json!({"spec": {"mode": "PlanOnly"}});
    stage.world.edit(&plugin, mode).await;
    stage.pass(600).await;
    assert!(!stage.exists(&config_map("b", 0)).await);
    let (reason, message) = stage.said("one", "Ready").await;
    assert_eq!(reason, "PlanOnly", "{message}");
    assert_eq!(steps(&plan(&stage, "one").await), ["Create ConfigMap/b"]);
}

#[tokio::test(start_paused = true)]
async fn deletions_are_part_of_a_plan_and_held_all_the_same() {
    let stage = stage("OnRequest").await;
    stage
        .bundle("one", &[config_map("a", 0), config_map("b", 0)])
        .await;
    stage.pass(5).await;
    approve_shown(&stage, "one").await;
    stage.pass(5).await;
    stage.bundle("one", &[config_map("b", 0)]).await;
    stage.pass(5).await;
    let shown = plan(&stage, "one").await;
    assert_eq!(steps(&shown), ["Delete ConfigMap/a"]);
    assert!(stage.exists(&config_map("a", 0)).await);
    approve(&stage, "one", &shown["id"]).await;
    stage.pass(5).await;
    assert!(!stage.exists(&config_map("a", 0)).await);
    // All of them at once takes what it takes in every mode.
    stage.bundle("one", &[]).await;
    stage.pass(5).await;
    approve_shown(&stage, "one").await;
    stage.pass(5).await;
    assert_eq!(stage.said("one", "Ready").await.0, "DeletionHeld");
    assert!(stage.exists(&config_map("b", 0)).await);
}

#[tokio::test(start_paused = true)]
async fn what_a_unit_leaves_behind_waits_for_a_word() {
    let stage = stage("OnRequest").await;
    let mut far = config_map("far", 0);
    far["metadata"]["namespace"] = json!(OTHER);
    stage.bundle("one", std::slice::from_ref(&far)).await;
    stage.pass(5).await;
    approve_shown(&stage, "one").await;
    stage.pass(5).await;
    stage.world.delete(&crate::stage::bundle("one")).await;
    stage.pass(60).await;
    assert!(stage.exists(&far).await);
    assert_eq!(steps(&plan(&stage, "one").await), ["Delete ConfigMap/far"]);
    approve_shown(&stage, "one").await;
    stage.pass(10).await;
    assert!(!stage.exists(&far).await);
    assert_eq!(stage.unit("one").await, None);
}

#[tokio::test(start_paused = true)]
async fn plan_only_writes_nothing_whatever_happens() {
    let stage = Stage::new().await;
    let mut far = config_map("far", 0);
    far["metadata"]["namespace"] = json!(OTHER);
    let before = [far.clone(), config_map("a", 0), sized("w", 0, 1)];
    stage.bundle("one", &before).await;
    stage.bundle("two", &[config_map("two", 0)]).await;
    stage.pass(10).await;
    let mode = |mode: &str| json!({"spec": {"mode": mode}});
    let plugin = plugin_reference("courier");
    stage.world.edit(&plugin, mode("PlanOnly")).await;
    stage.pass(5).await;
    let is_as_before = async || {
        let mut all = Vec::new();
        for like in [far.clone(), config_map("", 0), widget("", 0)] {
            all.extend(stage.world.list(&like).await);
        }
        all
    };
    stage
        .world
        .edit(&widget("w", 0), json!({"spec": {"size": 7}}))
        .await;
    // Its controller has its say.
    stage.pass(5).await;
    let then = is_as_before().await;
    assert_eq!(then.len(), 4);
    // New, changed, withdrawn; a hook; an unmeant empty set; a primary that goes.
    let hook = with(job("h", 0), &[("reeve.dev/hook", "PreSync")]);
    stage
        .bundle("one", &[hook, config_map("new", 0), sized("w", 0, 2)])
        .await;
    stage.bundle("two", &[]).await;
    stage.pass(600).await;
    let shown = plan(&stage, "one").await;
    let expected = [
        "Run Job/h",
        "Create ConfigMap/new",
        "Change Widget/w",
        "Delete ConfigMap/a",
        "Delete ConfigMap/far",
    ];
    assert_eq!(steps(&shown), expected);
    let (reason, message) = stage.said("one", "Ready").await;
    assert_eq!(reason, "PlanOnly", "{message}");
    assert!(
        message.contains("2 to create, 1 to change, 2 to delete"),
        "{message}"
    );
    // An approval is none here.
    approve_shown(&stage, "one").await;
    stage.pass(60).await;
    assert_eq!(is_as_before().await, then);
    assert_eq!(stage.world.list(&job("", 0)).await, Vec::<Value>::new());
    assert_eq!(
        stage.counts().await,
        json!({"total": 2, "ready": 0, "failing": 0, "waiting": 2})
    );
    // Back in Auto, all of it happens.
    stage
        .world
        .edit(&plugin, json!({"spec": {"mode": null}}))
        .await;
    stage.pass(60).await;
    assert!(stage.exists(&config_map("new", 0)).await);
    assert!(!stage.exists(&far).await);
    assert_eq!(size(&stage, "w").await, 2);
    let journal = json!({"apiVersion": "reeve.dev/v1alpha1", "kind": "JournalEntry",
        "metadata": {"name": "", "namespace": NAMESPACE}});
    assert_eq!(
        stage.world.list(&journal).await.len(),
        3,
        "two deletions, and what was set by hand"
    );
}
