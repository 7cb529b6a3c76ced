//! Versions of a plugin that follow one another.

use reeve_it::{
    World, config_map_reference, core_reference, guest, plugin, plugin_reference, profile_reference,
};
use serde_json::{Value, json};

fn config(deed: &Value) -> Option<Value> {
    Some(json!({
        "primary": "Profile.v1.kubeflow.org",
        "scope": "namespace-named-like-primary",
        "reconcile": deed,
    }))
}

fn made() -> Value {
    core_reference("ConfigMap", "alice", "chameleon-alice")
}

async fn world(deed: Value) -> World {
    let world = World::started().await;
    world.tenant("alice", &[]).await;
    let component = vec![("plugin.wasm", guest("chameleon"))];
    world.install("chameleon", &component, config(&deed)).await;
    world.settle().await;
    world
}

async fn deliver(world: &World, deed: Value) {
    let component = vec![("plugin.wasm", guest("chameleon"))];
    world.deliver("chameleon", &component, config(&deed)).await;
    world.settle().await;
}

#[tokio::test(start_paused = true)]
async fn new_configuration_takes_over_and_surplus_goes() {
    let world = world(json!({"do": "objects", "count": 3})).await;
    let like = core_reference("ConfigMap", "alice", "");
    let count = async || {
        let all = world.list(&like).await;
        all.iter()
            .filter(|o| {
                o["metadata"]["name"]
                    .as_str()
                    .unwrap()
                    .starts_with("chameleon")
            })
            .count()
    };
    assert_eq!(count().await, 3);
    deliver(&world, json!({"do": "objects", "count": 2})).await;
    assert_eq!(count().await, 2);
}

#[tokio::test(start_paused = true)]
async fn an_empty_answer_is_held_unless_it_is_meant() {
    let world = world(json!({"do": "echo"})).await;
    assert!(world.get(&made()).await.is_some());
    // By default such a version does not take over at all.
    crate::upgrades::set_policy(&world, json!({"shadow": "Report"})).await;
    deliver(&world, json!({"do": "nothing"})).await;
    assert!(world.get(&made()).await.is_some());
    let ready = world.unit_condition("chameleon", "alice", "Ready").await;
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str()),
        ("False", "DeletionHeld"),
        "{ready:?}"
    );
    deliver(&world, json!({"do": "nothing", "meant": true})).await;
    assert_eq!(world.get(&made()).await, None);
    assert_eq!(world.unit("chameleon", "alice").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_broken_version_leaves_the_old_one_running() {
    let world = world(json!({"do": "echo"})).await;
    let digest =
        world.get(&plugin_reference("chameleon")).await.unwrap()["status"]["digest"].clone();
    world
        .deliver("chameleon", &[("plugin.wasm", b"rubbish".to_vec())], None)
        .await;
    world.settle().await;
    let plugin = world.get(&plugin_reference("chameleon")).await.unwrap();
    assert_eq!(plugin["status"]["digest"], digest);
    assert_ne!(plugin["status"]["source"]["digest"], digest);
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(
        (loaded.status.as_str(), loaded.reason.as_str()),
        ("False", "NotAComponent")
    );
    let ready = world.plugin_condition("chameleon", "Ready").await;
    assert_eq!(ready.status, "True");
    assert!(ready.message.contains("still running"), "{ready:?}");
    // It does what it did.
    world.delete(&made()).await;
    world.settle().await;
    assert!(world.get(&made()).await.is_some());
    // And the next good one takes over.
    deliver(&world, json!({"do": "echo"})).await;
    assert_eq!(
        world.plugin_condition("chameleon", "Loaded").await.status,
        "True"
    );
}

#[tokio::test(start_paused = true)]
async fn without_its_config_map_a_plugin_stops_and_its_objects_stay() {
    let world = world(json!({"do": "echo"})).await;
    world.delete(&config_map_reference("chameleon")).await;
    world.settle().await;
    assert!(world.get(&made()).await.is_some());
    let ready = world.plugin_condition("chameleon", "Ready").await;
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str()),
        ("False", "ConfigMapAbsent")
    );
    world.delete(&made()).await;
    world.settle().await;
    assert_eq!(world.get(&made()).await, None, "nobody makes it again");
    deliver(&world, json!({"do": "echo"})).await;
    assert!(world.get(&made()).await.is_some());
    assert_eq!(
        world.plugin_condition("chameleon", "Ready").await.status,
        "True"
    );
}

#[tokio::test(start_paused = true)]
async fn another_component_takes_over_within_one_name() {
    let world = world(json!({"do": "echo"})).await;
    world
        .deliver("chameleon", &[("plugin.wasm", plugin("quotas"))], None)
        .await;
    world.settle().await;
    world.approve("chameleon").await;
    world.settle().await;
    let status = world.get(&plugin_reference("chameleon")).await.unwrap()["status"].clone();
    assert_eq!(status["component"], "quotas", "{status}");
    assert!(
        world
            .get(&core_reference("ResourceQuota", "alice", "quotas"))
            .await
            .is_some()
    );
}

