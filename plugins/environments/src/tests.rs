//! Lists and a cluster in, ModelDeployments and a status out.

mod any;
mod configuration;
mod deployments;
mod lists;

use reeve_sdk::Plugin;
use reeve_sdk::prelude::*;

use crate::ReevePlugin;

/// SHA-256 of a package, of this digit.
fn sha(digit: char) -> String {
    String::from(digit).repeat(64)
}

/// A configuration with an index of packages.
fn config() -> Value {
    json!({"supervisor": {"packages": {"url": "https://packages.example.com/index.json?key=x"}}})
}

/// An entry of the environment `env`, with a model that is in the index.
fn entry(id: &str) -> Value {
    json!({
        "id": id, "status": "active", "model": {"id": "m1"},
        "predictionEnvironment": {"id": "env", "isManagedByManagementAgent": true},
    })
}

/// An entry with changes, as fields.
fn changed(id: &str, changes: &Value) -> Value {
    let mut entry = entry(id);
    for (field, value) in changes.as_object().unwrap() {
        entry[field] = value.clone();
    }
    entry
}

/// A list that is whole.
fn list(entries: &[Value]) -> Value {
    json!({"totalCount": entries.len(), "next": null, "data": entries})
}

/// What the index has: a package of this digit.
fn package(digit: char) -> Value {
    json!({"url": format!("https://packages.example.com/{digit}"), "sha256": sha(digit)})
}

/// A cluster without ModelDeployments, with these pages and the packages of `m1` and `m2`.
fn listing(pages: &[Value]) -> Context {
    let index = json!({"m1": package('1'), "m2": package('2')});
    let cx = Context::test().with_source("packages", index.to_string());
    pages.iter().zip(1..).fold(cx, |cx, (page, number)| {
        cx.with_source(&format!("deployments-{number}"), page.to_string())
    })
}

/// A ModelDeployment that the plugin has made.
fn made(name: &str, id: &str, digit: char) -> Value {
    json!({
        "apiVersion": "models.reeve.dev/v1alpha1", "kind": "ModelDeployment",
        "metadata": {
            "name": name, "namespace": "models",
            "labels": {"models.reeve.dev/prediction-environment": "env", "reeve.dev/plugin": "environments"},
            "ownerReferences": [{
                "apiVersion": "models.reeve.dev/v1alpha1", "kind": "PredictionEnvironment",
                "name": "production", "uid": "uid-1", "controller": true,
            }],
        },
        "spec": {"deploymentId": id, "model": {"id": "m0", "package": package(digit)}},
    })
}

fn describe(config: &Value) -> Result<Manifest, ConfigError> {
    ReevePlugin::describe(served(config).to_string().as_bytes())
}

/// A configuration that serves the namespace of these tests.
fn served(config: &Value) -> Value {
    let mut config = config.clone();
    if config.get("namespaces").is_none() {
        config["namespaces"] = json!(["models"]);
    }
    config
}

/// Runs the plugin for the environment `env`, holding it to its manifest.
fn run(config: &Value, cx: Context) -> Result<Outcome, Failure> {
    run_for("env", config, cx)
}

fn run_for(environment: &str, config: &Value, cx: Context) -> Result<Outcome, Failure> {
    let manifest = describe(config).unwrap();
    let primary = json!({
        "metadata": {"name": "production", "namespace": "models", "uid": "uid-1"},
        "spec": {"id": environment},
    });
    ReevePlugin::reconcile(
        primary.to_string().as_bytes(),
        served(config).to_string().as_bytes(),
        &cx.declaring(manifest),
    )
}

/// The ModelDeployments of an outcome.
fn deployments(outcome: &Outcome) -> Vec<Value> {
    let objects = outcome.objects_json().into_iter();
    objects
        .filter(|object| object["kind"] == "ModelDeployment")
        .collect()
}

/// Their names.
fn names(outcome: &Outcome) -> Vec<String> {
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
    deployments(outcome).iter().map(name).collect()
}

/// The status in an outcome.
fn status(outcome: &Outcome) -> Option<Value> {
    let mut objects = outcome.objects_json().into_iter();
    let found = objects.find(|object| object["kind"] == "PredictionEnvironment")?;
    Some(found["status"].clone())
}

/// What cannot be used, in one text.
fn problems(outcome: &Outcome) -> String {
    let conditions = outcome.conditions().iter();
    conditions.map(|one| one.message.clone()).collect()
}
