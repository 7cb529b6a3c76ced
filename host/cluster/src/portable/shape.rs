//! What of an object another cluster can use.

use serde_json::{Map, Value, json};

/// What stands for a value of a Secret: `redacted`.
const REDACTED: &str = "cmVkYWN0ZWQ=";
/// What stands for one that has to be JSON: `{}`.
const REDACTED_JSON: &str = "e30=";
/// The labels by which a Job knows its pods; it gets others elsewhere.
const OF_JOBS: &[&str] = &[
    "controller-uid",
    "job-name",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
];
/// A whole object in an annotation, values of Secrets among it.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Takes out of an object what only its own server can know, and, unless they are
/// kept, the values of a Secret: its keys stay.
pub(super) fn portable(object: &mut Value, keep_secrets: bool) {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let api_version = text("/apiVersion").unwrap_or_default().to_owned();
    let kind = text("/kind").unwrap_or_default().to_owned();
    if let Some(metadata) = map(object, "/metadata") {
        for field in [
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "selfLink",
            "managedFields",
        ] {
            metadata.remove(field);
        }
    }
    if let Some(annotations) = map(object, "/metadata/annotations") {
        annotations.remove(LAST_APPLIED);
        if annotations.is_empty() {
            remove(object, "/metadata", "annotations");
        }
    }
    let owners = object.pointer_mut("/metadata/ownerReferences");
    for owner in owners.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(owner) = owner.as_object_mut() {
            owner.remove("uid");
        }
    }
    match (&*api_version, &*kind) {
        ("v1", "Secret") if !keep_secrets => redact(object),
        ("v1", "Service") => service(object),
        ("v1", "Namespace") => remove(object, "", "spec"),
        ("v1", "PersistentVolume") => {
            remove(object, "/spec/claimRef", "uid");
            remove(object, "/spec/claimRef", "resourceVersion");
        }
        ("v1", "Pod") => remove(object, "/spec", "ephemeralContainers"),
        ("batch/v1", "Job") => job(object),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition") => remove(object, "", "status"),
        _ => {}
    }
}

fn redact(secret: &mut Value) {
    for (key, value) in map(secret, "/data").into_iter().flatten() {
        *value = match key.as_str() {
            ".dockercfg" | ".dockerconfigjson" => json!(REDACTED_JSON),
            _ => json!(REDACTED),
        };
    }
}

/// Addresses and node ports are given out by each cluster for itself.
fn service(service: &mut Value) {
    if service.pointer("/spec/clusterIP") != Some(&json!("None")) {
        remove(service, "/spec", "clusterIP");
        remove(service, "/spec", "clusterIPs");
    }
    remove(service, "/spec", "healthCheckNodePort");
    let ports = service.pointer_mut("/spec/ports");
    for port in ports.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(port) = port.as_object_mut() {
            port.remove("nodePort");
        }
    }
}

/// Unless it was selected by hand, a Job selects its pods by its own uid.
fn job(job: &mut Value) {
    if job.pointer("/spec/manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    remove(job, "/spec", "selector");
    for labels in ["/metadata/labels", "/spec/template/metadata/labels"] {
        for label in OF_JOBS {
            remove(job, labels, label);
        }
    }
}

fn map<'a>(object: &'a mut Value, pointer: &str) -> Option<&'a mut Map<String, Value>> {
    object.pointer_mut(pointer)?.as_object_mut()
}

fn remove(object: &mut Value, pointer: &str, field: &str) {
    if let Some(fields) = map(object, pointer) {
        fields.remove(field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_a_server_knows_is_left_out() {
        let metadata = json!({
            "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "5", "generation": 2,
            "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{}],
            "labels": {"l": "v"}, "finalizers": ["f/f"],
            "annotations": {LAST_APPLIED: "{}", "k": "v"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "o", "uid": "u"}],
        });
        let kept = json!({
            "name": "a", "namespace": "n", "labels": {"l": "v"}, "finalizers": ["f/f"],
            "annotations": {"k": "v"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "o"}],
        });
        let cases = [
            (
                json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"uid": "stays"}, "status": {"s": 1}}),
                json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"uid": "stays"}, "status": {"s": 1}}),
            ),
            (
                json!({"apiVersion": "v1", "kind": "Secret", "type": "t", "data": {"a": "c2VjcmV0", ".dockerconfigjson": "c2VjcmV0"}}),
                json!({"apiVersion": "v1", "kind": "Secret", "type": "t", "data": {"a": REDACTED, ".dockerconfigjson": REDACTED_JSON}}),
            ),
            (
                json!({"apiVersion": "v1", "kind": "Service", "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 1, "nodePort": 30000}]}}),
                json!({"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 1}]}}),
            ),
            (
                json!({"apiVersion": "v1", "kind": "Service", "spec": {"clusterIP": "None", "clusterIPs": ["None"]}}),
                json!({"apiVersion": "v1", "kind": "Service", "spec": {"clusterIP": "None", "clusterIPs": ["None"]}}),
            ),
            (
                json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"selector": {}, "template": {"metadata": {"labels": {"job-name": "a", "x": "y"}}}}}),
                json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"metadata": {"labels": {"x": "y"}}}}}),
            ),
            (
                json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"manualSelector": true, "selector": {}}}),
                json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"manualSelector": true, "selector": {}}}),
            ),
            (
                json!({"apiVersion": "v1", "kind": "PersistentVolume", "spec": {"claimRef": {"name": "c", "uid": "u"}}}),
                json!({"apiVersion": "v1", "kind": "PersistentVolume", "spec": {"claimRef": {"name": "c"}}}),
            ),
        ];
        for (mut object, mut expected) in cases {
            object["metadata"] = metadata.clone();
            expected["metadata"] = kept.clone();
            portable(&mut object, false);
            assert_eq!(object, expected);
        }
    }

    #[test]
    fn values_of_secrets_are_kept_on_request_alone() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "c2VjcmV0"}});
        let mut kept = secret.clone();
        portable(&mut kept, true);
        assert_eq!(kept, secret);
    }
}
