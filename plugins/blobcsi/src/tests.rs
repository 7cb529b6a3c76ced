//! Configuration, descriptions and cluster in, volumes out.

mod bucket;
mod containers;
mod gateways;
mod held;
mod names;
mod objects;
mod renewal;

use reeve_sdk::Plugin;
use reeve_sdk::prelude::*;

use crate::ReevePlugin;

/// All settings of buckets in a ConfigMap.
fn main_config() -> Value {
    let class = |word: &str| {
        json!({
            "internalStorageAccount": format!("{word}int"),
            "externalStorageAccount": format!("{word}ext"),
            "resourceGroup": "rg",
            "secretNamespace": "fdi",
            "capacity": 3,
        })
    };
    json!({
        "preset": "main",
        "instances": [],
        "fdi": {
            "tenantId": "tenant",
            "clientIds": {"sp": "client"},
            "unclassified": class("unc"),
            "protectedB": class("prb"),
        },
    })
}

/// The ConfigMap with these buckets under `fdi-unclassified-internal.json`, and none
/// elsewhere.
fn described(buckets: &Value) -> Value {
    map(&[
        ("unclassified-internal", &buckets.to_string()),
        ("unclassified-external", "[]"),
        ("protected-b-internal", "[]"),
        ("protected-b-external", "[]"),
    ])
}

fn map(keys: &[(&str, &str)]) -> Value {
    let data: std::collections::BTreeMap<_, _> = keys
        .iter()
        .map(|(key, text)| (format!("fdi-{key}.json"), *text))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "fdi-aaw-configuration", "namespace": "daaas-system"},
        "data": data,
    })
}

/// One that alice may read.
fn bucket(name: &str, label: &str) -> Value {
    json!({"bucketName": name, "pvName": label, "spn": "sp", "readers": ["alice"], "writers": []})
}

fn try_run(profile: &str, config: &Value, cx: Context) -> Result<Outcome, Failure> {
    let profile = json!({"metadata": {"name": profile, "uid": "1"}});
    let config = config.to_string();
    let manifest = ReevePlugin::describe(config.as_bytes()).unwrap();
    let cx = cx.declaring(manifest);
    ReevePlugin::reconcile(profile.to_string().as_bytes(), config.as_bytes(), &cx)
}

fn run(config: &Value, cx: Context) -> Outcome {
    try_run("alice", config, cx).unwrap()
}

/// Kinds and names of all that is returned.
fn names(outcome: &Outcome) -> Vec<String> {
    let name = |object: &Value| {
        format!(
            "{} {}",
            object["kind"].as_str().unwrap(),
            object["metadata"]["name"].as_str().unwrap()
        )
    };
    outcome.objects_json().iter().map(name).collect()
}

/// The condition of this type, and its message.
fn condition<'a>(outcome: &'a Outcome, kind: &str) -> Option<&'a str> {
    let mut all = outcome.conditions().iter();
    all.find(|condition| condition.kind == kind)
        .map(|condition| condition.message.as_str())
}

/// An object as it is once it was applied: the plugin's, with this phase.
fn applied(mut object: Value, phase: &str) -> Value {
    object["metadata"]["labels"]["reeve.dev/plugin"] = json!("blobcsi");
    object["status"] = json!({"phase": phase});
    object
}

/// A cluster in which what was returned is there and bound.
fn converged(outcome: &Outcome, mut cx: Context) -> Context {
    for object in outcome.objects_json() {
        cx = cx.with_object(applied(object, "Bound"));
    }
    cx
}
