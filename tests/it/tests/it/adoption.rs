//! Objects that were there before the plugin wanted them.

use crate::told::{self, PLUGIN, annotated, config_map, journal, managers, tell, world};
use kube::api::PostParams;
use reeve_it::World;
use reeve_sim::Verb;
use serde_json::{Value, json};

/// Creates an object by a manager that does not apply.
async fn create(world: &World, object: &Value, manager: &str) {
    let params = PostParams {
        field_manager: Some(manager.to_owned()),
        ..PostParams::default()
    };
    let body = serde_json::from_value(object.clone()).unwrap();
    world.api(object).create(&params, &body).await.unwrap();
}

async fn tenant(world: &World, name: &str) {
    world.tenant(name, &[]).await;
    world.settle().await;
}

/// What becomes of an object that somebody made, under a policy.
async fn check(policy: Value, theirs: Value, manager: &str, data: &Value, says: &str) {
    let world = world("ConfigMap.v1", &policy).await;
    tenant(&world, "alice").await;
    create(&world, &theirs, manager).await;
    let before = world.get(&theirs).await.unwrap();
    let ours = config_map("alice", "c", &json!({"a": "ours"}));
    tell(&world, "alice", &ours).await;
    let after = world.get(&ours).await.unwrap();
    assert_eq!(after["data"], *data, "{policy}");
    let ready = world.unit_condition(PLUGIN, "alice", "Ready").await;
    if says.is_empty() {
        assert_eq!(world.unit(PLUGIN, "alice").await, None, "{ready:?}");
        assert_eq!(after["metadata"]["labels"]["reeve.dev/plugin"], PLUGIN);
        let entries = journal(&world).await;
        assert!(entries[0].2.contains("taken over"), "{entries:?}");
    } else {
        assert_eq!(ready.reason, "Conflict", "{ready:?}");
        assert!(ready.message.contains(says), "{says}: {ready:?}");
        // Not even for a moment: a release that fails would leave our marks for good.
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        assert_eq!(version(&after), version(&before), "it was never written");
        assert_eq!(after["metadata"].get("labels"), None, "no mark is left");
        assert_eq!(managers(&after), [format!("{manager} Update")]);
        assert_eq!(journal(&world).await, []);
    }
}

fn theirs() -> Value {
    config_map("alice", "c", &json!({"a": "theirs", "b": "theirs"}))
}

