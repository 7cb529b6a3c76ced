//! `Plugin` objects that this version of the agent cannot read, and requests that were
//! answered before it started.

use reeve_it::{World, core_reference, guest, plugin_reference};
use serde_json::{Value, json};
use std::time::Duration;

fn made(tenant: &str) -> Value {
    core_reference("ConfigMap", tenant, &format!("chameleon-{tenant}"))
}

async fn install(world: &World) {
    let config = json!({
        "primary": "Profile.v1.kubeflow.org",
        "scope": "namespace-named-like-primary",
    });
    let component = vec![("plugin.wasm", guest("chameleon"))];
    world.install("chameleon", &component, Some(config)).await;
}

/// Puts a CRD in place that knows more than this version of the agent.
async fn upgrade_crds(world: &World) {
    let name = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "plugins.reeve.dev"}});
    let mut crd = world.get(&name).await.unwrap();
    let versions = crd["spec"]["versions"].take();
    let mut versions = versions.as_array().unwrap().clone();
    for version in &mut versions {
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        version["schema"]["openAPIV3Schema"] = open;
    }
    world
        .edit(&name, json!({"spec": {"versions": versions}}))
        .await;
}

async fn set_mode(world: &World, mode: &str) {
    let patch = json!({"spec": {"mode": mode}});
    world.edit(&plugin_reference("chameleon"), patch).await;
    world.settle().await;
}

async fn says_unreadable(world: &World) {
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(loaded.reason, "PolicyInvalid", "{loaded:?}");
    let text = "spec.mode: unknown variant `Sometimes`";
    assert!(loaded.message.contains(text), "{loaded:?}");
}

/// It is made anew, under the default policy: what waited under the one before runs.
#[tokio::test(start_paused = true)]
async fn who_is_deleted_while_units_wait_lets_them_go_on() {
    for spec in [
        json!({"suspend": true}),
        json!({"mode": "PlanOnly"}),
        json!({"mode": "OnRequest"}),
    ] {
        let world = World::started().await;
        install(&world).await;
        world.settle().await;
        let plugin = plugin_reference("chameleon");
        world.edit(&plugin, json!({"spec": spec})).await;
        world.settle().await;
        world.tenant("alice", &[]).await;
        world.settle().await;
        assert_eq!(world.get(&made("alice")).await, None, "{spec}");
        world.delete(&plugin).await;
        world.settle().await;
        assert!(world.get(&made("alice")).await.is_some(), "{spec}");
        let ready = world.plugin_condition("chameleon", "Ready").await;
        assert_eq!(ready.status, "True", "{spec}: {ready:?}");
    }
}

/// A policy that was taken for none would write at once.
#[tokio::test(start_paused = true)]
async fn what_runs_goes_on_under_the_policy_before() {
    let world = World::started().await;
    upgrade_crds(&world).await;
    let mut plugin = plugin_reference("chameleon");
    plugin["spec"] = json!({"mode": "PlanOnly"});
    world.apply(&plugin).await;
    install(&world).await;
    world.tenant("alice", &[]).await;
    world.settle().await;
    assert_eq!(world.get(&made("alice")).await, None);
    set_mode(&world, "Sometimes").await;
    says_unreadable(&world).await;
    world.tenant("bob", &[]).await;
    world.wait(Duration::from_secs(60)).await;
    for tenant in ["alice", "bob"] {
        assert_eq!(world.get(&made(tenant)).await, None, "{tenant}");
    }
    set_mode(&world, "Auto").await;
    world.wait(Duration::from_secs(60)).await;
    for tenant in ["alice", "bob"] {
        assert!(world.get(&made(tenant)).await.is_some(), "{tenant}");
    }
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(loaded.status, "True", "{loaded:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_runs_under_a_policy_that_was_never_read() {
    let mut world = World::new().await;
    upgrade_crds(&world).await;
    let mut plugin = plugin_reference("chameleon");
    plugin["spec"] = json!({"mode": "Sometimes"});
    world.apply(&plugin).await;
    install(&world).await;
    world.tenant("alice", &[]).await;
    world.start();
    world.wait(Duration::from_secs(60)).await;
    says_unreadable(&world).await;
    assert_eq!(world.get(&made("alice")).await, None);
    set_mode(&world, "Auto").await;
    world.wait(Duration::from_secs(60)).await;
    assert!(world.get(&made("alice")).await.is_some());
}

/// Whichever of the agent's own lists comes first.
#[tokio::test(start_paused = true)]
async fn a_restart_carries_out_no_request_again() {
    for slow in ["configmaps", "plugins"] {
        let mut world = World::started().await;
        install(&world).await;
        world.tenant("alice", &[]).await;
        world.settle().await;
        let asks = json!({"reeve.dev/reconcile-at": "1", "reeve.dev/retry-at": "2"});
        let patch = json!({"metadata": {"annotations": asks}});
        world.edit(&plugin_reference("chameleon"), patch).await;
        world.wait(Duration::from_secs(30)).await;
        let before = world.get(&plugin_reference("chameleon")).await.unwrap();
        assert_eq!(before["status"]["lastHandledReconcileAt"], "1");
        assert_eq!(before["status"]["lastHandledRetryAt"], "2");
        world.stop().await;
        let fault = format!(
            "latency: delay=5s, verb=list, resource={slow}, namespace={}",
            reeve_it::NAMESPACE
        );
        world.server.set_faults(vec![fault.parse().unwrap()]);
        world.start();
        world.wait(Duration::from_secs(60)).await;
        let after = world.get(&plugin_reference("chameleon")).await.unwrap();
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        assert_eq!(version(&after), version(&before), "{slow}: {after}");
    }
}

/// Whoever waits for something that was changed compares generations.
#[tokio::test(start_paused = true)]
async fn conditions_say_of_which_generation_they_are() {
    let world = World::started().await;
    let mut plugin = plugin_reference("chameleon");
    plugin["spec"] = json!({});
    world.apply(&plugin).await;
    install(&world).await;
    let profile = reeve_test_support::samples::profile("alice");
    // Its namespace is not there, and so its unit is in trouble.
    world.apply(&profile).await;
    world.settle().await;
    let check = |object: &Value, generation: i64| {
        assert_eq!(object["metadata"]["generation"], generation, "{object}");
        let conditions = object["status"]["conditions"].as_array().unwrap();
        assert!(conditions.len() > 1, "{object}");
        for one in conditions {
            assert_eq!(one["observedGeneration"], generation, "{one}");
        }
    };
    let plugin = async || world.get(&plugin_reference("chameleon")).await;
    let before = plugin().await.unwrap();
    check(&before, 1);
    assert_eq!(before["status"]["observedGeneration"], 1);
    let unit = world.unit("chameleon", "alice").await.unwrap();
    check(&unit, unit["metadata"]["generation"].as_i64().unwrap());
    let other = json!({"spec": {"adoption": "Always"}});
    world.edit(&plugin_reference("chameleon"), other).await;
    world.wait(Duration::from_secs(60)).await;
    let after = plugin().await.unwrap();
    check(&after, 2);
    assert_eq!(after["status"]["observedGeneration"], 2);
}
