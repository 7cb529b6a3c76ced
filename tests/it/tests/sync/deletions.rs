//! What goes, in which order, what is held, and what can be brought back.

use base64::Engine as _;
use reeve_it::{NAMESPACE, plugin_reference};
use serde_json::{Value, json};

use crate::stage::{APPS, Happened, Stage, config_map, token, widget, with};

fn held(name: &str, wave: i64) -> Value {
    let mut widget = widget(name, wave);
    widget["metadata"]["finalizers"] = json!(["example.com/hold"]);
    widget
}

async fn let_go(stage: &Stage, name: &str) {
    let patch = json!({"metadata": {"finalizers": null}});
    stage.world.edit(&widget(name, 0), patch).await;
}

fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": APPS},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    })
}

#[tokio::test(start_paused = true)]
async fn what_is_withdrawn_goes_in_reverse_each_step_gone_before_the_next() {
    let stage = Stage::new().await;
    stage
        .bundle(
            "one",
            &[held("a", -1), held("b", 0), held("c", 3), widget("d", 0)],
        )
        .await;
    stage.pass(20).await;
    stage.bundle("one", &[widget("d", 0)]).await;
    for (name, before) in [("c", "b"), ("b", "a"), ("a", "")] {
        stage.pass(10).await;
        let deleting = stage.all(Happened::Deleting);
        assert!(deleting.contains(&format!("Widget/{name}")), "{deleting:?}");
        assert!(
            !deleting.contains(&format!("Widget/{before}")),
            "{deleting:?}"
        );
        let_go(&stage, name).await;
    }
    stage.pass(10).await;
    let gone = ["Widget/c", "Widget/b", "Widget/a"];
    assert_eq!(stage.all(Happened::Gone), gone);
    assert!(stage.exists(&widget("d", 0)).await);
}

#[tokio::test(start_paused = true)]
async fn an_empty_set_must_be_meant() {
    let stage = Stage::new().await;
    stage.bundle("one", &[config_map("a", 0)]).await;
    stage.pass(5).await;
    stage.bundle("one", &[]).await;
    stage.pass(5).await;
    assert!(stage.exists(&config_map("a", 0)).await);
    let (reason, message) = stage.said("one", "Ready").await;
    assert_eq!(reason, "DeletionHeld", "{message}");
    stage
        .bundle_with("one", json!({"objects": [], "empty": true}))
        .await;
    stage.pass(5).await;
    assert!(!stage.exists(&config_map("a", 0)).await);
    assert_eq!(stage.unit("one").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_held_deletion_says_how_it_is_approved() {
    let stage = Stage::new().await;
    stage
        .bundle("one", &[claim("data"), config_map("a", 0)])
        .await;
    stage.pass(10).await;
    stage.bundle("one", &[config_map("a", 0)]).await;
    stage.pass(10).await;
    assert!(stage.exists(&claim("data")).await);
    let (reason, message) = stage.said("one", "Ready").await;
    assert_eq!(reason, "DeletionHeld");
    assert!(
        message.contains("PersistentVolumeClaim apps/data"),
        "{message}"
    );
    let token = token(&message);

    // Another approval is none.
    let key = "reeve.dev/approve-deletion";
    let other = json!("0123456789abcdef0123");
    stage
        .annotate(&plugin_reference("courier"), key, other)
        .await;
    stage.pass(10).await;
    assert!(stage.exists(&claim("data")).await);

    stage
        .annotate(&plugin_reference("courier"), key, json!(token))
        .await;
    stage.pass(10).await;
    assert!(!stage.exists(&claim("data")).await);
    assert_eq!(stage.unit("one").await, None);
}

async fn journal(stage: &Stage) -> Vec<Value> {
    let like = json!({"apiVersion": "reeve.dev/v1alpha1", "kind": "JournalEntry",
        "metadata": {"name": "", "namespace": NAMESPACE}});
    stage.world.list(&like).await
}

#[tokio::test(start_paused = true)]
async fn what_was_deleted_is_in_the_journal_with_its_data() {
    let stage = Stage::new().await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "s", "namespace": APPS}, "data": {"password": "aHVudGVyMg=="}});
    stage
        .bundle("one", &[config_map("a", 0), config_map("b", 0), secret])
        .await;
    stage.pass(5).await;
    let theirs = json!({"data": {"theirs": "too"}});
    stage.world.edit(&config_map("a", 0), theirs).await;
    stage.pass(5).await;
    assert_eq!(journal(&stage).await, Vec::<Value>::new());
    stage.bundle("one", &[config_map("b", 0)]).await;
    stage.pass(5).await;
    let entries = journal(&stage).await;
    let of = |kind: &str| {
        let found = entries
            .iter()
            .find(|entry| entry["spec"]["object"]["kind"] == kind);
        found.unwrap()["spec"].clone()
    };
    assert_eq!(entries.len(), 2);
    let entry = of("ConfigMap");
    assert_eq!(entry["operation"], "Delete");
    assert_eq!(entry["plugin"], "courier");
    assert_eq!(entry["primary"]["name"], "one");
    assert_eq!(entry["reason"], "the plugin no longer returns it");
    let content = content(&entry);
    assert_eq!(content["data"], json!({"key": "value", "theirs": "too"}));
    // What `reeve undo` makes of it.
    let restored = reeve_core::journal::restorable(&content);
    stage.world.apply(&restored).await;
    let restored = stage.world.get(&config_map("a", 0)).await.unwrap();
    assert_eq!(restored["data"], json!({"key": "value", "theirs": "too"}));
    assert_eq!(restored["metadata"].get("ownerReferences"), None);
    // The data of Secrets is not anywhere else.
    let entry = of("Secret");
    assert_eq!(entry["omitted"], json!(["/data"]));
    assert_eq!(self::content(&entry).get("data"), None);
    // Restored, it is nobody's.
    stage.pass(5).await;
    assert_eq!(stage.unit("one").await, None);
}

