//! Ways out of what a plugin was given, each closed by the agent itself: the
//! account has more rights than the manifest, so that RBAC does not refuse. (That
//! RBAC and the admission policy refuse without the agent is shown against a real
//! API server, with the chart.)

use reeve_core::grant::{ACCOUNT_ANNOTATION, Subject, agent_base};
use reeve_it::{NAMESPACE, World, config_map_reference, core_reference, guest, plugin_reference};
use serde_json::{Value, json};

fn component() -> Vec<(&'static str, Vec<u8>)> {
    vec![("plugin.wasm", guest("chameleon"))]
}

/// A plugin that may write everywhere and makes an object in the agent's namespace.
#[tokio::test(start_paused = true)]
async fn the_agents_namespace_is_no_place_for_objects() {
    let world = World::started().await;
    world.tenant("alice", &[]).await;
    let config = json!({
        "primary": "Profile.v1.kubeflow.org",
        "scope": "cluster",
        "reconcile": {"do": "foreign-namespace", "namespace": NAMESPACE},
    });
    // As this name, its own label would make a plugin of what it writes.
    world.install("true", &component(), Some(config)).await;
    world.settle().await;
    let made = config_map_reference("chameleon-alice");
    assert_eq!(world.get(&made).await, None);
    let ready = world.unit_condition("true", "alice", "Ready").await;
    assert_eq!(ready.reason, "OutcomeRefused", "{ready:?}");
    assert!(ready.message.contains("is the agent's own"), "{ready:?}");
}

#[tokio::test(start_paused = true)]
async fn the_agents_namespace_cannot_be_declared() {
    let world = World::started().await;
    let config = json!({"scope": [NAMESPACE]});
    world.install("chameleon", &component(), Some(config)).await;
    world.settle().await;
    let ready = world.plugin_condition("chameleon", "Ready").await;
    assert_eq!(ready.reason, "ManifestInvalid", "{ready:?}");
    assert!(ready.message.contains("is the agent's own"), "{ready:?}");
}

/// Even an account that agrees is not used when it is the agent's.
#[tokio::test(start_paused = true)]
async fn the_agents_account_is_nobodys() {
    let user = format!("system:serviceaccount:{NAMESPACE}:reeve");
    let mut world = World::new().await;
    for object in agent_base(NAMESPACE, Subject::ServiceAccount("reeve")) {
        world.apply(&object).await;
    }
    world
        .apply(&json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {
                "name": "reeve", "namespace": NAMESPACE,
                "annotations": {ACCOUNT_ANNOTATION: "chameleon"},
            },
        }))
        .await;
    world.start_as(&user);
    let mut policy = plugin_reference("chameleon");
    policy["spec"] = json!({"serviceAccountName": "reeve"});
    world.apply(&policy).await;
    let config = json!({"primary": "Profile.v1.kubeflow.org", "scope": "cluster"});
    world.deliver("chameleon", &component(), Some(config)).await;
    world.settle().await;
    let granted = world.plugin_condition("chameleon", "Granted").await;
    assert_eq!(granted.reason, "ServiceAccountUnusable", "{granted:?}");
    assert!(
        granted.message.contains("is the agent's own"),
        "{granted:?}"
    );
}

/// A primary that names the namespace of others, in its own name, leads nowhere
/// but there; what it says elsewhere is not a place.
#[tokio::test(start_paused = true)]
async fn a_primary_cannot_send_its_plugin_to_another_namespace() {
    let world = World::started().await;
    let config = json!({
        "primary": "Profile.v1.kubeflow.org",
        "scope": "namespace-named-like-primary",
    });
    world.install("chameleon", &component(), Some(config)).await;
    for name in ["alice", "victim"] {
        world
            .apply(&reeve_test_support::samples::namespace(name))
            .await;
    }
    let deed = json!({"do": "foreign-namespace", "namespace": "victim"}).to_string();
    let mut profile: Value = reeve_test_support::samples::profile("alice");
    profile["metadata"]["annotations"] = json!({
        "chameleon.reeve.dev/do": deed,
        "reeve.dev/primary": "Profile.v1.kubeflow.org/victim",
    });
    world.apply(&profile).await;
    world.settle().await;
    let like = core_reference("ConfigMap", "victim", "");
    let found = world.list(&like).await;
    let ours = |object: &&Value| object["metadata"]["labels"]["reeve.dev/plugin"].is_string();
    assert_eq!(found.iter().find(ours), None);
    let ready = world.unit_condition("chameleon", "alice", "Ready").await;
    assert_eq!(ready.reason, "OutcomeRefused", "{ready:?}");
}
