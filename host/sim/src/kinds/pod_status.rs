//! The status of a Pod: its conditions, its addresses, and what became of its containers.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::addresses;
use super::edit::{integer, items, items_mut, present, set, text, text_at};
use super::meta::validate_immutable;
use crate::field::{Errors, FieldError, Path};
use crate::names;

const STATUS: Path<'static> = Path::new("status");

fn of(pod: &Value) -> &Value {
    pod.get("status").unwrap_or(&Value::Null)
}

/// Puts into the status of a Pod what a write has left out.
pub(super) fn restore(pod: &mut Value, old: &Value) {
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
    for condition in items_mut(status, "conditions") {
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
        set(status, "podIPs", json!([{ "ip": one }]));
    }
}

/// Says what is wrong with a write of it.
pub(super) fn validate(pod: &Value, old: &Value, errors: &mut Errors) {
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
    validate_immutable(
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

#[cfg(test)]
mod tests {
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
        restore(&mut pod, &old);
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
