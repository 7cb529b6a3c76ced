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
                validate_address(&list.index(index), address, errors);
            }
        }
        let several = items(subset, "ports").count() > 1;
        let list = path.child("ports");
        for (index, port) in items(subset, "ports").enumerate() {
            validate_port(&list.index(index), port, several, errors);
        }
    }
}

/// What is stored stays, though it may not be made any more.
pub(super) fn validate_update(endpoints: &Value, old: &Value, errors: &mut Errors) {
    tolerate_unchanged(endpoints, old, "subsets", errors);
}

/// As [`validate_update`], for slices.
pub(super) fn validate_slice_update(slice: &Value, old: &Value, errors: &mut Errors) {
    tolerate_unchanged(slice, old, "endpoints", errors);
}

fn tolerate_unchanged(object: &Value, old: &Value, field: &str, errors: &mut Errors) {
    let of_field = |error: &FieldError| error.field.split(['[', '.']).next() == Some(field);
    if errors.iter().any(of_field) && present(object, field) == present(old, field) {
        errors.retain(|error| !of_field(error));
    }
}

fn validate_address(path: &Path<'_>, address: &Value, errors: &mut Errors) {
    let ip = text(address, "ip");
    addresses::validate_ip(&path.child("ip"), ip, errors);
    if present(address, "hostname").is_some() {
        follows(path, address, "hostname", names::dns1123_label, errors);
    }
    follows(path, address, "nodeName", names::dns1123_subdomain, errors);
    addresses::validate_reachable(&path.child("ip"), ip, errors);
}

/// Checks a text, where there is one, even an empty one.
fn follows(path: &Path<'_>, of: &Value, field: &str, rule: names::Validator, errors: &mut Errors) {
    if let Some(given) = of.get(field).and_then(Value::as_str) {
        for wrong in rule(given) {
            errors.push(FieldError::invalid_str(&path.child(field), given, wrong));
        }
    }
}

/// Checks which protocol of applications a port is for, of Services as of endpoints.
pub(super) fn validate_app_protocol(path: &Path<'_>, port: &Value, errors: &mut Errors) {
    follows(path, port, "appProtocol", names::qualified_name, errors);
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
    validate_app_protocol(path, port, errors);
}

/// Checks the endpoints and the ports of a slice.
pub(super) fn validate_slice(slice: &Value, errors: &mut Errors) {
    const MOST_PORTS: usize = 20_000;
    const MOST: usize = 1000;
    let list = Path::new("ports");
    if fits(&list, slice, "ports", MOST_PORTS, errors) {
        validate_slice_ports(&list, slice, errors);
    }
    let list = Path::new("endpoints");
    if fits(&list, slice, "endpoints", MOST, errors) {
        let family = text(slice, "addressType");
        for (index, endpoint) in items(slice, "endpoints").enumerate() {
            validate_endpoint(&list.index(index), endpoint, family, errors);
        }
    }
}

/// Whether there are not too many items in a list.
fn fits(path: &Path<'_>, of: &Value, field: &str, most: usize, errors: &mut Errors) -> bool {
    let count = items(of, field).count();
    if count > most {
        errors.push(FieldError::too_many(path, count, most));
    }
    count <= most
}

fn validate_slice_ports(list: &Path<'_>, slice: &Value, errors: &mut Errors) {
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
        validate_app_protocol(&path, port, errors);
    }
}

fn validate_endpoint(path: &Path<'_>, endpoint: &Value, family: &str, errors: &mut Errors) {
    const MOST: usize = 100;
    let list = path.child("addresses");
    if fits(&list, endpoint, "addresses", MOST, errors) && present(endpoint, "addresses").is_none()
    {
        errors.push(FieldError::required(
            &list,
            "must contain at least 1 address",
        ));
    }
    for (index, address) in items(endpoint, "addresses").enumerate() {
        let at = list.index(index);
        let address = address.as_str().unwrap_or_default();
        match family {
            "FQDN" => validate_domain(&at, address, errors),
            "IPv4" | "IPv6" if addresses::validate_ip(&at, address, errors) => {
                let is_v4 = address.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv4());
                if is_v4 != (family == "IPv4") {
                    let why = format!("must be an {family} address");
                    errors.push(FieldError::invalid_str(&list, address, why));
                }
                addresses::validate_reachable(&at, address, errors);
            }
            _ => {}
        }
    }
    follows(path, endpoint, "nodeName", names::dns1123_subdomain, errors);
    follows(path, endpoint, "hostname", names::dns1123_label, errors);
    if let Some(hints) = endpoint.get("hints") {
        validate_hints(&path.child("hints"), hints, errors);
    }
}

