//! What the embedded cluster of `reeve dev` holds before any plugin.

use super::{AGENT_USER, NAMESPACE};
use reeve_core::grant::{self, Subject};
use serde_json::{Value, json};

/// A few tenants, as Kubeflow has them: a Profile, and a Namespace of its name.
/// One asks for more than the default by labels.
const PROFILES: [(&str, &[(&str, &str)]); 3] = [
    ("alice", &[]),
    (
        "bob",
        &[
            ("quotas.statcan.gc.ca/gpu", "4"),
            ("quotas.statcan.gc.ca/requests.cpu", "96"),
        ],
    ),
    (
        "data-team",
        &[("quotas.statcan.gc.ca/requests.storage", "500Gi")],
    ),
];

/// The kinds that must be there first.
pub(super) fn definitions() -> anyhow::Result<Vec<Value>> {
    let mut definitions = vec![profile_definition()];
    for crd in reeve_api::crds() {
        definitions.push(serde_json::to_value(crd)?);
    }
    Ok(definitions)
}

/// Everything else.
pub(super) fn objects() -> Vec<Value> {
    let mut objects = vec![namespace(NAMESPACE)];
    objects.extend(grant::agent_base(NAMESPACE, Subject::User(AGENT_USER)));
    for (name, labels) in PROFILES {
        let labels: serde_json::Map<_, _> = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), json!(value)))
            .collect();
        objects.push(namespace(name));
        objects.push(json!({
            "apiVersion": "kubeflow.org/v1",
            "kind": "Profile",
            "metadata": {"name": name, "labels": labels},
            "spec": {"owner": {"kind": "User", "name": format!("{name}@example.com")}},
        }));
    }
    objects
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// A Profile as Kubeflow defines it, as far as plugins look at it.
fn profile_definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "profiles.kubeflow.org"},
        "spec": {
            "group": "kubeflow.org",
            "scope": "Cluster",
            "names": {
                "kind": "Profile",
                "listKind": "ProfileList",
                "plural": "profiles",
                "singular": "profile",
            },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Owner", "type": "string", "jsonPath": ".spec.owner.name"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {
                            "type": "object",
                            "properties": {
                                "owner": {
                                    "type": "object",
                                    "required": ["kind", "name"],
                                    "properties": {
                                        "apiGroup": {"type": "string"},
                                        "kind": {"type": "string"},
                                        "name": {"type": "string"},
                                        "namespace": {"type": "string"},
                                    },
                                },
                                "resourceQuotaSpec": {
                                    "type": "object",
                                    "x-kubernetes-preserve-unknown-fields": true,
                                },
                            },
                        },
                        "status": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": true,
                        },
                    },
                }},
            }],
        },
    })
}
