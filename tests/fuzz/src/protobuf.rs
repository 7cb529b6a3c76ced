//! Bodies in protobuf, as kubectl sends them for built-in kinds.

use crate::cluster::Cluster;

const MEDIA: &str = "application/vnd.kubernetes.protobuf";

const COLLECTIONS: &[&str] = &[
    "/api/v1/namespaces",
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/services",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
    "/apis/batch/v1/namespaces/default/cronjobs",
];

/// The first byte chooses where to, the rest is the body of a create; what it makes
/// can be sent again as JSON.
pub fn protobuf(input: &[u8]) {
    let Some((&choice, body)) = input.split_first() else {
        return;
    };
    let path = COLLECTIONS[usize::from(choice) % COLLECTIONS.len()];
    let cluster = Cluster::new();
    let created = cluster.call("POST", path, MEDIA, body);
    if !created.is_success() {
        return;
    }
    let object = created.json();
    // Roles may have any name that fits between two slashes.
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let name = name.bytes().map(|byte| format!("%{byte:02X}"));
    let name: String = name.collect();
    let path = format!("{path}/{name}");
    let stored = cluster.get(&path);
    assert_eq!(stored.status, 200, "{}", stored.json());
    let put = cluster.call("PUT", &path, "application/json", &stored.body);
    assert_eq!(put.status, 200, "{} of {}", put.json(), stored.json());
    assert_eq!(put.json(), stored.json(), "stored again");
}
