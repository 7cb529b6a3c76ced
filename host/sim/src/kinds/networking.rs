//! NetworkPolicies, Ingresses and the small kinds around them.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::addresses;
use super::edit::{
    default_to, ensure_object, integer, items, items_mut, object, present, set, text,
};
use super::pod_validation::supported;
use super::row::{Kind, METADATA_OF_CLIENTS, UpdateOrder};
use super::verbs::Subresource;
use super::{references, selectors, statuses};
use crate::field::{Errors, FieldError, Path};
use crate::names;

const V1: (&str, &str) = ("networking.k8s.io", "v1");
const SPEC: Path<'static> = Path::new("spec");
const STATUS: &[Subresource] = &[Subresource::STATUS];

pub(super) const ROWS: &[Kind] = &[
    Kind::cluster(V1, "IngressClass", "ingressclasses")
        .generation_of_spec()
        .defaulted(default_ingress_class)
        .update_order(UpdateOrder::ImmutableFirst)
        .validated(validate_ingress_class)
        .update_validated(|class, old, errors| {
            let spec = class.get("spec").unwrap_or(&Value::Null);
            let old = old.get("spec").unwrap_or(&Value::Null);
            let path = SPEC.child("controller");
            let zero = json!("");
            super::meta::validate_immutable_or(&path, spec, old, "controller", &zero, errors);
        }),
    Kind::namespaced(V1, "Ingress", "ingresses")
        .short(&["ing"])
        .subresources(STATUS)
        .status(r#"{"loadBalancer":{}}"#)
        .generation_of_spec()
        .defaulted(default_ingress)
        .validated(validate_ingress)
        .create_validated(validate_class)
        .status_validated(statuses::validate_ingress),
    Kind::cluster(V1, "IPAddress", "ipaddresses").short(&["ip"]),
    Kind::namespaced(V1, "NetworkPolicy", "networkpolicies")
        .short(&["netpol"])
        .generation_of_spec()
        .hollow("spec", &["spec.policyTypes"])
        .defaulted(default_policy)
        .validated(validate_policy),
    Kind::cluster(V1, "ServiceCIDR", "servicecidrs")
        .status_keeps(&METADATA_OF_CLIENTS)
        .subresources(STATUS)
        .status("{}"),
];

/// The class may be named in two ways, which must agree.
fn validate_class(ingress: &Value, errors: &mut Errors) {
    const OLD: &str = "kubernetes.io/ingress.class";
    let annotations = ingress.pointer("/metadata/annotations");
    let old = annotations.and_then(|annotations| annotations.get(OLD)?.as_str());
    let new = ingress
        .pointer("/spec/ingressClassName")
        .and_then(Value::as_str);
    if let (Some(old), Some(new)) = (old, new)
        && old != new
    {
        errors.push(FieldError::invalid_str(
            &Path::new("annotations").child(OLD),
            old,
            "must match `ingressClassName` when both are specified",
        ));
    }
}

fn default_policy(policy: &mut Value) {
    let Some(spec) = ensure_object(policy, "spec") else {
        return;
    };
    ensure_object(spec, "podSelector");
    for direction in ["ingress", "egress"] {
        for rule in items_mut(spec, direction) {
            for port in items_mut(rule, "ports") {
                default_to(port, "protocol", "TCP");
            }
        }
    }
    if present(spec, "policyTypes").is_none() {
        let types = if present(spec, "egress").is_some() {
            json!(["Ingress", "Egress"])
        } else {
            json!(["Ingress"])
        };
        set(spec, "policyTypes", types);
    }
}

fn validate_policy(policy: &Value, errors: &mut Errors) {
    let spec = policy.get("spec").unwrap_or(&Value::Null);
    if let Some(selector) = spec.get("podSelector") {
        selectors::validate(&SPEC.child("podSelector"), selector, errors);
    }
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        let path = SPEC.child(direction);
        for (index, rule) in items(spec, direction).enumerate() {
            let path = path.index(index);
            let ports = path.child("ports");
            for (index, port) in items(rule, "ports").enumerate() {
                validate_policy_port(&ports.index(index), port, errors);
            }
            let peers_path = path.child(peers);
            for (index, peer) in items(rule, peers).enumerate() {
                validate_peer(&peers_path.index(index), peer, errors);
            }
        }
    }
    let path = SPEC.child("policyTypes");
    if items(spec, "policyTypes").count() > 2 {
        errors.push(FieldError::invalid(
            &path,
            spec.get("policyTypes").unwrap_or(&Value::Null),
            "may not specify more than two policyTypes",
        ));
        return;
    }
    for (index, kind) in items(spec, "policyTypes").enumerate() {
        if !matches!(kind.as_str(), Some("Ingress" | "Egress")) {
            errors.push(FieldError::not_supported(
                &path.index(index),
                kind,
                &["Ingress", "Egress"],
            ));
        }
    }
}

