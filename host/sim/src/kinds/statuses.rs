//! What writes of the status of built-in kinds may say: counts, addresses, amounts and
//! conditions.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use super::edit::{entries, integer, items, present, set, text, text_at};
use super::meta::validate_nonnegative;
use super::{addresses, resource_quota, resources};
use crate::field::{Errors, FieldError, Path};
use crate::names;

const STATUS: Path<'static> = Path::new("status");

/// The counts of a status, and for each those that it cannot be greater than, with what
/// the server calls them.
type Counts = &'static [(&'static str, &'static [(&'static str, &'static str)])];

const ALL: (&str, &str) = ("replicas", "status.replicas");
const READY: (&str, &str) = ("readyReplicas", "readyReplicas");
const COLLISIONS: &str = "collisionCount";

const DEPLOYMENT: Counts = &[
    ("observedGeneration", &[]),
    ("replicas", &[]),
    ("updatedReplicas", &[ALL]),
    ("readyReplicas", &[ALL]),
    ("availableReplicas", &[ALL, READY]),
    ("unavailableReplicas", &[]),
    ("terminatingReplicas", &[]),
    (COLLISIONS, &[]),
];
const REPLICA_SET: Counts = &[
    ("replicas", &[]),
    ("fullyLabeledReplicas", &[ALL]),
    ("readyReplicas", &[ALL]),
    ("availableReplicas", &[ALL, READY]),
    ("observedGeneration", &[]),
    ("terminatingReplicas", &[]),
];
const STATEFUL_SET: Counts = &[
    ("replicas", &[]),
    ("readyReplicas", &[ALL]),
    ("currentReplicas", &[ALL]),
    ("updatedReplicas", &[ALL]),
    (
        "availableReplicas",
        &[ALL, ("readyReplicas", "status.readyReplicas")],
    ),
    ("observedGeneration", &[]),
    (COLLISIONS, &[]),
];
const DAEMON_SET: Counts = &[
    ("currentNumberScheduled", &[]),
    ("numberMisscheduled", &[]),
    ("desiredNumberScheduled", &[]),
    ("numberReady", &[]),
    ("observedGeneration", &[]),
    ("updatedNumberScheduled", &[]),
    ("numberAvailable", &[]),
    ("numberUnavailable", &[]),
    (COLLISIONS, &[]),
];
const BUDGET: Counts = &[
    ("disruptionsAllowed", &[]),
    ("currentHealthy", &[]),
    ("desiredHealthy", &[]),
    ("expectedPods", &[]),
];
const AUTOSCALER: Counts = &[("currentReplicas", &[]), ("desiredReplicas", &[])];

fn of(object: &Value) -> &Value {
    object.get("status").unwrap_or(&Value::Null)
}

pub(super) fn validate_deployment(object: &Value, old: &Value, errors: &mut Errors) {
    validate_counts(object, DEPLOYMENT, errors);
    validate_collisions(object, old, errors);
}

/// Of a ReplicationController as well, which has fewer of the same counts.
pub(super) fn validate_replica_set(object: &Value, _old: &Value, errors: &mut Errors) {
    validate_counts(object, REPLICA_SET, errors);
}

pub(super) fn validate_stateful_set(object: &Value, old: &Value, errors: &mut Errors) {
    validate_counts(object, STATEFUL_SET, errors);
    validate_collisions(object, old, errors);
}

pub(super) fn validate_daemon_set(object: &Value, old: &Value, errors: &mut Errors) {
    validate_counts(object, DAEMON_SET, errors);
    validate_collisions(object, old, errors);
}

pub(super) fn validate_budget(object: &Value, _old: &Value, errors: &mut Errors) {
    validate_conditions(object, errors);
    validate_counts(object, BUDGET, errors);
}

pub(super) fn validate_autoscaler(object: &Value, _old: &Value, errors: &mut Errors) {
    validate_counts(object, AUTOSCALER, errors);
}

/// Says which counts are negative, and then which are greater than they can be.
fn validate_counts(object: &Value, counts: Counts, errors: &mut Errors) {
    let status = of(object);
    let count = |field: &str| integer(status, field).unwrap_or(0);
    for (field, _) in counts {
        validate_nonnegative(&STATUS, status, field, errors);
    }
    for (field, limits) in counts {
        for (limit, called) in *limits {
            if count(field) > count(limit) {
                errors.push(FieldError::invalid(
                    &STATUS.child(field),
                    &count(field).into(),
                    format!("cannot be greater than {called}"),
                ));
            }
        }
    }
}

