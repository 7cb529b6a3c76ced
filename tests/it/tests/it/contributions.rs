//! Fields of objects that are somebody else's, and stay so.

use crate::told::{PLUGIN, annotated, config_map, install, journal, managers, tell, world};
use reeve_it::{AGENT, NAMESPACE, World, plugin_reference, profile_reference};
use serde_json::{Value, json};
use std::time::Duration;

/// A cluster with two tenants, and a ConfigMap that is nobody's plugin's.
async fn stage() -> World {
    let world = world("ConfigMap.v1", &json!({})).await;
    world.tenant("alice", &[]).await;
    world.tenant("bob", &[]).await;
    world.apply(&shared(&json!({"theirs": "x"}))).await;
    world.settle().await;
    world
}

fn shared(data: &Value) -> Value {
    config_map("alice", "shared", data)
}

fn contribution(data: &Value) -> Value {
    annotated(shared(data), "reeve.dev/apply", "Contribute")
}

async fn data(world: &World) -> Value {
    world.get(&shared(&json!({}))).await.unwrap()["data"].clone()
}

#[tokio::test(start_paused = true)]
async fn only_the_fields_are_ours_and_only_while_they_are_returned() {
    let world = stage().await;
    let before = world.get(&shared(&json!({}))).await.unwrap();
    tell(&world, "alice", &contribution(&json!({"ours": "1"}))).await;
    assert_eq!(data(&world).await, json!({"theirs": "x", "ours": "1"}));
    let live = world.get(&before).await.unwrap();
    for field in ["labels", "annotations", "ownerReferences"] {
        assert_eq!(live["metadata"].get(field), None, "{field}");
    }
    let owners = managers(&live);
    assert_eq!(owners.len(), 2, "{owners:?}");
    assert!(
        owners.iter().any(|owner| owner.starts_with("reeve/told:")),
        "{owners:?}"
    );
    assert_eq!(world.unit(PLUGIN, "alice").await, None);
    let plugin = world.get(&plugin_reference(PLUGIN)).await.unwrap();
    assert_eq!(plugin["status"]["contributesTo"], json!(["ConfigMap.v1"]));
    tell(&world, "alice", &contribution(&json!({"more": "2"}))).await;
    assert_eq!(data(&world).await, json!({"theirs": "x", "more": "2"}));
    // An edit is taken back, and written down.
    world
        .edit(&before, json!({"data": {"more": "edited"}}))
        .await;
    world.settle().await;
    assert_eq!(data(&world).await, json!({"theirs": "x", "more": "2"}));
    let entries = journal(&world).await;
    assert!(
        entries[0].2.contains(".data.more by \"kubectl-edit\""),
        "{entries:?}"
    );
    tell(&world, "alice", &Value::Null).await;
    assert_eq!(data(&world).await, json!({"theirs": "x"}));
    let after = world.get(&before).await.unwrap();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert!(
        !managers(&after)
            .iter()
            .any(|owner| owner.starts_with("reeve/"))
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_not_there_is_waited_for() {
    let world = stage().await;
    let theirs = config_map("alice", "later", &json!({"theirs": "x"}));
    let ours = annotated(
        config_map("alice", "later", &json!({"ours": "1"})),
        "reeve.dev/apply",
        "Contribute",
    );
    tell(&world, "alice", &ours).await;
    assert_eq!(world.get(&theirs).await, None, "it is not for us to make");
    let ready = world.unit_condition(PLUGIN, "alice", "Ready").await;
    assert_eq!(ready.reason, "Waiting", "{ready:?}");
    assert!(ready.message.contains("ConfigMap alice/later"), "{ready:?}");
    for _ in 0..2 {
        world.apply(&theirs).await;
        world.settle().await;
        let data = world.get(&theirs).await.unwrap()["data"].clone();
        assert_eq!(data, json!({"theirs": "x", "ours": "1"}));
        assert_eq!(world.unit(PLUGIN, "alice").await, None);
        world.delete(&theirs).await;
        world.settle().await;
        assert_eq!(world.get(&theirs).await, None, "its owner has deleted it");
    }
}

#[tokio::test(start_paused = true)]
async fn units_share_an_object_but_not_a_field() {
    let world = stage().await;
    tell(&world, "alice", &contribution(&json!({"a": "alice"}))).await;
    tell(&world, "bob", &contribution(&json!({"b": "bob"}))).await;
    let both = json!({"theirs": "x", "a": "alice", "b": "bob"});
    assert_eq!(data(&world).await, both);
    tell(&world, "bob", &contribution(&json!({"a": "bob"}))).await;
    assert_eq!(data(&world).await["a"], "alice");
    let ready = world.unit_condition(PLUGIN, "bob", "Ready").await;
    assert_eq!(ready.reason, "Conflict", "{ready:?}");
    for text in [
        "ConfigMap alice/shared: plugin told for Profile.kubeflow.org//bob wants fields that others",
        ".data.a by \"reeve/told:",
    ] {
        assert!(ready.message.contains(text), "{text}: {ready:?}");
    }
    assert_eq!(world.unit(PLUGIN, "alice").await, None);
    // The end of a unit gives its fields up, and the other gets them.
    world.delete(&profile_reference("alice")).await;
    world.wait(Duration::from_secs(600)).await;
    assert_eq!(data(&world).await["a"], "bob");
    world.delete(&profile_reference("bob")).await;
    world.settle().await;
    assert_eq!(data(&world).await, json!({"theirs": "x"}));
}

/// What an answer that may be a mistake does not delete, it does not take out of the
/// objects of others either.
#[tokio::test(start_paused = true)]
async fn an_empty_answer_that_is_not_meant_gives_nothing_up() {
    let world = stage().await;
    tell(&world, "alice", &contribution(&json!({"a": "alice"}))).await;
    let nothing = json!({"do": "nothing"}).to_string();
    let patch = json!({"metadata": {"annotations": {"chameleon.reeve.dev/do": nothing}}});
    world.edit(&profile_reference("alice"), patch).await;
    world.settle().await;
    assert_eq!(data(&world).await, json!({"theirs": "x", "a": "alice"}));
    let ready = world.unit_condition(PLUGIN, "alice", "Ready").await;
    assert_eq!(ready.reason, "DeletionHeld", "{ready:?}");
    assert!(
        ready.message.contains("only what it contributes"),
        "{ready:?}"
    );
    let token = ready.message.rsplit(' ').next().unwrap().trim_matches('`');
    let approve = json!({"metadata": {"annotations": {"reeve.dev/approve-deletion": token}}});
    world.edit(&plugin_reference(PLUGIN), approve).await;
    world.settle().await;
    assert_eq!(data(&world).await, json!({"theirs": "x"}));
}

#[tokio::test(start_paused = true)]
async fn a_restart_finds_all_contributions_again() {
    let mut world = stage().await;
    tell(&world, "alice", &contribution(&json!({"a": "alice"}))).await;
    tell(&world, "bob", &contribution(&json!({"b": "bob"}))).await;
    world.stop().await;
    world.writes();
    world.start();
    world.settle().await;
    let calls = world.server.requests();
    let writes: Vec<String> = calls
        .iter()
        .map(|(call, _)| format!("{call:?}"))
        .filter(|call| !call.contains("reviews") && !call.contains("Get"))
        .filter(|call| {
            ["Create", "Patch", "Update", "Delete"]
                .iter()
                .any(|v| call.contains(v))
        })
        .collect();
    assert_eq!(writes, Vec::<String>::new());
    // What is withdrawn, and who ends, while nobody looks.
    world.stop().await;
    let nothing = json!({"do": "nothing", "meant": true}).to_string();
    let patch = json!({"metadata": {"annotations": {"chameleon.reeve.dev/do": nothing}}});
    world.edit(&profile_reference("alice"), patch).await;
    world.delete(&profile_reference("bob")).await;
    world.start();
    world.settle().await;
    assert_eq!(data(&world).await, json!({"theirs": "x"}));
}

/// Of somebody's Deployment an item of a list, known by its key, and an item within that.
#[tokio::test(start_paused = true)]
async fn items_of_lists_are_shared_by_their_keys() {
    let mut world = World::new().await;
    let rules = json!([{"apiGroups": ["apps"], "resources": ["deployments"],
        "verbs": ["get", "list", "watch", "create", "patch", "delete"]}]);
    let account = json!({"kind": "ServiceAccount", "name": PLUGIN, "namespace": NAMESPACE});
    world.role("more-account", &rules, &account).await;
    let agent = json!({"kind": "User", "name": AGENT, "apiGroup": "rbac.authorization.k8s.io"});
    world.role("more-agent", &rules, &agent).await;
    install(&world, PLUGIN, "Deployment.v1.apps").await;
    world.start();
    world.tenant("alice", &[]).await;
    let deployment = |containers: Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "alice"},
            "spec": {"template": {"spec": {"containers": containers}}}})
    };
    let mut theirs = deployment(json!([
        {"name": "main", "image": "main:1", "env": [{"name": "THEIRS", "value": "1"}]},
        {"name": "side", "image": "side:1"},
    ]));
    theirs["spec"]["selector"] = json!({"matchLabels": {"app": "web"}});
    theirs["spec"]["template"]["metadata"] = json!({"labels": {"app": "web"}});
    world.apply(&theirs).await;
    let containers = async || {
        let live = world.get(&theirs).await.unwrap();
        let all = live["spec"]["template"]["spec"]["containers"].clone();
        let all = all.as_array().unwrap().iter();
        all.map(|one| (one["image"].clone(), one["env"].clone()))
            .collect::<Vec<_>>()
    };
    let before = containers().await;
    let env = json!([{"name": "OURS", "value": "2"}]);
    let ours = deployment(json!([{"name": "main", "env": env}]));
    let ours = annotated(ours, "reeve.dev/apply", "Contribute");
    tell(&world, "alice", &ours).await;
    world.wait(Duration::from_secs(5)).await;
    let both = json!([{"name": "THEIRS", "value": "1"}, {"name": "OURS", "value": "2"}]);
    let found = containers().await;
    assert_eq!(found[0], (json!("main:1"), both));
    assert_eq!(found[1], before[1]);
    // What its owner changes stays, and so does what is ours.
    let patch = &mut theirs.clone();
    patch["spec"]["template"]["spec"]["containers"][0]["image"] = json!("main:2");
    world.apply(patch).await;
    world.settle().await;
    let found = containers().await;
    assert_eq!(found[0].0, "main:2");
    assert_eq!(found[0].1.as_array().unwrap().len(), 2);
    tell(&world, "alice", &Value::Null).await;
    assert_eq!(
        containers().await,
        [(json!("main:2"), before[0].1.clone()), before[1].clone()]
    );
    assert_eq!(world.unit(PLUGIN, "alice").await, None);
}
