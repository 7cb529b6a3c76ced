//! The certificate of the server in each namespace, by which pods know it.

use std::sync::Arc;

use serde_json::json;

use super::writer;
use crate::rest::write::Proposal;
use crate::server::Shared;
use crate::status::ApiError;

/// Where it is kept, as in a real cluster.
pub(super) const TABLE: &str = "configmaps";
pub(super) const NAME: &str = "kube-root-ca.crt";

const FIELD: &str = "ca.crt";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

/// Gives a namespace that is not ending the certificate, and puts it back where somebody
/// changed it.
pub(super) fn ensure(
    shared: &Arc<Shared>,
    namespace: &str,
    certificate: &str,
) -> Result<(), ApiError> {
    let found = shared.store.get("namespaces", namespace);
    if found.is_none_or(|found| found.is_terminating()) {
        return Ok(());
    }
    let Some(resource) = shared.registry.find_table(TABLE) else {
        return Ok(());
    };
    let writer = writer(shared, &resource);
    let key = resource.key(namespace, NAME);
    let data = json!({ FIELD: certificate });
    let Some(live) = shared.store.get(TABLE, &key) else {
        let object = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": NAME,
                "annotations": {"kubernetes.io/description": DESCRIPTION},
            },
            "data": data,
        });
        let proposal = Proposal {
            object,
            ..Proposal::default()
        };
        return writer.create(namespace, proposal).map(drop);
    };
    if live.value().get("data") == Some(&data) {
        return Ok(());
    }
    writer.amend(&key, |live| {
        live["data"].clone_from(&data);
        Ok(())
    })
}
