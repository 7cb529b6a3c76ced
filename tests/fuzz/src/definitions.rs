//! CustomResourceDefinitions with any schema, and objects of theirs.

use reeve_sim::crd::Schema;
use reeve_sim::field::Errors;
use serde_json::{Value, json};

use crate::cluster::Cluster;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/fuzz.dev/v1/namespaces/default/widgets";

/// The input is lines of JSON: an `openAPIV3Schema`, then objects.
///
/// A definition that the server takes has a schema that every step understands.
/// Pruning and defaulting are done once, and an object that was stored can be
/// stored again, unchanged.
pub fn definitions(input: &[u8]) {
    let mut lines = input.split(|&byte| byte == b'\n');
    let json = |line: &[u8]| serde_json::from_slice::<Value>(line).ok();
    let Some(schema) = lines.next().and_then(json) else {
        return;
    };
    let objects: Vec<Value> = lines.take(3).filter_map(json).collect();
    let typed = reeve_ssa::Schema::from_crd(&schema);
    let parsed = Schema::parse(&schema);
    if let Ok(parsed) = &parsed {
        objects.iter().for_each(|object| check(parsed, object));
    }

    let cluster = Cluster::new();
    let definition = definition(&schema);
    let created = cluster.call(
        "POST",
        DEFINITIONS,
        "application/json",
        definition.to_string().as_bytes(),
    );
    if !created.is_success() {
        return;
    }
    assert!(parsed.is_ok(), "{parsed:?}: {schema}");
    assert!(typed.is_ok(), "{typed:?}: {schema}");
    for object in objects {
        store(&cluster, object);
    }
}

fn definition(schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.fuzz.dev"},
        "spec": {
            "group": "fuzz.dev", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

fn check(schema: &Schema, object: &Value) {
    let mut object = object.clone();
    schema.prune(&mut object);
    let once = object.clone();
    let pruned = schema.prune(&mut object);
    assert_eq!(object, once, "pruned twice: {pruned:?}");
    schema.default(&mut object);
    let once = object.clone();
    schema.default(&mut object);
    assert_eq!(object, once, "defaulted twice");
    let mut errors = Errors::new();
    schema.validate(&object, None, &mut errors);
    let mut again = Errors::new();
    schema.validate(&object, None, &mut again);
    assert_eq!(errors.aggregate(), again.aggregate(), "by chance");
}

fn store(cluster: &Cluster, mut object: Value) {
    if !object.is_object() {
        return;
    }
    object["apiVersion"] = "fuzz.dev/v1".into();
    object["kind"] = "Widget".into();
    object["metadata"] = json!({"name": "a"});
    let body = object.to_string().into_bytes();
    let created = cluster.call("POST", WIDGETS, "application/json", &body);
    if !created.is_success() {
        return;
    }
    let path = format!("{WIDGETS}/a");
    let stored = cluster.get(&path);
    assert_eq!(stored.status, 200, "{}", stored.json());
    let put = cluster.call("PUT", &path, "application/json", &stored.body);
    assert_eq!(put.status, 200, "{} of {}", put.json(), stored.json());
    assert_eq!(put.json(), stored.json(), "stored again");

    let apply = || {
        let path = format!("{path}?fieldManager=fuzz&force=true");
        cluster.call("PATCH", &path, "application/apply-patch+yaml", &body)
    };
    let once = apply();
    if once.is_success() {
        let twice = apply();
        assert_eq!(twice.json(), once.json(), "applied twice");
    }
    let deleted = cluster.call("DELETE", &path, "", b"");
    assert_eq!(deleted.status, 200, "{}", deleted.json());
}
