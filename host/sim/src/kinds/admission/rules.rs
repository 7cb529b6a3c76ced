//! What webhooks and policies have in common: the requests that they are asked about.

use std::collections::HashSet;

use serde_json::Value;

use crate::cel::admission::{self, Expects, Known};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{items, present, text};
use crate::kinds::pod_validation::supported;
use crate::kinds::selectors;
use crate::names;

pub(super) const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];
/// So many conditions may be put on what a webhook or a policy is asked about.
const MOST_CONDITIONS: usize = 64;

fn texts<'a>(value: &'a Value, field: &str) -> Vec<&'a str> {
    items(value, field)
        .map(|item| item.as_str().unwrap_or_default())
        .collect()
}

fn list<'a>(value: &'a Value, field: &str) -> &'a Value {
    value.get(field).unwrap_or(&Value::Null)
}

/// Checks one rule of a webhook, or of a policy.
pub(super) fn validate_rule(path: &Path<'_>, rule: &Value, errors: &mut Errors) {
    let wildcard_alone = |field: &str, what: &str, errors: &mut Errors| {
        let given = texts(rule, field);
        let path = path.child(field);
        if given.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
        if given.len() > 1 && given.contains(&"*") {
            let why = format!("if '*' is present, must not specify other {what}");
            errors.push(FieldError::invalid(&path, list(rule, field), why));
        }
    };
    wildcard_alone("operations", "operations", errors);
    let of_operations = path.child("operations");
    for (index, operation) in items(rule, "operations").enumerate() {
        if !operation
            .as_str()
            .is_some_and(|given| OPERATIONS.contains(&given))
        {
            let path = of_operations.index(index);
            errors.push(FieldError::not_supported(&path, operation, &OPERATIONS));
        }
    }
    wildcard_alone("apiGroups", "API groups", errors);
    wildcard_alone("apiVersions", "API versions", errors);
    let of_versions = path.child("apiVersions");
    for (index, version) in texts(rule, "apiVersions").into_iter().enumerate() {
        if version.is_empty() {
            errors.push(FieldError::required(&of_versions.index(index), ""));
        }
    }
    validate_resources(&path.child("resources"), rule, errors);
    supported(path, rule, "scope", &SCOPES, errors);
}

fn validate_resources(path: &Path<'_>, rule: &Value, errors: &mut Errors) {
    let given = texts(rule, "resources");
    if given.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    let (mut all_of, mut of_all) = (HashSet::new(), HashSet::new());
    let mut has_plain = false;
    for (index, resource) in given.iter().copied().enumerate() {
        let path = path.index(index);
        if resource.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let Some((name, sub)) = resource.split_once('/') else {
            has_plain = resource != "*";
            continue;
        };
        for (is_covered, by) in [
            (all_of.contains(name), format!("{name}/*")),
            (of_all.contains(sub), format!("*/{sub}")),
        ] {
            if is_covered {
                let why = format!("if '{by}' is present, must not specify {resource}");
                errors.push(FieldError::invalid_str(&path, resource, why));
            }
        }
        if sub == "*" {
            all_of.insert(name);
        }
        if name == "*" {
            of_all.insert(sub);
        }
    }
    let mut complain = |why: &str| {
        errors.push(FieldError::invalid(path, list(rule, "resources"), why));
    };
    if given.len() > 1 && given.contains(&"*/*") {
        complain("if '*/*' is present, must not specify other resources");
    }
    if given.contains(&"*") && has_plain {
        complain("if '*' is present, must not specify other resources without subresources");
    }
}

/// Checks the policies on failure and matching, and the selectors.
pub(super) fn validate_match_policy(path: &Path<'_>, value: &Value, errors: &mut Errors) {
    supported(path, value, "matchPolicy", &MATCH_POLICIES, errors);
}

/// Checks the selectors that say which objects are meant.
pub(super) fn validate_selectors(path: &Path<'_>, value: &Value, errors: &mut Errors) {
    for field in ["namespaceSelector", "objectSelector"] {
        if let Some(selector) = value.get(field).filter(|selector| selector.is_object()) {
            selectors::validate(&path.child(field), selector, errors);
        }
    }
}

/// Checks what a policy or a binding is about.
pub(super) fn validate_match_resources(path: &Path<'_>, value: &Value, errors: &mut Errors) {
    validate_match_policy(path, value, errors);
    validate_selectors(path, value, errors);
    for field in ["resourceRules", "excludeResourceRules"] {
        let path = path.child(field);
        for (index, rule) in items(value, field).enumerate() {
            let path = path.index(index);
            let of_names = path.child("resourceNames");
            let mut seen = HashSet::new();
            for (index, name) in texts(rule, "resourceNames").into_iter().enumerate() {
                let path = of_names.index(index);
                for wrong in names::path_segment(name) {
                    errors.push(FieldError::invalid_str(&path, name, wrong));
                }
                if !seen.insert(name) {
                    errors.push(FieldError::duplicate(&path, &name.into()));
                }
            }
            validate_rule(&path, rule, errors);
        }
    }
}

/// Checks the conditions on what a webhook or a policy is asked about.
pub(super) fn validate_match_conditions(
    path: &Path<'_>,
    value: &Value,
    has_params: bool,
    errors: &mut Errors,
) {
    let path = path.child("matchConditions");
    let count = items(value, "matchConditions").count();
    if count > MOST_CONDITIONS {
        errors.push(FieldError::too_many(&path, count, MOST_CONDITIONS));
    }
    let known = Known {
        has_params,
        has_authorizer: true,
    };
    let environment = admission::environment(known);
    let mut seen = HashSet::new();
    for (index, condition) in items(value, "matchConditions").enumerate() {
        let path = path.index(index);
        let expression = text(condition, "expression").trim();
        let of_expression = path.child("expression");
        if expression.is_empty() {
            errors.push(FieldError::required(&of_expression, ""));
        } else if let Err(why) = admission::compile(expression, &environment, Expects::Bool) {
            errors.push(FieldError::invalid_str(&of_expression, expression, why));
        }
        let name = text(condition, "name");
        let path = path.child("name");
        if present(condition, "name").is_none() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        for wrong in names::qualified_name(name) {
            errors.push(FieldError::invalid_str(&path, name, wrong));
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path, &name.into()));
        }
    }
}
