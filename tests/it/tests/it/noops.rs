//! What is as it should be is left alone: nothing is sent, also after a restart.

use crate::told::{PLUGIN, annotated, config_map, tell, world};
use reeve_it::{World, profile_reference};
use serde_json::{Value, json};

/// Writes since this was last asked, but for questions about rights.
fn writes(world: &World) -> Vec<String> {
    let calls = world.server.requests();
    let calls = calls.iter().map(|(call, _)| format!("{call:?}"));
    let verbs = ["Create", "Patch", "Update", "Delete"];
    let writes = calls
        .filter(|call| !call.contains("reviews"))
        .filter(|call| verbs.iter().any(|verb| call.contains(verb)))
        .collect();
    world.server.reset_requests();
    writes
}

/// Runs the unit once more, by a change of its primary that changes no answer.
async fn run_again(world: &World, count: u32) {
    let patch = json!({"metadata": {"labels": {"count": count.to_string()}}});
    world.edit(&profile_reference("alice"), patch).await;
    writes(world);
    world.settle().await;
}

/// Applies an object, lets somebody edit it, and looks for what is sent after that.
async fn check(kind: &str, object: &Value, edit: Option<Value>) {
    let mut world = world(kind, &json!({})).await;
    world.tenant("alice", &[]).await;
    tell(&world, "alice", object).await;
    let live = world.get(object).await.unwrap();
    if let Some(edit) = edit {
        world.edit(object, edit).await;
        writes(&world);
        world.settle().await;
        assert_eq!(writes(&world), Vec::<String>::new(), "in answer to an edit");
    }
    run_again(&world, 1).await;
    assert_eq!(
        writes(&world),
        Vec::<String>::new(),
        "in a later run of {live}"
    );
    world.stop().await;
    writes(&world);
    world.start();
    world.settle().await;
    assert_eq!(
        writes(&world),
        Vec::<String>::new(),
        "after a restart of {live}"
    );
    assert_eq!(world.unit(PLUGIN, "alice").await, None);
}

#[tokio::test(start_paused = true)]
async fn with_quantities_that_the_server_writes_otherwise() {
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "alice"},
        "spec": {"hard": {"requests.cpu": "1000m", "requests.memory": "1024Mi", "pods": "0010"}},
    });
    check("ResourceQuota.v1", &quota, None).await;
    let limits = json!({
        "apiVersion": "v1", "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": "alice"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "0.5"}}]},
    });
    check("LimitRange.v1", &limits, None).await;
}

#[tokio::test(start_paused = true)]
async fn with_defaults_and_what_the_server_gives() {
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "s", "namespace": "alice"},
        "spec": {"selector": {"app": "a"}, "ports": [{"port": 80}, {"name": "udp", "port": 80, "protocol": "UDP"}]},
    });
    let mut service = service;
    service["spec"]["ports"][0]["name"] = json!("tcp");
    check("Service.v1", &service, None).await;
}

/// As kubectl prints it. No request for the object itself sets it, so it is never ours.
#[tokio::test(start_paused = true)]
async fn with_a_status_that_is_not_taken() {
    for status in [json!({}), json!({"hard": {"pods": "1"}})] {
        let quota = json!({
            "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": "q", "namespace": "alice"},
            "spec": {"hard": {"pods": "10"}}, "status": status,
        });
        check("ResourceQuota.v1", &quota, None).await;
    }
}

#[tokio::test(start_paused = true)]
async fn with_fields_of_others() {
    let object = config_map("alice", "c", &json!({"a": "1"}));
    let theirs = json!({"data": {"b": "theirs"}, "metadata": {"labels": {"x": "theirs"},
        "annotations": {"y": "theirs"}}});
    check("ConfigMap.v1", &object, Some(theirs)).await;
}

#[tokio::test(start_paused = true)]
async fn with_fields_that_are_ignored() {
    let object = config_map("alice", "c", &json!({"a": "1", "b": "2"}));
    let object = annotated(object, "reeve.dev/ignore", "/data/b");
    let theirs = json!({"data": {"b": "theirs"}});
    check("ConfigMap.v1", &object, Some(theirs)).await;
}

fn widgets() -> Value {
    let list = |kind: &str, keys: Value| {
        json!({"type": "array", "x-kubernetes-list-type": kind, "x-kubernetes-list-map-keys": keys,
            "items": {"type": "object", "properties": {
                "name": {"type": "string"}, "size": {"type": "integer", "default": 3}},
                "required": ["name"]}})
    };
    let mut set = json!({"type": "array", "x-kubernetes-list-type": "set"});
    set["items"] = json!({"type": "string"});
    let mut atomic = list("atomic", json!(null));
    atomic
        .as_object_mut()
        .unwrap()
        .remove("x-kubernetes-list-map-keys");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                    "type": "object", "properties": {
                        "keyed": list("map", json!(["name"])), "set": set, "atomic": atomic,
                        "mode": {"type": "string", "default": "fast"},
                        "amount": {"x-kubernetes-int-or-string": true},
                    }}}}},
            }],
        },
    })
}

/// A custom resource, with a list of each kind and a default.
async fn custom(spec: &Value) -> (World, Value) {
    let mut world = World::new().await;
    world.apply(&widgets()).await;
    crate::told::install(&world, PLUGIN, "Widget.v1.example.com").await;
    world.start();
    world.tenant("alice", &[]).await;
    world.settle().await;
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "alice"}, "spec": spec,
    });
    tell(&world, "alice", &widget).await;
    assert_eq!(world.unit(PLUGIN, "alice").await, None);
    (world, widget)
}

#[tokio::test(start_paused = true)]
async fn with_a_custom_resource_of_any_lists() {
    let (mut world, widget) = custom(&json!({
        "keyed": [{"name": "a"}], "set": ["x", "y"], "atomic": [{"name": "a"}], "amount": "1000m",
    }))
    .await;
    let live = world.get(&widget).await.unwrap();
    assert_eq!(live["spec"]["keyed"][0]["size"], 3, "defaulted");
    run_again(&world, 1).await;
    assert_eq!(writes(&world), Vec::<String>::new());
    world.stop().await;
    writes(&world);
    world.start();
    world.settle().await;
    assert_eq!(writes(&world), Vec::<String>::new());
}

/// That a keyed list is empty is owned by nobody: only the schema says that there is
/// nothing to be owned.
#[tokio::test(start_paused = true)]
async fn with_lists_that_are_empty() {
    let (mut world, widget) = custom(&json!({"keyed": [], "set": [], "atomic": []})).await;
    let before = world.get(&widget).await.unwrap();
    for count in 1..4 {
        run_again(&world, count).await;
        assert_eq!(writes(&world), Vec::<String>::new());
    }
    world.stop().await;
    writes(&world);
    world.start();
    world.settle().await;
    assert_eq!(writes(&world), Vec::<String>::new());
    assert_eq!(world.get(&widget).await.unwrap(), before);
    // Somebody fills the list that is ours as a whole.
    world
        .edit(&widget, json!({"spec": {"atomic": [{"name": "theirs"}]}}))
        .await;
    world.settle().await;
    let live = world.get(&widget).await.unwrap();
    assert_eq!(live["spec"]["atomic"], json!([]));
}
