//! Validation of Services.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;

use serde_json::{Value, json};

use super::{NONE, has_address, is_balanced, is_reachable_from_outside, needs_health_check};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::addresses;
use crate::kinds::edit::{integer, items, present, text};
use crate::kinds::endpoints::validate_app_protocol;
use crate::kinds::meta::validate_labels;
use crate::kinds::pod_validation::supported;
use crate::names;

const SPEC: Path<'static> = Path::new("spec");

pub(in crate::kinds) fn validate(service: &Value, errors: &mut Errors) {
    let spec = service.get("spec").unwrap_or(&Value::Null);
    let kind = text(spec, "type");
    let headless = is_headless(spec);
    if present(spec, "ports").is_none() && !headless && kind != "ExternalName" {
        errors.push(FieldError::required(&SPEC.child("ports"), ""));
    }
    match kind {
        "LoadBalancer" | "NodePort" if headless => {
            let path = SPEC.child("clusterIPs");
            errors.push(FieldError::invalid_str(
                &path.index(0),
                NONE,
                format!("may not be set to 'None' for {kind} services"),
            ));
        }
        "ExternalName" => validate_external_name(spec, errors),
        _ => {}
    }
    validate_ports(spec, errors);
    validate_labels(spec, &SPEC.child("selector"), "selector", errors);
    supported(
        &SPEC,
        spec,
        "sessionAffinity",
        &["ClientIP", "None"],
        errors,
    );
    validate_affinity(spec, errors);
    if has_address(spec) {
        validate_cluster_ips(spec, errors);
    }
    let path = SPEC.child("externalIPs");
    for (index, ip) in items(spec, "externalIPs").enumerate() {
        let path = path.index(index);
        let ip = ip.as_str().unwrap_or_default();
        if addresses::validate_ip(&path, ip, errors) {
            addresses::validate_reachable(&path, ip, errors);
        }
    }
    supported(
        &SPEC,
        spec,
        "type",
        &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
        errors,
    );
    validate_port_conflicts(spec, kind, errors);
    validate_balancer(spec, kind, errors);
    validate_policies(spec, errors);
    let distributions = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    if let Some(given) = spec
        .get("trafficDistribution")
        .filter(|given| !given.is_null())
        && !given
            .as_str()
            .is_some_and(|given| distributions.contains(&given))
    {
        let path = SPEC.child("trafficDistribution");
        errors.push(FieldError::not_supported(&path, given, &distributions));
    }
}

/// What only a Service with a load balancer has.
fn validate_balancer(spec: &Value, kind: &str, errors: &mut Errors) {
    const ONLY: &str = "may only be used when `type` is 'LoadBalancer'";
    let is_balanced = kind == "LoadBalancer";
    let ranges = SPEC.child("LoadBalancerSourceRanges");
    if present(spec, "loadBalancerSourceRanges").is_some() && !is_balanced {
        errors.push(FieldError::forbidden(&ranges, ONLY));
    }
    for (index, range) in items(spec, "loadBalancerSourceRanges").enumerate() {
        // Space around a range is a part of the API.
        let range = range.as_str().unwrap_or_default().trim();
        addresses::validate_range(&ranges.index(index), range, errors);
    }
    if present(spec, "allocateLoadBalancerNodePorts").is_some() && !is_balanced {
        let path = SPEC.child("allocateLoadBalancerNodePorts");
        errors.push(FieldError::forbidden(&path, ONLY));
    }
    validate_balancer_class(spec, errors);
}

fn validate_balancer_class(spec: &Value, errors: &mut Errors) {
    let path = SPEC.child("loadBalancerClass");
    let Some(class) = spec.get("loadBalancerClass").and_then(Value::as_str) else {
        return;
    };
    if text(spec, "type") == "LoadBalancer" {
        for wrong in names::qualified_name(class) {
            errors.push(FieldError::invalid_str(&path, class, wrong));
        }
    } else {
        let why = "may only be used when `type` is 'LoadBalancer'";
        errors.push(FieldError::forbidden(&path, why));
    }
}

/// How long clients stay with an endpoint.
fn validate_affinity(spec: &Value, errors: &mut Errors) {
    const LONGEST: i64 = 86_400;
    let seconds = spec.pointer("/sessionAffinityConfig/clientIP/timeoutSeconds");
    let seconds = seconds.and_then(Value::as_i64);
    if text(spec, "sessionAffinity") == "ClientIP"
        && let Some(seconds) = seconds.filter(|seconds| !(1..=LONGEST).contains(seconds))
    {
        let path = SPEC.child("sessionAffinityConfig");
        let path = path.child("clientIP");
        errors.push(FieldError::invalid(
            &path.child("timeoutSeconds"),
            &seconds.into(),
            format!("must be greater than 0 and less than {LONGEST}"),
        ));
    }
}