/// Names that were taken do not become free again.
fn validate_collisions(object: &Value, old: &Value, errors: &mut Errors) {
    let (now, then) = (
        integer(of(object), COLLISIONS),
        integer(of(old), COLLISIONS),
    );
    if then.is_some_and(|then| now.is_none_or(|now| now < then)) {
        errors.push(FieldError::invalid(
            &STATUS.child(COLLISIONS),
            &now.unwrap_or(0).into(),
            "cannot be decremented",
        ));
    }
}

/// Checks conditions of the form that all kinds are to have.
fn validate_conditions(object: &Value, errors: &mut Errors) {
    const LONGEST_REASON: usize = 1024;
    const LONGEST_MESSAGE: usize = 32 * 1024;
    let list = STATUS.child("conditions");
    let mut seen = BTreeSet::new();
    for (index, condition) in items(of(object), "conditions").enumerate() {
        let path = list.index(index);
        let kind = text(condition, "type");
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(&path.child("type"), &kind.into()));
        }
        for wrong in names::qualified_name(kind) {
            errors.push(FieldError::invalid_str(&path.child("type"), kind, wrong));
        }
        let status = text(condition, "status");
        let statuses = ["False", "True", "Unknown"];
        if !statuses.contains(&status) {
            let path = path.child("status");
            errors.push(FieldError::not_supported(&path, &status.into(), &statuses));
        }
        if let Some(generation) = integer(condition, "observedGeneration").filter(|g| *g < 0) {
            errors.push(FieldError::invalid(
                &path.child("observedGeneration"),
                &generation.into(),
                "must be greater than or equal to zero",
            ));
        }
        if present(condition, "lastTransitionTime").is_none() {
            errors.push(FieldError::required(&path.child("lastTransitionTime"), ""));
        }
        validate_reason(
            &path.child("reason"),
            text(condition, "reason"),
            LONGEST_REASON,
            errors,
        );
        if text(condition, "message").len() > LONGEST_MESSAGE {
            errors.push(FieldError::too_long(
                &path.child("message"),
                LONGEST_MESSAGE,
            ));
        }
    }
}

fn validate_reason(path: &Path<'_>, reason: &str, longest: usize, errors: &mut Errors) {
    if reason.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let fits = reason.starts_with(|c: char| c.is_ascii_alphabetic())
        && reason.ends_with(is_word)
        && reason.chars().all(|c| is_word(c) || matches!(c, ',' | ':'));
    if !fits {
        let wrong = names::pattern(
            "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
            "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
            &[
                "my_name",
                "MY_NAME",
                "MyName",
                "ReasonA,ReasonB",
                "ReasonA:ReasonB",
            ],
        );
        errors.push(FieldError::invalid_str(path, reason, wrong));
    }
    if reason.len() > longest {
        errors.push(FieldError::too_long(path, longest));
    }
}

pub(super) fn validate_quota(object: &Value, _old: &Value, errors: &mut Errors) {
    for list in ["hard", "used"] {
        resource_quota::validate_amounts(&STATUS.child(list), of(object), list, errors);
    }
}

pub(super) fn validate_claim(object: &Value, _old: &Value, errors: &mut Errors) {
    const STATES: [&str; 5] = [
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    ];
    let status = of(object);
    let validate_amount = |path: &Path<'_>, amount: &Value, errors: &mut Errors| {
        let whole = resources::quantity(amount).map_or(0, |amount| amount.ceil());
        if whole < 0 {
            let why = "must be a valid resource quantity";
            let whole = i64::try_from(whole).unwrap_or(i64::MIN);
            errors.push(FieldError::invalid(path, &whole.into(), why));
        }
        whole < 0
    };
    let path = STATUS.child("capacity");
    for (name, amount) in entries(status, "capacity") {
        validate_amount(&path.key(name), amount, errors);
    }
    let path = STATUS.child("allocatedResourceStatuses");
    for (name, state) in entries(status, "allocatedResourceStatuses") {
        validate_claimed_name(&path, name, errors);
        if !state.as_str().is_some_and(|state| STATES.contains(&state)) {
            let name = Value::from(name.as_str());
            errors.push(FieldError::not_supported(&path, &name, &STATES));
        }
    }
    let path = STATUS.child("allocatedResources");
    for (name, amount) in entries(status, "allocatedResources") {
        let count = errors.len();
        validate_claimed_name(&path, name, errors);
        if errors.len() == count && !validate_amount(&path.key(name), amount, errors) {
            resources::validate_amount(&path.key(name), "storage", amount, errors);
        }
    }
}

/// Checks the name of something that a claim has got: its storage, or what somebody else
/// than Kubernetes gives.
fn validate_claimed_name(path: &Path<'_>, name: &str, errors: &mut Errors) {
    let wrong = names::qualified_name(name);
    let fits = wrong.is_empty();
    for wrong in wrong {
        errors.push(FieldError::invalid_str(path, name, wrong));
    }
    if fits && resources::is_native(name) && name != "storage" {
        errors.push(FieldError::not_supported(path, &name.into(), &["storage"]));
    }
}

