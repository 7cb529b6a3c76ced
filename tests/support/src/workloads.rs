//! Workloads that run nowhere for real, and a kind of which nothing is known.

use serde_json::{Value, json};

fn named(api_version: &str, kind: &str, namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
    })
}

/// A Pod template with one container.
fn template(app: &str, restart_policy: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": app}},
        "spec": {
            "restartPolicy": restart_policy,
            "containers": [{"name": "a", "image": "example.com/a:1"}],
        },
    })
}

/// A Deployment of one replica.
#[must_use]
pub fn deployment(namespace: &str, name: &str) -> Value {
    let mut deployment = named("apps/v1", "Deployment", namespace, name);
    deployment["spec"] = json!({
        "replicas": 1,
        "selector": {"matchLabels": {"app": name}},
        "template": template(name, "Always"),
    });
    deployment
}

/// A Job that is not tried twice.
#[must_use]
pub fn job(namespace: &str, name: &str) -> Value {
    let mut job = named("batch/v1", "Job", namespace, name);
    job["spec"] = json!({"template": template("a", "Never"), "backoffLimit": 0});
    job
}

/// A Widget, of a kind as [`open_crd`](crate::samples::open_crd) defines it.
#[must_use]
pub fn widget(namespace: &str, name: &str) -> Value {
    let mut widget = named("example.com/v1", "Widget", namespace, name);
    widget["spec"] = json!({"size": 1});
    widget
}

/// Adds annotations to an object.
#[must_use]
pub fn annotated(mut object: Value, annotations: &[(&str, &str)]) -> Value {
    for (key, value) in annotations {
        object["metadata"]["annotations"][*key] = json!(value);
    }
    object
}

/// Puts an object into a wave.
#[must_use]
pub fn in_wave(object: Value, wave: i64) -> Value {
    match wave {
        0 => object,
        wave => annotated(object, &[("reeve.dev/wave", &wave.to_string())]),
    }
}
