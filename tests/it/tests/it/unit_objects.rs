//! `Unit` objects: what of them is sent, and that they are what the agent says of a unit.

use crate::told::{PLUGIN, config_map, tell, world};
use reeve_it::World;
use reeve_sim::Verb;
use serde_json::{Value, json};

/// Has the plugin want an object in a namespace that is not there: the unit waits for it.
async fn wait_for(world: &World, namespace: &str) -> Value {
    let object = config_map(namespace, "c", &json!({"a": "1"}));
    tell(world, "alice", &object).await;
    let unit = world.unit(PLUGIN, "alice").await.unwrap();
    assert!(unit["status"].to_string().contains(namespace), "{unit}");
    unit
}

async fn waiting() -> (World, Value) {
    let world = world("ConfigMap.v1", &Value::Null).await;
    world.tenant("alice", &[]).await;
    let unit = wait_for(&world, "later").await;
    (world, unit)
}

#[tokio::test(start_paused = true)]
async fn what_stands_is_not_sent_again() {
    let (world, _) = waiting().await;
    world.server.reset_requests();
    wait_for(&world, "much-later").await;
    let asked = world.server.requests();
    let patches = |resource: &str| asked.count(Verb::Patch, resource);
    assert!(patches("units/status.reeve.dev") > 0);
    assert_eq!(patches("units.reeve.dev"), 0);
}

/// Whoever reads the spec after a restart must find what the status is about, also where
/// the watch has not told that somebody else has written there.
#[tokio::test(start_paused = true)]
async fn what_the_watch_does_not_tell_is_put_right() {
    let (world, before) = waiting().await;
    let silent = "silent-watch: resource=units".parse().unwrap();
    world.server.set_faults(vec![silent]);
    let another = json!({"spec": {"primary": {"uid": "another"}}});
    world.edit(&before, another).await;
    let after = wait_for(&world, "much-later").await;
    assert_eq!(after["spec"], before["spec"]);
    assert_ne!(
        after["metadata"]["generation"],
        before["metadata"]["generation"]
    );
    let ready = &after["status"]["conditions"][0]["observedGeneration"];
    assert_eq!(*ready, after["metadata"]["generation"]);

    // And where it is gone, it is made again.
    world.delete(&after).await;
    let made = wait_for(&world, "later").await;
    assert_eq!(made["spec"], before["spec"]);
    assert_ne!(made["metadata"]["uid"], before["metadata"]["uid"]);
}

/// What stands as it should is not written, and what somebody makes of it is put right.
#[tokio::test(start_paused = true)]
async fn what_is_as_it_should_be_is_not_written() {
    let (world, unit) = waiting().await;
    world.server.reset_requests();
    // The unit is run, and nothing has changed.
    let at = |text: &str| json!({"metadata": {"annotations": {"reeve.dev/reconcile-at": text}}});
    let primary = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "Profile", "metadata": {"name": "alice"},
    });
    world.edit(&primary, at("once")).await;
    world.settle().await;
    let asked = world.server.requests();
    assert_eq!(asked.count(Verb::Patch, "units/status.reeve.dev"), 0);
    assert_eq!(asked.count(Verb::Patch, "units.reeve.dev"), 0);

    let another = json!({"spec": {"primary": {"uid": "another"}}});
    world.edit(&unit, another).await;
    world.settle().await;
    let after = world.unit(PLUGIN, "alice").await.unwrap();
    assert_eq!(after["spec"], unit["spec"]);
}

/// What was seen before is no proof of what is there: neither where an answer was lost, nor
/// where the watch is silent.
#[tokio::test(start_paused = true)]
async fn the_last_word_counts_where_the_watch_is_silent() {
    let (world, before) = waiting().await;
    let silent = "silent-watch: resource=units".parse().unwrap();
    world.server.set_faults(vec![silent]);
    wait_for(&world, "much-later").await;
    let after = wait_for(&world, "later").await;
    assert_eq!(
        after["status"]["conditions"][0]["message"],
        before["status"]["conditions"][0]["message"]
    );
}
