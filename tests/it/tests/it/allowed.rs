//! What an operator lets plugins have: wildcards, and what their components may cost.

use crate::told::plugin_object;
use crate::widgets::{crd, widget};
use reeve_agent::LimitBounds;
use reeve_it::{World, config_map_reference, guest, plugin_reference};
use serde_json::{Value, json};

/// A plugin that makes a Widget for each tenant, and declares every kind of its group.
async fn deliver(world: &World, group: &str) {
    let config = json!({
        "primary": "Profile.v1.kubeflow.org", "scope": "cluster",
        "reads": [group], "writes": [group],
        "reconcile": {"do": "raw", "text": widget("alice", "made").to_string()},
    });
    let component = vec![("plugin.wasm", guest("chameleon"))];
    world.deliver("chameleon", &component, Some(config)).await;
}

async fn world() -> World {
    let world = World::new().await;
    world.apply(&crd("widgets")).await;
    world.tenant("alice", &[]).await;
    world.allow("chameleon").await;
    world
}

#[tokio::test(start_paused = true)]
async fn wildcards_are_refused_unless_the_operator_allows_them() {
    let mut world = world().await;
    world.start();
    deliver(&world, "*.v1.example.com").await;
    world.settle().await;
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(loaded.reason, "ManifestInvalid", "{loaded:?}");
    assert!(
        loaded.message.contains("reads[0].kind: `*`")
            && loaded.message.contains("--allow-wildcards"),
        "{loaded:?}"
    );
    assert_eq!(world.get(&widget("alice", "made")).await, None);

    world.stop().await;
    let mut limits = LimitBounds::default();
    limits.allow_wildcards();
    world.start_within(limits);
    world.settle().await;
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(loaded.status, "True", "{loaded:?}");
    assert!(world.get(&widget("alice", "made")).await.is_some());
    // Nothing after that knows of wildcards.
    let plugin = world.get(&plugin_reference("chameleon")).await.unwrap();
    let asks = plugin["status"]["asks"].to_string();
    assert!(
        asks.contains("write Widget.example.com") && !asks.contains('*'),
        "{asks}"
    );

    // What nobody serves is no kind at all.
    deliver(&world, "*.v1.nobody.example.com").await;
    world.settle().await;
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(loaded.reason, "KindNotServed", "{loaded:?}");
    assert!(loaded.message.contains("nobody.example.com"), "{loaded:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_component_may_cost_is_for_its_plugin_to_say() {
    let mut world = world().await;
    world.start();
    deliver(&world, "Widget.v1.example.com").await;
    world.settle().await;
    let loaded = async |world: &World, limits: Value| {
        let policy = plugin_object("chameleon", &json!({"limits": limits}));
        world.apply(&policy).await;
        world.settle().await;
        world.plugin_condition("chameleon", "Loaded").await
    };
    for (limit, value, reason, says) in [
        ("definitions", 10, "TooLarge", "more than 10 types"),
        ("imports", 1, "TooLarge", "more than 1 imports"),
        ("componentBytes", 2000, "TooLarge", "more than 2000 bytes"),
        (
            "compileMilliseconds",
            60_001,
            "PolicyInvalid",
            "the most that the operator allows",
        ),
    ] {
        let mut limits = json!({});
        limits[limit] = json!(value);
        let refused = loaded(&world, limits).await;
        assert_eq!(refused.reason, reason, "{refused:?}");
        let named = format!("spec.limits.{limit}");
        assert!(
            refused.message.contains(says) && refused.message.contains(&named),
            "{refused:?}"
        );
        // What ran before goes on.
        let ready = world.plugin_condition("chameleon", "Ready").await;
        assert_eq!(ready.status, "True", "{ready:?}");
    }
    let fine = loaded(
        &world,
        json!({"definitions": 50_000, "compileMilliseconds": 50_000}),
    )
    .await;
    assert_eq!(fine.status, "True", "{fine:?}");

    // As much as is allowed, and no more.
    world.stop().await;
    let mut limits = LimitBounds::default();
    limits.set("compileMilliseconds", 90_000).unwrap();
    limits.set("definitions", 20).unwrap();
    world.start_within(limits);
    let fine = loaded(&world, json!({"compileMilliseconds": 90_000})).await;
    assert_eq!(
        fine.reason, "TooLarge",
        "what is allowed is the default too: {fine:?}"
    );
    world.delete(&config_map_reference("chameleon")).await;
}
