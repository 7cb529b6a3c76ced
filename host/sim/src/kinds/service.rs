//! Services: ports, cluster addresses, and what each type allows.

mod validation;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::edit::{
    default_to, ensure_object, flag, integer, items, items_mut, present, remove, set, text,
};

pub(super) use self::validation::{validate, validate_status, validate_update};

const NONE: &str = "None";

/// The ports of nodes that Services get, where a cluster does not say otherwise.
pub const NODE_PORTS: std::ops::Range<i64> = 30000..32768;

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

pub(super) fn prepare_create(service: &mut Value) {
    if let Some(spec) = service.get_mut("spec") {
        normalize_cluster_ips(spec, &Value::Null);
    }
}

/// Keeps what the server chose for the old Service where the new one does not
/// say otherwise, and drops what does not fit a new type.
pub(super) fn prepare_update(service: &mut Value, old: &Value) {
    let null = Value::Null;
    let old = old.get("spec").unwrap_or(&null);
    let Some(spec) = service.get_mut("spec") else {
        return;
    };
    let was_internal = text(old, "type") != "ExternalName";
    if was_internal && text(spec, "type") != "ExternalName" {
        // What was given stays, also where it is not named again.
        if present(spec, "clusterIP").is_none()
            && let Some(ip) = present(old, "clusterIP")
        {
            set(spec, "clusterIP", ip.clone());
        }
        if present(spec, "clusterIPs").is_none()
            && text(spec, "clusterIP") == text(old, "clusterIP")
            && let Some(ips) = present(old, "clusterIPs")
        {
            set(spec, "clusterIPs", ips.clone());
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if present(spec, field).is_none()
                && let Some(value) = present(old, field)
            {
                set(spec, field, value.clone());
            }
        }
    }
    if matches!(text(spec, "type"), "NodePort" | "LoadBalancer") {
        let old_ports: Vec<Value> = items(old, "ports").cloned().collect();
        for port in items_mut(spec, "ports") {
            if port.get("nodePort").is_some() {
                continue;
            }
            let same = |other: &&Value| {
                other.get("port") == port.get("port")
                    && other.get("protocol") == port.get("protocol")
            };
            if let Some(number) = old_ports.iter().find(same).and_then(|p| p.get("nodePort")) {
                let number = number.clone();
                set(port, "nodePort", number);
            }
        }
    }
    normalize_cluster_ips(spec, old);
    drop_for_type(spec, old);
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

/// The addresses that Services get: the usable ones of an IPv4 range.
#[derive(Debug, Clone, Copy)]
pub struct ClusterIps {
    /// The first address of the range, which is the network's own.
    pub network: Ipv4Addr,
    /// The bits of the network's prefix.
    pub prefix: u8,
}

impl ClusterIps {
    /// Whether an address is in the range.
    pub fn has(self, ip: Ipv4Addr) -> bool {
        let host_bits = 32_u32.saturating_sub(u32::from(self.prefix));
        let network = |ip: Ipv4Addr| u64::from(u32::from(ip)) >> host_bits;
        network(ip) == network(self.network)
    }

    /// The first address for which `used` says no; none when all are taken.
    fn free(self, used: &dyn Fn(&str) -> bool) -> Option<String> {
        let base = u32::from(self.network);
        let bits = 32_u32.saturating_sub(u32::from(self.prefix));
        let last = base | u32::try_from((1_u64 << bits) - 1).unwrap_or(u32::MAX);
        // The network's own address and the broadcast address are not given out.
        (base.saturating_add(1)..last)
            .map(|ip| Ipv4Addr::from(ip).to_string())
            .find(|ip| !used(ip))
    }
}

/// The policy of Services that have addresses of both families.
const BOTH_FAMILIES: &str = "RequireDualStack";

/// Gives a validated Service its cluster address, its address families and its
/// node ports. `ip_used` and `port_used` say what other Services have.
///
/// # Errors
///
/// The message of an `Internal` status when the range is exhausted.
pub fn allocate(
    service: &mut Value,
    ips: ClusterIps,
    ip_used: &dyn Fn(&str) -> bool,
    port_used: &dyn Fn(i64) -> bool,
) -> Result<(), String> {
    let Some(spec) = service.get_mut("spec") else {
        return Ok(());
    };
    if text(spec, "type") == "ExternalName" {
        return Ok(());
    }
    // Who gives a Service its endpoints by hand may give it those of both families.
    let is_open = text(spec, "clusterIP") == "None" && present(spec, "selector").is_none();
    let policy = if is_open {
        BOTH_FAMILIES
    } else {
        "SingleStack"
    };
    default_to(spec, "ipFamilyPolicy", policy);
    if present(spec, "ipFamilies").is_none() {
        set(spec, "ipFamilies", json!(["IPv4"]));
    }
    if is_open && text(spec, "ipFamilyPolicy") != "SingleStack" {
        let mut families: Vec<Value> = items(spec, "ipFamilies").cloned().collect();
        if let [one] = &families[..] {
            let other = if *one == "IPv4" { "IPv6" } else { "IPv4" };
            families.push(json!(other));
            set(spec, "ipFamilies", families);
        }
    }
    if text(spec, "clusterIP").is_empty() {
        let ip = ips
            .free(ip_used)
            .ok_or_else(|| "failed to allocate a serviceIP: range is full".to_owned())?;
        set(spec, "clusterIPs", json!([ip]));
        set(spec, "clusterIP", ip);
    }
    let wants_ports = match text(spec, "type") {
        "NodePort" => true,
        "LoadBalancer" => flag(spec, "allocateLoadBalancerNodePorts"),
        _ => false,
    };
    if !wants_ports {
        return Ok(());
    }
    let mut taken: BTreeSet<i64> = items(spec, "ports")
        .filter_map(|port| integer(port, "nodePort"))
        .collect();
    for port in items_mut(spec, "ports") {
        if integer(port, "nodePort").is_some() {
            continue;
        }
        let free = NODE_PORTS
            .into_iter()
            .find(|number| !taken.contains(number) && !port_used(*number))
            .ok_or_else(|| "failed to allocate a nodePort: range is full".to_owned())?;
        taken.insert(free);
        set(port, "nodePort", free);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Errors;

    const IPS: ClusterIps = ClusterIps {
        network: Ipv4Addr::new(10, 0, 0, 0),
        prefix: 30,
    };

    #[test]
    fn addresses_and_ports_are_given_once() {
        let mut service = json!({"spec": {"type": "NodePort", "ports": [
            {"port": 80, "protocol": "TCP"},
            {"port": 81, "protocol": "TCP", "nodePort": 30000},
        ]}});
        allocate(&mut service, IPS, &|ip| ip == "10.0.0.1", &|_| false).unwrap();
        let spec = &service["spec"];
        assert_eq!(spec["clusterIP"], "10.0.0.2");
        assert_eq!(spec["clusterIPs"], json!(["10.0.0.2"]));
        assert_eq!(spec["ipFamilies"], json!(["IPv4"]));
        assert_eq!(spec["ports"][0]["nodePort"], 30001);
        let once = service.clone();
        allocate(&mut service, IPS, &|_| false, &|_| false).unwrap();
        assert_eq!(service, once);
        let mut other = json!({"spec": {"type": "ClusterIP"}});
        assert!(allocate(&mut other, IPS, &|_| true, &|_| false).is_err());
    }

    #[test]
    fn a_service_without_addresses_and_selector_has_both_families() {
        let check = |spec: Value, policy: &str, families: Value| {
            let mut service = json!({ "spec": spec });
            allocate(&mut service, IPS, &|_| false, &|_| false).unwrap();
            assert_eq!(service["spec"]["ipFamilyPolicy"], policy);
            assert_eq!(service["spec"]["ipFamilies"], families);
        };
        let headless = json!({"type": "ClusterIP", "clusterIP": "None"});
        let with = |field: &str, value: Value| {
            let mut spec = headless.clone();
            spec[field] = value;
            spec
        };
        let both = json!(["IPv4", "IPv6"]);
        check(headless.clone(), "RequireDualStack", both.clone());
        let preferring = with("ipFamilyPolicy", json!("PreferDualStack"));
        check(preferring, "PreferDualStack", both);
        let reversed = with("ipFamilies", json!(["IPv6"]));
        check(reversed, "RequireDualStack", json!(["IPv6", "IPv4"]));
        let single = with("ipFamilyPolicy", json!("SingleStack"));
        check(single, "SingleStack", json!(["IPv4"]));
        let selecting = with("selector", json!({"a": "b"}));
        check(selecting, "SingleStack", json!(["IPv4"]));
    }

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
}
