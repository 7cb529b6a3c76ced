//! What one object uses of a quota, by the names that quotas give it.

use std::time::{Duration, SystemTime};

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use crate::amounts::{self, Amounts};
use crate::kinds::edit::{integer, items, text, text_at};
use crate::kinds::resources::{is_extended, is_native};
use crate::quantity::Quantity;
use crate::resource::Resource;

pub(super) const PODS: &str = "pods";
pub(super) const SERVICES: &str = "services";
pub(super) const CLAIMS: &str = "persistentvolumeclaims";

/// Tables whose objects nobody counts.
const UNCOUNTED: [&str; 2] = ["events", "events.events.k8s.io"];
/// Those that quotas also know without `count/`.
const ALIASES: [&str; 4] = [
    "configmaps",
    super::TABLE,
    "replicationcontrollers",
    "secrets",
];

const COUNT: &str = "count/";
const REQUESTS: &str = "requests.";
const HUGE_PAGES: &str = "hugepages-";
const STORAGE: &str = "requests.storage";
const NODE_PORTS: &str = "services.nodeports";
const LOAD_BALANCERS: &str = "services.loadbalancers";
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";
/// The older place of a claim's class.
const CLASS_ANNOTATION: &str = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";

/// Amounts that a container has to name once a quota bounds them, as
/// `enforcePodContainerConstraints` of the real server wants it.
pub(super) const DEMANDED: [&str; 6] = [
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
];

/// Whether quotas count the objects of a resource.
pub(super) fn is_counted(resource: &Resource) -> bool {
    resource.namespaced && resource.is_stored() && !UNCOUNTED.contains(&&*resource.table)
}

/// Whether what objects of the table use can change while they are there.
pub(super) fn can_change(table: &str) -> bool {
    matches!(table, PODS | SERVICES | CLAIMS)
}

/// Whether objects of the table use what a quota calls `name`.
pub(super) fn is_used_by(table: &str, name: &str) -> bool {
    if name.strip_prefix(COUNT) == Some(table) {
        return true;
    }
    match table {
        PODS => is_of_pods(name),
        SERVICES => matches!(name, SERVICES | NODE_PORTS | LOAD_BALANCERS),
        CLAIMS => [CLAIMS, STORAGE]
            .iter()
            .any(|own| name == *own || is_of_class(name, own)),
        _ => name == table && ALIASES.contains(&table),
    }
}

/// The tables whose objects use what a quota calls `name`.
pub(super) fn tables(name: &str) -> Vec<&str> {
    let known = [PODS, SERVICES, CLAIMS].into_iter().chain(ALIASES);
    let mut tables: Vec<&str> = known.filter(|table| is_used_by(table, name)).collect();
    if let Some(table) = name.strip_prefix(COUNT)
        && !tables.contains(&table)
    {
        tables.push(table);
    }
    tables
}

fn is_of_class(name: &str, own: &str) -> bool {
    let class = name.strip_suffix(own);
    class.is_some_and(|class| class.ends_with(OF_CLASS))
}

fn is_of_pods(name: &str) -> bool {
    let plain = name.strip_prefix(REQUESTS).unwrap_or(name);
    matches!(
        name,
        "pods" | "limits.cpu" | "limits.memory" | "limits.ephemeral-storage"
    ) || matches!(plain, "cpu" | "memory" | "ephemeral-storage")
        || plain.starts_with(HUGE_PAGES)
        || (name.starts_with(REQUESTS) && !is_native(name))
}

/// What an object of the table uses.
pub(super) fn of(table: &str, object: &Value, now: SystemTime) -> Amounts {
    let mut used = Amounts::new();
    used.insert(format!("{COUNT}{table}"), Quantity::from_integer(1));
    match table {
        PODS => of_pod(object, now, &mut used),
        SERVICES => of_service(object, &mut used),
        CLAIMS => of_claim(object, &mut used),
        _ if ALIASES.contains(&table) => {
            used.insert(table.to_owned(), Quantity::from_integer(1));
        }
        _ => {}
    }
    used
}

