//! What every cluster starts with: namespaces, their service accounts, the roles
//! and bindings, the highest priorities, and the Service of the server itself.

mod roles;

use std::sync::Arc;

use serde_json::{Value, json};

use self::roles::START;
use crate::server::Shared;
use crate::store::TableName;

/// The address of the server inside of the cluster.
const SERVER: &str = "10.96.0.1";
const NAMESPACES: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];

/// Stores the first objects of a server, and of one that has been before those that
/// are not there any more, as the real server does when it starts. Roles and bindings that
/// are there get back what they lack.
///
/// They are written as they are, past the write path: making a server must be
/// cheap, and they are known to be right.
pub(crate) fn fill(shared: &Arc<Shared>) {
    let now = shared.clock.timestamp();
    let put = |table: &str, namespace: Option<&str>, mut object: Value| {
        let name = object["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let key = match namespace {
            Some(namespace) => {
                object["metadata"]["namespace"] = json!(namespace);
                format!("{namespace}/{name}")
            }
            None => name,
        };
        if shared.store.get(table, &key).is_some() {
            return;
        }
        object["metadata"]["uid"] = json!(shared.random.uid());
        object["metadata"]["creationTimestamp"] = json!(now);
        // Nobody else writes yet: the key is free.
        let _ = shared.store.create(&TableName::from(table), &key, object);
    };
    for name in NAMESPACES {
        put("namespaces", None, namespace(name));
    }
    for name in NAMESPACES {
        put("serviceaccounts", Some(name), service_account());
    }
    put("services", Some("default"), service());
    // Those of a new server are known already, and shared with other servers.
    let known = shared.rights.begin(&START.policy);
    for first in &START.objects {
        let key = first.form.key();
        if let Some(live) = shared.store.get(&first.table, key) {
            let mut value = live.value();
            if roles::complete(&mut value, &first.value) {
                // Nobody else writes yet.
                let _ = shared
                    .store
                    .replace(&first.table, key, live.version(), value.clone());
                let kind = value["kind"].as_str().unwrap_or_default();
                shared.rights.put(kind, &value);
            }
            continue;
        }
        let uid = shared.random.uid();
        let _ = shared
            .store
            .create_from(&first.table, &first.form, &uid, &now);
        if !known {
            let kind = first.value["kind"].as_str().unwrap_or_default();
            shared.rights.put(kind, &first.value);
        }
    }
    for (name, value, description) in PRIORITIES {
        put(
            "priorityclasses.scheduling.k8s.io",
            None,
            json!({
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name, "generation": 1},
                "value": value,
                "description": description,
                "preemptionPolicy": "PreemptLowerPriority",
            }),
        );
    }
}

/// The Service under which pods find the server, at the first address of the range. Pods
/// are only played, so there is nothing behind it.
fn service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": SERVER,
            "clusterIPs": [SERVER],
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
        "status": {"loadBalancer": {}},
    })
}

fn namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    })
}

/// The service account that pods of a namespace run as.
pub(crate) fn service_account() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default"},
    })
}

/// Name, value and description of the classes for what keeps a cluster going.
const PRIORITIES: &[(&str, i64, &str)] = &[
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
];
