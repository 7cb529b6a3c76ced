//! What a plugin wants not to exist although it never made it.

use kube::api::{Patch, PatchParams};
use reeve_it::{World, core_reference, guest, plugin};
use serde_json::{Value, json};
use std::time::Duration;

fn pod(name: &str) -> Value {
    let mut pod = core_reference("Pod", "alice", name);
    pod["spec"] = json!({"containers": [{"name": "c", "image": "i"}]});
    pod
}

/// A cluster with a guest that may write ConfigMaps, Pods, quotas and claims in
/// the namespace `alice`, where there is the Pod `stray`.
async fn world() -> World {
    let world = World::started().await;
    let component = [("plugin.wasm", guest("chameleon"))];
    let config = json!({
        "primary": "Profile.v1.kubeflow.org",
        "scope": "namespace-named-like-primary",
        "writes": ["ConfigMap.v1", "Pod.v1", "ResourceQuota.v1", "PersistentVolumeClaim.v1"],
    });
    let rule = |verbs: &[&str]| json!([{"apiGroups": [""], "resources": ["pods", "persistentvolumeclaims"], "verbs": verbs}]);
    let account =
        json!({"kind": "ServiceAccount", "name": "chameleon", "namespace": reeve_it::NAMESPACE});
    let agent =
        json!({"kind": "User", "name": reeve_it::AGENT, "apiGroup": "rbac.authorization.k8s.io"});
    let all = ["get", "list", "watch", "create", "patch", "delete"];
    world.role("more-account", &rule(&all), &account).await;
    world.role("more-agent", &rule(&all[..3]), &agent).await;
    world.install("chameleon", &component, Some(config)).await;
    world.tenant("alice", &[]).await;
    world.apply(&pod("stray")).await;
    world.settle().await;
    let ready = world.plugin_condition("chameleon", "Ready").await;
    assert_eq!(ready.status, "True", "{ready:?}");
    world
}

/// Says what the kubelet says of a Pod that failed.
async fn fail(world: &World, name: &str) {
    let status = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name}, "status": {"phase": "Failed"},
    });
    let params = PatchParams::apply("kubelet").force();
    let pods = world.api(&pod(name));
    let status = Patch::Apply(&status);
    let patched = pods.patch_status(name, &params, &status).await;
    patched.unwrap();
}

/// Tells the guest what must not exist.
async fn want_absent(world: &World, object: &Value, preconditions: Value) {
    let mut deed = json!({
        "do": "absent",
        "kind": format!("{}.v1", object["kind"].as_str().unwrap()),
        "namespace": object["metadata"]["namespace"],
        "name": object["metadata"]["name"],
    });
    for (key, value) in preconditions.as_object().unwrap() {
        deed[key] = value.clone();
    }
    let mut profile = reeve_test_support::samples::profile("alice");
    profile["metadata"]["annotations"] = json!({"chameleon.reeve.dev/do": deed.to_string()});
    world.apply(&profile).await;
    world.settle().await;
}

#[tokio::test(start_paused = true)]
async fn each_precondition_is_held_to() {
    let world = world().await;
    let stray = pod("stray");
    for (wrong, right) in [
        (None, json!({})),
        (Some(json!({"uid": "other"})), json!({"uid": "UID"})),
        (
            Some(json!({"owned_by": "other"})),
            json!({"owned_by": "OWNER"}),
        ),
        (
            Some(json!({"phases": ["Succeeded", "Running"]})),
            json!({"phases": ["Succeeded", "Failed"]}),
        ),
        // All must hold.
        (
            Some(json!({"phases": ["Failed"], "uid": "other"})),
            json!({"phases": ["Failed"], "uid": "UID"}),
        ),
    ] {
        let owner = core_reference("ConfigMap", "alice", "chameleon-alice");
        let owner = world.get(&owner).await.unwrap()["metadata"]["uid"].clone();
        let mut owned = stray.clone();
        owned["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "chameleon-alice", "uid": owner,
        }]);
        world.apply(&owned).await;
        fail(&world, "stray").await;
        let live = world.get(&stray).await.unwrap();
        if let Some(wrong) = wrong {
            want_absent(&world, &stray, wrong.clone()).await;
            assert_eq!(world.get(&stray).await.as_ref(), Some(&live), "{wrong}");
            assert_eq!(world.unit("chameleon", "alice").await, None, "no trouble");
        }
        let mut right = right;
        if right.get("uid").is_some() {
            right["uid"] = live["metadata"]["uid"].clone();
        }
        if right.get("owned_by").is_some() {
            right["owned_by"] = owner;
        }
        want_absent(&world, &stray, right.clone()).await;
        assert_eq!(world.get(&stray).await, None, "{right}");
        assert_eq!(world.unit("chameleon", "alice").await, None);
    }
}

