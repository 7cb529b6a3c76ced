//! Objects that many tests need.

use serde_json::{Value, json};

/// A CustomResourceDefinition for Kubeflow's Profile, version `v1`: just the
/// fields that plugins and tests look at.
#[must_use]
pub fn profile_crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "profiles.kubeflow.org" },
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
                "subresources": { "status": {} },
                "additionalPrinterColumns": [
                    { "name": "Owner", "type": "string", "jsonPath": ".spec.owner.name" },
                    { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
                ],
                "schema": { "openAPIV3Schema": profile_schema() },
            }],
        },
    })
}

fn profile_schema() -> Value {
    let text = json!({ "type": "string" });
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "owner": {
                        "type": "object",
                        "required": ["kind", "name"],
                        "properties": {
                            "apiGroup": text,
                            "kind": text,
                            "name": text,
                            "namespace": text,
                        },
                    },
                    "plugins": { "type": "array", "items": open },
                    "resourceQuotaSpec": open,
                },
            },
            "status": {
                "type": "object",
                "properties": { "conditions": { "type": "array", "items": open } },
            },
        },
    })
}

/// A Profile owned by the user `<name>@example.com`.
#[must_use]
pub fn profile(name: &str) -> Value {
    json!({
        "apiVersion": "kubeflow.org/v1",
        "kind": "Profile",
        "metadata": { "name": name },
        "spec": { "owner": { "kind": "User", "name": format!("{name}@example.com") } },
    })
}

/// A [`profile`] with labels.
#[must_use]
pub fn profile_with_labels(name: &str, labels: &[(&str, &str)]) -> Value {
    let mut profile = profile(name);
    for (key, value) in labels {
        profile["metadata"]["labels"][key] = (*value).into();
    }
    profile
}

/// A Namespace.
#[must_use]
pub fn namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": name },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_added_to_a_profile() {
        let labelled = profile_with_labels("ann", &[("quotas.statcan.gc.ca/gpu", "2")]);
        let labels = json!({ "quotas.statcan.gc.ca/gpu": "2" });
        assert_eq!(labelled["metadata"]["labels"], labels);
        assert_eq!(labelled["spec"], profile("ann")["spec"]);
        assert_eq!(profile_with_labels("ann", &[]), profile("ann"));
    }
}
