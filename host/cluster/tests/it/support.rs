//! What the tests against the in-process API server share.

use reeve_cluster::{Apply, Cluster, Object, Preconditions, Resource, WriteError};
use reeve_core::GroupVersionKind;
use reeve_sim::{Clock, Config, Server};
use serde_json::{Value, json};
use std::time::{Duration, UNIX_EPOCH};

/// An API server whose clock and chance are the test's.
pub(crate) fn server() -> Server {
    server_with_history(10_000)
}

/// As [`server`], which forgets all but the last changes.
pub(crate) fn server_with_history(history: usize) -> Server {
    Server::new(Config {
        clock: Clock::following_tokio(UNIX_EPOCH + Duration::from_secs(1_700_000_000)),
        seed: Some(1),
        history,
        ..Config::default()
    })
}

/// ConfigMaps, of which the tests are made.
pub(crate) fn config_maps() -> Resource {
    Resource {
        kind: GroupVersionKind::new("", "v1", "ConfigMap"),
        plural: "configmaps".into(),
        namespaced: true,
    }
}

/// A ConfigMap in the namespace `default` with the label `app` and one value.
pub(crate) fn config_map(name: &str, app: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": app}},
        "data": {"key": value},
    })
}

/// Applies an object of a kind with all rights.
pub(crate) async fn apply_as(
    cluster: &Cluster,
    resource: &Resource,
    body: &Value,
) -> Result<Object, WriteError> {
    cluster
        .apply(Apply {
            resource,
            namespace: body["metadata"]["namespace"].as_str(),
            name: body["metadata"]["name"].as_str().unwrap(),
            body: body.into(),
            onto: Preconditions::default(),
            manager: "test",
            force: true,
            strict: true,
            dry_run: false,
            identity: None,
        })
        .await
}

/// Applies a ConfigMap.
pub(crate) async fn apply(cluster: &Cluster, body: &Value) -> Object {
    apply_as(cluster, &config_maps(), body).await.unwrap()
}

/// Grants verbs on a resource everywhere: a ClusterRole and its binding to a user.
pub(crate) async fn grant(cluster: &Cluster, name: &str, user: &str, rule: Value) {
    let rbac = |kind: &str, plural: &str| Resource {
        kind: GroupVersionKind::new("rbac.authorization.k8s.io", "v1", kind),
        plural: plural.into(),
        namespaced: false,
    };
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [rule],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    for (kind, plural, body) in [
        ("ClusterRole", "clusterroles", role),
        ("ClusterRoleBinding", "clusterrolebindings", binding),
    ] {
        apply_as(cluster, &rbac(kind, plural), &body).await.unwrap();
    }
}