/// A pod that has ended uses nothing but its place.
fn of_pod(pod: &Value, now: SystemTime, used: &mut Amounts) {
    if has_ended(pod, now) {
        return;
    }
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let mut requests = amounts::of_pod(spec, "requests");
    let mut limits = amounts::of_pod(spec, "limits");
    let overhead = amounts::read(spec, "overhead");
    amounts::add(&mut requests, &overhead);
    // What has no limit gets none by it.
    let limited = overhead.into_iter();
    let limited = limited.filter(|(name, _)| limits.get(name).is_some_and(|l| !l.is_zero()));
    let limited: Amounts = limited.collect();
    amounts::add(&mut limits, &limited);
    used.extend(computed(&requests, &limits));
}

/// What these requests and limits are in the names of quotas.
pub(super) fn computed(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut used = Amounts::new();
    used.insert(PODS.to_owned(), Quantity::from_integer(1));
    for (name, amount) in requests {
        let plain = matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage")
            || name.starts_with(HUGE_PAGES);
        if plain {
            used.insert(name.clone(), amount.clone());
        }
        if plain || is_extended(name) {
            used.insert(format!("{REQUESTS}{name}"), amount.clone());
        }
    }
    for (name, amount) in limits {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            used.insert(format!("limits.{name}"), amount.clone());
        }
    }
    used
}

fn has_ended(pod: &Value, now: SystemTime) -> bool {
    if matches!(text_at(pod, "/status/phase"), "Failed" | "Succeeded") {
        return true;
    }
    let metadata = pod.get("metadata").unwrap_or(&Value::Null);
    let deleted: Option<Timestamp> = text(metadata, "deletionTimestamp").parse().ok();
    let grace = integer(metadata, "deletionGracePeriodSeconds");
    let grace = grace.and_then(|seconds| u64::try_from(seconds).ok());
    let end = deleted.zip(grace).and_then(|(deleted, grace)| {
        SystemTime::from(deleted).checked_add(Duration::from_secs(grace))
    });
    end.is_some_and(|end| now > end)
}

fn of_service(service: &Value, used: &mut Amounts) {
    let spec = service.get("spec").unwrap_or(&Value::Null);
    let is_balanced = text(spec, "type") == "LoadBalancer";
    let has_ports = match text(spec, "type") {
        "NodePort" => true,
        "LoadBalancer" => {
            spec.get("allocateLoadBalancerNodePorts")
                .and_then(Value::as_bool)
                != Some(false)
        }
        _ => false,
    };
    let ports = items(spec, "ports").filter(|port| {
        has_ports || (is_balanced && integer(port, "nodePort").is_some_and(|port| port != 0))
    });
    let ports = i64::try_from(ports.count()).unwrap_or(i64::MAX);
    for (name, amount) in [
        (SERVICES, 1),
        (NODE_PORTS, ports),
        (LOAD_BALANCERS, i64::from(is_balanced)),
    ] {
        used.insert(name.to_owned(), Quantity::from_integer(amount));
    }
}

