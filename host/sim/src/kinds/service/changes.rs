//! What an update of a Service keeps of the stored one, and what a new type takes away.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    has_address, has_node_ports, is_balanced, is_reachable_from_outside, needs_health_check,
    node_ports,
};
use crate::kinds::edit::{
    default_to, ensure_object, integer, items, items_mut, present, remove, set, text,
};

pub(in crate::kinds) fn prepare_create(service: &mut Value) {
    if let Some(spec) = service.get_mut("spec") {
        normalize_cluster_ips(spec, &Value::Null);
    }
}

/// Keeps what the server chose for the old Service where the new one does not
/// say otherwise, and drops what does not fit a new type.
pub(in crate::kinds) fn prepare_update(service: &mut Value, old: &Value) {
    let null = Value::Null;
    let old = old.get("spec").unwrap_or(&null);
    let is_to_be_balanced = service.get("spec").is_some_and(is_balanced);
    if !is_to_be_balanced && let Some(status) = ensure_object(service, "status") {
        set(status, "loadBalancer", json!({}));
    }
    let Some(spec) = service.get_mut("spec") else {
        return;
    };
    if has_address(old) && has_address(spec) {
        keep_addresses(spec, old);
    }
    if keeps_node_ports(old) && keeps_node_ports(spec) {
        keep_node_ports(spec, old);
    }
    if needs_health_check(old)
        && needs_health_check(spec)
        && let Some(port) = old.get("healthCheckNodePort").cloned()
    {
        default_to(spec, "healthCheckNodePort", port);
    }
    normalize_cluster_ips(spec, old);
    drop_for_type(spec, old);
}

fn keep_addresses(spec: &mut Value, old: &Value) {
    if let Some(ip) = present(old, "clusterIP") {
        default_to(spec, "clusterIP", ip.clone());
    }
    if present(spec, "clusterIPs").is_none()
        && text(spec, "clusterIP") == text(old, "clusterIP")
        && let Some(ips) = present(old, "clusterIPs")
    {
        set(spec, "clusterIPs", ips.clone());
    }
}

/// Whether ports that name no node port get one, and so get theirs back.
fn keeps_node_ports(spec: &Value) -> bool {
    let is_refused = spec.get("allocateLoadBalancerNodePorts") == Some(&Value::Bool(false));
    has_node_ports(spec) && !(is_balanced(spec) && is_refused)
}

/// Gives ports back the node ports of those with their names, but for those that are
/// named elsewhere.
fn keep_node_ports(spec: &mut Value, old: &Value) {
    let named = node_ports(spec);
    let before: HashMap<&str, i64> = items(old, "ports")
        .map(|port| (text(port, "name"), integer(port, "nodePort").unwrap_or(0)))
        .collect();
    for port in items_mut(spec, "ports") {
        let had = before.get(text(port, "name")).copied().unwrap_or(0);
        if integer(port, "nodePort").unwrap_or(0) == 0 && had != 0 && !named.contains(&had) {
            set(port, "nodePort", had);
        }
    }
}

/// Clients may write the singular or the plural field; both are kept in step.
fn normalize_cluster_ips(spec: &mut Value, old: &Value) {
    let ip = text(spec, "clusterIP").to_owned();
    let changed = !old.is_null() && text(old, "clusterIP") != ip;
    let listed = present(spec, "clusterIPs").is_some();
    if ip.is_empty() {
        if changed && spec.get("clusterIPs") == old.get("clusterIPs") {
            remove(spec, "clusterIPs");
        }
    } else if !listed || (changed && spec.get("clusterIPs") == old.get("clusterIPs")) {
        set(spec, "clusterIPs", json!([ip]));
    }
}