/// Puts into the status of a Pod what a write has left out.
pub(super) fn restore_pod(pod: &mut Value, old: &Value) {
    const OBSERVED: &str = "observedGeneration";
    let before = of(old);
    let Some(status) = pod.get_mut("status") else {
        return;
    };
    let mut keep = |field: &str| {
        if present(status, field).is_none_or(|value| value == 0)
            && let Some(value) = present(before, field)
        {
            set(status, field, value.clone());
        }
    };
    keep("qosClass");
    keep(OBSERVED);
    // Conditions of one type keep their generations in order.
    let mut known: Vec<&Value> = items(before, "conditions").collect();
    for condition in super::edit::items_mut(status, "conditions") {
        let kind = text(condition, "type");
        let Some(at) = known.iter().position(|known| text(known, "type") == kind) else {
            continue;
        };
        let generation = integer(known.remove(at), OBSERVED).unwrap_or(0);
        if integer(condition, OBSERVED).unwrap_or(0) == 0 && generation != 0 {
            set(condition, OBSERVED, generation);
        }
    }
}

/// Brings the one address of a Pod and the list of them in step.
pub(super) fn default_addresses(pod: &mut Value) {
    let Some(status) = pod.get_mut("status") else {
        return;
    };
    let one = text(status, "podIP").to_owned();
    let first = text_at(status, "/podIPs/0/ip").to_owned();
    if one.is_empty() && !first.is_empty() {
        set(status, "podIP", first);
    } else if one != first {
        set(status, "podIPs", serde_json::json!([{ "ip": one }]));
    }
}

pub(super) fn validate_pod(pod: &Value, old: &Value, errors: &mut Errors) {
    let (status, before) = (of(pod), of(old));
    let observed = |path: &Path<'_>, of: &Value, errors: &mut Errors| {
        if let Some(generation) = integer(of, "observedGeneration").filter(|g| *g < 0) {
            errors.push(FieldError::invalid(
                &path.child("observedGeneration"),
                &generation.into(),
                "must be a non-negative integer",
            ));
        }
    };
    let list = STATUS.child("conditions");
    for (index, condition) in items(status, "conditions").enumerate() {
        let path = list.index(index);
        observed(&path, condition, errors);
        let kind = text(condition, "type");
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            for wrong in names::qualified_name(kind) {
                errors.push(FieldError::invalid_str(&path.child("Type"), kind, wrong));
            }
        }
    }
    let nominated = text(status, "nominatedNodeName");
    if !nominated.is_empty() && nominated != text(before, "nominatedNodeName") {
        let path = STATUS.child("nominatedNodeName");
        for wrong in names::dns1123_subdomain(nominated) {
            errors.push(FieldError::invalid_str(&path, nominated, wrong));
        }
        if !text_at(old, "/spec/nodeName").is_empty() {
            let why = "may not be set on pods that are already bound to a node";
            errors.push(FieldError::forbidden(&path, why));
        }
    }
    observed(&STATUS, status, errors);
    super::meta::validate_immutable(
        &STATUS.child("qosClass"),
        status,
        before,
        "qosClass",
        errors,
    );
    for (list, of) in [
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
    ] {
        validate_ended(pod, old, (list, of), errors);
    }
    validate_addresses(status, before, "podIPs", errors);
    if present(status, "hostIPs").is_some() {
        let first = text_at(status, "/hostIPs/0/ip");
        if first != text(status, "hostIP") {
            let path = STATUS.child("hostIPs");
            let path = path.index(0);
            let why = "must be equal to `hostIP`";
            errors.push(FieldError::invalid_str(&path.child("ip"), first, why));
        }
        validate_addresses(status, before, "hostIPs", errors);
    }
}

/// A container that has ended runs again only where it is to be restarted.
fn validate_ended(pod: &Value, old: &Value, lists: (&str, &str), errors: &mut Errors) {
    let (list, containers) = lists;
    let path = STATUS.child(list);
    let spec = old.get("spec").unwrap_or(&Value::Null);
    let has_ended = |status: &Value| {
        let ended = status.pointer("/state/terminated");
        ended.filter(|ended| ended.is_object()).cloned()
    };
    let all = ["containers", "initContainers"];
    let mut rules = all
        .iter()
        .flat_map(|list| items(spec, list))
        .flat_map(|container| items(container, "restartPolicyRules"));
    if rules.any(|rule| text(rule, "action") == "RestartAllContainers") {
        return;
    }
    for (index, before) in items(of(old), list).enumerate() {
        let Some(ended) = has_ended(before) else {
            continue;
        };
        let name = text(before, "name");
        let mut after = items(of(pod), list).filter(|status| text(status, "name") == name);
        let runs_again = after.next().is_some_and(|after| has_ended(after).is_none());
        let mut containers = items(spec, containers);
        let container = containers.find(|container| text(container, "name") == name);
        let code = integer(&ended, "exitCode").unwrap_or(0);
        let restarts = container.is_some_and(|container| is_restarted(spec, container, code));
        if runs_again && !restarts {
            let why = "may not be transitioned to non-terminated state";
            let path = path.index(index);
            errors.push(FieldError::forbidden(&path.child("state"), why));
        }
    }
}