#[tokio::test(start_paused = true)]
async fn policy_survives_a_reinstall() {
    let world = world(json!({"do": "echo"})).await;
    let reference = plugin_reference("chameleon");
    world
        .edit(
            &reference,
            json!({"spec": {"limits": {"memoryBytes": 4_194_304}}}),
        )
        .await;
    world.delete(&config_map_reference("chameleon")).await;
    world.settle().await;
    deliver(&world, json!({"do": "hoard"})).await;
    let ready = world.unit_condition("chameleon", "alice", "Ready").await;
    assert_eq!(ready.reason, "LimitExceeded", "{ready:?}");
    assert!(ready.message.contains("4 MiB"), "{ready:?}");
}

/// Units of the old kind of primary must not be taken for those of the new one.
#[tokio::test(start_paused = true)]
async fn another_kind_of_primary_takes_over() {
    let world = world(json!({"do": "echo"})).await;
    let before = world.get(&made()).await.unwrap();
    let config = json!({"primary": "ConfigMap.v1", "reconcile": {"do": "remark", "text": "new"}});
    let component = vec![("plugin.wasm", guest("chameleon"))];
    let mut note = core_reference("ConfigMap", "alice", "alice");
    note["data"] = json!({"a": "b"});
    world.apply(&note).await;
    world.deliver("chameleon", &component, Some(config)).await;
    world.settle().await;
    world.approve("chameleon").await;
    // A ConfigMap that it makes is a primary again; only the first step counts.
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let after = world.get(&made()).await.unwrap();
    assert_eq!(
        after["metadata"]["ownerReferences"],
        before["metadata"]["ownerReferences"]
    );
    let plugin = world.get(&plugin_reference("chameleon")).await.unwrap();
    assert_eq!(plugin["status"]["primaryKind"], "ConfigMap.v1", "{plugin}");
}

/// Whoever keeps the annotations of a ConfigMap does not keep it from being loaded.
#[tokio::test(start_paused = true)]
async fn an_edit_beside_the_contents_ends_no_load() {
    let world = World::started().await;
    world.tenant("alice", &[]).await;
    let fault = "latency: delay=3s, verb=create, resource=subjectaccessreviews";
    world.server.set_faults(vec![fault.parse().unwrap()]);
    let component = vec![("plugin.wasm", guest("chameleon"))];
    let config = config(&json!({"do": "echo"}));
    world.install("chameleon", &component, config).await;
    for round in 0..40 {
        let annotations = json!({"example.com/seen": round.to_string()});
        let patch = json!({"metadata": {"annotations": annotations}});
        world.edit(&config_map_reference("chameleon"), patch).await;
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    assert!(world.get(&made()).await.is_some());
}

/// A write of the old version that is late is not what stays.
#[tokio::test(start_paused = true)]
async fn a_late_write_under_another_version_of_the_kind_does_not_stay() {
    let world = World::started().await;
    let mut crd = reeve_test_support::samples::profile_crd();
    let versions = crd["spec"]["versions"].as_array_mut().unwrap();
    let mut second = versions[0].clone();
    second["name"] = json!("v9");
    second["storage"] = json!(false);
    versions.push(second);
    world.apply(&crd).await;
    let component = vec![("plugin.wasm", guest("chameleon"))];
    let version = |version: &str| {
        let mut config = config(&json!({"do": "echo"})).unwrap();
        config["primary"] = json!(format!("Profile.{version}.kubeflow.org"));
        Some(config)
    };
    let says = async |text: &str| {
        let made = world.get(&made()).await.unwrap();
        let primary = made["data"]["primary"].as_str().unwrap();
        assert!(primary.contains(text), "{made}");
    };
    world.tenant("alice", &[]).await;
    world.install("chameleon", &component, version("v1")).await;
    world.settle().await;
    says("kubeflow.org/v1").await;
    // The next write is on its way for 20 seconds.
    let slow = "latency: delay=20s, verb=patch, resource=configmaps, namespace=alice, count=1";
    world.server.set_faults(vec![slow.parse().unwrap()]);
    let label = json!({"metadata": {"labels": {"late": "yes"}}});
    world.edit(&profile_reference("alice"), label).await;
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    world.deliver("chameleon", &component, version("v9")).await;
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    let plugin = world.get(&plugin_reference("chameleon")).await.unwrap();
    assert_eq!(plugin["status"]["primaryKind"], "Profile.v9.kubeflow.org");
    says("kubeflow.org/v9").await;
    let before = world.get(&made()).await.unwrap();
    world.wait(std::time::Duration::from_secs(60)).await;
    // It was overwritten, and put right again.
    says("kubeflow.org/v9").await;
    let after = world.get(&made()).await.unwrap();
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    assert_ne!(version(&after), version(&before));
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
}
