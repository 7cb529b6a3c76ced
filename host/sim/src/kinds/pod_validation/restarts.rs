//! When a container is started again: by itself, and to get other resources.

use std::collections::BTreeSet;

use serde_json::Value;

use super::supported;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{items, present, text};

/// Checks how a container is restarted.
pub(super) fn validate(path: &Path<'_>, container: &Value, errors: &mut Errors) {
    const MOST_RULES: usize = 20;
    const MOST_CODES: usize = 255;
    let policies = ["Always", "Never", "OnFailure"];
    supported(path, container, "restartPolicy", &policies, errors);
    let list = path.child("restartPolicyRules");
    let count = items(container, "restartPolicyRules").count();
    if count > 0 && present(container, "restartPolicy").is_none() {
        errors.push(FieldError::required(
            &path.child("restartPolicy"),
            "must specify restartPolicy when restart rules are used",
        ));
    }
    if count > MOST_RULES {
        errors.push(FieldError::too_many(&list, count, MOST_RULES));
    }
    for (index, rule) in items(container, "restartPolicyRules").enumerate() {
        let path = list.index(index);
        let actions = ["Restart", "RestartAllContainers"];
        one_of(
            &path.child("action"),
            text(rule, "action"),
            &actions,
            errors,
        );
        let path = path.child("exitCodes");
        let Some(codes) = rule.get("exitCodes").filter(|codes| codes.is_object()) else {
            errors.push(FieldError::required(&path, "must be specified"));
            continue;
        };
        let operator = text(codes, "operator");
        one_of(&path.child("operator"), operator, &["In", "NotIn"], errors);
        let count = items(codes, "values").count();
        if count > MOST_CODES {
            errors.push(FieldError::too_many(
                &path.child("values"),
                count,
                MOST_CODES,
            ));
        }
    }
}

/// Pushes an error unless a text, which may be empty, is one of `values`.
fn one_of(path: &Path<'_>, given: &str, values: &[&str], errors: &mut Errors) {
    if !values.contains(&given) {
        errors.push(FieldError::not_supported(path, &given.into(), values));
    }
}

/// Checks which resources a container gets without a restart. It is told without its
/// index, as by the real server.
pub(super) fn validate_resizes(
    path: &Path<'_>,
    container: &Value,
    pod_policy: &str,
    errors: &mut Errors,
) {
    const STAYS: &str = "NotRequired";
    let mut known = BTreeSet::new();
    for (index, policy) in items(container, "resizePolicy").enumerate() {
        let (name, restart) = (text(policy, "resourceName"), text(policy, "restartPolicy"));
        if !known.insert(name) {
            errors.push(FieldError::duplicate(&path.index(index), &name.into()));
        }
        for (given, values) in [
            (name, ["cpu", "memory"]),
            (restart, [STAYS, "RestartContainer"]),
        ] {
            if given.is_empty() {
                errors.push(FieldError::required(path, ""));
            } else {
                one_of(path, given, &values, errors);
            }
        }
        if pod_policy == "Never" && restart != STAYS {
            let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(FieldError::invalid_str(path, restart, why));
        }
    }
}

/// Only init containers that run as long as their pod can be started again for more
/// resources.
pub(super) fn validate_init_resizes(path: &Path<'_>, container: &Value, errors: &mut Errors) {
    if text(container, "restartPolicy") == "Always" {
        return;
    }
    let list = path.child("resizePolicy");
    for (index, policy) in items(container, "resizePolicy").enumerate() {
        let restart = text(policy, "restartPolicy");
        if restart == "RestartContainer" {
            let path = list.index(index);
            let why = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            errors.push(FieldError::invalid_str(
                &path.child("restartPolicy"),
                restart,
                why,
            ));
        }
    }
}
