//! Objects of a version that the next one does not declare: they cannot be
//! pruned, and are named until they are gone.

use reeve_it::{AGENT, World, condition, core_reference, guest, plugin_reference};
use serde_json::{Value, json};
use std::time::Duration;

fn quota() -> Value {
    core_reference("ResourceQuota", "alice", "from-chameleon")
}

fn written(kind: &str, scope: &Value, deed: &Value) -> Value {
    json!({
        "primary": "Profile.v1.kubeflow.org", "writes": kind, "scope": scope, "reconcile": deed,
    })
}

/// Writes a quota.
fn first() -> Value {
    let mut quota = quota();
    quota["spec"] = json!({"hard": {"pods": "1"}});
    let deed = json!({"do": "raw", "text": quota.to_string()});
    written(
        "ResourceQuota.v1",
        &json!("namespace-named-like-primary"),
        &deed,
    )
}

/// Writes a ConfigMap, and cannot write quotas.
fn second() -> Value {
    written(
        "ConfigMap.v1",
        &json!("namespace-named-like-primary"),
        &json!({"do": "echo"}),
    )
}

async fn deliver(world: &World, config: Value) {
    let component = [("plugin.wasm", guest("chameleon"))];
    world.deliver("chameleon", &component, Some(config)).await;
}

/// Delivers a version that asks for other things than the one before, and lets it.
async fn change(world: &World, config: Value) {
    deliver(world, config).await;
    world.settle().await;
    world.approve("chameleon").await;
    world.settle().await;
}

async fn world(config: Value) -> World {
    let world = World::started().await;
    world.allow("chameleon").await;
    deliver(&world, config).await;
    world.tenant("alice", &[]).await;
    world.settle().await;
    world
}

async fn check(world: &World, status: &str, reason: &str, texts: &[&str]) {
    let pruned = world.plugin_condition("chameleon", "Pruned").await;
    assert_eq!(
        (pruned.status.as_str(), pruned.reason.as_str()),
        (status, reason),
        "{pruned:?}"
    );
    for text in texts {
        assert!(
            pruned.message.contains(text),
            "`{text}` is not in {pruned:?}"
        );
    }
    let ready = world.plugin_condition("chameleon", "Ready").await;
    assert_eq!(ready.status, "True", "{ready:?}");
}

const LEFT: &[&str] = &[
    "ResourceQuota alice/from-chameleon",
    "kubectl get resourcequotas -A -l reeve.dev/plugin=chameleon",
];