fn validate_external_name(spec: &Value, errors: &mut Errors) {
    for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if present(spec, field).is_some() {
            errors.push(FieldError::forbidden(
                &SPEC.child(field),
                "may not be set for ExternalName services",
            ));
        }
    }
    let name = text(spec, "externalName");
    let name = name.strip_suffix('.').unwrap_or(name);
    let path = SPEC.child("externalName");
    if name.is_empty() {
        errors.push(FieldError::required(&path, ""));
    } else {
        for wrong in names::dns1123_subdomain(name) {
            errors.push(FieldError::invalid_str(&path, name, wrong));
        }
    }
}

fn validate_ports(spec: &Value, errors: &mut Errors) {
    let path = SPEC.child("ports");
    let several = items(spec, "ports").count() > 1;
    let mut seen = BTreeSet::new();
    for (index, port) in items(spec, "ports").enumerate() {
        let path = path.index(index);
        let name = text(port, "name");
        let at = path.child("name");
        if name.is_empty() {
            if several {
                errors.push(FieldError::required(&at, ""));
            }
        } else {
            for wrong in names::dns1123_label(name) {
                errors.push(FieldError::invalid_str(&at, name, wrong));
            }
            if !seen.insert(name) {
                errors.push(FieldError::duplicate(&at, &name.into()));
            }
        }
        validate_port_number(&path.child("port"), port.get("port"), errors);
        supported(&path, port, "protocol", &["SCTP", "TCP", "UDP"], errors);
        match port.get("targetPort") {
            Some(Value::String(name)) => {
                for wrong in names::port_name(name) {
                    errors.push(FieldError::invalid_str(
                        &path.child("targetPort"),
                        name,
                        wrong,
                    ));
                }
            }
            target => validate_port_number(&path.child("targetPort"), target, errors),
        }
        validate_app_protocol(&path, port, errors);
    }
}

fn validate_port_number(path: &Path<'_>, port: Option<&Value>, errors: &mut Errors) {
    let number = port.and_then(Value::as_i64).unwrap_or(0);
    for wrong in names::port_number(number) {
        errors.push(FieldError::invalid(path, &number.into(), wrong));
    }
}

fn validate_port_conflicts(spec: &Value, kind: &str, errors: &mut Errors) {
    let path = SPEC.child("ports");
    let mut node_ports = BTreeSet::new();
    let mut ports = BTreeSet::new();
    for (index, port) in items(spec, "ports").enumerate() {
        if integer(port, "nodePort").is_some() && kind == "ClusterIP" {
            let path = path.index(index);
            errors.push(FieldError::forbidden(
                &path.child("nodePort"),
                "may not be used when `type` is 'ClusterIP'",
            ));
        }
    }
    for (index, port) in items(spec, "ports").enumerate() {
        let path = path.index(index);
        if let Some(number) = integer(port, "nodePort")
            && !node_ports.insert((text(port, "protocol"), number))
        {
            errors.push(FieldError::duplicate(
                &path.child("nodePort"),
                &number.into(),
            ));
        }
    }
    for (index, port) in items(spec, "ports").enumerate() {
        let number = integer(port, "port").unwrap_or(0);
        let protocol = text(port, "protocol");
        if !ports.insert((protocol, number)) {
            // The server prints its internal structure here.
            let shown = json!({
                "Name": "", "Protocol": protocol, "AppProtocol": null, "Port": number,
                "TargetPort": 0, "NodePort": 0,
            });
            errors.push(FieldError::duplicate(&path.index(index), &shown));
        }
    }
}

