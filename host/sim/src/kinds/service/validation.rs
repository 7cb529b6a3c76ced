//! Validation of Services.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::{NONE, is_reachable_from_outside};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{integer, items, present, text};
use crate::kinds::meta::validate_labels;
use crate::kinds::pod_validation::supported;
use crate::names;

const SPEC: Path<'static> = Path::new("spec");

pub(in crate::kinds) fn validate(service: &Value, errors: &mut Errors) {
    let spec = service.get("spec").unwrap_or(&Value::Null);
    let kind = text(spec, "type");
    let headless = spec.pointer("/clusterIPs/0").and_then(Value::as_str) == Some(NONE);
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
    if kind != "ExternalName" {
        validate_cluster_ips(spec, errors);
    }
    supported(
        &SPEC,
        spec,
        "type",
        &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
        errors,
    );
    validate_port_conflicts(spec, kind, errors);
    if kind != "LoadBalancer" {
        for (field, shown) in [
            ("loadBalancerSourceRanges", "LoadBalancerSourceRanges"),
            (
                "allocateLoadBalancerNodePorts",
                "allocateLoadBalancerNodePorts",
            ),
        ] {
            if present(spec, field).is_some() {
                errors.push(FieldError::forbidden(
                    &SPEC.child(shown),
                    "may only be used when `type` is 'LoadBalancer'",
                ));
            }
        }
    }
    validate_policies(spec, errors);
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

fn validate_cluster_ips(spec: &Value, errors: &mut Errors) {
    let path = SPEC.child("clusterIPs");
    let listed = spec.get("clusterIPs").unwrap_or(&Value::Null);
    let first = spec.pointer("/clusterIPs/0").and_then(Value::as_str);
    let ip = text(spec, "clusterIP");
    match (ip.is_empty(), first) {
        (false, None) => errors.push(FieldError::required(&path, "")),
        (false, Some(first)) if first != ip => errors.push(FieldError::invalid(
            &path,
            listed,
            "first value must match `clusterIP`",
        )),
        (true, Some(_)) => errors.push(FieldError::invalid(
            &path,
            listed,
            "must be empty when `clusterIP` is not specified",
        )),
        _ => {}
    }
    let count = items(spec, "clusterIPs").count();
    for (index, ip) in items(spec, "clusterIPs").enumerate() {
        let ip = ip.as_str().unwrap_or_default();
        if index == 0 && ip == NONE {
            if count > 1 {
                errors.push(FieldError::invalid(
                    &path,
                    listed,
                    "'None' must be the first and only value",
                ));
            }
        } else if ip.parse::<IpAddr>().is_err() {
            errors.push(FieldError::invalid_str(
                &path.index(index),
                ip,
                "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
            ));
        }
    }
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
    let values = ["Cluster", "Local"];
    supported(&SPEC, spec, "internalTrafficPolicy", &values, errors);
}

/// A cluster address, once given, stays.
pub(in crate::kinds) fn validate_update(service: &Value, old: &Value, errors: &mut Errors) {
    let spec = service.get("spec").unwrap_or(&Value::Null);
    let old = old.get("spec").unwrap_or(&Value::Null);
    if [spec, old]
        .iter()
        .any(|spec| text(spec, "type") == "ExternalName")
    {
        return;
    }
    let path = SPEC.child("clusterIPs");
    let listed = spec.get("clusterIPs").unwrap_or(&Value::Null);
    let first = |spec: &Value| spec.pointer("/clusterIPs/0").cloned();
    match (first(spec), first(old)) {
        (Some(new), Some(old)) if new != old => errors.push(FieldError::invalid(
            &path.index(0),
            listed,
            "may not change once set",
        )),
        (None, Some(_)) => errors.push(FieldError::invalid(
            &path.index(0),
            listed,
            "primary clusterIP can not be unset",
        )),
        _ => {}
    }
}