fn validate_policy_port(path: &Path<'_>, port: &Value, errors: &mut Errors) {
    supported(path, port, "protocol", &["TCP", "UDP", "SCTP"], errors);
    let end = integer(port, "endPort");
    let end_path = path.child("endPort");
    match (port.get("port"), end) {
        (Some(Value::String(name)), end) => {
            if let Some(end) = end {
                errors.push(FieldError::invalid(
                    &end_path,
                    &end.into(),
                    "may not be specified when `port` is non-numeric",
                ));
            }
            for wrong in names::port_name(name) {
                errors.push(FieldError::invalid_str(&path.child("port"), name, wrong));
            }
        }
        (Some(number), end) => {
            let first = number.as_i64().unwrap_or(0);
            for wrong in names::port_number(first) {
                errors.push(FieldError::invalid(&path.child("port"), number, wrong));
            }
            let Some(end) = end else { return };
            if end < first {
                errors.push(FieldError::invalid(
                    &end_path,
                    number,
                    "must be greater than or equal to `port`",
                ));
            }
            for wrong in names::port_number(end) {
                errors.push(FieldError::invalid(&end_path, &end.into(), wrong));
            }
        }
        (None, Some(end)) => errors.push(FieldError::invalid(
            &end_path,
            &end.into(),
            "may not be specified when `port` is not specified",
        )),
        (None, None) => {}
    }
}

fn validate_peer(path: &Path<'_>, peer: &Value, errors: &mut Errors) {
    let mut peers = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if let Some(selector) = object(peer, field) {
            peers += 1;
            selectors::validate(&path.child(field), selector, errors);
        }
    }
    let block = object(peer, "ipBlock");
    if let Some(block) = block {
        peers += 1;
        validate_block(&path.child("ipBlock"), block, errors);
    }
    if peers == 0 {
        errors.push(FieldError::required(path, "must specify a peer"));
    } else if peers > 1 && block.is_some() {
        errors.push(FieldError::forbidden(
            path,
            "may not specify both ipBlock and another peer",
        ));
    }
}

fn validate_block(path: &Path<'_>, block: &Value, errors: &mut Errors) {
    let cidr = text(block, "cidr");
    let cidr_path = path.child("cidr");
    if cidr.is_empty() {
        errors.push(FieldError::required(&cidr_path, ""));
        return;
    }
    addresses::validate_range(&cidr_path, cidr, errors);
    let Some(outer) = Network::parse(cidr) else {
        return;
    };
    let path = path.child("except");
    for (index, except) in items(block, "except").enumerate() {
        let path = path.index(index);
        let except = except.as_str().unwrap_or_default();
        addresses::validate_range(&path, except, errors);
        if Network::parse(except).is_some_and(|inner| !outer.strictly_contains(&inner)) {
            errors.push(FieldError::invalid_str(
                &path,
                except,
                "must be a strict subset of `cidr`",
            ));
        }
    }
}

/// A range of addresses, aligned to the high end of 128 bits.
struct Network {
    bits: u128,
    prefix: u32,
    v4: bool,
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        let prefix: u32 = prefix.parse().ok()?;
        let (bits, width, v4) = match address.parse::<IpAddr>().ok()? {
            IpAddr::V4(ip) => (u128::from(u32::from(ip)) << 96, 32, true),
            IpAddr::V6(ip) => (u128::from(ip), 128, false),
        };
        (prefix <= width).then_some(Network { bits, prefix, v4 })
    }

    fn strictly_contains(&self, other: &Network) -> bool {
        let mask = u128::MAX.checked_shl(128 - self.prefix).unwrap_or(0);
        self.v4 == other.v4 && self.prefix < other.prefix && self.bits & mask == other.bits & mask
    }
}

fn default_ingress_class(class: &mut Value) {
    if let Some(parameters) = class
        .pointer_mut("/spec/parameters")
        .filter(|parameters| parameters.is_object())
    {
        default_to(parameters, "scope", "Cluster");
    }
}

