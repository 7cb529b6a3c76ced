//! Objects whose namespace is not there yet.

use crate::told::{PLUGIN, annotated, config_map, install, tell};
use reeve_it::{AGENT, NAMESPACE, World, core_reference};
use serde_json::{Value, json};
use std::time::Duration;

fn namespace() -> Value {
    reeve_test_support::samples::namespace("later")
}

/// A world whose plugin may write these kinds, and Namespaces besides.
async fn world(writes: &str) -> World {
    let mut world = World::new().await;
    let rules = json!([{"apiGroups": [""], "resources": ["namespaces"],
        "verbs": ["get", "list", "watch", "create", "patch", "delete"]}]);
    let account = json!({"kind": "ServiceAccount", "name": PLUGIN, "namespace": NAMESPACE});
    world.role("more-account", &rules, &account).await;
    let agent = json!({"kind": "User", "name": AGENT, "apiGroup": "rbac.authorization.k8s.io"});
    world.role("more-agent", &rules, &agent).await;
    install(&world, PLUGIN, writes).await;
    world.start();
    world.tenant("alice", &[]).await;
    world.settle().await;
    world
}

fn object() -> Value {
    config_map("later", "c", &json!({"a": "1"}))
}

fn with_namespace() -> Value {
    annotated(object(), "reeve.dev/sync-options", "CreateNamespace=true")
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_waited_for_without_counting_failures() {
    let world = world("ConfigMap.v1").await;
    tell(&world, "alice", &object()).await;
    world.wait(Duration::from_secs(120)).await;
    let unit = world.unit(PLUGIN, "alice").await.unwrap();
    assert_eq!(unit["status"]["failures"], 0, "{unit}");
    let ready = world.unit_condition(PLUGIN, "alice", "Ready").await;
    assert_eq!(ready.reason, "NamespaceAbsent", "{ready:?}");
    world.apply(&namespace()).await;
    world.wait(Duration::from_secs(11)).await;
    assert!(world.get(&object()).await.is_some());
    assert_eq!(world.unit(PLUGIN, "alice").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_made_where_that_is_asked_for() {
    let world = world("ConfigMap.v1,Namespace.v1").await;
    tell(&world, "alice", &with_namespace()).await;
    assert!(world.get(&object()).await.is_some());
    assert_eq!(world.unit(PLUGIN, "alice").await, None);
    // It is nobody's, and stays when the object goes.
    let made = world.get(&namespace()).await.unwrap();
    let labels = made["metadata"]["labels"].to_string();
    assert!(!labels.contains("reeve.dev"), "{labels}");
    tell(&world, "alice", &Value::Null).await;
    assert_eq!(
        world.get(&core_reference("ConfigMap", "later", "c")).await,
        None
    );
    assert!(world.get(&namespace()).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn the_manifest_must_say_that_namespaces_are_written() {
    let world = world("ConfigMap.v1").await;
    tell(&world, "alice", &with_namespace()).await;
    assert_eq!(world.get(&namespace()).await, None);
    let ready = world.unit_condition(PLUGIN, "alice", "Ready").await;
    assert_eq!(ready.reason, "OutcomeRefused", "{ready:?}");
    assert!(
        ready.message.contains("declares to write Namespaces"),
        "{ready:?}"
    );
}

/// A plugin that may see Namespaces makes none, whatever its account may do.
#[tokio::test(start_paused = true)]
async fn no_namespace_is_made_that_is_only_read() {
    let world = world("ConfigMap.v1").await;
    let config = json!({
        "primary": "Profile.v1.kubeflow.org", "writes": ["ConfigMap.v1"], "scope": "cluster",
        "reads": ["Namespace.v1"], "reconcile": {"do": "nothing", "meant": true},
    });
    let component = vec![("plugin.wasm", reeve_it::guest("chameleon"))];
    world.deliver(PLUGIN, &component, Some(config)).await;
    world.settle().await;
    let loaded = world.plugin_condition(PLUGIN, "Loaded").await;
    if loaded.reason == "ApprovalRequired" {
        world.approve(PLUGIN).await;
        world.settle().await;
    }
    let loaded = world.plugin_condition(PLUGIN, "Loaded").await;
    assert_eq!(loaded.status, "True", "{loaded:?}");
    tell(&world, "alice", &with_namespace()).await;
    world.wait(Duration::from_secs(60)).await;
    assert_eq!(world.get(&namespace()).await, None);
    let ready = world.unit_condition(PLUGIN, "alice", "Ready").await;
    let text = "takes a manifest that declares to write Namespaces";
    assert!(ready.message.contains(text), "{ready:?}");
}