fn content(entry: &Value) -> Value {
    let text = entry["content"].as_str().unwrap();
    let packed = base64::engine::general_purpose::STANDARD
        .decode(text)
        .unwrap();
    let json = zstd::bulk::decompress(&packed, 1 << 20).unwrap();
    serde_json::from_slice(&json).unwrap()
}

/// What an object says of its own deletion, through the agent: withdrawn, and at the end
/// of its unit.
#[tokio::test(start_paused = true)]
async fn objects_say_whether_they_go() {
    let said = |name: &str, options: &[(&str, &str)]| with(config_map(name, 0), options);
    let sync = "argocd.argoproj.io/sync-options";
    let all = [
        said("plain", &[]),
        said("kept", &[(sync, "Prune=false")]),
        said("asked", &[(sync, "Prune=confirm")]),
        said("helm", &[("helm.sh/resource-policy", "keep")]),
        said("stays", &[(sync, "Delete=false")]),
        widget("w", 0),
    ];
    let there = async |stage: &Stage| {
        let mut there = Vec::new();
        for name in ["asked", "helm", "kept", "plain", "stays"] {
            if stage.exists(&config_map(name, 0)).await {
                there.push(name);
            }
        }
        there
    };

    let stage = Stage::new().await;
    stage.bundle("one", &all).await;
    stage.pass(10).await;
    stage.bundle("one", &[widget("w", 0)]).await;
    stage.pass(10).await;
    assert_eq!(there(&stage).await, ["asked", "helm", "kept"]);
    let (reason, message) = stage.said("one", "Ready").await;
    assert_eq!(reason, "DeletionHeld", "{message}");
    assert!(message.contains("ConfigMap apps/asked"), "{message}");
    assert!(!message.contains("apps/kept"), "{message}");
    let approved = json!(token(&message));
    let plugin = plugin_reference("courier");
    let key = "reeve.dev/approve-deletion";
    stage.annotate(&plugin, key, approved).await;
    stage.pass(10).await;
    assert_eq!(there(&stage).await, ["helm", "kept"]);

    let stage = Stage::new().await;
    stage.bundle("one", &all).await;
    stage.pass(10).await;
    stage.world.delete(&crate::stage::bundle("one")).await;
    stage.pass(60).await;
    // What was only to be kept from pruning goes with its unit.
    assert_eq!(there(&stage).await, ["helm", "stays"]);
}

/// Pruned last: after all that is wanted is healthy.
#[tokio::test(start_paused = true)]
async fn what_goes_last_waits_for_the_rest() {
    let stage = Stage::new().await;
    let last = ("reeve.dev/sync-options", "PruneLast=true");
    let old = with(config_map("old", 0), &[last]);
    stage.bundle("one", &[old]).await;
    stage.pass(5).await;
    let slow = with(widget("new", 0), &[("actor.reeve.dev/ready-after", "60s")]);
    stage.bundle("one", &[slow]).await;
    stage.pass(40).await;
    assert!(stage.exists(&config_map("old", 0)).await);
    stage.pass(60).await;
    assert!(!stage.exists(&config_map("old", 0)).await);
    assert_eq!(stage.unit("one").await, None);
}

/// What is withdrawn goes with what it owns, before or after it, or without.
#[tokio::test(start_paused = true)]
async fn what_is_withdrawn_goes_as_it_says() {
    for (says, owner_waits, child_goes) in [
        (None, true, true),
        (Some("background"), false, true),
        (Some("orphan"), false, false),
    ] {
        let stage = Stage::new().await;
        let mut owner = widget("a", 0);
        if let Some(says) = says {
            let option = format!("PrunePropagationPolicy={says}");
            owner = with(owner, &[("reeve.dev/sync-options", &*option)]);
        }
        stage.bundle("one", &[owner.clone(), widget("b", 0)]).await;
        stage.pass(10).await;
        let live = stage.world.get(&owner).await.unwrap();
        let mut child = config_map("child", 0);
        child["metadata"]["finalizers"] = json!(["example.com/hold"]);
        child["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "example.com/v1", "kind": "Widget", "name": "a",
            "uid": live["metadata"]["uid"], "blockOwnerDeletion": true,
        }]);
        stage.world.apply(&child).await;
        stage.bundle("one", &[widget("b", 0)]).await;
        stage.pass(30).await;
        assert_eq!(stage.exists(&owner).await, owner_waits, "{says:?}");
        let child = stage.world.get(&child).await.unwrap();
        let going = child["metadata"]["deletionTimestamp"].is_string();
        assert_eq!(going, child_goes, "{says:?}");
    }
}
