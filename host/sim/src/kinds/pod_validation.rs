//! Validation of Pods and pod templates: what authors of plugins trip over, not
//! all that a kubelet could object to.

pub(super) mod amounts;
mod claims;
mod containers;
mod environment;
mod ephemeral;
mod handlers;
mod host;
mod mounts;
pub(super) mod placement;
mod restarts;
mod security;
mod update;
pub(super) mod volumes;

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use self::containers::Pod;
pub(super) use self::update::validate as validate_update;
use super::edit::{integer, items, present, text, text_at};
use super::meta::{validate_annotations, validate_labels, validate_nonnegative};
use crate::field::{Errors, FieldError, Path};
use crate::names;

const SPEC: Path<'static> = Path::new("spec");

pub(super) fn validate(pod: &Value, errors: &mut Errors) {
    let spec = spec_of(pod);
    let path = Path::new("metadata");
    let path = path.child("annotations");
    host::validate_annotations(&path, annotations_of(pod), spec, errors);
    validate_spec(&SPEC, spec, Holder::Pod, errors);
    for list in ["containers", "initContainers"] {
        let path = SPEC.child(list);
        for (index, container) in items(spec, list).enumerate() {
            containers::validate_image(&path.index(index), container, errors);
        }
    }
}

/// What is looked at besides when a Pod is made.
pub(super) fn validate_create(pod: &Value, errors: &mut Errors) {
    let spec = spec_of(pod);
    if present(spec, "ephemeralContainers").is_some() {
        let path = SPEC.child("ephemeralContainers");
        errors.push(FieldError::forbidden(&path, "cannot be set on create"));
    }
    if !text(spec, "nodeName").is_empty() && present(spec, "schedulingGates").is_some() {
        let why = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(&SPEC.child("nodeName"), why));
    }
    host::validate_profiles(&SPEC, annotations_of(pod), spec, errors);
}

fn annotations_of(pod: &Value) -> &Value {
    let annotations = pod.pointer("/metadata/annotations");
    annotations.unwrap_or(&Value::Null)
}

fn spec_of(pod: &Value) -> &Value {
    pod.get("spec").unwrap_or(&Value::Null)
}

/// Checks the template of a workload, whose pods are always restarted.
pub(super) fn validate_template(path: &Path<'_>, template: &Value, errors: &mut Errors) {
    let meta = template.get("metadata").unwrap_or(&Value::Null);
    validate_labels(meta, &path.child("labels"), "labels", errors);
    validate_annotations(meta, &path.child("annotations"), errors);
    let spec = template.get("spec").unwrap_or(&Value::Null);
    let annotations = meta.get("annotations").unwrap_or(&Value::Null);
    host::validate_annotations(&path.child("annotations"), annotations, spec, errors);
    let path = path.child("spec");
    validate_spec(&path, spec, Holder::Template, errors);
    host::validate_profiles(&path, annotations, spec, errors);
    if present(spec, "ephemeralContainers").is_some() {
        let path = path.child("ephemeralContainers");
        let why = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(&path, why));
    }
}

/// Pushes an error unless the template's pods are always restarted.
pub(super) fn validate_always_restarted(
    path: &Path<'_>,
    template: &Value,
    kind: &str,
    errors: &mut Errors,
) {
    let policy = text_at(template, "/spec/restartPolicy");
    if policy != "Always" {
        errors.push(FieldError::not_supported(
            &path.child("spec.restartPolicy"),
            &policy.into(),
            &["Always"],
        ));
    }
    if template.pointer("/spec/activeDeadlineSeconds").is_some() {
        errors.push(FieldError::forbidden(
            &path.child("spec.activeDeadlineSeconds"),
            format!("activeDeadlineSeconds in {kind} is not Supported"),
        ));
    }
}

/// What the spec of a pod is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    /// A Pod, which has all of its defaults.
    Pod,
    /// The template of a workload: some defaults come with the pods made of it.
    Template,
}