fn validate_ingress_class(class: &Value, errors: &mut Errors) {
    let controller = class
        .get("spec")
        .map_or("", |spec| text(spec, "controller"));
    validate_controller(controller, errors);
    let parameters = class.pointer("/spec/parameters");
    if let Some(parameters) = parameters.filter(|parameters| parameters.is_object()) {
        references::validate_scoped(&SPEC.child("parameters"), parameters, errors);
    }
}

fn validate_controller(controller: &str, errors: &mut Errors) {
    const LONGEST: usize = 250;
    let path = SPEC.child("controller");
    if controller.len() > LONGEST {
        errors.push(FieldError::too_long(&path, LONGEST));
    }
    references::validate_domain_path(&path, controller, errors);
}

fn default_ingress(ingress: &mut Value) {
    ensure_object(ingress, "spec");
}

fn validate_ingress(ingress: &Value, errors: &mut Errors) {
    let spec = ingress.get("spec").unwrap_or(&Value::Null);
    if present(spec, "rules").is_none() && present(spec, "defaultBackend").is_none() {
        errors.push(FieldError::invalid(
            &SPEC,
            &Value::Null,
            "either `defaultBackend` or `rules` must be specified",
        ));
    }
    if let Some(backend) = present(spec, "defaultBackend") {
        validate_backend(&SPEC.child("defaultBackend"), backend, errors);
    }
    let path = SPEC.child("rules");
    for (index, rule) in items(spec, "rules").enumerate() {
        let path = path.index(index);
        let host = text(rule, "host");
        if !host.is_empty() {
            let wrong = if host.parse::<IpAddr>().is_ok() {
                vec!["must be a DNS name, not an IP address".to_owned()]
            } else if host.contains('*') {
                names::wildcard_dns1123_subdomain(host)
            } else {
                names::dns1123_subdomain(host)
            };
            for wrong in wrong {
                errors.push(FieldError::invalid_str(&path.child("host"), host, wrong));
            }
        }
        let Some(http) = rule.get("http") else {
            continue;
        };
        let path = path.child("http");
        let path = path.child("paths");
        if present(http, "paths").is_none() {
            errors.push(FieldError::required(&path, ""));
        }
        for (index, item) in items(http, "paths").enumerate() {
            validate_ingress_path(&path.index(index), item, errors);
        }
    }
    validate_tls(spec, errors);
    if let Some(class) = spec.get("ingressClassName").and_then(Value::as_str) {
        for wrong in names::dns1123_subdomain(class) {
            let path = SPEC.child("ingressClassName");
            errors.push(FieldError::invalid_str(&path, class, wrong));
        }
    }
}

fn validate_tls(spec: &Value, errors: &mut Errors) {
    let path = SPEC.child("tls");
    for (index, tls) in items(spec, "tls").enumerate() {
        let path = path.index(index);
        let of_hosts = path.child("hosts");
        for (index, host) in items(tls, "hosts").enumerate() {
            let host = host.as_str().unwrap_or_default();
            let wrong = if host.contains('*') {
                names::wildcard_dns1123_subdomain(host)
            } else {
                names::dns1123_subdomain(host)
            };
            for wrong in wrong {
                errors.push(FieldError::invalid_str(&of_hosts.index(index), host, wrong));
            }
        }
        let secret = text(tls, "secretName");
        if !secret.is_empty() {
            for wrong in names::dns1123_subdomain(secret) {
                let path = path.child("secretName");
                errors.push(FieldError::invalid_str(&path, secret, wrong));
            }
        }
    }
}

fn validate_ingress_path(path: &Path<'_>, item: &Value, errors: &mut Errors) {
    let kinds = ["Exact", "ImplementationSpecific", "Prefix"];
    if present(item, "pathType").is_none() {
        errors.push(FieldError::required(
            &path.child("pathType"),
            "pathType must be specified",
        ));
        return;
    }
    supported(path, item, "pathType", &kinds, errors);
    let text_path = text(item, "path");
    let absolute = match text(item, "pathType") {
        "Exact" | "Prefix" => true,
        "ImplementationSpecific" => !text_path.is_empty(),
        _ => false,
    };
    if absolute && !text_path.starts_with('/') {
        errors.push(FieldError::invalid_str(
            &path.child("path"),
            text_path,
            "must be an absolute path",
        ));
    }
    if matches!(text(item, "pathType"), "Exact" | "Prefix") {
        let path = path.child("path");
        let mut refuse = |why: String| {
            errors.push(FieldError::invalid_str(&path, text_path, why));
        };
        for part in ["//", "/./", "/../", "%2f", "%2F"] {
            if text_path.contains(part) {
                refuse(format!("must not contain '{part}'"));
            }
        }
        for end in ["/..", "/."] {
            if text_path.ends_with(end) {
                refuse(format!("cannot end with '{end}'"));
            }
        }
    }
    let backend = item.get("backend").unwrap_or(&Value::Null);
    validate_backend(&path.child("backend"), backend, errors);
}

