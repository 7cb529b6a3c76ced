//! Services: ports, cluster addresses, and what each type allows.

mod allocation;
mod changes;
mod families;
mod validation;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::edit::{
    default_to, ensure_object, integer, items, items_mut, present, remove, set, text,
};

pub use self::allocation::{ClusterIps, Pool, Refusal, allocate};
pub(super) use self::changes::{prepare_create, prepare_update};
pub(super) use self::validation::{validate, validate_status, validate_update};

const NONE: &str = "None";

pub(super) fn default(service: &mut Value) {
    let Some(spec) = ensure_object(service, "spec") else {
        return;
    };
    default_to(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => {
            remove(spec, "sessionAffinityConfig");
        }
        "ClientIP" => {
            const SECONDS: i64 = 3 * 60 * 60;
            if spec
                .pointer("/sessionAffinityConfig/clientIP/timeoutSeconds")
                .is_none()
            {
                let config = json!({"clientIP": {"timeoutSeconds": SECONDS}});
                set(spec, "sessionAffinityConfig", config);
            }
        }
        _ => {}
    }
    default_to(spec, "type", "ClusterIP");
    for port in items_mut(spec, "ports") {
        default_to(port, "protocol", "TCP");
        let target = port.get("targetPort");
        if target.is_none_or(|target| *target == json!(0) || *target == json!("")) {
            let number = port.get("port").cloned().unwrap_or(json!(0));
            set(port, "targetPort", number);
        }
        if integer(port, "nodePort") == Some(0) {
            remove(port, "nodePort");
        }
    }
    if integer(spec, "healthCheckNodePort") == Some(0) {
        remove(spec, "healthCheckNodePort");
    }
    if is_reachable_from_outside(spec) {
        default_to(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(
        text(spec, "type"),
        "ClusterIP" | "NodePort" | "LoadBalancer"
    ) {
        default_to(spec, "internalTrafficPolicy", "Cluster");
    }
    if text(spec, "type") == "LoadBalancer" {
        default_to(spec, "allocateLoadBalancerNodePorts", true);
        if let Some(balancer) = service.pointer_mut("/status/loadBalancer") {
            for ingress in items_mut(balancer, "ingress") {
                if !text(ingress, "ip").is_empty() {
                    default_to(ingress, "ipMode", "VIP");
                }
            }
        }
    }
}

fn is_reachable_from_outside(spec: &Value) -> bool {
    match text(spec, "type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => present(spec, "externalIPs").is_some(),
        _ => false,
    }
}

fn has_address(spec: &Value) -> bool {
    text(spec, "type") != "ExternalName"
}

fn is_balanced(spec: &Value) -> bool {
    text(spec, "type") == "LoadBalancer"
}

fn has_node_ports(spec: &Value) -> bool {
    matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
}

/// Whether nodes tell a load balancer which of them have endpoints.
fn needs_health_check(spec: &Value) -> bool {
    is_balanced(spec) && text(spec, "externalTrafficPolicy") == "Local"
}

/// The ports of nodes that a Service has or asks for.
fn node_ports(spec: &Value) -> BTreeSet<i64> {
    let ports = items(spec, "ports").filter_map(|port| integer(port, "nodePort"));
    ports.filter(|port| *port != 0).collect()
}
