//! ResourceQuotas: names and amounts of `hard`, and the scopes.

use serde_json::Value;

use super::edit::{ensure_object, entries, items, present, text};
use super::resources;
use crate::field::{Errors, FieldError, Path};

const SPEC: Path<'static> = Path::new("spec");
const SCOPES: &[&str] = &[
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "VolumeAttributesClass",
    "CrossNamespacePodAffinity",
];
const OPPOSITES: [(&str, &str); 2] = [
    ("BestEffort", "NotBestEffort"),
    ("Terminating", "NotTerminating"),
];

pub(super) fn default(quota: &mut Value) {
    ensure_object(quota, "spec");
}

pub(super) fn validate(quota: &Value, errors: &mut Errors) {
    let spec = quota.get("spec").unwrap_or(&Value::Null);
    validate_amounts(&SPEC.child("hard"), spec, "hard", errors);
    validate_scopes(spec, errors);
    validate_selector(spec, errors);
}

/// Checks what is counted, and how much of it there is, in the map `field` at `path`.
pub(super) fn validate_amounts(path: &Path<'_>, of: &Value, field: &str, errors: &mut Errors) {
    for (name, amount) in entries(of, field) {
        let path = path.key(name);
        resources::validate_quota_name(&path, name, errors);
        resources::validate_amount(&path, name, amount, errors);
    }
}

pub(super) fn validate_update(quota: &Value, old: &Value, errors: &mut Errors) {
    let scopes = |quota: &Value| {
        let mut scopes: Vec<String> = items(quota.get("spec").unwrap_or(&Value::Null), "scopes")
            .filter_map(|scope| scope.as_str().map(str::to_owned))
            .collect();
        scopes.sort();
        scopes.dedup();
        scopes
    };
    if scopes(quota) != scopes(old) {
        errors.push(FieldError::invalid(
            &SPEC.child("scopes"),
            quota.pointer("/spec/scopes").unwrap_or(&Value::Null),
            "field is immutable",
        ));
    }
}

fn validate_scopes(spec: &Value, errors: &mut Errors) {
    let path = SPEC.child("scopes");
    let Some(scopes) = present(spec, "scopes") else {
        return;
    };
    let names: Vec<&str> = items(spec, "scopes").filter_map(Value::as_str).collect();
    for scope in &names {
        if !SCOPES.contains(scope) {
            errors.push(FieldError::invalid(&path, scopes, "unsupported scope"));
        }
        for _ in unfitting(spec, scope) {
            errors.push(FieldError::invalid(
                &path,
                scopes,
                "unsupported scope applied to resource",
            ));
        }
    }
    validate_opposites(&path, &names, scopes, errors);
}

fn validate_selector(spec: &Value, errors: &mut Errors) {
    let Some(selector) = spec.get("scopeSelector").filter(|s| s.is_object()) else {
        return;
    };
    let path = SPEC.child("scopeSelector");
    let path = path.child("matchExpressions");
    let mut names = Vec::new();
    for requirement in items(selector, "matchExpressions") {
        let scope = text(requirement, "scopeName");
        let operator = text(requirement, "operator");
        names.push(scope);
        if !SCOPES.contains(&scope) {
            errors.push(FieldError::invalid_str(
                &path.child("scopeName"),
                scope,
                "unsupported scope",
            ));
        }
        for _ in unfitting(spec, scope) {
            errors.push(FieldError::invalid(
                &path,
                selector,
                "unsupported scope applied to resource",
            ));
        }
        let only_exists = !matches!(scope, "PriorityClass" | "VolumeAttributesClass");
        if SCOPES.contains(&scope) && only_exists && operator != "Exists" {
            errors.push(FieldError::invalid_str(
                &path.child("operator"),
                operator,
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                 ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                 ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
            ));
        }
        validate_operator(&path, requirement, operator, errors);
    }
    let scopes = spec.get("scopes").unwrap_or(&Value::Null);
    validate_opposites(&path, &names, scopes, errors);
}

fn validate_operator(path: &Path<'_>, requirement: &Value, operator: &str, errors: &mut Errors) {
    let values = present(requirement, "values");
    match (operator, values) {
        ("In" | "NotIn", None) => errors.push(FieldError::required(
            &path.child("values"),
            "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
        )),
        ("Exists" | "DoesNotExist", Some(values)) => errors.push(FieldError::invalid(
            &path.child("values"),
            values,
            "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
        )),
        ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => {}
        _ => errors.push(FieldError::invalid_str(
            &path.child("operator"),
            operator,
            "not a valid selector operator",
        )),
    }
}

fn validate_opposites(path: &Path<'_>, names: &[&str], scopes: &Value, errors: &mut Errors) {
    for (one, other) in OPPOSITES {
        if names.contains(&one) && names.contains(&other) {
            errors.push(FieldError::invalid(path, scopes, "conflicting scopes"));
        }
    }
}

/// The resources of the quota that a scope cannot bound.
fn unfitting<'a>(spec: &'a Value, scope: &'a str) -> impl Iterator<Item = &'a str> {
    entries(spec, "hard")
        .map(|(name, _)| name.as_str())
        .filter(move |name| resources::is_standard_quota(name) && !fits(scope, name))
}

fn fits(scope: &str, resource: &str) -> bool {
    let compute = || {
        matches!(
            resource,
            "cpu" | "memory" | "limits.cpu" | "limits.memory" | "requests.cpu" | "requests.memory"
        )
    };
    match scope {
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => resource == "pods" || compute(),
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            matches!(resource, "persistentvolumeclaims" | "requests.storage")
        }
        _ => true,
    }
}
