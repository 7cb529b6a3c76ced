//! ResourceQuotas: names and amounts of `hard`, and the scopes.

use std::collections::BTreeMap;

use serde_json::Value;

use super::edit::{ensure_object, entries, items, present, text};
use super::resources;
use crate::field::{Errors, FieldError, Path, Repeated};

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
    let mut unsupported = Repeated::of(path, scopes);
    let mut unfitting = Unfitting::of(spec, path, scopes);
    for scope in &names {
        if !SCOPES.contains(scope) {
            unsupported.push("unsupported scope", errors);
        }
        unfitting.push(scope, errors);
    }
    validate_opposites(&path, &names, scopes, errors);
}

/// Complaints about resources of a quota that its scopes cannot bound.
struct Unfitting<'p> {
    spec: &'p Value,
    complaint: Repeated<'p>,
    /// How many such resources there are for a scope.
    counts: BTreeMap<&'p str, usize>,
}

impl<'p> Unfitting<'p> {
    fn of(spec: &'p Value, path: Path<'p>, shown: &'p Value) -> Self {
        Unfitting {
            spec,
            complaint: Repeated::of(path, shown),
            counts: BTreeMap::new(),
        }
    }

    /// Complains once of each resource that a scope cannot bound.
    fn push(&mut self, scope: &'p str, errors: &mut Errors) {
        if !SCOPES.contains(&scope) {
            return;
        }
        let hard = entries(self.spec, "hard").map(|(name, _)| name);
        let is_wrong = |name: &&String| resources::is_standard_quota(name) && !fits(scope, name);
        let count = self.counts.entry(scope);
        let count = *count.or_insert_with(|| hard.filter(is_wrong).count());
        for _ in 0..count {
            if !self.complaint.has_room() {
                break;
            }
            let why = "unsupported scope applied to resource";
            self.complaint.push(why, errors);
        }
    }
}

fn validate_selector(spec: &Value, errors: &mut Errors) {
    let Some(selector) = spec.get("scopeSelector").filter(|s| s.is_object()) else {
        return;
    };
    let path = SPEC.child("scopeSelector");
    let path = path.child("matchExpressions");
    let mut names = Vec::new();
    let mut unfitting = Unfitting::of(spec, path, selector);
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
        unfitting.push(scope, errors);
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn complaints(spec: &Value) -> Errors {
        let mut errors = Errors::new();
        validate(&json!({ "spec": spec }), &mut errors);
        errors
    }

    #[test]
    fn each_scope_is_complained_of() {
        let scopes = json!(["x", "BestEffort", "x", "BestEffort"]);
        let hard = json!({"cpu": "1", "memory": "1", "pods": "1"});
        let found = complaints(&json!({"scopes": scopes, "hard": hard}));
        let applied = |error: &&FieldError| error.detail.ends_with("applied to resource");
        assert_eq!((found.len(), found.iter().filter(applied).count()), (6, 4));
        let requirement = json!({"scopeName": "BestEffort", "operator": "Exists"});
        let selector = json!({"matchExpressions": [requirement, requirement]});
        let found = complaints(&json!({"scopeSelector": selector, "hard": hard}));
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn many_scopes_are_not_shown_for_each_other() {
        let scopes = vec!["x"; 20_000];
        let found = complaints(&json!({"scopes": scopes, "hard": {"cpu": "1"}}));
        let shown = |error: &FieldError| error.value.as_ref().map_or(0, String::len);
        assert!(found.iter().map(shown).sum::<usize>() < 4 << 20);
        let scopes = vec!["BestEffort"; 20_000];
        let found = complaints(&json!({"scopes": scopes, "hard": {"cpu": "1"}}));
        assert!((1..100).contains(&found.len()));
    }
}
