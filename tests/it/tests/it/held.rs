//! Versions that ask for more than the one before.

use reeve_it::{World, config_map_reference, guest, plugin_reference};
use serde_json::{Value, json};

const WIDE: &str = "cluster";
const NARROW: &str = "namespace-named-like-primary";

async fn deliver(world: &World, scope: &str) {
    deliver_as(world, scope, 1).await;
}

/// Delivers one of several versions that ask for the same.
async fn deliver_as(world: &World, scope: &str, count: u32) {
    let config = json!({
        "primary": "Profile.v1.kubeflow.org", "scope": scope,
        "reconcile": {"do": "objects", "count": count},
    });
    let component = vec![("plugin.wasm", guest("chameleon"))];
    world.deliver("chameleon", &component, Some(config)).await;
    world.settle().await;
}

async fn world(scope: &str) -> World {
    let world = World::started().await;
    world.allow("chameleon").await;
    deliver(&world, scope).await;
    world
}

/// Whether the newest version is held; if so, the token that approves it.
async fn held(world: &World) -> Option<String> {
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    if loaded.reason != "ApprovalRequired" {
        assert_eq!(loaded.status, "True", "{loaded:?}");
        return None;
    }
    for text in [
        "asks for more than the one before: write ConfigMap. ",
        "`reeve plugin approve chameleon --namespace reeve-system --dry-run`",
    ] {
        assert!(
            loaded.message.contains(text),
            "`{text}` is not in {loaded:?}"
        );
    }
    let (_, rest) = loaded
        .message
        .split_once("reeve.dev/approve-asks=")
        .unwrap();
    let token = rest.split(|c: char| !c.is_ascii_hexdigit()).next();
    token.map(str::to_owned)
}

async fn approve(world: &World, token: &str) {
    let annotations = json!({"metadata": {"annotations": {"reeve.dev/approve-asks": token}}});
    world
        .edit(&plugin_reference("chameleon"), annotations)
        .await;
    world.settle().await;
}

async fn asks(world: &World) -> Value {
    let plugin = world.get(&plugin_reference("chameleon")).await.unwrap();
    plugin["status"]["asks"].clone()
}

#[tokio::test(start_paused = true)]
async fn more_waits_for_a_person_and_less_does_not() {
    let world = world(NARROW).await;
    assert_eq!(
        held(&world).await,
        None,
        "the first is approved by its grant"
    );
    deliver(&world, WIDE).await;
    let token = held(&world).await.unwrap();
    let ready = world.plugin_condition("chameleon", "Ready").await;
    assert_eq!(ready.status, "True", "the old one goes on: {ready:?}");
    approve(&world, "another").await;
    assert_eq!(held(&world).await.as_ref(), Some(&token));
    approve(&world, &token).await;
    assert_eq!(held(&world).await, None);
    assert!(
        asks(&world)
            .await
            .as_array()
            .unwrap()
            .contains(&json!("write ConfigMap"))
    );
    deliver(&world, NARROW).await;
    assert_eq!(held(&world).await, None);
    assert!(
        !asks(&world)
            .await
            .as_array()
            .unwrap()
            .contains(&json!("write ConfigMap"))
    );
}

/// Neither a restart nor another ConfigMap of the same name is a way around.
#[tokio::test(start_paused = true)]
async fn what_was_approved_outlives_agent_and_config_map() {
    let mut world = world(NARROW).await;
    world.delete(&config_map_reference("chameleon")).await;
    world.settle().await;
    world.stop().await;
    world.start();
    world.settle().await;
    deliver(&world, WIDE).await;
    let token = held(&world).await.unwrap();
    let ready = world.plugin_condition("chameleon", "Ready").await;
    assert_eq!(ready.status, "False", "nothing runs: {ready:?}");
    approve(&world, &token).await;
    assert_eq!(held(&world).await, None);
    // The approval stays with the Plugin.
    world.delete(&config_map_reference("chameleon")).await;
    world.settle().await;
    deliver(&world, WIDE).await;
    assert_eq!(held(&world).await, None);
}

/// Whoever may deliver has one version approved and delivers another, which asks for the
/// same.
#[tokio::test(start_paused = true)]
async fn what_is_approved_is_one_version() {
    let world = world(NARROW).await;
    deliver_as(&world, WIDE, 2).await;
    let second = held(&world).await.unwrap();
    deliver_as(&world, WIDE, 3).await;
    let third = held(&world).await.unwrap();
    assert_ne!(second, third);
    approve(&world, &second).await;
    assert_eq!(held(&world).await.as_ref(), Some(&third));
    deliver_as(&world, WIDE, 2).await;
    assert_eq!(held(&world).await, None);
    // Which asks for no more than what runs.
    deliver_as(&world, WIDE, 3).await;
    assert_eq!(held(&world).await, None);
}

/// With a version that asks for less, what was approved before is over.
#[tokio::test(start_paused = true)]
async fn an_approval_ends_with_what_it_was_for() {
    let mut world = world(NARROW).await;
    deliver_as(&world, WIDE, 2).await;
    let second = held(&world).await.unwrap();
    approve(&world, &second).await;
    assert_eq!(held(&world).await, None);
    deliver_as(&world, WIDE, 3).await;
    assert_eq!(held(&world).await, None);
    // What runs is asked about by no restart.
    world.stop().await;
    world.start();
    world.settle().await;
    assert_eq!(held(&world).await, None);
    deliver(&world, NARROW).await;
    assert_eq!(held(&world).await, None);
    deliver_as(&world, WIDE, 3).await;
    let third = held(&world).await.unwrap();
    assert_ne!(second, third);
    deliver_as(&world, WIDE, 2).await;
    assert_eq!(held(&world).await, None, "that one was approved");
}
