//! Objects that are somebody else's.

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
