//! Nodes: what pods run on. They are made once and keep still, and so do their leases
//! (see [`super::lease`]); the heartbeats of real kubelets would only keep virtual time
//! busy.

use std::sync::Arc;

use serde_json::{Value, json};

use super::context::{KUBELET, create};
use super::tables::{NODES, STORAGE_CLASSES};
use crate::kinds::edit::{flag, items, text, text_at};
use crate::rest::meta;
use crate::selector::LabelSelector;
use crate::server::Shared;

/// The class that claims get which name none.
const CLASS: &str = "standard";
/// Who makes volumes of that class.
pub(super) const PROVISIONER: &str = "actor.reeve.dev/volumes";

/// Makes the nodes, and the storage class of a cluster that has none.
pub(super) fn set_up(shared: &Arc<Shared>, nodes: usize) {
    let now = shared.clock.timestamp();
    for number in 1..=nodes {
        let name = format!("node-{number}");
        if shared.store.get(NODES, &name).is_some() {
            continue;
        }
        make(shared, NODES, node(&name, &now));
    }
    if super::context::list(shared, STORAGE_CLASSES, "").is_empty() {
        make(
            shared,
            STORAGE_CLASSES,
            json!({
                "metadata": {
                    "name": CLASS,
                    "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
                },
                "provisioner": PROVISIONER,
                "reclaimPolicy": "Delete",
                "volumeBindingMode": "Immediate",
            }),
        );
    }
}

fn make(shared: &Arc<Shared>, table: &str, object: Value) {
    let name = meta::text(&object, "name").to_owned();
    let made = create(shared, table, "", KUBELET, object);
    let made = match made {
        Err(error) => return tracing::warn!(%error, table, name, "not made"),
        Ok(made) => made,
    };
    if table == NODES {
        admit(shared, &made);
    }
}

/// Takes away the taint that every new node has until it is ready.
fn admit(shared: &Arc<Shared>, node: &Value) {
    let settings = super::Actors::default();
    let mut index = super::index::Index::default();
    let context = super::context::Context::new(shared, &settings, &mut index);
    let written = context.change(NODES, node, super::context::MANAGER, |node| {
        if let Some(spec) = node.get_mut("spec").and_then(Value::as_object_mut) {
            spec.remove("taints");
        }
    });
    if let Err(error) = written {
        tracing::warn!(%error, "node not admitted");
    }
}

fn node(name: &str, now: &str) -> Value {
    let address = address(name);
    let resources = json!({
        "cpu": "64", "memory": "256Gi", "pods": "1000", "ephemeral-storage": "1Ti",
        "hugepages-1Gi": "0", "hugepages-2Mi": "0",
    });
    let condition = |kind: &str, status: bool, reason: &str, message: &str| {
        json!({
            "type": kind,
            "status": if status { "True" } else { "False" },
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        })
    };
    json!({
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "beta.kubernetes.io/arch": "amd64",
            },
        },
        "spec": {},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "Hostname", "address": name},
            ],
            "capacity": resources,
            "allocatable": resources,
            "conditions": [
                condition("MemoryPressure", false, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
                condition("DiskPressure", false, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                condition("PIDPressure", false, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
                condition("Ready", true, "KubeletReady", "kubelet is posting ready status"),
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "",
                "containerRuntimeVersion": "containerd://2.0.0",
                "kernelVersion": "6.12.0",
                "kubeProxyVersion": "",
                "kubeletVersion": "v1.36.3",
                "machineID": "",
                "operatingSystem": "linux",
                "osImage": "simulated",
                "systemUUID": "",
            },
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        },
    })
}

/// The address of a node, by its number.
pub(super) fn address(name: &str) -> String {
    let number: u32 = name
        .rsplit('-')
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0);
    let [_, _, high, low] = (number + 1).to_be_bytes();
    format!("172.18.{high}.{low}")
}

/// Whether a node takes a pod.
pub(super) fn takes(node: &Value, pod: &Value) -> bool {
    let spec = &node["spec"];
    let ready = items(&node["status"], "conditions")
        .any(|c| text(c, "type") == "Ready" && text(c, "status") == "True");
    ready
        && (!flag(spec, "unschedulable") || is_daemon(pod))
        && tolerated(spec, pod)
        && selected(node, pod)
}

/// Pods of daemons run on nodes that take no others.
fn is_daemon(pod: &Value) -> bool {
    super::index::controller(pod)
        .and_then(|controller| controller.target)
        .is_some_and(|target| *target.table == *super::tables::DAEMON_SETS)
}

fn tolerated(spec: &Value, pod: &Value) -> bool {
    let hard = items(spec, "taints").filter(|taint| text(taint, "effect") != "PreferNoSchedule");
    let mut hard = hard.filter(|taint| {
        !(is_daemon(pod) && text(taint, "key") == "node.kubernetes.io/unschedulable")
    });
    hard.all(|taint| {
        items(&pod["spec"], "tolerations").any(|toleration| tolerates(toleration, taint))
    })
}

fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let key = text(toleration, "key");
    let effect = text(toleration, "effect");
    let value = text(toleration, "operator") == "Exists"
        || text(toleration, "value") == text(taint, "value");
    (key.is_empty() || key == text(taint, "key"))
        && (effect.is_empty() || effect == text(taint, "effect"))
        && value
}

fn selected(node: &Value, pod: &Value) -> bool {
    let labels = super::template::labels(node);
    let wanted = pod
        .pointer("/spec/nodeSelector")
        .cloned()
        .unwrap_or_default();
    let by_labels = LabelSelector::from_object(&json!({"matchLabels": wanted}))
        .is_ok_and(|selector| selector.matches(labels));
    let terms = pod.pointer(
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms",
    );
    let by_affinity = terms.and_then(Value::as_array).is_none_or(|terms| {
        terms.iter().any(|term| {
            let expressions = json!({"matchExpressions": term.get("matchExpressions")});
            let name = meta::text(node, "name");
            let mut fields = items(term, "matchFields");
            LabelSelector::from_object(&expressions).is_ok_and(|s| s.matches(labels))
                && fields.all(|field| {
                    let listed = items(field, "values").any(|value| value == name);
                    listed == (text(field, "operator") == "In")
                })
        })
    });
    by_labels && by_affinity
}

/// Whether a node is there for daemons whose pods look like this.
pub(super) fn is_for(node: &Value, pod: &Value) -> bool {
    tolerated(&node["spec"], pod)
        && selected(node, pod)
        && !text_at(node, "/metadata/name").is_empty()
}