fn of_claim(claim: &Value, used: &mut Amounts) {
    let annotated = text_at(claim, CLASS_ANNOTATION);
    let class = match annotated {
        "" => text_at(claim, "/spec/storageClassName"),
        annotated => annotated,
    };
    let mut put = |name: &str, amount: &Quantity| {
        if !class.is_empty() {
            used.insert(format!("{class}{OF_CLASS}{name}"), amount.clone());
        }
        used.insert(name.to_owned(), amount.clone());
    };
    put(CLAIMS, &Quantity::from_integer(1));
    let requested = amounts::asked(claim.get("spec").unwrap_or(&Value::Null), "requests");
    let status = claim.get("status").unwrap_or(&Value::Null);
    let allocated = amounts::read(status, "allocatedResources");
    if let Some(requested) = requested.get("storage") {
        let most = allocated.get("storage").filter(|size| *size > requested);
        put(STORAGE, &most.unwrap_or(requested).clone().to_whole());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(table: &str, object: &Value) -> String {
        let used = of(table, object, SystemTime::now());
        let used = used.iter().map(|(name, amount)| format!("{name}={amount}"));
        used.collect::<Vec<_>>().join(",")
    }

    #[test]
    fn pods_use_what_they_ask_for_until_they_end() {
        let resources = json!({
            "requests": {"cpu": "500m", "memory": "1Gi", "hugepages-2Mi": "2Mi", "example.com/gpu": "1"},
            "limits": {"cpu": "1", "hugepages-2Mi": "2Mi", "example.com/gpu": "1"},
        });
        let mut pod = json!({"spec": {
            "containers": [{"name": "a", "resources": resources}, {"name": "b", "resources": {"requests": {"cpu": "500m"}}}],
            "initContainers": [{"name": "i", "resources": {"requests": {"memory": "3Gi"}}}],
            "overhead": {"cpu": "1", "memory": "1Mi"},
        }});
        assert_eq!(
            shown(PODS, &pod),
            "count/pods=1,cpu=2,hugepages-2Mi=2Mi,limits.cpu=2,memory=3073Mi,pods=1,\
             requests.cpu=2,requests.example.com/gpu=1,requests.hugepages-2Mi=2Mi,\
             requests.memory=3073Mi"
        );
        pod["metadata"] = json!({
            "deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30,
        });
        assert_eq!(shown(PODS, &pod), "count/pods=1");
        pod["metadata"]["deletionTimestamp"] = json!("2999-01-01T00:00:00Z");
        assert!(shown(PODS, &pod).contains("pods=1,"));
        pod["status"] = json!({"phase": "Failed"});
        assert_eq!(shown(PODS, &pod), "count/pods=1");
    }

    #[test]
    fn services_use_ports_and_balancers() {
        let service = |kind: &str, extra: Value| {
            let ports = json!([{"port": 1}, {"port": 2, "nodePort": 30001}]);
            let mut service = json!({"spec": {"type": kind, "ports": ports}});
            if let (Some(spec), Value::Object(extra)) = (service["spec"].as_object_mut(), extra) {
                spec.extend(extra);
            }
            service
        };
        for (service, ports, balancers) in [
            (service("ClusterIP", json!({})), 0, 0),
            (service("NodePort", json!({})), 2, 0),
            (service("LoadBalancer", json!({})), 2, 1),
            (
                service(
                    "LoadBalancer",
                    json!({"allocateLoadBalancerNodePorts": false}),
                ),
                1,
                1,
            ),
        ] {
            let expected = format!(
                "count/services=1,services=1,services.loadbalancers={balancers},services.nodeports={ports}"
            );
            assert_eq!(shown(SERVICES, &service), expected);
        }
    }

    #[test]
    fn claims_use_storage_of_their_class() {
        let mut claim = json!({"spec": {"resources": {"requests": {"storage": "1.5"}}}});
        assert_eq!(
            shown(CLAIMS, &claim),
            "count/persistentvolumeclaims=1,persistentvolumeclaims=1,requests.storage=2"
        );
        claim["spec"]["storageClassName"] = json!("gold");
        claim["status"] = json!({"allocatedResources": {"storage": "2Gi"}});
        assert_eq!(
            shown(CLAIMS, &claim),
            "count/persistentvolumeclaims=1,\
             gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,\
             gold.storageclass.storage.k8s.io/requests.storage=2Gi,persistentvolumeclaims=1,\
             requests.storage=2Gi"
        );
    }

    #[test]
    fn names_are_of_tables() {
        for (name, expected) in [
            ("cpu", vec![PODS]),
            ("requests.ephemeral-storage", vec![PODS]),
            ("hugepages-1Gi", vec![PODS]),
            ("requests.hugepages-1Gi", vec![PODS]),
            ("requests.example.com/gpu", vec![PODS]),
            ("example.com/gpu", vec![]),
            ("count/pods", vec![PODS]),
            ("services.nodeports", vec![SERVICES]),
            ("requests.storage", vec![CLAIMS]),
            (
                "gold.storageclass.storage.k8s.io/requests.storage",
                vec![CLAIMS],
            ),
            ("secrets", vec!["secrets"]),
            ("count/secrets", vec!["secrets"]),
            ("count/deployments.apps", vec!["deployments.apps"]),
            ("limits.storage", vec![]),
        ] {
            assert_eq!(tables(name), expected, "{name}");
        }
    }
}