fn validate_spec(path: &Path<'_>, spec: &Value, holder: Holder, errors: &mut Errors) {
    let pod = Pod {
        spec,
        volumes: volumes::validate(&path.child("volumes"), spec, holder, errors),
        claims: claims::of_pod(&path.child("resourceClaims"), spec, errors),
    };
    containers::validate(path, &pod, errors);
    amounts::validate_pod(&path.child("resources"), spec, &pod.claims, errors);
    containers::validate_host_network(path, spec, holder, errors);
    supported(
        path,
        spec,
        "restartPolicy",
        &["Always", "OnFailure", "Never"],
        errors,
    );
    supported(
        path,
        spec,
        "dnsPolicy",
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        errors,
    );
    validate_labels(spec, &path.child("nodeSelector"), "nodeSelector", errors);
    security::validate_pod(&path.child("securityContext"), spec, errors);
    placement::validate_affinity(&path.child("affinity"), spec, errors);
    validate_dns(&path.child("dnsConfig"), spec, errors);
    validate_gates(path, spec, errors);
    let spread = path.child("topologySpreadConstraints");
    placement::validate_spread(&spread, spec, errors);
    host::validate_processes(path, spec, errors);
    host::validate_users(path, spec, errors);
    host::validate_hostname(path, spec, errors);
    for field in ["serviceAccountName", "nodeName"] {
        validate_text(path, spec, field, names::dns1123_subdomain, errors);
    }
    if let Some(seconds) = integer(spec, "activeDeadlineSeconds")
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        errors.push(FieldError::invalid(
            &path.child("activeDeadlineSeconds"),
            &seconds.into(),
            names::in_range(1, i64::from(i32::MAX)),
        ));
    }
    for field in ["hostname", "subdomain"] {
        validate_text(path, spec, field, names::dns1123_label, errors);
    }
    placement::validate_tolerations(&path.child("tolerations"), spec, errors);
    validate_hosts(&path.child("hostAliases"), spec, errors);
    for field in ["priorityClassName", "runtimeClassName"] {
        validate_text(path, spec, field, names::dns1123_subdomain, errors);
    }
    let policies = ["PreemptLowerPriority", "Never"];
    supported(path, spec, "preemptionPolicy", &policies, errors);
    if let Some(overhead) = present(spec, "overhead") {
        let limits = serde_json::json!({ "limits": overhead });
        amounts::validate(&path.child("overhead"), &limits, &BTreeSet::new(), errors);
    }
    host::validate_system(path, spec, errors);
    environment::validate_files(path, spec, errors);
}

/// Checks the text in `field`, where there is one.
fn validate_text(
    path: &Path<'_>,
    spec: &Value,
    field: &str,
    validator: impl Fn(&str) -> Vec<String>,
    errors: &mut Errors,
) {
    let given = text(spec, field);
    if given.is_empty() {
        return;
    }
    for wrong in validator(given) {
        errors.push(FieldError::invalid_str(&path.child(field), given, wrong));
    }
}

