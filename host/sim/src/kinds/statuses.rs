//! What writes of the status of built-in kinds may say: counts, and the conditions,
//! amounts and addresses of kinds that have little else.

use std::collections::BTreeSet;

use serde_json::Value;

use super::edit::{integer, items, present, text};
use super::meta::validate_nonnegative;
use super::{addresses, resource_quota};
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
