//! A deployment and a cluster in, objects and a status out.

mod building;
mod claims;
mod configuration;
mod edges;
mod reports;
mod serving;
mod sharing;
mod world;

use reeve_sdk::Plugin;
use reeve_sdk::prelude::*;

use crate::ReevePlugin;

/// SHA-256 of a package, of this digit.
fn sha(digit: char) -> String {
    String::from(digit).repeat(64)
}

/// Digest of an image, of this digit.
fn digest(digit: char) -> String {
    format!("sha256:{}", sha(digit))
}

/// A configuration that says all that is needed.
fn config() -> Value {
    json!({
        "namespaces": ["models"],
        "ingress": {"className": "mlops", "outfacingURLPrefix": "http://your-company.com/deployments/"},
        "datarobot": {"apiSecretName": "mlops-api-key", "predictionEnvId": "env-1"},
        "imageBuilder": {
            "ppsImage": "r.example.com/pps:7.0",
            "generatedImageRepository": "r.example.com/mlops/frozen-models",
        },
    })
}

/// The same with changes: a merge patch.
fn changed(mut config: Value, changes: &Value) -> Value {
    merge(&mut config, changes);
    config
}

fn merge(into: &mut Value, changes: &Value) {
    match (into.as_object_mut(), changes.as_object()) {
        (Some(fields), Some(changes)) => {
            for (key, change) in changes {
                if change.is_null() {
                    fields.remove(key);
                } else {
                    merge(fields.entry(key.clone()).or_insert(Value::Null), change);
                }
            }
        }
        _ => *into = changes.clone(),
    }
}

/// A spec: the model of this id and digit.
fn spec(id: &str, digit: char) -> Value {
    json!({
        "deploymentId": "64f0",
        "model": {
            "id": id,
            "package": {"url": "https://app.datarobot.com/m.mlpkg", "sha256": sha(digit), "sizeBytes": 1000},
        },
    })
}

/// A spec whose model is mounted.
fn mounted(id: &str, digit: char) -> Value {
    let artifact = format!("r.example.com/artifacts/churn@{}", digest(digit));
    json!({"deploymentId": "64f0", "model": {"id": id, "artifact": artifact}})
}

fn describe(config: &Value) -> Result<Manifest, ConfigError> {
    ReevePlugin::describe(config.to_string().as_bytes())
}

/// Runs the plugin, holding it to its manifest.
fn run(name: &str, spec: &Value, config: &Value, cx: Context) -> Result<Outcome, Failure> {
    let manifest = describe(config).unwrap();
    let mut primary = json!({
        "metadata": {"name": name, "namespace": "models", "uid": name},
        "spec": spec,
    });
    if config["supervisor"].is_object() {
        // As the plugin `environments` makes them.
        primary["metadata"]["labels"] = json!({"models.reeve.dev/prediction-environment": "env-1"});
        primary["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "models.reeve.dev/v1alpha1", "kind": "PredictionEnvironment",
            "name": "production", "uid": "env", "controller": true,
        }]);
    }
    ReevePlugin::reconcile(
        primary.to_string().as_bytes(),
        config.to_string().as_bytes(),
        &cx.declaring(manifest),
    )
}

/// An object of an outcome.
fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> Option<&'a Value> {
    objects
        .iter()
        .find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
}

/// What the operator has made: the Secret with the API token.
fn operated() -> Context {
    Context::test().with_object(secret("mlops-api-key", "Opaque"))
}

fn secret(name: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": kind,
        "metadata": {"name": name, "namespace": "models"},
    })
}
