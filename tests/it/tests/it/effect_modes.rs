//! Outside effects where a person is asked, and where nothing is done.

use crate::effects::{Service, action, capabilities, fact, world_under};
use reeve_it::{NAMESPACE, World, guest, plugin_reference, profile_reference};
use serde_json::{Value, json};
use std::time::Duration;

/// Puts the plugin into another mode.
async fn in_mode(world: &World, url: &str, mode: &str) {
    let mut plugin = plugin_reference("envoy");
    plugin["spec"] = json!({"mode": mode, "capabilities": capabilities(url)});
    world.apply(&plugin).await;
}

/// A world with one tenant, whose plugin is in a mode.
async fn stage(mode: &str, config: Value) -> (World, Service, String) {
    let (world, service, url) = world_under(config, Some(mode)).await;
    world.wait(Duration::from_secs(60)).await;
    (world, service, url)
}

async fn plan(world: &World) -> Value {
    let unit = world.unit("envoy", "alice").await.unwrap_or_default();
    unit["status"]["plan"].clone()
}

/// What a plan says of effects.
fn effects(plan: &Value) -> Vec<String> {
    let effects = plan["effects"].as_array().into_iter().flatten();
    effects
        .map(|effect| {
            let text = |field: &str| effect[field].as_str().unwrap();
            format!("{} {} ({})", text("verb"), text("name"), text("key"))
        })
        .collect()
}

/// Approves what the Unit shows.
async fn approve(world: &World) {
    let unit = world.unit("envoy", "alice").await.unwrap();
    let reference = json!({
        "apiVersion": "reeve.dev/v1alpha1", "kind": "Unit",
        "metadata": {"name": unit["metadata"]["name"], "namespace": NAMESPACE},
    });
    let id = &unit["status"]["plan"]["id"];
    let annotations = json!({"reeve.dev/approve-plan": id});
    let patch = json!({"metadata": {"annotations": annotations}});
    world.edit(&reference, patch).await;
    world.settle().await;
}