/// A change of type takes away what only made sense for the old one, unless the client
/// set it anew; that is refused later.
fn drop_for_type(spec: &mut Value, old: &Value) {
    let drop_same = |spec: &mut Value, fields: &[&str]| {
        let is_same = |field: &&str| present(spec, field) == present(old, field);
        if fields.iter().all(is_same) {
            for field in fields {
                remove(spec, field);
            }
        }
    };
    if has_address(old) && !has_address(spec) {
        drop_same(spec, &["clusterIP", "clusterIPs"]);
        for field in ["ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
            drop_same(spec, &[field]);
        }
    }
    // Ports come and go, too: what counts is that none of these numbers is new.
    if has_node_ports(old) && !has_node_ports(spec) && node_ports(spec).is_subset(&node_ports(old))
    {
        for port in items_mut(spec, "ports") {
            remove(port, "nodePort");
        }
    }
    if needs_health_check(old) && !needs_health_check(spec) {
        drop_same(spec, &["healthCheckNodePort"]);
    }
    if is_balanced(old) && !is_balanced(spec) {
        drop_same(spec, &["allocateLoadBalancerNodePorts"]);
        drop_same(spec, &["loadBalancerClass"]);
    }
    if is_reachable_from_outside(old) && !is_reachable_from_outside(spec) {
        drop_same(spec, &["externalTrafficPolicy"]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::validate_update;
    use super::*;
    use crate::field::Errors;

    #[test]
    fn a_new_type_drops_what_was_not_set_anew() {
        let old = json!({"spec": {"type": "NodePort", "externalTrafficPolicy": "Cluster", "ports": [
            {"name": "a", "port": 80, "nodePort": 30001},
            {"name": "b", "port": 81, "nodePort": 30002},
        ]}});
        let check = |ports: Value, expected: Value| {
            let mut new = json!({"spec": {"type": "ClusterIP", "ports": ports}});
            new["spec"]["externalTrafficPolicy"] = json!("Cluster");
            prepare_update(&mut new, &old);
            assert_eq!(new["spec"]["ports"], expected);
            assert!(new["spec"].get("externalTrafficPolicy").is_none());
        };
        check(
            json!([{"name": "b", "port": 81, "nodePort": 30002}]),
            json!([{"name": "b", "port": 81}]),
        );
        check(
            json!([{"name": "c", "port": 82, "nodePort": 30001}, {"name": "d", "port": 83}]),
            json!([{"name": "c", "port": 82}, {"name": "d", "port": 83}]),
        );
        let new = json!([
            {"name": "a", "port": 80, "nodePort": 30001},
            {"name": "b", "port": 81, "nodePort": 30003},
        ]);
        check(new.clone(), new);
    }

    #[test]
    fn an_update_keeps_what_the_server_chose() {
        let old = json!({"spec": {
            "type": "ClusterIP", "clusterIP": "10.0.0.2", "clusterIPs": ["10.0.0.2"],
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
        }});
        let mut new = json!({"spec": {"type": "ClusterIP", "ports": [{"port": 80}]}});
        prepare_update(&mut new, &old);
        assert_eq!(new["spec"]["clusterIP"], "10.0.0.2");
        let mut errors = Errors::new();
        validate_update(&new, &old, &mut errors);
        assert!(errors.is_empty());
        new["spec"]["clusterIP"] = json!("10.0.0.3");
        new["spec"]["clusterIPs"] = json!(["10.0.0.3"]);
        validate_update(&new, &old, &mut errors);
        assert_eq!(
            errors.aggregate(),
            "spec.clusterIPs[0]: Invalid value: [\"10.0.0.3\"]: may not change once set"
        );
    }

    #[test]
    fn node_ports_are_kept_by_the_names_of_ports() {
        let old = json!({"type": "NodePort", "ports": [
            {"name": "a", "port": 80, "nodePort": 30001},
            {"name": "b", "port": 81, "nodePort": 30002},
        ]});
        let check = |old: &Value, mut new: Value, expected: Value| {
            new["allocateLoadBalancerNodePorts"] = old["allocateLoadBalancerNodePorts"].clone();
            let mut service = json!({ "spec": new });
            prepare_update(&mut service, &json!({ "spec": old }));
            let ports = items(&service["spec"], "ports");
            let given: Vec<Value> = ports.map(|port| port["nodePort"].clone()).collect();
            assert_eq!(json!(given), expected);
        };
        check(
            &old,
            json!({"type": "NodePort", "ports": [
                {"name": "b", "port": 91}, {"name": "c", "port": 80},
            ]}),
            json!([30002, null]),
        );
        check(
            &old,
            json!({"type": "LoadBalancer", "ports": [
                {"name": "b", "port": 81}, {"name": "c", "port": 82, "nodePort": 30002},
            ]}),
            json!([null, 30002]),
        );
        let mut without = old.clone();
        without["type"] = json!("LoadBalancer");
        without["allocateLoadBalancerNodePorts"] = json!(false);
        check(
            &without,
            json!({"type": "LoadBalancer", "ports": [{"name": "a", "port": 80}]}),
            json!([null]),
        );
    }

    #[test]
    fn addresses_of_a_balancer_go_with_it() {
        let status = json!({"loadBalancer": {"ingress": [{"ip": "1.1.1.1"}]}, "conditions": []});
        let old = json!({"spec": {"type": "LoadBalancer"}, "status": status});
        let mut new = json!({"spec": {"type": "NodePort"}, "status": status});
        prepare_update(&mut new, &old);
        assert_eq!(new["status"], json!({"loadBalancer": {}, "conditions": []}));
        let mut new = old.clone();
        prepare_update(&mut new, &old);
        assert_eq!(new, old);
    }

    #[test]
    fn the_port_for_checks_stays_as_long_as_there_are_any() {
        let balanced =
            |policy: &str| json!({"type": "LoadBalancer", "externalTrafficPolicy": policy});
        let mut old = json!({ "spec": balanced("Local") });
        old["spec"]["healthCheckNodePort"] = json!(30100);
        let mut new = json!({ "spec": balanced("Local") });
        prepare_update(&mut new, &old);
        assert_eq!(new["spec"]["healthCheckNodePort"], 30100);
        let mut new = json!({ "spec": balanced("Cluster") });
        new["spec"]["healthCheckNodePort"] = json!(30100);
        prepare_update(&mut new, &old);
        assert!(new["spec"].get("healthCheckNodePort").is_none());
        let mut new = old.clone();
        new["spec"]["healthCheckNodePort"] = json!(30101);
        prepare_update(&mut new, &old);
        let mut errors = Errors::new();
        validate_update(&new, &old, &mut errors);
        assert_eq!(
            errors.aggregate(),
            "spec.healthCheckNodePort: Forbidden: field is immutable"
        );
    }
}
