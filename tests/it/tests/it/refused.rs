//! That a plugin was refused is an Event of its `Plugin`, told once.

use reeve_it::{NAMESPACE, World, guest, plugin_reference};
use serde_json::json;
use std::time::Duration;

/// Reasons of the Events on a Plugin.
async fn reasons(world: &World, plugin: &str) -> Vec<String> {
    let like = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "", "namespace": NAMESPACE},
    });
    let mut events = world.list(&like).await;
    events.retain(|event| {
        let about = &event["involvedObject"];
        about["kind"] == "Plugin" && about["name"] == plugin
    });
    let reasons = events.iter().map(|event| event["reason"].as_str().unwrap());
    reasons.map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_is_refused_is_told_once() {
    let world = World::started().await;
    let garbage = [("plugin.wasm", b"no component".to_vec())];
    world.install("bad", &garbage, None).await;
    // This one has no account.
    let component = [("plugin.wasm", guest("chameleon"))];
    let config = json!({
        "primary": "Profile.v1.kubeflow.org", "scope": "namespace-named-like-primary",
        "reconcile": {"do": "echo"},
    });
    world.deliver("alone", &component, Some(config)).await;
    world.settle().await;
    assert_eq!(reasons(&world, "bad").await, ["NotAComponent"]);
    assert_eq!(reasons(&world, "alone").await, ["ServiceAccountUnusable"]);
    world.wait(Duration::from_secs(3600)).await;
    assert_eq!(reasons(&world, "bad").await, ["NotAComponent"]);
    assert_eq!(reasons(&world, "alone").await, ["ServiceAccountUnusable"]);
    // What works is no news.
    world.allow("alone").await;
    world.wait(Duration::from_secs(60)).await;
    let ready = world.plugin_condition("alone", "Ready").await;
    assert_eq!(ready.status, "True", "{ready:?}");
    assert_eq!(reasons(&world, "alone").await, ["ServiceAccountUnusable"]);
    assert!(world.get(&plugin_reference("alone")).await.is_some());
}
