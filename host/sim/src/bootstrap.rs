//! What every cluster starts with: namespaces, their service accounts, the roles
//! that people rely on, the highest priorities, and the Service of the server itself.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::server::Shared;
use crate::store::TableName;

/// The address of the server inside of the cluster.
const SERVER: &str = "10.96.0.1";
const NAMESPACES: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];

/// Stores the first objects of a server, and of one that has been before those that
/// are not there any more, as the real server does when it starts.
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
        if let Some(kind) = object["kind"]
            .as_str()
            .filter(|kind| kind.starts_with("ClusterRole"))
        {
            shared.rights.put(kind, &object);
        }
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
    for role in roles() {
        put(
            "clusterroles.rbac.authorization.k8s.io",
            None,
            cluster_role(role),
        );
    }
    for (name, role, groups) in BINDINGS {
        put(
            "clusterrolebindings.rbac.authorization.k8s.io",
            None,
            cluster_role_binding(name, role, groups),
        );
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

/// Cluster role binding, role, groups.
const BINDINGS: &[(&str, &str, &[&str])] = &[
    ("cluster-admin", "cluster-admin", &["system:masters"]),
    (
        "system:basic-user",
        "system:basic-user",
        &["system:authenticated"],
    ),
    (
        "system:discovery",
        "system:discovery",
        &["system:authenticated"],
    ),
    (
        "system:public-info-viewer",
        "system:public-info-viewer",
        &["system:authenticated", "system:unauthenticated"],
    ),
];

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

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];

/// The objects of a namespace that its users work with.
const NAMESPACED: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "configmaps",
            "endpoints",
            "persistentvolumeclaims",
            "pods",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "serviceaccounts",
            "services",
        ],
    ),
    (
        "apps",
        &[
            "controllerrevisions",
            "daemonsets",
            "deployments",
            "deployments/scale",
            "replicasets",
            "replicasets/scale",
            "statefulsets",
            "statefulsets/scale",
        ],
    ),
    ("autoscaling", &["horizontalpodautoscalers"]),
    ("batch", &["cronjobs", "jobs"]),
    ("networking.k8s.io", &["ingresses", "networkpolicies"]),
    ("policy", &["poddisruptionbudgets"]),
];

/// A role with its rules, and the role that it adds them to.
struct Role {
    name: &'static str,
    rules: Vec<Value>,
    adds_to: Option<&'static str>,
}

fn roles() -> Vec<Role> {
    let rules = |verbs: &[&str]| -> Vec<Value> {
        let rows = NAMESPACED.iter();
        rows.map(|(group, resources)| rule(group, resources, verbs))
            .collect()
    };
    let mut view = rules(READ);
    view.push(rule(
        "",
        &[
            "events",
            "limitranges",
            "namespaces",
            "pods/log",
            "resourcequotas",
        ],
        READ,
    ));
    let mut edit = rules(WRITE);
    edit.push(rule("", &["secrets"], READ));
    edit.push(rule("", &["secrets"], WRITE));
    edit.push(rule("", &["serviceaccounts"], &["impersonate"]));
    edit.push(rule("", &["serviceaccounts/token"], &["create"]));
    edit.push(rule("coordination.k8s.io", &["leases"], READ));
    edit.push(rule("coordination.k8s.io", &["leases"], WRITE));
    let rbac = ["rolebindings", "roles"];
    let admin = vec![
        rule("rbac.authorization.k8s.io", &rbac, READ),
        rule("rbac.authorization.k8s.io", &rbac, WRITE),
        rule(
            "authorization.k8s.io",
            &["localsubjectaccessreviews"],
            &["create"],
        ),
    ];
    let role = |name, rules| Role {
        name,
        rules,
        adds_to: None,
    };
    let adding = |name, rules, to| Role {
        name,
        rules,
        adds_to: Some(to),
    };
    // The roles for users hold what others add to them, here and later.
    let all = |parts: &[&Vec<Value>]| parts.iter().copied().flatten().cloned().collect();
    vec![
        role(
            "cluster-admin",
            vec![rule("*", &["*"], &["*"]), path_rule(&["*"], &["*"])],
        ),
        role("admin", all(&[&edit, &view, &admin])),
        adding("edit", all(&[&edit, &view]), "admin"),
        adding("view", view.clone(), "edit"),
        adding("system:aggregate-to-admin", admin, "admin"),
        adding("system:aggregate-to-edit", edit, "edit"),
        adding("system:aggregate-to-view", view, "view"),
        role(
            "system:basic-user",
            vec![
                rule(
                    "authorization.k8s.io",
                    &["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
                    &["create"],
                ),
                rule(
                    "authentication.k8s.io",
                    &["selfsubjectreviews"],
                    &["create"],
                ),
            ],
        ),
        role(
            "system:discovery",
            vec![path_rule(
                &[
                    "/api",
                    "/api/*",
                    "/apis",
                    "/apis/*",
                    "/healthz",
                    "/livez",
                    "/openapi",
                    "/openapi/*",
                    "/readyz",
                    "/version",
                    "/version/",
                ],
                &["get"],
            )],
        ),
        role(
            "system:public-info-viewer",
            vec![path_rule(
                &["/healthz", "/livez", "/readyz", "/version", "/version/"],
                &["get"],
            )],
        ),
    ]
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

fn path_rule(paths: &[&str], verbs: &[&str]) -> Value {
    json!({"nonResourceURLs": paths, "verbs": verbs})
}

const BOOTSTRAPPING: &str = "kubernetes.io/bootstrapping";

fn cluster_role(role: Role) -> Value {
    let Role {
        name,
        rules,
        adds_to,
    } = role;
    let mut labels = json!({BOOTSTRAPPING: "rbac-defaults"});
    if let Some(adds_to) = adds_to {
        labels[aggregation(adds_to)] = json!("true");
    }
    let mut role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        },
        "rules": rules,
    });
    if matches!(name, "admin" | "edit" | "view") {
        let selector = json!({"matchLabels": {aggregation(name): "true"}});
        role["aggregationRule"] = json!({"clusterRoleSelectors": [selector]});
    }
    role
}

/// The label of roles whose rules are added to another.
fn aggregation(role: &str) -> String {
    format!("rbac.authorization.k8s.io/aggregate-to-{role}")
}

fn cluster_role_binding(name: &str, role: &str, groups: &[&str]) -> Value {
    let subjects = groups.iter().map(|group| {
        json!({
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Group",
            "name": group,
        })
    });
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {
            "name": name,
            "labels": {BOOTSTRAPPING: "rbac-defaults"},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": role,
        },
        "subjects": subjects.collect::<Vec<_>>(),
    })
}
