//! The policy that says who is let into a namespace.

use reeve_sdk::prelude::*;

pub(crate) const AUTHORIZATION_POLICY: Kind =
    Kind::new("security.istio.io/v1beta1", "AuthorizationPolicy");

/// Who asks for the status of notebooks.
const NOTEBOOK_CONTROLLER: &str =
    "cluster.local/ns/kubeflow/sa/notebook-controller-service-account";

/// The policy of one namespace. Without an action it allows, and what no rule
/// allows is denied.
pub(crate) fn namespace(namespace: &str, users: &[String]) -> Object<Value> {
    let mut rules = vec![
        json!({"when": [{"key": "source.namespace", "values": [namespace]}]}),
        json!({"to": [{"operation": {"paths": ["/healthz", "/metrics", "/wait-for-drain"]}}]}),
        json!({
            "from": [{"source": {"principals": [NOTEBOOK_CONTROLLER]}}],
            "to": [{"operation": {"methods": ["GET"], "paths": ["*/api/status"]}}],
        }),
    ];
    // A condition without values is none at all, and would let in everybody.
    if !users.is_empty() {
        let user = json!({"key": "request.headers[kubeflow-userid]", "values": users});
        rules.insert(0, json!({"when": [user]}));
    }
    Object::new(
        AUTHORIZATION_POLICY
            .object("namespace-owner-access-istio")
            .in_namespace(namespace),
        json!({"rules": rules}),
    )
}