/// Nobody watches what should not be there: it is looked for from time to time.
#[tokio::test(start_paused = true)]
async fn what_comes_again_goes_again() {
    let world = world().await;
    let stray = pod("stray");
    want_absent(&world, &stray, json!({})).await;
    assert_eq!(world.get(&stray).await, None);
    world.apply(&stray).await;
    world.wait(Duration::from_secs(61)).await;
    assert_eq!(world.get(&stray).await, None);
}

/// Checks that an object stays, and what the unit says about it.
async fn check_kept(world: &World, object: &Value, reason: &str, texts: &[&str]) {
    want_absent(world, object, json!({})).await;
    // What was said before may have been about another state of the object.
    world.wait(Duration::from_secs(10)).await;
    let ready = world.unit_condition("chameleon", "alice", "Ready").await;
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str()),
        ("False", reason),
        "{ready:?}"
    );
    for text in texts {
        assert!(ready.message.contains(text), "`{text}` is not in {ready:?}");
    }
    assert!(world.get(object).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn an_object_of_another_plugin_is_left_to_it() {
    let world = world().await;
    let honest = [("plugin.wasm", plugin("quotas"))];
    world.install("quotas", &honest, None).await;
    world.settle().await;
    let quota = core_reference("ResourceQuota", "alice", "quotas");
    let texts = ["ResourceQuota alice/quotas", "plugin quotas"];
    check_kept(&world, &quota, "Conflict", &texts).await;

    // Also when somebody has edited its labels away while that plugin is stopped.
    world
        .delete(&reeve_it::config_map_reference("quotas"))
        .await;
    world.settle().await;
    let labels = json!({"reeve.dev/plugin": null, "reeve.dev/unit": null});
    world
        .edit(&quota, json!({"metadata": {"labels": labels}}))
        .await;
    let texts = ["ResourceQuota alice/quotas", "plugin reeve/quotas"];
    check_kept(&world, &quota, "Conflict", &texts).await;
}

/// What may be applied need not be deletable.
#[tokio::test(start_paused = true)]
async fn a_missing_grant_is_named() {
    let world = world().await;
    let account =
        json!({"kind": "ServiceAccount", "name": "chameleon", "namespace": reeve_it::NAMESPACE});
    let rule = |verbs: &[&str]| {
        json!([{
            "apiGroups": [""], "resources": ["pods", "persistentvolumeclaims"], "verbs": verbs,
        }])
    };
    let some = ["get", "list", "watch", "create", "patch"];
    world.role("more-account", &rule(&some), &account).await;
    let texts = ["Pod alice/stray", "chameleon", "delete"];
    check_kept(&world, &pod("stray"), "Forbidden", &texts).await;

    // Granted, it goes by itself.
    let all = ["get", "list", "watch", "create", "patch", "delete"];
    world.role("more-account", &rule(&all), &account).await;
    world.wait(Duration::from_secs(61)).await;
    assert_eq!(world.get(&pod("stray")).await, None);
    assert_eq!(world.unit("chameleon", "alice").await, None);
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_said_to_be_absent() {
    let world = world().await;
    let elsewhere = core_reference("ConfigMap", "default", "kube-root-ca.crt");
    world.apply(&elsewhere).await;
    let texts = ["absent[0]", "may be written in namespace alice"];
    check_kept(&world, &elsewhere, "OutcomeRefused", &texts).await;

    let undeclared = core_reference("Service", "alice", "s");
    let mut service = undeclared.clone();
    service["spec"] = json!({"ports": [{"port": 80}]});
    world.apply(&service).await;
    let texts = ["absent[0]", "declares no write of Service.v1"];
    check_kept(&world, &undeclared, "OutcomeRefused", &texts).await;

    let claim = core_reference("PersistentVolumeClaim", "alice", "data");
    let mut precious = claim.clone();
    precious["spec"] = json!({
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
    });
    world.apply(&precious).await;
    let texts = ["PersistentVolumeClaim alice/data", "delete it yourself"];
    check_kept(&world, &claim, "DeletionHeld", &texts).await;
}