/// Checks addresses, their families and the policy for these, each and together.
pub(super) fn validate_cluster_ips(spec: &Value, errors: &mut Errors) {
    const MOST: usize = 2;
    let path = SPEC.child("clusterIPs");
    let listed = spec.get("clusterIPs").unwrap_or(&Value::Null);
    let first = spec.pointer("/clusterIPs/0").and_then(Value::as_str);
    let ip = text(spec, "clusterIP");
    let wrong = |why: &str| FieldError::invalid(&path, listed, why);
    match (ip.is_empty(), first) {
        (false, None) => errors.push(FieldError::required(&path, "")),
        (false, Some(first)) if first != ip => {
            errors.push(wrong("first value must match `clusterIP`"));
        }
        (true, Some(_)) => errors.push(wrong("must be empty when `clusterIP` is not specified")),
        _ => {}
    }
    validate_families(spec, errors);
    let ips: Vec<&str> = items(spec, "clusterIPs")
        .map(|ip| ip.as_str().unwrap_or_default())
        .collect();
    let mut are_valid = true;
    for (index, ip) in ips.iter().enumerate() {
        if index > 0 || *ip != NONE {
            are_valid &= addresses::validate_ip(&path.index(index), ip, errors);
        } else if ips.len() > 1 {
            errors.push(wrong("'None' must be the first and only value"));
            are_valid = false;
        }
    }
    if ips.len() > MOST {
        errors.push(wrong("may only hold up to 2 values"));
    }
    if !are_valid {
        return;
    }
    let of_ipv6 = ips.iter().filter(|ip| is_ipv6(ip)).count();
    if ips.len() > 1 && (of_ipv6 == 0 || of_ipv6 == ips.len()) {
        errors.push(wrong("may specify no more than one IP for each IP family"));
    }
    for (index, (ip, family)) in ips.iter().zip(items(spec, "ipFamilies")).enumerate() {
        let family = family.as_str().unwrap_or_default();
        let fits = match family {
            "IPv4" => !is_ipv6(ip),
            "IPv6" => is_ipv6(ip),
            _ => true,
        };
        if !fits && *ip != NONE {
            let why = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            errors.push(FieldError::invalid_str(&path.index(index), ip, why));
        }
    }
}

pub(super) fn is_ipv6(ip: &str) -> bool {
    ip.parse::<Ipv6Addr>().is_ok()
}

fn validate_families(spec: &Value, errors: &mut Errors) {
    const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
    const POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    let path = SPEC.child("ipFamilies");
    let mut seen = BTreeSet::new();
    for (index, given) in items(spec, "ipFamilies").enumerate() {
        let family = given.as_str().unwrap_or_default();
        let path = path.index(index);
        if !FAMILIES.contains(&family) {
            errors.push(FieldError::not_supported(&path, given, &FAMILIES));
        }
        if !seen.insert(family) {
            errors.push(FieldError::duplicate(&path, given));
        }
    }
    supported(&SPEC, spec, "ipFamilyPolicy", &POLICIES, errors);
}

fn validate_policies(spec: &Value, errors: &mut Errors) {
    let given = text(spec, "externalTrafficPolicy");
    if !is_reachable_from_outside(spec) {
        if !given.is_empty() {
            errors.push(FieldError::invalid_str(
                &SPEC.child("externalTrafficPolicy"),
                given,
                "may only be set for externally-accessible services",
            ));
        }
    } else {
        let values = ["Cluster", "Local"];
        supported(&SPEC, spec, "externalTrafficPolicy", &values, errors);
    }
    let needs_check = needs_health_check(spec);
    let check = integer(spec, "healthCheckNodePort").filter(|port| *port != 0);
    let path = SPEC.child("healthCheckNodePort");
    match check {
        Some(port) if !needs_check => errors.push(FieldError::invalid(
            &path,
            &port.into(),
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
        )),
        Some(_) => validate_port_number(&path, spec.get("healthCheckNodePort"), errors),
        None if needs_check => errors.push(FieldError::required(&path, "")),
        None => {}
    }
    let values = ["Cluster", "Local"];
    supported(&SPEC, spec, "internalTrafficPolicy", &values, errors);
}

/// A cluster address, once given, stays, and so does the class of a load balancer.
pub(in crate::kinds) fn validate_update(service: &Value, old: &Value, errors: &mut Errors) {
    let spec = service.get("spec").unwrap_or(&Value::Null);
    let old = old.get("spec").unwrap_or(&Value::Null);
    validate_cluster_ips_kept(spec, old, errors);
    validate_families_kept(spec, old, errors);
    let class = spec.get("loadBalancerClass");
    if is_balanced(spec) && is_balanced(old) && class != old.get("loadBalancerClass") {
        let path = SPEC.child("loadBalancerClass");
        let given = class.unwrap_or(&Value::Null);
        errors.push(FieldError::invalid(&path, given, "may not change once set"));
    }
    // The server looks at the class here, and again with the rest.
    validate_balancer_class(spec, errors);
    let port = |spec: &Value| integer(spec, "healthCheckNodePort");
    if needs_health_check(spec) && needs_health_check(old) && port(spec) != port(old) {
        let path = SPEC.child("healthCheckNodePort");
        errors.push(FieldError::forbidden(&path, "field is immutable"));
    }
}

