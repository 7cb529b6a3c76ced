//! Components in several ConfigMaps, of other plugins, and pinned ones.

use reeve_agent::delivery::{PackOptions, pack};
use reeve_core::Digest;
use reeve_it::{World, config_map_reference, core_reference, guest, plugin, plugin_reference};
use serde_json::{Value, json};

/// quotas, with a note at its end that makes it another component.
fn quotas(note: &[u8; 4]) -> Vec<u8> {
    let mut bytes = plugin("quotas");
    bytes.extend(b"\0\x05\x04");
    bytes.extend(note);
    bytes
}

fn packed(note: &[u8; 4]) -> Vec<Value> {
    let options = PackOptions {
        namespace: Some(reeve_it::NAMESPACE),
        part_bytes: 12_000,
        ..PackOptions::new("quotas")
    };
    let maps = pack(&quotas(note), &options).unwrap();
    assert!(maps.len() > 3, "{}", maps.len());
    maps.iter().map(|map| json!(map)).collect()
}

async fn running(world: &World, name: &str) -> Value {
    let plugin = world.get(&plugin_reference(name)).await.unwrap();
    plugin["status"]["digest"].clone()
}

async fn check(world: &World, kind: &str, status: &str, reason: &str, text: &str) {
    let found = world.plugin_condition("quotas", kind).await;
    assert_eq!(
        (found.status.as_str(), found.reason.as_str()),
        (status, reason),
        "{found:?}"
    );
    assert!(found.message.contains(text), "`{text}` is not in {found:?}");
}

#[tokio::test(start_paused = true)]
async fn a_version_in_parts_takes_effect_as_a_whole() {
    let world = World::started().await;
    world.allow("quotas").await;
    world.tenant("alice", &[]).await;
    for map in packed(b"one.") {
        world.apply(&map).await;
    }
    world.settle().await;
    let first = Digest::of(&quotas(b"one.")).to_string();
    assert_eq!(running(&world, "quotas").await, first);

    // Another version, written in the worst order.
    let (parts, own) = {
        let mut maps = packed(b"two.");
        let own = maps.pop().unwrap();
        (maps, own)
    };
    world.apply(&own).await;
    world.settle().await;
    check(&world, "Loaded", "False", "PartsMissing", "part 1, 2").await;
    check(&world, "Ready", "True", "Running", "still running").await;
    let (last, most) = parts.split_last().unwrap();
    for part in most {
        world.apply(part).await;
        world.settle().await;
        assert_eq!(running(&world, "quotas").await, first);
    }
    let missing = format!("part {} of {}", parts.len(), parts.len());
    check(&world, "Loaded", "False", "PartsMissing", &missing).await;
    world.apply(last).await;
    world.settle().await;
    check(&world, "Loaded", "True", "Running", "").await;
    let second = Digest::of(&quotas(b"two.")).to_string();
    assert_eq!(running(&world, "quotas").await, second);

    // A part that goes takes nothing with it.
    world.delete(last).await;
    world.settle().await;
    check(&world, "Loaded", "False", "PartsMissing", &missing).await;
    assert_eq!(running(&world, "quotas").await, second);
    let quota = core_reference("ResourceQuota", "alice", "quotas");
    world.delete(&quota).await;
    world.settle().await;
    assert!(world.get(&quota).await.is_some(), "it still works");
}

/// Nobody changes a part under a version that runs; the parts of the version before can go.
#[tokio::test(start_paused = true)]
async fn parts_are_immutable_and_those_of_before_can_go() {
    let world = World::started().await;
    world.allow("quotas").await;
    world.tenant("alice", &[]).await;
    for map in packed(b"one.").iter().chain(&packed(b"two.")) {
        world.apply(map).await;
    }
    world.settle().await;
    let second = Digest::of(&quotas(b"two.")).to_string();
    assert_eq!(running(&world, "quotas").await, second);
    let mut parts = packed(b"one.");
    let own = parts.pop().unwrap();
    assert!(
        own["immutable"].is_null(),
        "a version replaces the one before"
    );
    for part in &parts {
        assert_eq!(part["immutable"], json!(true));
        let name = part["metadata"]["name"].as_str().unwrap();
        let patch = json!({"binaryData": {"plugin.wasm.zst": "AAAA"}});
        let params = kube::api::PatchParams::default();
        let patch = kube::api::Patch::Merge(patch);
        let changed = world.api(part).patch(name, &params, &patch).await;
        let error = changed.unwrap_err().to_string();
        assert!(error.contains("immutable"), "{error}");
        world.delete(part).await;
    }
    world.settle().await;
    check(&world, "Loaded", "True", "Running", "").await;
    assert_eq!(running(&world, "quotas").await, second);
    // What ran before is delivered anew.
    for map in packed(b"one.") {
        world.apply(&map).await;
    }
    world.settle().await;
    let first = Digest::of(&quotas(b"one.")).to_string();
    assert_eq!(running(&world, "quotas").await, first);
}