fn validate_backend(path: &Path<'_>, backend: &Value, errors: &mut Errors) {
    match (object(backend, "service"), object(backend, "resource")) {
        (None, None) => errors.push(FieldError::invalid_str(
            path,
            "",
            "resource or service backend is required",
        )),
        (Some(_), Some(_)) => errors.push(FieldError::invalid_str(
            path,
            "",
            "cannot set both resource and service backends",
        )),
        (None, Some(resource)) => references::validate(&path.child("resource"), resource, errors),
        (Some(service), None) => {
            let whole = path;
            let path = path.child("service");
            let name = text(service, "name");
            if name.is_empty() {
                errors.push(FieldError::required(&path.child("name"), ""));
            } else {
                for wrong in names::dns1123_label(name) {
                    errors.push(FieldError::invalid_str(&path.child("name"), name, wrong));
                }
            }
            let port = service.get("port").unwrap_or(&Value::Null);
            let path = path.child("port");
            let (name, number) = (text(port, "name"), integer(port, "number").unwrap_or(0));
            match (name.is_empty(), number) {
                (true, 0) => errors.push(FieldError::required(
                    whole,
                    "port name or number is required",
                )),
                (false, 0) => {
                    for wrong in names::port_name(name) {
                        errors.push(FieldError::invalid_str(&path.child("name"), name, wrong));
                    }
                }
                (true, number) => {
                    for wrong in names::port_number(number) {
                        errors.push(FieldError::invalid(
                            &path.child("number"),
                            &number.into(),
                            wrong,
                        ));
                    }
                }
                (false, _) => errors.push(FieldError::invalid_str(
                    whole,
                    "",
                    "cannot set both port name & port number",
                )),
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "cases read better as values")]
mod tests {
    use super::*;

    fn complaints(spec: Value) -> Vec<String> {
        let mut policy = json!({ "spec": spec });
        default_policy(&mut policy);
        let mut errors = Errors::new();
        validate_policy(&policy, &mut errors);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn policy_types_follow_the_rules() {
        let types = |spec: Value| {
            let mut policy = json!({ "spec": spec });
            default_policy(&mut policy);
            policy["spec"]["policyTypes"].clone()
        };
        assert_eq!(types(json!({})), json!(["Ingress"]));
        assert_eq!(types(json!({"egress": [{}]})), json!(["Ingress", "Egress"]));
        assert_eq!(
            types(json!({"egress": [{}], "policyTypes": ["Egress"]})),
            json!(["Egress"])
        );
    }

    #[test]
    fn backends_are_named_as_services_may_be() {
        let check = |name: &str, expected: &[&str]| {
            let backend = json!({"service": {"name": name, "port": {"number": 80}}});
            let ingress = json!({"spec": {"defaultBackend": backend}});
            let mut errors = Errors::new();
            validate_ingress(&ingress, &mut errors);
            let fields = errors.iter().map(|error| error.field.as_str());
            assert_eq!(fields.collect::<Vec<_>>(), expected, "{name}");
        };
        check("web", &[]);
        check("1st", &[]);
        check("a.b", &["spec.defaultBackend.service.name"]);
    }

    #[test]
    fn peers() {
        assert!(complaints(json!({"ingress": [{"from": [{"podSelector": {}}]}]})).is_empty());
        assert_eq!(
            complaints(json!({"ingress": [{"from": [{}]}]})),
            ["spec.ingress[0].from[0]: Required value: must specify a peer"]
        );
        let block = |block: Value| complaints(json!({"egress": [{"to": [{"ipBlock": block}]}]}));
        assert!(block(json!({"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]})).is_empty());
        assert_eq!(
            block(json!({"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]})),
            [
                "spec.egress[0].to[0].ipBlock.except[0]: Invalid value: \"11.0.0.0/16\": must be a \
                 strict subset of `cidr`"
            ]
        );
        assert_eq!(block(json!({"cidr": "x"})).len(), 1);
    }
}