#[tokio::test(start_paused = true)]
async fn objects_of_a_dropped_kind_are_named_until_they_are_gone() {
    let mut world = world(first()).await;
    check(&world, "True", "NothingLeft", &[]).await;
    change(&world, second()).await;
    let made = core_reference("ConfigMap", "alice", "chameleon-alice");
    assert!(world.get(&made).await.is_some());
    assert!(world.get(&quota()).await.is_some(), "it is not pruned");
    check(&world, "False", "ObjectsLeft", LEFT).await;

    // A restart does not forget it.
    world.stop().await;
    world.start();
    world.settle().await;
    check(&world, "False", "ObjectsLeft", LEFT).await;

    world.delete(&quota()).await;
    world.wait(Duration::from_secs(31)).await;
    check(&world, "True", "NothingLeft", &[]).await;
    let status = world.get(&plugin_reference("chameleon")).await.unwrap()["status"].clone();
    let writes = json!([{"apiVersion": "v1", "kind": "ConfigMap"}]);
    assert_eq!(status["writes"], writes);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_came_while_the_agent_was_away_tells_too() {
    let mut world = world(first()).await;
    world.stop().await;
    deliver(&world, second()).await;
    world.start();
    world.settle().await;
    world.approve("chameleon").await;
    world.settle().await;
    check(&world, "False", "ObjectsLeft", LEFT).await;
    // The version that declares the kind again takes them over.
    change(&world, first()).await;
    check(
        &world,
        "False",
        "ObjectsLeft",
        &["ConfigMap alice/chameleon-alice"],
    )
    .await;
    world
        .edit(&quota(), json!({"spec": {"hard": {"pods": "9"}}}))
        .await;
    world.settle().await;
    assert_eq!(
        world.get(&quota()).await.unwrap()["spec"]["hard"]["pods"],
        "1"
    );
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_dropped_tells_too() {
    let text = json!({"do": "echo"});
    let in_namespaces = |names: &[&str]| written("ConfigMap.v1", &json!(names), &text);
    let world = world(in_namespaces(&["alice", "default"])).await;
    check(&world, "True", "NothingLeft", &[]).await;
    deliver(&world, in_namespaces(&["default"])).await;
    world.settle().await;
    let texts = [
        "ConfigMap alice/chameleon-alice",
        "kubectl get configmaps -n alice -l reeve.dev/plugin=chameleon",
    ];
    check(&world, "False", "ObjectsLeft", &texts).await;
    // A wider scope sees, and prunes, it.
    change(
        &world,
        written(
            "ConfigMap.v1",
            &json!("cluster"),
            &json!({"do": "nothing", "meant": true}),
        ),
    )
    .await;
    check(&world, "True", "NothingLeft", &[]).await;
    let left = core_reference("ConfigMap", "alice", "chameleon-alice");
    assert_eq!(world.get(&left).await, None);
}

#[tokio::test(start_paused = true)]
async fn what_the_agent_may_not_see_is_not_said_to_be_gone() {
    let world = world(first()).await;
    let rule = |group: &str, resources: Value, verbs: Value| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let read = json!(["get", "list", "watch"]);
    let rules = json!([
        rule("", json!(["configmaps"]), read.clone()),
        rule("kubeflow.org", json!(["profiles"]), read),
        rule("", json!(["serviceaccounts"]), json!(["impersonate"])),
    ]);
    let agent = json!({"kind": "User", "name": AGENT, "apiGroup": "rbac.authorization.k8s.io"});
    world.role("chameleon-agent", &rules, &agent).await;
    change(&world, second()).await;
    let texts = ["resourcequotas", "forbidden", "the agent cannot see"];
    check(&world, "Unknown", "Forbidden", &texts).await;
    // Granted again, it sees what is there.
    world.allow("chameleon").await;
    world.wait(Duration::from_secs(31)).await;
    check(&world, "False", "ObjectsLeft", LEFT).await;
}

/// Labels alone make nothing the plugin's.
#[tokio::test(start_paused = true)]
async fn what_only_carries_our_labels_is_not_ours_to_name() {
    let world = world(second()).await;
    change(&world, first()).await;
    check(
        &world,
        "False",
        "ObjectsLeft",
        &["ConfigMap alice/chameleon-alice"],
    )
    .await;
    let ours = core_reference("ConfigMap", "alice", "chameleon-alice");
    let mut forged = core_reference("ConfigMap", "alice", "forged");
    let labels = world.get(&ours).await.unwrap()["metadata"]["labels"].clone();
    forged["metadata"]["labels"] = labels;
    world.apply(&forged).await;
    world.delete(&ours).await;
    world.wait(Duration::from_secs(31)).await;
    check(&world, "True", "NothingLeft", &[]).await;
}

/// A kind whose CRD is gone has no objects.
#[tokio::test(start_paused = true)]
async fn a_kind_that_is_no_longer_served_has_left_nothing() {
    let world = World::started().await;
    let crd = crate::widgets::crd("widgets");
    world.apply(&crd).await;
    world.allow("chameleon").await;
    let widget = crate::widgets::widget("alice", "made");
    let deed = json!({"do": "raw", "text": widget.to_string()});
    let scope = json!("namespace-named-like-primary");
    deliver(&world, written("Widget.v1.example.com", &scope, &deed)).await;
    world.tenant("alice", &[]).await;
    world.settle().await;
    change(&world, second()).await;
    check(&world, "False", "ObjectsLeft", &["Widget alice/made"]).await;
    world.delete(&crd).await;
    world.wait(Duration::from_secs(31)).await;
    check(&world, "True", "NothingLeft", &[]).await;
    let plugin = world.get(&plugin_reference("chameleon")).await.unwrap();
    assert_eq!(condition(&plugin, "Loaded").status, "True");
}

/// A version that works for another kind of primary sees what was made for the
/// first, and leaves it alone.
#[tokio::test(start_paused = true)]
async fn objects_of_primaries_of_another_kind_are_named() {
    let world = world(second()).await;
    let other = json!({
        "primary": "ConfigMap.v1", "writes": "ConfigMap.v1", "scope": "primary-namespace",
        "reconcile": {"do": "nothing", "meant": true},
    });
    change(&world, other).await;
    let texts = [
        "ConfigMap alice/chameleon-alice",
        "another kind than ConfigMap.v1",
    ];
    check(&world, "False", "ObjectsLeft", &texts).await;
    let made = core_reference("ConfigMap", "alice", "chameleon-alice");
    assert!(world.get(&made).await.is_some());
    world.delete(&made).await;
    world.settle().await;
    check(&world, "True", "NothingLeft", &[]).await;

    // The version before takes up what is its own.
    change(&world, second()).await;
    check(&world, "True", "NothingLeft", &[]).await;
    assert!(world.get(&made).await.is_some());
}