/// One component, two plugins: each with its own configuration and account.
#[tokio::test(start_paused = true)]
async fn a_second_instance_follows_the_component() {
    let world = World::started().await;
    world.tenant("alice", &[]).await;
    let config = |deed: Value| {
        json!({
            "primary": "Profile.v1.kubeflow.org",
            "scope": "namespace-named-like-primary",
            "reconcile": deed,
        })
    };
    let mut component = guest("chameleon");
    let data = |bytes: &[u8]| vec![("plugin.wasm", bytes.to_vec())];
    let echo = config(json!({"do": "echo"}));
    world
        .install("first", &data(&component), Some(echo.clone()))
        .await;
    world.allow("second").await;
    let objects = config(json!({"do": "objects", "count": 1}));
    let mut second = config_map_reference("second");
    second["metadata"]["labels"] = json!({"reeve.dev/plugin": "true"});
    second["data"] = json!({"component": "first", "config.yaml": objects.to_string()});
    world.apply(&second).await;
    world.settle().await;
    for name in ["chameleon-alice", "chameleon-alice-0"] {
        let made = core_reference("ConfigMap", "alice", name);
        assert!(world.get(&made).await.is_some(), "{name}");
    }
    let digest = Digest::of(&component).to_string();
    assert_eq!(running(&world, "second").await, digest);

    component.extend(b"\0\x05\x04note");
    world.deliver("first", &data(&component), Some(echo)).await;
    world.settle().await;
    let digest = Digest::of(&component).to_string();
    for name in ["first", "second"] {
        assert_eq!(running(&world, name).await, digest, "{name}");
    }

    // Without the first there is nothing to load; what runs goes on.
    world.delete(&config_map_reference("first")).await;
    world.settle().await;
    let loaded = world.plugin_condition("second", "Loaded").await;
    assert_eq!(loaded.reason, "ComponentAbsent", "{loaded:?}");
    assert!(
        loaded.message.contains("names first, which is no plugin"),
        "{loaded:?}"
    );
    assert_eq!(running(&world, "second").await, digest);
}

#[tokio::test(start_paused = true)]
async fn a_pinned_digest_is_the_only_one_that_loads() {
    let world = World::started().await;
    let deliver = async |note: &[u8; 4]| {
        let data = vec![("plugin.wasm", quotas(note))];
        world.deliver("quotas", &data, None).await;
        world.settle().await;
    };
    let pin = async |digest: &str| {
        let mut plugin = plugin_reference("quotas");
        plugin["spec"] = json!({"digest": digest});
        world.apply(&plugin).await;
        world.settle().await;
    };
    let digest = |note: &[u8; 4]| Digest::of(&quotas(note)).to_string();
    world.allow("quotas").await;
    pin(&digest(b"good")).await;
    deliver(b"evil").await;
    check(&world, "Ready", "False", "DigestMismatch", &digest(b"evil")).await;
    deliver(b"good").await;
    check(&world, "Ready", "True", "Running", "").await;
    // Another that comes later does not take its place.
    deliver(b"evil").await;
    check(
        &world,
        "Loaded",
        "False",
        "DigestMismatch",
        "spec.digest says",
    )
    .await;
    assert_eq!(running(&world, "quotas").await, digest(b"good"));
    pin(&digest(b"evil")).await;
    check(&world, "Loaded", "True", "Running", "").await;
    assert_eq!(running(&world, "quotas").await, digest(b"evil"));
}
