//! Fields that are left to others.

use crate::told::{PLUGIN, annotated, config_map, plugin_object, tell, world};
use reeve_it::plugin_reference;
use serde_json::json;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn an_ignored_field_is_never_ours() {
    let policy = json!({"ignore": [{"kind": "ConfigMap", "jsonPointers": ["/data/a"]}]});
    let world = world("ConfigMap.v1", &policy).await;
    world.tenant("alice", &[]).await;
    let object = config_map("alice", "c", &json!({"a": "1", "b": "2"}));
    tell(&world, "alice", &object).await;
    assert_eq!(world.get(&object).await.unwrap()["data"], json!({"b": "2"}));
    world
        .edit(&object, json!({"data": {"a": "x", "b": "x"}}))
        .await;
    world.settle().await;
    let data = world.get(&object).await.unwrap()["data"].clone();
    assert_eq!(data, json!({"a": "x", "b": "2"}));
}

/// Left out of an apply by its only owner, a field would be removed: a Deployment
/// would fall to one replica.
#[tokio::test(start_paused = true)]
async fn a_field_that_is_ignored_from_now_on_keeps_its_value() {
    let world = world("ConfigMap.v1", &json!({})).await;
    world.tenant("alice", &[]).await;
    let object = config_map("alice", "c", &json!({"a": "1", "b": "2"}));
    tell(&world, "alice", &object).await;
    let ignoring = annotated(object.clone(), "reeve.dev/ignore", "/data/a");
    tell(&world, "alice", &ignoring).await;
    let live = world.get(&object).await.unwrap();
    assert_eq!(live["data"], json!({"a": "1", "b": "2"}));
    let fields = live["metadata"]["managedFields"].to_string();
    assert!(!fields.contains("f:a\""), "nobody owns it: {fields}");
    world.edit(&object, json!({"data": {"a": "9"}})).await;
    world.settle().await;
    assert_eq!(world.get(&object).await.unwrap()["data"]["a"], "9");
    // No longer ignored, it is ours again.
    tell(&world, "alice", &object).await;
    assert_eq!(world.get(&object).await.unwrap()["data"]["a"], "1");
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_is_not_understood_is_told_and_stops_nothing_else() {
    let world = world("ConfigMap.v1", &json!({})).await;
    world.tenant("alice", &[]).await;
    world.tenant("bob", &[]).await;
    let object = |tenant: &str| config_map(tenant, "c", &json!({"a": "1"}));
    let odd = annotated(object("alice"), "reeve.dev/ignore", "data.a");
    tell(&world, "alice", &odd).await;
    tell(&world, "bob", &object("bob")).await;
    let ready = world.unit_condition(PLUGIN, "alice", "Ready").await;
    assert_eq!(ready.reason, "OutcomeRefused", "{ready:?}");
    let says = "ConfigMap alice/c: annotation reeve.dev/ignore: `data.a` is neither";
    assert!(ready.message.contains(says), "{ready:?}");
    assert_eq!(world.get(&odd).await, None);
    assert!(world.get(&object("bob")).await.is_some());
    // A policy that is not understood leaves what runs as it is.
    let policy = json!({"ignore": [{"kind": "ConfigMap", "jsonPointers": ["data"]}]});
    world.apply(&plugin_object(PLUGIN, &policy)).await;
    world.settle().await;
    let loaded = world.plugin_condition(PLUGIN, "Loaded").await;
    assert_eq!(
        (&*loaded.status, &*loaded.reason),
        ("False", "PolicyInvalid")
    );
    assert!(loaded.message.contains("spec.ignore[0]"), "{loaded:?}");
    let plugin = world.get(&plugin_reference(PLUGIN)).await.unwrap();
    assert_eq!(plugin["status"]["units"]["total"], 2);
}

/// What somebody else owns is left to them, and nothing is sent in answer to them.
#[tokio::test(start_paused = true)]
async fn fields_of_a_named_manager_are_left_to_it() {
    let rule = json!({"kind": "ConfigMap", "managedFieldsManagers": ["kubectl-edit"]});
    let world = world("ConfigMap.v1", &json!({"ignore": [rule]})).await;
    world.tenant("alice", &[]).await;
    let object = config_map("alice", "c", &json!({"a": "1", "b": "2"}));
    tell(&world, "alice", &object).await;
    world.edit(&object, json!({"data": {"a": "theirs"}})).await;
    world.settle().await;
    let data = world.get(&object).await.unwrap()["data"].clone();
    assert_eq!(data, json!({"a": "theirs", "b": "2"}));
    tell(
        &world,
        "alice",
        &config_map("alice", "c", &json!({"a": "1", "b": "3"})),
    )
    .await;
    let data = world.get(&object).await.unwrap()["data"].clone();
    assert_eq!(data, json!({"a": "theirs", "b": "3"}));
}

/// What somebody has set since the watch told of it last is left to them, too.
#[tokio::test(start_paused = true)]
async fn what_leaves_fields_to_others_takes_none_unseen() {
    let world = world("ConfigMap.v1", &json!({})).await;
    world.tenant("alice", &[]).await;
    let object = |a: &str, b: &str| {
        let object = config_map("alice", "c", &json!({"a": a, "b": b}));
        annotated(object, "reeve.dev/apply", "Merge")
    };
    tell(&world, "alice", &object("1", "1")).await;
    let fault = "silent-watch: resource=configmaps".parse().unwrap();
    world.server.set_faults(vec![fault]);
    let theirs = json!({"data": {"b": "theirs"}});
    world.edit(&object("", ""), theirs).await;
    tell(&world, "alice", &object("2", "2")).await;
    let data = async || world.get(&object("", "")).await.unwrap()["data"].clone();
    assert_eq!(data().await, json!({"a": "1", "b": "theirs"}));
    let ready = world.unit_condition(PLUGIN, "alice", "Ready").await;
    assert_eq!(ready.reason, "Conflict", "{ready:?}");
    world.server.set_faults(Vec::new());
    world.server.faults().drop_watches();
    world.wait(Duration::from_secs(400)).await;
    assert_eq!(data().await, json!({"a": "2", "b": "theirs"}));
    assert_eq!(world.unit(PLUGIN, "alice").await, None);
}