/// Whether a container is started again that ended with `code`.
fn is_restarted(spec: &Value, container: &Value, code: i64) -> bool {
    let mut rules = items(container, "restartPolicyRules");
    let rule = rules.find(|rule| {
        let codes = rule.get("exitCodes").unwrap_or(&Value::Null);
        let is_named = items(codes, "values").any(|value| *value == code);
        match text(codes, "operator") {
            "In" => is_named,
            "NotIn" => !is_named,
            _ => false,
        }
    });
    if rule.is_some() {
        return true;
    }
    let policy = match text(container, "restartPolicy") {
        "" => text(spec, "restartPolicy"),
        own => own,
    };
    match policy {
        "Never" => false,
        "OnFailure" => code != 0,
        _ => true,
    }
}

/// Checks addresses, of which there is one of a family; those that were there may stay.
fn validate_addresses(status: &Value, before: &Value, list: &str, errors: &mut Errors) {
    let path = STATUS.child(list);
    let known: BTreeSet<&str> = items(before, list).map(|ip| text(ip, "ip")).collect();
    let all: Vec<&str> = items(status, list).map(|ip| text(ip, "ip")).collect();
    for (index, ip) in all.iter().enumerate() {
        if !known.contains(ip) {
            addresses::validate_ip(&path.index(index), ip, errors);
        }
    }
    let parsed: Vec<IpAddr> = all.iter().filter_map(|ip| ip.parse().ok()).collect();
    let families: BTreeSet<bool> = parsed.iter().map(IpAddr::is_ipv4).collect();
    if all.len() > 2 || (all.len() == 2 && parsed.len() == 2 && families.len() == 1) {
        let given = status.get(list).unwrap_or(&Value::Null);
        let why = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid(&path, given, why));
    }
}

/// Checks the addresses of an Ingress.
pub(super) fn validate_ingress(ingress: &Value, _old: &Value, errors: &mut Errors) {
    let path = STATUS.child("loadBalancer");
    let list = path.child("ingress");
    let balancer = ingress.pointer("/status/loadBalancer");
    for (index, given) in items(balancer.unwrap_or(&Value::Null), "ingress").enumerate() {
        let path = list.index(index);
        let ip = text(given, "ip");
        if !ip.is_empty() {
            addresses::validate_ip(&path.child("ip"), ip, errors);
        }
        addresses::validate_hostname(&path.child("hostname"), text(given, "hostname"), errors);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn containers_that_ended_run_again_by_their_policy() {
        let spec = |policy: &str| json!({"restartPolicy": policy});
        let plain = json!({"name": "c"});
        let own = json!({"name": "c", "restartPolicy": "Always"});
        let rules = json!({"name": "c", "restartPolicyRules": [
            {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}},
        ]});
        for (policy, container, code, expected) in [
            ("Always", &plain, 0, true),
            ("Never", &plain, 1, false),
            ("OnFailure", &plain, 1, true),
            ("OnFailure", &plain, 0, false),
            ("Never", &own, 0, true),
            ("Never", &rules, 42, true),
            ("Never", &rules, 1, false),
        ] {
            let found = is_restarted(&spec(policy), container, code);
            assert_eq!(found, expected, "{policy} {container} {code}");
        }
    }

    #[test]
    fn what_a_write_of_a_pod_leaves_out_stays() {
        let old = json!({"status": {"qosClass": "Burstable", "observedGeneration": 3, "conditions": [
            {"type": "Ready", "observedGeneration": 2},
        ]}});
        let mut pod = json!({"status": {"podIP": "10.1.1.1", "conditions": [{"type": "Ready"}, {"type": "Other"}]}});
        restore_pod(&mut pod, &old);
        default_addresses(&mut pod);
        let expected = json!({
            "podIP": "10.1.1.1",
            "podIPs": [{"ip": "10.1.1.1"}],
            "qosClass": "Burstable",
            "observedGeneration": 3,
            "conditions": [{"type": "Ready", "observedGeneration": 2}, {"type": "Other"}],
        });
        assert_eq!(pod["status"], expected);
    }
}
