//! Validation of webhook configurations.

use std::collections::HashSet;

use serde_json::Value;

use super::rules::{
    FAILURE_POLICIES, validate_match_conditions, validate_match_policy, validate_rule,
    validate_selectors,
};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{integer, items, text};
use crate::kinds::pod_validation::supported;
use crate::kinds::webhook_client::{self, validate_client, validate_versions};
use crate::names;

const SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];
/// A webhook may take so many seconds.
const TIMEOUTS: std::ops::RangeInclusive<i64> = 1..=30;

/// Says what is wrong with a configuration of either sort.
pub(super) fn validate(config: &Value, errors: &mut Errors) {
    let path = Path::new("webhooks");
    let mut seen = HashSet::new();
    for (index, webhook) in items(config, "webhooks").enumerate() {
        let path = path.index(index);
        validate_webhook(&path, webhook, errors);
        let why = format!(
            "must specify one of {}",
            webhook_client::VERSIONS.join(", ")
        );
        validate_versions(&path, webhook, "admissionReviewVersions", &why, errors);
        let name = text(webhook, "name");
        if !name.is_empty() && !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), &name.into()));
        }
    }
}

fn validate_webhook(path: &Path<'_>, webhook: &Value, errors: &mut Errors) {
    validate_name(&path.child("name"), text(webhook, "name"), errors);
    let of_rules = path.child("rules");
    for (index, rule) in items(webhook, "rules").enumerate() {
        validate_rule(&of_rules.index(index), rule, errors);
    }
    supported(path, webhook, "failurePolicy", &FAILURE_POLICIES, errors);
    validate_match_policy(path, webhook, errors);
    match webhook.get("sideEffects") {
        None | Some(Value::Null) => errors.push(FieldError::required(
            &path.child("sideEffects"),
            format!("must specify one of {}", SIDE_EFFECTS.join(", ")),
        )),
        Some(given) if !SIDE_EFFECTS.iter().any(|one| given == one) => {
            let path = path.child("sideEffects");
            errors.push(FieldError::not_supported(&path, given, &SIDE_EFFECTS));
        }
        Some(_) => {}
    }
    if let Some(seconds) = integer(webhook, "timeoutSeconds")
        && !TIMEOUTS.contains(&seconds)
    {
        errors.push(FieldError::invalid(
            &path.child("timeoutSeconds"),
            &seconds.into(),
            "the timeout value must be between 1 and 30 seconds",
        ));
    }
    validate_selectors(path, webhook, errors);
    supported(
        path,
        webhook,
        "reinvocationPolicy",
        &REINVOCATION_POLICIES,
        errors,
    );
    let client = webhook.get("clientConfig").unwrap_or(&Value::Null);
    validate_client(&path.child("clientConfig"), client, errors);
    validate_match_conditions(path, webhook, false, errors);
}

/// The name of a webhook is one of somebody's domain.
fn validate_name(path: &Path<'_>, name: &str, errors: &mut Errors) {
    let wrong = names::dns1123_subdomain(name);
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if !wrong.is_empty() {
        errors.push(FieldError::invalid_str(path, name, wrong.join(",")));
    } else if name.split('.').count() < 3 {
        errors.push(FieldError::invalid_str(
            path,
            name,
            "should be a domain with at least three segments separated by dots",
        ));
    }
}
