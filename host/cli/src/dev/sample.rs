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

/// The kinds of Kubeflow, Istio, Argo CD and Flux, as far as plugins look at them, and
/// those of plugins themselves: what the scenarios of the plugins use too.
const DEFINITIONS: [&str; 12] = [
    include_str!("../../../../plugins/quotas/scenarios/crds/profile.yaml"),
    include_str!("../../../../plugins/authpolicy/scenarios/crds/authorizationpolicy.yaml"),
    include_str!("../../../../plugins/authpolicy/scenarios/crds/notebook.yaml"),
    include_str!("../../../../plugins/cloudmain/scenarios/crds/destinationrule.yaml"),
    include_str!("../../../../plugins/cloudmain/scenarios/crds/serviceentry.yaml"),
    include_str!("../../../../plugins/cloudmain/scenarios/crds/virtualservice.yaml"),
    include_str!("../../../../plugins/environments/crds/predictionenvironment.yaml"),
    include_str!("../../../../plugins/models/scenarios/crds/modeldeployment.yaml"),
    include_str!("../../../../plugins/notebook/scenarios/crds/poddefault.yaml"),
    include_str!("../../../../plugins/s3proxy/scenarios/crds/application.yaml"),
    include_str!("../../../../plugins/packs/crds/packs.yaml"),
    include_str!("../../../../plugins/packs/scenarios/crds/flux.yaml"),
];

/// What an operator of Kubeflow grants by name, since no manifest can ask for it:
/// that the plugin `rbac` may bind two ClusterRoles.
const MAY_BIND: &str = include_str!("../../../../plugins/rbac/scenarios/shared/bind.yaml");

/// The kinds that must be there first.
pub(super) fn definitions() -> anyhow::Result<Vec<Value>> {
    let mut definitions = Vec::new();
    for definition in DEFINITIONS {
        definitions.extend(serde_saphyr::from_multiple::<Value>(definition)?);
    }
    for crd in reeve_api::crds() {
        definitions.push(serde_json::to_value(crd)?);
    }
    Ok(definitions)
}

/// What the agent needs besides.
pub(super) fn base() -> anyhow::Result<Vec<Value>> {
    let mut objects = vec![namespace(NAMESPACE)];
    objects.extend(serde_saphyr::from_multiple::<Value>(MAY_BIND)?);
    objects.extend(grant::agent_base(NAMESPACE, Subject::User(AGENT_USER)));
    Ok(objects)
}

/// Something for plugins to look after.
pub(super) fn profiles() -> Vec<Value> {
    let mut objects = Vec::new();
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
        objects.push(json!({
            "apiVersion": "kubeflow.org/v1",
            "kind": "Notebook",
            "metadata": {"name": "lab", "namespace": name},
        }));
    }
    objects
}

pub(super) fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}