#[tokio::test(start_paused = true)]
async fn on_request_an_effect_is_part_of_the_plan() {
    let (mut world, service, _) = stage("OnRequest", json!({"retire": true})).await;
    let shown = plan(&world).await;
    assert_eq!(effects(&shown), ["Apply service (service)"]);
    assert_eq!(shown["create"], 1, "the report");
    let ready = world.unit_condition("envoy", "alice", "Ready").await;
    assert_eq!(ready.reason, "AwaitingApproval");
    let expected =
        "1 to create, 0 to change, 0 to delete, 1 outside effects to make, 0 to take away";
    assert!(ready.message.starts_with(expected), "{ready:?}");
    assert_eq!(service.asked(), [""; 0]);

    // One word is enough for as long as it fails, and over a restart.
    *service.broken.lock() = true;
    approve(&world).await;
    world.wait(Duration::from_secs(5)).await;
    assert_eq!(action(&world).await["approved"], "Apply");
    world.stop().await;
    world.start();
    *service.broken.lock() = false;
    world.wait(Duration::from_secs(301)).await;
    let asked = service.asked();
    assert!(
        asked.len() > 1 && asked.iter().all(|one| one == "PUT alice"),
        "{asked:?}"
    );
    let done = action(&world).await;
    assert_eq!(
        (&done["state"], &done["approved"]),
        (&json!("InPlace"), &Value::Null)
    );

    // What follows from the fact is a plan of its own, of objects alone.
    let shown = plan(&world).await;
    assert_eq!((effects(&shown), &shown["change"]), (vec![], &json!(1)));
    approve(&world).await;
    assert_eq!(fact(&world).await, r#"{"answer":"made"}"#);
    assert_eq!(plan(&world).await, Value::Null);
    let ready = world.unit_condition("envoy", "alice", "Ready").await;
    assert_eq!(ready.status, "True", "{ready:?}");
}

#[tokio::test(start_paused = true)]
async fn on_request_a_look_needs_no_word_and_a_repair_does() {
    let (world, service, _) = stage("OnRequest", json!({"retire": true})).await;
    approve(&world).await;
    approve(&world).await;
    assert_eq!(service.asked(), ["PUT alice"]);
    world.wait(Duration::from_secs(601)).await;
    assert_eq!(service.asked(), ["GET alice"]);
    service.there.lock().clear();
    world.wait(Duration::from_secs(601)).await;
    assert_eq!(service.asked(), ["GET alice"], "it is not made again");
    let shown = plan(&world).await;
    assert_eq!(effects(&shown), ["Apply service (service)"]);
    let events = world.events("alice").await;
    let gone = events.iter().find(|event| event["reason"] == "EffectGone");
    let message = gone.unwrap()["message"].as_str().unwrap();
    assert!(
        message.ends_with("made again when a person has approved that"),
        "{message}"
    );
    world.wait(Duration::from_secs(1300)).await;
    assert_eq!(service.asked(), [""; 0], "what is gone is not looked for");
    approve(&world).await;
    assert_eq!(service.asked(), ["PUT alice"]);

    // So is the end of it.
    world.delete(&profile_reference("alice")).await;
    world.wait(Duration::from_secs(60)).await;
    assert_eq!(service.asked(), [""; 0]);
    assert_eq!(effects(&plan(&world).await), ["Retire service (service)"]);
    approve(&world).await;
    world.wait(Duration::from_secs(60)).await;
    assert_eq!(service.asked(), ["DELETE alice"]);
    assert_eq!(world.unit("envoy", "alice").await, None);
}

#[tokio::test(start_paused = true)]
async fn plan_only_makes_nothing_and_looks_for_nothing() {
    let (world, service, url) = stage("PlanOnly", json!({"retire": true})).await;
    let shown = plan(&world).await;
    assert_eq!(effects(&shown), ["Apply service (service)"]);
    // No word counts here.
    approve(&world).await;
    world.wait(Duration::from_secs(1300)).await;
    assert_eq!(service.asked(), [""; 0]);
    let ready = world.unit_condition("envoy", "alice", "Ready").await;
    assert_eq!(ready.reason, "PlanOnly", "{ready:?}");

    in_mode(&world, &url, "Auto").await;
    world.wait(Duration::from_secs(60)).await;
    assert_eq!(service.asked(), ["PUT alice"]);
    in_mode(&world, &url, "PlanOnly").await;
    world.wait(Duration::from_secs(1300)).await;
    world.delete(&profile_reference("alice")).await;
    world.wait(Duration::from_secs(60)).await;
    assert_eq!(service.asked(), [""; 0]);
    assert_eq!(effects(&plan(&world).await), ["Retire service (service)"]);
    in_mode(&world, &url, "Auto").await;
    world.wait(Duration::from_secs(60)).await;
    assert_eq!(service.asked(), ["DELETE alice"]);
    assert_eq!(world.unit("envoy", "alice").await, None);
}

/// A version that is only looked at makes nothing outside and looks for nothing there.
#[tokio::test(start_paused = true)]
async fn a_shadow_run_makes_no_effects() {
    let (world, service, url) = world_under(json!({"configMap": "notes"}), Some("Auto")).await;
    world.wait(Duration::from_secs(60)).await;
    assert_eq!(service.asked(), ["PUT alice"]);
    let policy = json!({"spec": {"upgrade": {"maxChanged": 0}}});
    world.edit(&plugin_reference("envoy"), policy).await;
    world.settle().await;

    // Its report says less, which is a change; and its effect is another request.
    let config = json!({"service": url, "revision": 2});
    let component = [("plugin.wasm", guest("envoy"))];
    world.deliver("envoy", &component, Some(config)).await;
    world.wait(Duration::from_secs(120)).await;
    let loaded = world.plugin_condition("envoy", "Loaded").await;
    assert_eq!(loaded.reason, "UpgradeHeld", "{loaded:?}");
    let plugin = world.get(&plugin_reference("envoy")).await.unwrap();
    let shadow = &plugin["status"]["shadow"];
    assert_eq!(
        (&shadow["changed"], &shadow["effects"]),
        (&json!(1), &json!(1)),
        "{shadow}"
    );
    assert_eq!(service.asked(), [""; 0]);
    assert_eq!(action(&world).await["state"], "InPlace");

    let policy = json!({"spec": {"upgrade": {"maxChanged": 1}}});
    world.edit(&plugin_reference("envoy"), policy).await;
    world.wait(Duration::from_secs(60)).await;
    let loaded = world.plugin_condition("envoy", "Loaded").await;
    assert_eq!(loaded.status, "True", "{loaded:?}");
    assert_eq!(service.asked(), ["PUT alice"]);
}
