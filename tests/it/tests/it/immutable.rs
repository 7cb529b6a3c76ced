//! Fields that the API server refuses to change.

use crate::told::{PLUGIN, annotated, config_map, journal, tell, world};
use reeve_it::{AGENT, NAMESPACE, World};
use serde_json::{Value, json};

/// A ConfigMap that cannot be changed.
fn sealed(data: &Value) -> Value {
    let mut object = config_map("alice", "c", data);
    object["immutable"] = json!(true);
    object
}

fn forced(object: Value) -> Value {
    annotated(object, "reeve.dev/sync-options", "Force=true")
}

async fn applied(policy: &Value, first: &Value) -> (World, Value) {
    let world = world("ConfigMap.v1", policy).await;
    world.tenant("alice", &[]).await;
    tell(&world, "alice", first).await;
    let before = world.get(first).await.unwrap();
    (world, before)
}

#[tokio::test(start_paused = true)]
async fn the_field_is_named_and_nothing_is_changed() {
    let (world, before) = applied(&json!({}), &sealed(&json!({"a": "1"}))).await;
    tell(&world, "alice", &sealed(&json!({"a": "2"}))).await;
    assert_eq!(world.get(&before).await.unwrap(), before);
    let ready = world.unit_condition(PLUGIN, "alice", "Ready").await;
    assert_eq!(ready.reason, "FieldImmutable", "{ready:?}");
    for text in [
        "ConfigMap alice/c",
        "data: ",
        "immutable",
        "Force=true",
        "spec.recreate",
    ] {
        assert!(ready.message.contains(text), "{text}: {ready:?}");
    }
    let stalled = world.unit_condition(PLUGIN, "alice", "Stalled").await;
    assert_eq!(stalled.status, "True", "only a change helps");
    // What the plugin returns next counts.
    tell(&world, "alice", &sealed(&json!({"a": "1"}))).await;
    assert_eq!(world.unit(PLUGIN, "alice").await, None);
}

#[tokio::test(start_paused = true)]
async fn it_is_made_anew_where_that_is_allowed() {
    for policy in [json!({}), json!({"recreate": true})] {
        let by_policy = policy["recreate"] == true;
        let object = |data: Value| match by_policy {
            true => sealed(&data),
            false => forced(sealed(&data)),
        };
        let (world, before) = applied(&policy, &object(json!({"a": "1"}))).await;
        tell(&world, "alice", &object(json!({"a": "2"}))).await;
        let after = world.get(&before).await.unwrap();
        assert_eq!(after["data"], json!({"a": "2"}), "{policy}");
        assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
        assert_eq!(world.unit(PLUGIN, "alice").await, None);
        let entries = journal(&world).await;
        assert_eq!(entries.len(), 1, "{entries:?}");
        assert_eq!((&*entries[0].0, &*entries[0].1), ("Recreate", "c"));
    }
}

/// A deletion must not be followed by a refusal.
#[tokio::test(start_paused = true)]
async fn what_would_be_refused_anew_is_not_deleted() {
    let (world, before) = applied(&json!({"recreate": true}), &sealed(&json!({"a": "1"}))).await;
    tell(&world, "alice", &sealed(&json!({"no key!": "2"}))).await;
    assert_eq!(world.get(&before).await.unwrap(), before);
    let ready = world.unit_condition(PLUGIN, "alice", "Ready").await;
    assert_eq!(ready.reason, "FieldImmutable", "{ready:?}");
    assert!(ready.message.contains("it would be refused: "), "{ready:?}");
    assert_eq!(journal(&world).await, []);
}

/// Gives the plugin and the agent rights that tests do not have by themselves.
async fn grant(world: &World, rules: &Value) {
    let account = json!({"kind": "ServiceAccount", "name": PLUGIN, "namespace": NAMESPACE});
    world.role("more-account", rules, &account).await;
    let agent = json!({"kind": "User", "name": AGENT, "apiGroup": "rbac.authorization.k8s.io"});
    world.role("more-agent", rules, &agent).await;
}

