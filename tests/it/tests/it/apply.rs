//! Objects that are somebody else's.

use crate::told::{PLUGIN, annotated, config_map, tell, world};
use reeve_it::{World, core_reference, plugin};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_foreign_object_is_left_alone() {
    let world = World::started().await;
    world
        .install("quotas", &[("plugin.wasm", plugin("quotas"))], None)
        .await;
    world
        .apply(&reeve_test_support::samples::namespace("alice"))
        .await;
    let mut foreign = core_reference("ResourceQuota", "alice", "quotas");
    foreign["spec"] = json!({"hard": {"pods": "3"}});
    world.apply(&foreign).await;
    let before = world.get(&foreign).await.unwrap();
    world
        .apply(&reeve_test_support::samples::profile("alice"))
        .await;
    world.settle().await;
    let after = world.get(&foreign).await.unwrap();
    assert_eq!(after["spec"], before["spec"]);
    let ready = world.unit_condition("quotas", "alice", "Ready").await;
    assert_eq!(ready.reason, "Conflict", "{ready:?}");
    assert!(
        ready.message.contains("ResourceQuota alice/quotas"),
        "{ready:?}"
    );
    assert!(
        ready.message.contains("test"),
        "the other manager is named: {ready:?}"
    );
}

/// Without a conflicting field the apply goes through, and is taken back.
#[tokio::test(start_paused = true)]
async fn a_foreign_object_without_a_conflict_is_left_alone_too() {
    let world = World::started().await;
    world
        .install("quotas", &[("plugin.wasm", plugin("quotas"))], None)
        .await;
    world
        .apply(&reeve_test_support::samples::namespace("alice"))
        .await;
    let mut foreign = core_reference("ResourceQuota", "alice", "quotas");
    foreign["spec"] = json!({"hard": {"configmaps": "3"}});
    world.apply(&foreign).await;
    world
        .apply(&reeve_test_support::samples::profile("alice"))
        .await;
    world.settle().await;
    let after = world.get(&foreign).await.unwrap();
    assert_eq!(after["spec"]["hard"], json!({"configmaps": "3"}));
    assert_eq!(after["metadata"].get("labels"), None);
    assert_eq!(after["metadata"].get("ownerReferences"), None);
    let ready = world.unit_condition("quotas", "alice", "Ready").await;
    assert_eq!(ready.reason, "Conflict", "{ready:?}");
}

/// Labels can be forged; the field manager cannot.
#[tokio::test(start_paused = true)]
async fn forged_labels_delete_nothing() {
    let world = World::started().await;
    world
        .install("quotas", &[("plugin.wasm", plugin("quotas"))], None)
        .await;
    world.tenant("alice", &[]).await;
    world.settle().await;
    let ours = world
        .get(&core_reference("ResourceQuota", "alice", "quotas"))
        .await
        .unwrap();
    let mut forged = core_reference("ResourceQuota", "alice", "precious");
    forged["metadata"]["labels"] = ours["metadata"]["labels"].clone();
    forged["spec"] = json!({"hard": {"pods": "3"}});
    world.apply(&forged).await;
    world.settle().await;
    assert!(world.get(&forged).await.is_some());
    assert_eq!(
        world.unit("quotas", "alice").await,
        None,
        "nor trouble anybody"
    );
}

/// What is to be left alone is neither made, nor changed, nor pruned.
#[tokio::test(start_paused = true)]
async fn what_says_so_is_left_alone() {
    for (key, value) in [
        ("reeve.dev/apply", "Ignore"),
        ("kustomize.toolkit.fluxcd.io/ssa", "Ignore"),
        ("kustomize.toolkit.fluxcd.io/reconcile", "disabled"),
        ("reeve.dev/skip-reconcile", "true"),
        ("argocd.argoproj.io/skip-reconcile", "true"),
    ] {
        let world = world("ConfigMap.v1", &json!({})).await;
        world.tenant("alice", &[]).await;
        let object = |value: &str| config_map("alice", "c", &json!({"a": value}));
        let left = |text: &str| annotated(object(text), key, value);
        tell(&world, "alice", &left("1")).await;
        assert_eq!(world.get(&object("")).await, None, "{key}");
        tell(&world, "alice", &object("2")).await;
        let data = async || world.get(&object("")).await.unwrap()["data"]["a"].clone();
        assert_eq!(data().await, "2", "{key}");
        tell(&world, "alice", &left("3")).await;
        assert_eq!(data().await, "2", "{key}");
        let theirs = json!({"data": {"a": "theirs"}});
        world.edit(&object(""), theirs).await;
        world.settle().await;
        assert_eq!(data().await, "theirs", "{key}");
        assert_eq!(world.unit(PLUGIN, "alice").await, None, "{key}");
        tell(&world, "alice", &object("4")).await;
        assert_eq!(data().await, "4", "{key}");
    }
}
