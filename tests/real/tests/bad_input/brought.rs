//! A plugin that brings a kind and objects of it, with rights that were granted before
//! there was the kind.

use anyhow::{Result, ensure};
use reeve_real::{ADMIN, eventually};
use reeve_test_support::{guest, samples};
use serde_json::{Value, json};

use crate::stage::{NAMESPACE, Stage};

const PLUGIN: &str = "courier";
const DEFINITION: &str = "crd/gizmos.example.com";

/// The uid of the Gizmo, past the discovery that kubectl remembers.
fn gizmo(stage: &Stage) -> Result<String> {
    let path = "/apis/example.com/v1/namespaces/workshop/gizmos/g";
    let found: Value = serde_json::from_str(&stage.cluster.kubectl(&["get", "--raw", path])?)?;
    let uid = found["metadata"]["uid"].as_str().unwrap_or_default();
    ensure!(!uid.is_empty(), "no Gizmo: {found}");
    Ok(uid.to_owned())
}

pub(crate) fn check(stage: &Stage) -> Result<()> {
    let cluster = &stage.cluster;
    cluster.establish(&samples::open_crd("Bundle", "bundles"))?;
    let config = json!({
        "primary": "Bundle.v1.example.com",
        "writes": {
            "ConfigMap.v1": "primary-namespace",
            "CustomResourceDefinition.v1.apiextensions.k8s.io": "cluster",
            "Gizmo.v1.example.com": "primary-namespace",
        },
    });
    cluster.deliver(NAMESPACE, PLUGIN, &guest(PLUGIN), Some(&config))?;
    let said = cluster.reeve(&["plugin", "grant", PLUGIN, "--apply"])?;
    let caution = "Gizmo.v1.example.com is not served yet, and taken to be the resource \
                   gizmos.example.com";
    ensure!(said.contains(caution), "{said}");
    stage.wait_for_condition(PLUGIN, ("Ready", "True", "Running"))?;

    let waved = |mut object: Value, wave: &str| {
        object["metadata"]["annotations"]["reeve.dev/wave"] = json!(wave);
        object
    };
    let gizmo_object = json!({
        "apiVersion": "example.com/v1", "kind": "Gizmo",
        "metadata": {"name": "g", "namespace": "workshop"},
    });
    let last = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "after-the-gizmo", "namespace": "workshop"},
    });
    let objects = [
        waved(last, "1"),
        waved(gizmo_object, "0"),
        waved(samples::open_crd("Gizmo", "gizmos"), "0"),
    ];
    let bundle = json!({
        "apiVersion": "example.com/v1", "kind": "Bundle",
        "metadata": {"name": "brings", "namespace": "workshop"},
        "spec": {"objects": objects},
    });
    let apply = ["apply", "--server-side", "-f", "-"];
    cluster.kubectl_with(ADMIN, &apply, &bundle.to_string())?;
    let made = ("configmap", "workshop", "after-the-gizmo");
    stage.wait_for(made, "/kind", "ConfigMap")?;
    let first = gizmo(stage)?;

    // It is deleted, with all of its objects, and made again.
    cluster.kubectl(&["delete", DEFINITION])?;
    eventually("there is another Gizmo", || {
        let second = gizmo(stage)?;
        ensure!(second != first, "still the first");
        Ok(())
    })?;
    stage.wait_for_condition(PLUGIN, ("Ready", "True", "Running"))?;
    Ok(())
}