/// Checks the full name of a host, which has several parts.
fn validate_domain(path: &Path<'_>, name: &str, errors: &mut Errors) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let wrong = names::dns1123_subdomain(name);
    if !wrong.is_empty() {
        errors.push(FieldError::invalid_str(path, name, wrong.join(",")));
    } else if !name.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid_str(path, name, why));
    } else {
        let labels = name
            .split('.')
            .map(|label| (label, names::dns1123_label(label)));
        let mut wrong = labels.filter(|(_, wrong)| !wrong.is_empty());
        if let Some((label, wrong)) = wrong.next() {
            errors.push(FieldError::invalid_str(path, label, wrong.join(",")));
        }
    }
}

/// Checks for whom an endpoint is meant: zones and nodes.
fn validate_hints(path: &Path<'_>, hints: &Value, errors: &mut Errors) {
    const MOST: usize = 8;
    let rules: [(&str, names::Validator); 2] = [
        ("forZones", names::label_value),
        ("forNodes", names::dns1123_subdomain),
    ];
    for (field, rule) in rules {
        let list = path.child(field);
        if !fits(&list, hints, field, MOST, errors) {
            return;
        }
        let mut seen = BTreeSet::new();
        for (index, hint) in items(hints, field).enumerate() {
            let path = list.index(index);
            let path = path.child("name");
            let name = text(hint, "name");
            if !seen.insert(name) {
                errors.push(FieldError::duplicate(&path, &name.into()));
            }
            for wrong in rule(name) {
                errors.push(FieldError::invalid_str(&path, name, wrong));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn complaints(validate: fn(&Value, &mut Errors), object: &Value) -> Vec<String> {
        let mut errors = Errors::new();
        validate(object, &mut errors);
        let short = |error: &FieldError| {
            let detail = error.detail.chars().take(48).collect::<String>();
            format!("{} {}: {detail}", error.kind.words(), error.field)
        };
        errors.iter().map(short).collect()
    }

    #[test]
    fn nodes_and_protocols_of_endpoints_have_names() {
        let endpoints = json!({"subsets": [{
            "addresses": [{"ip": "10.0.0.1", "nodeName": "a_b"}],
            "ports": [{"port": 80, "protocol": "TCP", "appProtocol": "a b"}],
        }]});
        let found = complaints(validate, &endpoints);
        let fields = ["addresses[0].nodeName", "ports[0].appProtocol"];
        assert_eq!(found.len(), fields.len());
        for (found, field) in found.iter().zip(fields) {
            let expected = format!("Invalid value subsets[0].{field}: ");
            assert!(found.starts_with(&expected), "{found}");
        }
        let mut errors = Errors::new();
        validate(&endpoints, &mut errors);
        validate_update(&endpoints, &endpoints, &mut errors);
        assert!(errors.is_empty(), "what is stored stays");
    }

    #[test]
    fn slices_are_bounded() {
        let check = |slice: Value, expected: &[&str]| {
            assert_eq!(complaints(validate_slice, &slice), expected);
        };
        let endpoint = json!({"addresses": ["10.0.0.1"]});
        check(
            json!({"addressType": "IPv4", "endpoints": vec![endpoint.clone(); 1000]}),
            &[],
        );
        check(
            json!({"addressType": "IPv4", "endpoints": vec![endpoint; 1001]}),
            &["Too many endpoints: must have at most 1000 items"],
        );
        check(
            json!({"addressType": "IPv4", "ports": vec![json!({}); 20_001]}),
            &["Too many ports: must have at most 20000 items"],
        );
        let zones = vec![json!({"name": "z"}); 9];
        let hinted = json!({"addresses": ["10.0.0.1"], "hints": {"forZones": zones}});
        check(
            json!({"addressType": "IPv4", "endpoints": [hinted]}),
            &["Too many endpoints[0].hints.forZones: must have at most 8 items"],
        );
    }

    #[test]
    fn domains_and_hints_are_checked() {
        let slice = json!({"addressType": "FQDN", "endpoints": [{
            "addresses": ["a.example.", "a", "", "A.b"],
            "hints": {"forZones": [{"name": "z"}, {"name": "z"}], "forNodes": [{"name": "a_"}]},
        }]});
        let expected = [
            "Invalid value endpoints[0].addresses[1]: should be a domain with at least two segments se",
            "Required value endpoints[0].addresses[2]: ",
            "Invalid value endpoints[0].addresses[3]: a lowercase RFC 1123 subdomain must consist of l",
            "Duplicate value endpoints[0].hints.forZones[1].name: ",
            "Invalid value endpoints[0].hints.forNodes[0].name: a lowercase RFC 1123 subdomain must consist of l",
        ];
        assert_eq!(complaints(validate_slice, &slice), expected);
    }
}
