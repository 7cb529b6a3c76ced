//! Definitions that other projects publish, which tests read and this repository has not;
//! and one of our own that takes their place.

use serde_json::{Value, json};

/// Names the folder with them, a file `<plural>.<group>.yaml` each.
pub const FOLDER: &str = "REEVE_DEFINITIONS";

/// Of the kinds that the plugins of Profiles read and write.
pub const OF_PROFILES: [&str; 8] = [
    "profiles.kubeflow.org",
    "notebooks.kubeflow.org",
    "poddefaults.kubeflow.org",
    "applications.argoproj.io",
    "authorizationpolicies.security.istio.io",
    "destinationrules.networking.istio.io",
    "serviceentries.networking.istio.io",
    "virtualservices.networking.istio.io",
];

/// A definition of our own of a kind of other projects, open to anything. A status is born as
/// those of Flux are.
pub fn open(plural: &str, kind: &str, group: &str, version: &str) -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut status = open.clone();
    status["default"] = json!({"observedGeneration": -1});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{
                "name": version,
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": open, "status": status},
                }},
            }],
        },
    })
}