fn validate_cluster_ips_kept(spec: &Value, old: &Value, errors: &mut Errors) {
    if !has_address(spec) || !has_address(old) || is_headless(spec) && is_headless(old) {
        return;
    }
    let path = SPEC.child("clusterIPs");
    let listed = spec.get("clusterIPs").unwrap_or(&Value::Null);
    let ips = |spec: &Value| -> Vec<Value> { items(spec, "clusterIPs").cloned().collect() };
    let (new, old) = (ips(spec), ips(old));
    // With as many as before each is looked at, and else the first.
    let compared = if new.len() == old.len() { new.len() } else { 1 };
    for (index, (new, old)) in new.iter().zip(&old).take(compared).enumerate() {
        if new != old {
            let why = "may not change once set";
            errors.push(FieldError::invalid(&path.index(index), listed, why));
        }
    }
    if new.is_empty() && !old.is_empty() {
        let why = "primary clusterIP can not be unset";
        errors.push(FieldError::invalid(&path.index(0), listed, why));
    }
    if new.len() == 1 && old.len() > 1 {
        validate_released(spec, "clusterIP", errors);
    }
}

/// As addresses, families stay; but those of a Service without addresses may change.
fn validate_families_kept(spec: &Value, old: &Value, errors: &mut Errors) {
    if !has_address(spec) || !has_address(old) || is_headless(spec) || is_headless(old) {
        return;
    }
    let path = SPEC.child("ipFamilies");
    let path = path.index(0);
    let families = |spec: &Value| -> Vec<Value> { items(spec, "ipFamilies").cloned().collect() };
    let (new, old) = (families(spec), families(old));
    let has_fewer = new.len() < old.len();
    let of_addresses = spec.get("clusterIPs").unwrap_or(&Value::Null);
    if has_fewer && items(spec, "clusterIPs").next().is_none() {
        let shown = Value::Array(new.clone());
        let why = "primary ipFamily can not be unset";
        errors.push(FieldError::invalid(&path, &shown, why));
    }
    let is_same_count = new.len() == old.len();
    let compared = if is_same_count { new.len() } else { 1 };
    for (now, before) in new.iter().zip(&old).take(compared) {
        if now != before {
            let shown = Value::Array(new.clone());
            // The server shows the addresses where their number has changed.
            let shown = if is_same_count { &shown } else { of_addresses };
            errors.push(FieldError::invalid(&path, shown, "may not change once set"));
        }
    }
    if has_fewer && new.len() == 1 {
        validate_released(spec, "ipFamily", errors);
    }
}

/// The second of two goes where the policy says that one is enough.
fn validate_released(spec: &Value, what: &str, errors: &mut Errors) {
    let policy = spec.get("ipFamilyPolicy").unwrap_or(&Value::Null);
    if *policy != "SingleStack" {
        let path = SPEC.child("ipFamilyPolicy");
        let why = format!("must be set to 'SingleStack' when releasing the secondary {what}");
        errors.push(FieldError::invalid(&path, policy, why));
    }
}

fn is_headless(spec: &Value) -> bool {
    let mut ips = items(spec, "clusterIPs");
    ips.next().is_some_and(|ip| *ip == NONE) && ips.next().is_none()
}

/// Says what is wrong with the addresses that a load balancer is said to have.
pub(in crate::kinds) fn validate_status(service: &Value, _old: &Value, errors: &mut Errors) {
    let spec = service.get("spec").unwrap_or(&Value::Null);
    let path = Path::new("status");
    let path = path.child("loadBalancer");
    let path = path.child("ingress");
    let balancer = service.pointer("/status/loadBalancer");
    let balancer = balancer.unwrap_or(&Value::Null);
    if text(spec, "type") != "LoadBalancer" {
        if present(balancer, "ingress").is_some() {
            let why = "may only be used when `spec.type` is 'LoadBalancer'";
            errors.push(FieldError::forbidden(&path, why));
        }
        return;
    }
    for (index, ingress) in items(balancer, "ingress").enumerate() {
        let path = path.index(index);
        let (ip, mode) = (text(ingress, "ip"), present(ingress, "ipMode"));
        if !ip.is_empty() {
            addresses::validate_ip(&path.child("ip"), ip, errors);
            supported(&path, ingress, "ipMode", &["Proxy", "VIP"], errors);
        } else if mode.is_some() {
            let why = "may not be specified when `ip` is not set";
            errors.push(FieldError::forbidden(&path.child("ipMode"), why));
        }
        addresses::validate_hostname(&path.child("hostname"), text(ingress, "hostname"), errors);
    }
}
