//! Endpoints and EndpointSlices: the pods behind a Service.

use serde_json::{Map, Value, json};

use super::context::{Context, MANAGER};
use super::replica_set::is_ready;
use super::tables::{ENDPOINTS, PODS, SERVICES, SLICES};
use super::template;
use crate::kinds::edit::{flag, items, set, text, text_at};
use crate::rest::meta;
use crate::status::ApiError;

const SERVICE: &str = "kubernetes.io/service-name";
const MANAGED_SLICE: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGED: &str = "endpoints.kubernetes.io/managed-by";
const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";
const HEADLESS: &str = "service.kubernetes.io/headless";

pub(super) fn reconcile(context: &mut Context<'_>, service: &Value) -> Result<(), ApiError> {
    let Some(selector) = template::selector(service) else {
        return Ok(());
    };
    if meta::is_terminating(service) || text_at(service, "/spec/type") == "ExternalName" {
        return Ok(());
    }
    let pods: Vec<Value> = context
        .list(PODS, meta::text(service, "namespace"))
        .into_iter()
        .filter(|pod| selector.matches(template::labels(pod)))
        .filter(|pod| !text_at(pod, "/status/podIP").is_empty() && !template::is_over(pod))
        .collect();
    slice(context, service, &pods)?;
    endpoints(context, service, &pods)
}

/// The ports of a Service, as numbers of `pod`.
fn ports(service: &Value, pod: Option<&Value>) -> Vec<Value> {
    let mut ports = Vec::new();
    for port in items(&service["spec"], "ports") {
        let target = match port.get("targetPort") {
            Some(Value::String(name)) => pod.and_then(|pod| named(pod, name)),
            Some(number) => Some(number.clone()),
            None => port.get("port").cloned(),
        };
        let Some(target) = target else { continue };
        let mut found = json!({
            "port": target,
            "protocol": port.get("protocol").cloned().unwrap_or(json!("TCP")),
            "name": text(port, "name"),
        });
        if let Some(protocol) = port.get("appProtocol") {
            set(&mut found, "appProtocol", protocol.clone());
        }
        ports.push(found);
    }
    ports
}

fn named(pod: &Value, name: &str) -> Option<Value> {
    let containers = items(&pod["spec"], "containers");
    let mut ports = containers.flat_map(|container| items(container, "ports"));
    let port = ports.find(|port| text(port, "name") == name)?;
    port.get("containerPort").cloned()
}

fn target(pod: &Value) -> Value {
    json!({
        "kind": "Pod",
        "namespace": meta::text(pod, "namespace"),
        "name": meta::text(pod, "name"),
        "uid": meta::text(pod, "uid"),
    })
}

/// Labels of a Service that those of what is behind it are, too.
fn labels(service: &Value) -> Map<String, Value> {
    let mut labels = template::labels(service).cloned().unwrap_or_default();
    if text_at(service, "/spec/clusterIP") == "None" {
        labels.insert(HEADLESS.to_owned(), json!(""));
    }
    labels
}

