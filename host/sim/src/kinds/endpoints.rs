//! The addresses and ports behind Services, as Endpoints and as slices.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use super::addresses;
use super::edit::{integer, items, present, text};
use super::pod_validation::supported;
use crate::field::{Errors, FieldError, Path};
use crate::names;

/// Checks Endpoints.
pub(super) fn validate(endpoints: &Value, errors: &mut Errors) {
    let list = Path::new("subsets");
    for (index, subset) in items(endpoints, "subsets").enumerate() {
        let path = list.index(index);
        let fields = ["addresses", "notReadyAddresses"];
        if fields.iter().all(|field| present(subset, field).is_none()) {
            errors.push(FieldError::required(
                &path,
                "must specify `addresses` or `notReadyAddresses`",
            ));
        }
        for field in fields {
            let list = path.child(field);
            for (index, address) in items(subset, field).enumerate() {
                let path = list.index(index);
                let ip = text(address, "ip");
                addresses::validate_ip(&path.child("ip"), ip, errors);
                let host = text(address, "hostname");
                if !host.is_empty() {
                    for wrong in names::dns1123_label(host) {
                        errors.push(FieldError::invalid_str(
                            &path.child("hostname"),
                            host,
                            wrong,
                        ));
                    }
                }
                addresses::validate_reachable(&path.child("ip"), ip, errors);
            }
        }
        let several = items(subset, "ports").count() > 1;
        let list = path.child("ports");
        for (index, port) in items(subset, "ports").enumerate() {
            validate_port(&list.index(index), port, several, errors);
        }
    }
}

fn validate_port(path: &Path<'_>, port: &Value, named: bool, errors: &mut Errors) {
    let name = text(port, "name");
    if name.is_empty() {
        if named {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
    } else {
        for wrong in names::dns1123_label(name) {
            errors.push(FieldError::invalid_str(&path.child("name"), name, wrong));
        }
    }
    let number = integer(port, "port").unwrap_or(0);
    for wrong in names::port_number(number) {
        errors.push(FieldError::invalid(
            &path.child("port"),
            &number.into(),
            wrong,
        ));
    }
    supported(path, port, "protocol", &["SCTP", "TCP", "UDP"], errors);
}

/// Checks the endpoints and the ports of a slice.
pub(super) fn validate_slice(slice: &Value, errors: &mut Errors) {
    let list = Path::new("ports");
    let mut seen = BTreeSet::new();
    for (index, port) in items(slice, "ports").enumerate() {
        let path = list.index(index);
        let name = text(port, "name");
        let of_name = path.child("name");
        if !name.is_empty() {
            for wrong in names::dns1123_label(name) {
                errors.push(FieldError::invalid_str(&of_name, name, wrong));
            }
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&of_name, &name.into()));
        }
        supported(&path, port, "protocol", &["SCTP", "TCP", "UDP"], errors);
        if let Some(protocol) = port.get("appProtocol").and_then(Value::as_str) {
            for wrong in names::qualified_name(protocol) {
                errors.push(FieldError::invalid_str(
                    &path.child("appProtocol"),
                    protocol,
                    wrong,
                ));
            }
        }
    }
    validate_endpoints(slice, errors);
}

fn validate_endpoints(slice: &Value, errors: &mut Errors) {
    const MOST: usize = 100;
    let family = text(slice, "addressType");
    let list = Path::new("endpoints");
    for (index, endpoint) in items(slice, "endpoints").enumerate() {
        let path = list.index(index);
        let list = path.child("addresses");
        match items(endpoint, "addresses").count() {
            0 => errors.push(FieldError::required(
                &list,
                "must contain at least 1 address",
            )),
            count if count > MOST => errors.push(FieldError::too_many(&list, count, MOST)),
            _ => {}
        }
        for (index, address) in items(endpoint, "addresses").enumerate() {
            let address = address.as_str().unwrap_or_default();
            if !matches!(family, "IPv4" | "IPv6")
                || !addresses::validate_ip(&list.index(index), address, errors)
            {
                continue;
            }
            let is_v4 = address.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv4());
            if is_v4 != (family == "IPv4") {
                errors.push(FieldError::invalid_str(
                    &list,
                    address,
                    format!("must be an {family} address"),
                ));
            }
            addresses::validate_reachable(&list.index(index), address, errors);
        }
        let rules: [(&str, names::Validator); 2] = [
            ("nodeName", names::dns1123_subdomain),
            ("hostname", names::dns1123_label),
        ];
        for (field, rule) in rules {
            let Some(given) = endpoint.get(field).and_then(Value::as_str) else {
                continue;
            };
            for wrong in rule(given) {
                errors.push(FieldError::invalid_str(&path.child(field), given, wrong));
            }
        }
    }
}