#[tokio::test(start_paused = true)]
async fn without_a_policy_it_is_left_alone() {
    let says = "ConfigMap alice/c exists already and is not this unit's: \"kubectl-create\" owns \
                fields of it; it is left alone. Set spec.adoption of Plugin told to IfUnowned or \
                Always (it is Never)";
    check(
        json!({}),
        theirs(),
        "kubectl-create",
        &theirs()["data"],
        says,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_unowned_is_taken_over_where_the_policy_says_so() {
    let policy = json!({"adoption": "IfUnowned"});
    let data = json!({"a": "ours", "b": "theirs"});
    check(policy, theirs(), "kubectl-create", &data, "").await;
}

/// So is what another object controls, where it is a listed manager that said so: it is that
/// object's no longer, and nobody's garbage when that one goes.
#[tokio::test(start_paused = true)]
async fn an_owner_goes_with_its_manager() {
    let policy = json!({"adoption": "IfUnowned", "adoptFrom": ["notebook-controller"]});
    let world = world("ConfigMap.v1", &policy).await;
    tenant(&world, "alice").await;
    let lab = config_map("alice", "lab", &json!({}));
    create(&world, &lab, "person").await;
    let lab = world.get(&lab).await.unwrap();
    let mut owned = theirs();
    owned["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "lab", "uid": lab["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    }]);
    create(&world, &owned, "notebook-controller").await;
    tell(
        &world,
        "alice",
        &config_map("alice", "c", &json!({"a": "ours"})),
    )
    .await;
    let taken = world.get(&owned).await.unwrap();
    assert_eq!(taken["data"], json!({"a": "ours"}));
    let owners = taken["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!(owners.len(), 1, "{taken}");
    assert_eq!(owners[0]["kind"], "Profile");
    world.delete(&lab).await;
    world.settle().await;
    let after = world.get(&owned).await.unwrap();
    assert_eq!(after["metadata"]["uid"], taken["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_tool_owns_is_not_unowned() {
    let mut theirs = theirs();
    theirs["metadata"]["annotations"] = json!({"meta.helm.sh/release-name": "web"});
    let says = "its annotation meta.helm.sh/release-name is web";
    let data = theirs["data"].clone();
    let policy = json!({"adoption": "IfUnowned"});
    check(policy, theirs.clone(), "helm", &data, says).await;
    let policy = json!({"adoption": "Always", "adoptFrom": ["helm"]});
    check(policy, theirs, "helm", &json!({"a": "ours"}), "").await;
}

/// What the listed managers own becomes the plugin's: what it does not want goes at
/// once, and what it drops later goes then.
#[tokio::test(start_paused = true)]
async fn a_field_dropped_after_adoption_goes() {
    let policy = json!({"adoption": "IfUnowned", "adoptFrom": ["kubectl-create"]});
    let world = world("ConfigMap.v1", &policy).await;
    tenant(&world, "alice").await;
    create(&world, &theirs(), "kubectl-create").await;
    // With the same value both would own it.
    let same = config_map("alice", "c", &json!({"a": "theirs", "b": "theirs"}));
    tell(&world, "alice", &same).await;
    let adopted = world.get(&same).await.unwrap();
    assert_eq!(managers(&adopted), ["reeve/told Apply"]);
    let fewer = config_map("alice", "c", &json!({"a": "theirs"}));
    tell(&world, "alice", &fewer).await;
    let after = world.get(&same).await.unwrap();
    assert_eq!(after["data"], json!({"a": "theirs"}));
    assert_eq!(after["metadata"]["uid"], adopted["metadata"]["uid"]);
}

/// A policy that comes later mends what was refused.
#[tokio::test(start_paused = true)]
async fn a_policy_that_comes_later_counts() {
    let world = world("ConfigMap.v1", &json!({})).await;
    tenant(&world, "alice").await;
    create(&world, &theirs(), "kubectl-create").await;
    let ours = config_map("alice", "c", &json!({"a": "ours"}));
    tell(&world, "alice", &ours).await;
    let ready = world.unit_condition(PLUGIN, "alice", "Ready").await;
    assert_eq!(ready.reason, "Conflict");
    let policy = json!({"adoption": "Always"});
    world.apply(&told::plugin_object(PLUGIN, &policy)).await;
    world.settle().await;
    assert_eq!(world.get(&ours).await.unwrap()["data"]["a"], "ours");
    assert_eq!(world.unit(PLUGIN, "alice").await, None);
}

#[tokio::test(start_paused = true)]
async fn the_first_of_two_units_keeps_the_object() {
    // Shared by both, whatever the policy.
    let world = world("ConfigMap.v1", &json!({"adoption": "Always"})).await;
    tenant(&world, "alice").await;
    tenant(&world, "bob").await;
    let shared = |owner: &str| config_map("alice", "shared", &json!({"owner": owner}));
    tell(&world, "alice", &shared("alice")).await;
    tell(&world, "bob", &shared("bob")).await;
    assert_eq!(
        world.get(&shared("")).await.unwrap()["data"]["owner"],
        "alice"
    );
    let ready = world.unit_condition(PLUGIN, "bob", "Ready").await;
    assert_eq!(ready.reason, "Conflict", "{ready:?}");
    for name in [
        "Profile.kubeflow.org//alice",
        "Profile.kubeflow.org//bob",
        "had it first",
    ] {
        assert!(ready.message.contains(name), "{name}: {ready:?}");
    }
    assert_eq!(world.unit(PLUGIN, "alice").await, None);
    // The first gives it up, and the other gets it.
    tell(&world, "alice", &Value::Null).await;
    world.wait(std::time::Duration::from_secs(300)).await;
    assert_eq!(
        world.get(&shared("")).await.unwrap()["data"]["owner"],
        "bob"
    );
    assert_eq!(world.unit(PLUGIN, "bob").await, None);
}

#[tokio::test(start_paused = true)]
async fn of_two_units_at_once_one_gets_the_object() {
    let mut world = World::new().await;
    told::install(&world, PLUGIN, "ConfigMap.v1").await;
    for name in ["alice", "bob"] {
        world.tenant(name, &[]).await;
        let mut profile = reeve_test_support::samples::profile(name);
        let shared = config_map("alice", "shared", &json!({"owner": name}));
        let deed = json!({"do": "raw", "text": shared.to_string()});
        profile["metadata"]["annotations"] = json!({"chameleon.reeve.dev/do": deed.to_string()});
        world.apply(&profile).await;
    }
    world.start();
    world.settle().await;
    let shared = config_map("alice", "shared", &json!({}));
    let owner = world.get(&shared).await.unwrap()["data"]["owner"].clone();
    let other = if owner == "alice" { "bob" } else { "alice" };
    let ready = world.unit_condition(PLUGIN, other, "Ready").await;
    assert!(ready.message.contains("had it first"), "{ready:?}");
    let winner = world.unit(PLUGIN, owner.as_str().unwrap()).await;
    assert_eq!(winner, None);
}

#[tokio::test(start_paused = true)]
async fn the_first_of_two_plugins_keeps_the_object() {
    let world = world("ConfigMap.v1", &json!({})).await;
    told::install(&world, "other", "ConfigMap.v1").await;
    world
        .apply(&told::plugin_object(
            "other",
            &json!({"adoption": "Always"}),
        ))
        .await;
    world.settle().await;
    tenant(&world, "alice").await;
    let object = config_map("alice", "c", &json!({"a": "1"}));
    tell(&world, "alice", &object).await;
    world.wait(std::time::Duration::from_secs(60)).await;
    let held = world.get(&object).await.unwrap();
    let holder = held["metadata"]["labels"]["reeve.dev/plugin"].clone();
    let loser = if holder == PLUGIN { "other" } else { PLUGIN };
    let ready = world.unit_condition(loser, "alice", "Ready").await;
    assert_eq!(ready.reason, "Conflict", "{ready:?}");
    let text = format!("wanted by plugin {loser} for Profile.kubeflow.org//alice, and held by");
    assert!(ready.message.contains(&text), "{ready:?}");
    assert!(
        ready.message.contains(holder.as_str().unwrap()),
        "{ready:?}"
    );
    assert_eq!(
        managers(&held),
        [format!("reeve/{} Apply", holder.as_str().unwrap())]
    );
}

/// That nobody's object is touched needs no look before.
#[tokio::test(start_paused = true)]
async fn an_absent_object_is_made_by_one_request() {
    let world = world("ConfigMap.v1", &json!({})).await;
    tenant(&world, "alice").await;
    world.server.reset_requests();
    let ours = config_map("alice", "c", &json!({"a": "ours"}));
    tell(&world, "alice", &ours).await;
    let requests = world.server.requests();
    let asked = [Verb::Patch, Verb::Get].map(|verb| requests.count(verb, "configmaps"));
    assert_eq!(asked, [1, 0], "{requests:?}");
    let made = world.get(&ours).await.unwrap();
    assert_eq!(managers(&made), [format!("reeve/{PLUGIN} Apply")]);
}

/// An API server that fails in between must not turn somebody's object into ours.
#[tokio::test(start_paused = true)]
async fn a_failure_on_the_way_takes_nothing_over() {
    for fault in [
        "internal-error: verb=patch, resource=configmaps, namespace=alice, probability=0.5, for=30s",
        "unavailable: verb=get|patch, resource=configmaps, namespace=alice, probability=0.5, for=30s",
    ] {
        let world = world("ConfigMap.v1", &json!({})).await;
        tenant(&world, "alice").await;
        create(&world, &theirs(), "kubectl-create").await;
        world.server.set_faults(vec![fault.parse().unwrap()]);
        let ours = config_map("alice", "c", &json!({"a": "ours"}));
        tell(&world, "alice", &ours).await;
        world.wait(std::time::Duration::from_secs(120)).await;
        let after = world.get(&ours).await.unwrap();
        assert_eq!(after["data"], theirs()["data"], "{fault}");
        assert_eq!(after["metadata"].get("ownerReferences"), None, "{fault}");
        assert_eq!(managers(&after), ["kubectl-create Update"], "{fault}");
    }
}

/// What kubectl applied from the client goes over to the plugin where the object says so.
#[tokio::test(start_paused = true)]
async fn what_was_applied_from_the_client_is_taken_over_where_that_is_asked_for() {
    for migrates in [false, true] {
        let world = world("ConfigMap.v1", &json!({"adoption": "Always"})).await;
        tenant(&world, "alice").await;
        create(&world, &theirs(), "kubectl-client-side-apply").await;
        let mut ours = config_map("alice", "c", &json!({"a": "ours"}));
        if migrates {
            let option = "ClientSideApplyMigration=true";
            ours = annotated(ours, "reeve.dev/sync-options", option);
        }
        tell(&world, "alice", &ours).await;
        let after = world.get(&ours).await.unwrap();
        let (data, owners) = match migrates {
            true => (json!({"a": "ours"}), vec!["reeve/told Apply"]),
            false => (
                json!({"a": "ours", "b": "theirs"}),
                vec!["kubectl-client-side-apply Update", "reeve/told Apply"],
            ),
        };
        assert_eq!(after["data"], data);
        let mut found = managers(&after);
        found.sort();
        assert_eq!(found, owners);
    }
}
