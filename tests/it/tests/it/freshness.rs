//! No unit runs on what was true before its own last write, also when its watches have
//! fallen silent.

use crate::told::{PLUGIN, annotated, config_map, tell, world};
use reeve_it::{World, core_reference, guest, profile_reference};
use reeve_sim::Verb;
use serde_json::{Value, json};
use std::time::Duration;

fn silence(world: &World) {
    let fault = "silent-watch: resource=configmaps".parse().unwrap();
    world.server.set_faults(vec![fault]);
}

async fn again(world: &World, count: u32) {
    let patch = json!({"metadata": {"labels": {"count": count.to_string()}}});
    world.edit(&profile_reference("alice"), patch).await;
    world.wait(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_plugin_sees_what_it_has_written() {
    let world = World::started().await;
    let config = json!({
        "primary": "Profile.v1.kubeflow.org",
        "scope": "namespace-named-like-primary",
        "reads": ["ConfigMap.v1"],
        "reconcile": {"do": "list-keys", "kind": "ConfigMap.v1", "namespace": "alice"},
    });
    let component = vec![("plugin.wasm", guest("chameleon"))];
    world.install("chameleon", &component, Some(config)).await;
    world.wait(Duration::from_secs(5)).await;
    silence(&world);
    world.tenant("alice", &[]).await;
    world.wait(Duration::from_secs(5)).await;
    // It lists its own object, of which no watch has told.
    let made = core_reference("ConfigMap", "alice", "chameleon-alice");
    let made = world.get(&made).await.unwrap();
    assert!(
        made["data"].to_string().contains("chameleon-alice"),
        "{made}"
    );
}

/// How often an object of this resource was read by its name.
fn gets(world: &World, resource: &str) -> u64 {
    world.server.requests().count(Verb::Get, resource)
}

/// No watch has told that somebody has marked the object, or taken its labels: one look
/// at it is enough.
#[tokio::test(start_paused = true)]
async fn what_others_have_done_to_the_withdrawn_is_looked_at_once() {
    for marked in [true, false] {
        let world = world("ConfigMap.v1", &json!({})).await;
        world.tenant("alice", &[]).await;
        let mut object = config_map("alice", "c", &json!({"a": "1"}));
        object["metadata"]["finalizers"] = json!(["example.com/hold"]);
        tell(&world, "alice", &object).await;
        silence(&world);
        match marked {
            true => world.delete(&object).await,
            false => {
                let patch = json!({"metadata": {"labels": null}});
                world.edit(&object, patch).await;
            }
        }
        world.server.reset_requests();
        tell(&world, "alice", &Value::Null).await;
        assert_eq!(gets(&world, "configmaps"), 1, "{marked}");
        let deleted = world.server.requests().count(Verb::Delete, "configmaps");
        assert_eq!(deleted, 0, "{marked}");
        for count in 0..3 {
            again(&world, count).await;
        }
        assert_eq!(gets(&world, "configmaps"), 1, "{marked}");
        let unit = world.unit(PLUGIN, "alice").await;
        assert_eq!(unit, None, "{marked}");
    }
}

/// Nor has one told that somebody has taken over what the unit had contributed.
#[tokio::test(start_paused = true)]
async fn what_others_have_taken_is_given_up_once() {
    let world = world("ConfigMap.v1", &json!({})).await;
    world.tenant("alice", &[]).await;
    let shared = config_map("alice", "shared", &json!({"theirs": "1"}));
    world.apply(&shared).await;
    let mine = config_map("alice", "shared", &json!({"mine": "1"}));
    let mine = annotated(mine, "reeve.dev/apply", "Contribute");
    tell(&world, "alice", &mine).await;
    world.wait(Duration::from_secs(5)).await;
    assert_eq!(world.get(&shared).await.unwrap()["data"]["mine"], "1");
    silence(&world);
    world
        .edit(&shared, json!({"metadata": {"managedFields": [{}]}}))
        .await;
    world.server.reset_requests();
    tell(&world, "alice", &Value::Null).await;
    assert_eq!(gets(&world, "configmaps"), 1);
    assert_eq!(world.unit(PLUGIN, "alice").await, None);
}

#[tokio::test(start_paused = true)]
async fn what_is_only_marked_is_not_deleted_again() {
    let world = world("ConfigMap.v1", &json!({})).await;
    world.tenant("alice", &[]).await;
    let mut object = config_map("alice", "c", &json!({"a": "1"}));
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    tell(&world, "alice", &object).await;
    silence(&world);
    tell(&world, "alice", &Value::Null).await;
    world.wait(Duration::from_secs(5)).await;
    let live = world.get(&object).await.unwrap();
    assert!(live["metadata"]["deletionTimestamp"].is_string());
    world.server.reset_requests();
    for count in 0..3 {
        again(&world, count).await;
    }
    let requests = world.server.requests();
    let deletions = requests
        .iter()
        .filter(|(call, _)| format!("{call:?}").contains("Delete"));
    assert_eq!(deletions.count(), 0);
    // Wanted again, it is waited for, and made when it is gone.
    object["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("finalizers");
    tell(&world, "alice", &object).await;
    let ready = world.unit_condition(PLUGIN, "alice", "Ready").await;
    assert_eq!(ready.reason, "Waiting", "{ready:?}");
    world.server.set_faults(Vec::new());
    world
        .edit(&object, json!({"metadata": {"finalizers": null}}))
        .await;
    world.server.faults().drop_watches();
    world.wait(Duration::from_secs(60)).await;
    let live = world.get(&object).await.unwrap();
    assert_eq!(live["metadata"].get("deletionTimestamp"), None);
}
