//! Objects that many tests need.

use serde_json::{Value, json};

/// A CustomResourceDefinition for Kubeflow's Profile, version `v1`: just the
/// fields that plugins and tests look at, from the file that scenarios use.
///
/// # Panics
///
/// When the file is no YAML.
#[must_use]
#[expect(clippy::panic, reason = "the error message of a test")]
pub fn profile_crd() -> Value {
    let text = include_str!("../../../plugins/quotas/scenarios/crds/profile.yaml");
    match serde_saphyr::from_str(text) {
        Ok(crd) => crd,
        Err(error) => panic!("profile.yaml: {error}"),
    }
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

/// A CustomResourceDefinition for a namespaced kind of `example.com/v1` that may hold
/// anything, with a status.
#[must_use]
pub fn open_crd(kind: &str, plural: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.example.com") },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": format!("{kind}List"),
                "plural": plural,
                "singular": kind.to_lowercase(),
            },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                } },
            }],
        },
    })
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