async fn changed(kind: &str, rules: Value, first: Value, second: Value) -> (World, Value) {
    let mut world = World::new().await;
    grant(&world, &rules).await;
    crate::told::install(&world, PLUGIN, kind).await;
    world.start();
    world.tenant("alice", &[]).await;
    world.settle().await;
    tell(&world, "alice", &first).await;
    let before = world.get(&first).await.unwrap();
    tell(&world, "alice", &second).await;
    (world, before)
}

#[tokio::test(start_paused = true)]
async fn a_role_ref_is_changed_by_making_the_binding_anew() {
    let binding = |role: &str| {
        forced(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "b", "namespace": "alice"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
        }))
    };
    let rules = json!([{"apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["rolebindings", "clusterroles"],
        "verbs": ["get", "list", "watch", "create", "patch", "delete", "bind"]}]);
    let kind = "RoleBinding.v1.rbac.authorization.k8s.io";
    let (world, before) = changed(kind, rules, binding("view"), binding("edit")).await;
    let after = world.get(&before).await.unwrap();
    let ready = world.unit_condition(PLUGIN, "alice", "Ready").await;
    assert_eq!(after["roleRef"]["name"], "edit", "{ready:?}");
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn what_holds_data_stays_unless_that_is_permitted() {
    let claim = |class: &str| {
        forced(json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "p", "namespace": "alice"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
                "resources": {"requests": {"storage": "1Gi"}}},
        }))
    };
    let rules = json!([{"apiGroups": [""], "resources": ["persistentvolumeclaims"],
        "verbs": ["get", "list", "watch", "create", "patch", "delete"]}]);
    let kind = "PersistentVolumeClaim.v1";
    let (world, before) = changed(kind, rules, claim("a"), claim("b")).await;
    let after = world.get(&before).await.unwrap();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    let ready = world.unit_condition(PLUGIN, "alice", "Ready").await;
    assert_eq!(ready.reason, "FieldImmutable", "{ready:?}");
    assert!(ready.message.contains("loses data"), "{ready:?}");
}

/// What others added goes when the object is sent, and only then.
#[tokio::test(start_paused = true)]
async fn a_replaced_object_is_what_is_returned_and_no_more() {
    let object = |value: &str| {
        let object = config_map("alice", "c", &json!({"a": value}));
        annotated(object, "reeve.dev/sync-options", "Replace=true")
    };
    let (world, before) = applied(&json!({}), &object("1")).await;
    let theirs = json!({"data": {"b": "theirs"}, "metadata": {"labels": {"x": "theirs"}}});
    world.edit(&before, theirs).await;
    world.settle().await;
    assert_eq!(world.get(&before).await.unwrap()["data"]["b"], "theirs");
    tell(&world, "alice", &object("2")).await;
    let after = world.get(&before).await.unwrap();
    assert_eq!(after["data"], json!({"a": "2"}));
    assert_eq!(after["metadata"]["labels"].get("x"), None);
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    let entries = journal(&world).await;
    let [(operation, name, reason)] = &entries[..] else {
        panic!("{entries:?}");
    };
    assert_eq!((&**operation, &**name), ("Overwrite", "c"));
    for field in [
        ".data.b by \"kubectl-edit\"",
        ".metadata.labels.x by \"kubectl-edit\"",
    ] {
        assert!(reason.contains(field), "{field}: {reason}");
    }
}

/// API servers answer the deletion of a Service with the Service, though it is gone.
#[tokio::test(start_paused = true)]
async fn a_service_is_made_anew_in_one_run() {
    let service = |address: &str| {
        let object = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "s", "namespace": "alice"},
            "spec": {"clusterIP": address, "ports": [{"port": 80}]}});
        forced(object)
    };
    let world = world("Service.v1", &json!({})).await;
    world.tenant("alice", &[]).await;
    tell(&world, "alice", &service("None")).await;
    let before = world.get(&service("")).await.unwrap();
    world.server.reset_requests();
    tell(&world, "alice", &service("10.96.7.7")).await;
    let after = world.get(&service("")).await.unwrap();
    assert_eq!(after["spec"]["clusterIP"], "10.96.7.7");
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
    // Nobody had to wait for anything.
    let requests = world.server.requests();
    let units = requests
        .iter()
        .filter(|(call, _)| call.resource.starts_with("units") && call.verb.is_write());
    assert_eq!(units.count(), 0, "{requests:?}");
}