fn validate_address(path: &Path<'_>, address: &str, errors: &mut Errors) {
    if address.parse::<IpAddr>().is_err() {
        errors.push(FieldError::invalid_str(
            path,
            address,
            "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ));
    }
}

/// Checks how a pod resolves names.
fn validate_dns(path: &Path<'_>, spec: &Value, errors: &mut Errors) {
    const SERVERS: usize = 3;
    const SEARCHES: usize = 32;
    const LETTERS: usize = 2048;
    let config = spec.get("dnsConfig").filter(|config| config.is_object());
    let servers = path.child("nameservers");
    if text(spec, "dnsPolicy") == "None" {
        let wrong = match config {
            None => Some((path, "`dnsConfig`")),
            Some(config) if present(config, "nameservers").is_none() => {
                Some((&servers, "at least one DNS nameserver"))
            }
            Some(_) => None,
        };
        if let Some((path, what)) = wrong {
            let why = format!("must provide {what} when `dnsPolicy` is None");
            errors.push(FieldError::required(path, why));
            return;
        }
    }
    let Some(config) = config else {
        return;
    };
    let list = |field: &str| config.get(field).unwrap_or(&Value::Null);
    let addresses: Vec<&str> = items(config, "nameservers")
        .filter_map(Value::as_str)
        .collect();
    if addresses.len() > SERVERS {
        let why = format!("must not have more than {SERVERS} nameservers");
        errors.push(FieldError::invalid(&servers, list("nameservers"), why));
    }
    for (index, address) in addresses.into_iter().enumerate() {
        validate_address(&servers.index(index), address, errors);
    }
    let searches = path.child("searches");
    let domains: Vec<&str> = items(config, "searches")
        .filter_map(Value::as_str)
        .collect();
    if domains.len() > SEARCHES {
        let why = format!("must not have more than {SEARCHES} search paths");
        errors.push(FieldError::invalid(&searches, list("searches"), why));
    }
    if domains.join(" ").len() > LETTERS {
        let why = format!(
            "must not have more than {LETTERS} characters (including spaces) in the search list"
        );
        errors.push(FieldError::invalid(&searches, list("searches"), why));
    }
    for (index, domain) in domains.into_iter().enumerate() {
        let domain = domain.strip_suffix('.').unwrap_or(domain);
        if !domain.is_empty() && !is_search_domain(domain) {
            let wrong = names::pattern(
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
                 characters, '_', '-' or '.', and must start and end with an alphanumeric character",
                "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*",
                &["example.com"],
            );
            errors.push(FieldError::invalid_str(
                &searches.index(index),
                domain,
                wrong,
            ));
        }
    }
    let options = path.child("options");
    for (index, option) in items(config, "options").enumerate() {
        if text(option, "name").is_empty() {
            let path = options.index(index);
            errors.push(FieldError::required(&path, "must not be empty"));
        }
    }
}

/// Whether a text can be searched in: a domain whose labels may have underscores.
fn is_search_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        let bytes = label.strip_prefix('_').unwrap_or(label).as_bytes();
        let fits = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        bytes.first().is_some_and(fits)
            && bytes.last().is_some_and(fits)
            && bytes
                .iter()
                .all(|byte| fits(byte) || matches!(byte, b'-' | b'_'))
    };
    text.len() <= names::SUBDOMAIN_MAX && text.split('.').all(is_label)
}

/// Checks what holds back the readiness and the scheduling of a pod.
fn validate_gates(path: &Path<'_>, spec: &Value, errors: &mut Errors) {
    let list = path.child("readinessGates");
    for (index, gate) in items(spec, "readinessGates").enumerate() {
        let kind = text(gate, "conditionType");
        for wrong in names::qualified_name(kind) {
            let path = list.index(index);
            errors.push(FieldError::invalid_str(
                &path.child("conditionType"),
                kind,
                wrong,
            ));
        }
    }
    let list = path.child("schedulingGates");
    let mut known = BTreeSet::new();
    for (index, gate) in items(spec, "schedulingGates").enumerate() {
        let (path, name) = (list.index(index), text(gate, "name"));
        for wrong in names::qualified_name(name) {
            errors.push(FieldError::invalid_str(&path, name, wrong));
        }
        if !known.insert(name) {
            errors.push(FieldError::duplicate(&path, &name.into()));
        }
    }
}

/// Checks the lines that are added to the hosts file.
fn validate_hosts(list: &Path<'_>, spec: &Value, errors: &mut Errors) {
    for (index, alias) in items(spec, "hostAliases").enumerate() {
        let path = list.index(index);
        validate_address(&path.child("ip"), text(alias, "ip"), errors);
        let hosts = path.child("hostnames");
        for (index, name) in items(alias, "hostnames").enumerate() {
            let name = name.as_str().unwrap_or_default();
            for wrong in names::dns1123_subdomain(name) {
                errors.push(FieldError::invalid_str(&hosts.index(index), name, wrong));
            }
        }
    }
}

/// Pushes an error unless `field` is absent or one of `values`, which are in
/// the server's order.
pub(super) fn supported(
    path: &Path<'_>,
    value: &Value,
    field: &str,
    values: &[&str],
    errors: &mut Errors,
) {
    if let Some(given) = present(value, field)
        && !given.as_str().is_some_and(|given| values.contains(&given))
    {
        errors.push(FieldError::not_supported(&path.child(field), given, values));
    }
}

/// Checks the numbers that workloads share.
pub(super) fn validate_counts(path: &Path<'_>, spec: &Value, fields: &[&str], errors: &mut Errors) {
    for field in fields {
        validate_nonnegative(path, spec, field, errors);
    }
}