fn slice(context: &Context<'_>, service: &Value, pods: &[Value]) -> Result<(), ApiError> {
    let publish = flag(&service["spec"], "publishNotReadyAddresses");
    let endpoints: Vec<Value> = pods
        .iter()
        .map(|pod| {
            let (serving, ending) = (is_ready(pod), meta::is_terminating(pod));
            json!({
                "addresses": [text_at(pod, "/status/podIP")],
                "conditions": {
                    "ready": publish || (serving && !ending),
                    "serving": serving,
                    "terminating": ending,
                },
                "nodeName": text_at(pod, "/spec/nodeName"),
                "targetRef": target(pod),
            })
        })
        .collect();
    let ports = ports(service, pods.first());
    let mut labels = labels(service);
    let name = meta::text(service, "name");
    labels.insert(SERVICE.to_owned(), json!(name));
    labels.insert(
        MANAGED_SLICE.to_owned(),
        json!("endpointslice-controller.k8s.io"),
    );
    let known = context.controlled(service, SLICES);
    if let Some(known) = known.first() {
        if known["endpoints"] == json!(endpoints) && known["ports"] == json!(ports) {
            return Ok(());
        }
        let now = context.timestamp();
        return context.change(SLICES, known, MANAGER, |slice| {
            set(slice, "endpoints", endpoints.clone());
            set(slice, "ports", ports.clone());
            set(&mut slice["metadata"], "labels", labels.clone());
            super::claim::annotate(slice, TRIGGER, &now);
        });
    }
    let slice = json!({
        "metadata": {
            "generateName": format!("{name}-"),
            "labels": labels,
            "annotations": {TRIGGER: context.timestamp()},
            "ownerReferences": [template::controller_reference(service)],
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": ports,
    });
    context
        .create(SLICES, meta::text(service, "namespace"), MANAGER, slice)
        .map(drop)
}

fn endpoints(context: &Context<'_>, service: &Value, pods: &[Value]) -> Result<(), ApiError> {
    let publish = flag(&service["spec"], "publishNotReadyAddresses");
    let address = |pod: &Value| {
        json!({
            "ip": text_at(pod, "/status/podIP"),
            "nodeName": text_at(pod, "/spec/nodeName"),
            "targetRef": target(pod),
        })
    };
    let (ready, unready): (Vec<&Value>, Vec<&Value>) = pods
        .iter()
        .filter(|pod| !meta::is_terminating(pod))
        .partition(|pod| publish || is_ready(pod));
    let mut subset = json!({});
    for (field, pods) in [("addresses", ready), ("notReadyAddresses", unready)] {
        if !pods.is_empty() {
            let mut addresses: Vec<Value> = pods.into_iter().map(address).collect();
            addresses.sort_by_key(|address| text(address, "ip").to_owned());
            set(&mut subset, field, addresses);
        }
    }
    let mut subsets = Vec::new();
    if subset.as_object().is_some_and(|fields| !fields.is_empty()) {
        let mut ports = ports(service, pods.first());
        // A single port without a name has none here.
        for port in &mut ports {
            if text(port, "name").is_empty() {
                crate::kinds::edit::remove(port, "name");
            }
        }
        if !ports.is_empty() {
            set(&mut subset, "ports", ports);
        }
        subsets.push(subset);
    }
    let mut labels = labels(service);
    labels.insert(MANAGED.to_owned(), json!("endpoint-controller"));
    let namespace = meta::text(service, "namespace");
    let name = meta::text(service, "name");
    let now = context.timestamp();
    let Some(known) = context.get(ENDPOINTS, &format!("{namespace}/{name}")) else {
        let mut object = json!({
            "metadata": {"name": name, "labels": labels, "annotations": {TRIGGER: now}},
        });
        if !subsets.is_empty() {
            set(&mut object, "subsets", subsets);
        }
        return context
            .create(ENDPOINTS, namespace, MANAGER, object)
            .map(drop);
    };
    let same = match known.get("subsets") {
        Some(known) => *known == json!(subsets),
        None => subsets.is_empty(),
    };
    if same && template::labels(&known) == Some(&labels) {
        return Ok(());
    }
    context.change(ENDPOINTS, &known, MANAGER, |object| {
        if subsets.is_empty() {
            crate::kinds::edit::remove(object, "subsets");
        } else {
            set(object, "subsets", subsets.clone());
        }
        set(&mut object["metadata"], "labels", labels.clone());
        super::claim::annotate(object, TRIGGER, &now);
    })
}

/// Deletes the Endpoints of a Service that is gone.
pub(super) fn gone(context: &Context<'_>, key: &str) -> Result<(), ApiError> {
    if context.get(SERVICES, key).is_some() {
        return Ok(());
    }
    let known = context.get(ENDPOINTS, key);
    let known = known.filter(|known| {
        template::labels(known)
            .is_some_and(|labels| labels.get(MANAGED) == Some(&json!("endpoint-controller")))
    });
    match known {
        Some(known) => context.delete(ENDPOINTS, &known),
        None => Ok(()),
    }
}
