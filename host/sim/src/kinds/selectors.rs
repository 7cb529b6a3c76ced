//! Validation of `LabelSelector` objects inside other objects.

use serde_json::Value;

use super::edit::{items, present, text};
use super::meta::validate_labels;
use crate::field::{Errors, FieldError, Path};
use crate::names;
use crate::selector::LabelSelector;

/// Says what is wrong with a selector; nothing when it is absent.
pub(super) fn validate(path: &Path<'_>, selector: &Value, errors: &mut Errors) {
    validate_labels(selector, &path.child("matchLabels"), "matchLabels", errors);
    let path = path.child("matchExpressions");
    for (index, expression) in items(selector, "matchExpressions").enumerate() {
        let path = path.index(index);
        let operator = text(expression, "operator");
        match (operator, present(expression, "values")) {
            ("In" | "NotIn", None) => errors.push(FieldError::required(
                &path.child("values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            ("Exists" | "DoesNotExist", Some(_)) => errors.push(FieldError::forbidden(
                &path.child("values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => {}
            _ => errors.push(FieldError::invalid_str(
                &path.child("operator"),
                operator,
                "not a valid selector operator",
            )),
        }
        validate_key(&path, expression, errors);
        validate_values(&path, expression, errors);
    }
}

/// Checks the key of one expression, of whatever selector.
pub(super) fn validate_key(path: &Path<'_>, expression: &Value, errors: &mut Errors) {
    let key = text(expression, "key");
    for wrong in names::qualified_name(key) {
        errors.push(FieldError::invalid_str(&path.child("key"), key, wrong));
    }
}

/// Checks that the values of one expression can be those of labels.
pub(super) fn validate_values(path: &Path<'_>, expression: &Value, errors: &mut Errors) {
    let values = path.child("values");
    for (index, value) in items(expression, "values").enumerate() {
        let value = value.as_str().unwrap_or_default();
        for wrong in names::label_value(value) {
            errors.push(FieldError::invalid_str(&values.index(index), value, wrong));
        }
    }
}

/// Whether a selector asks for nothing.
pub(super) fn is_empty(selector: &Value) -> bool {
    present(selector, "matchLabels").is_none() && present(selector, "matchExpressions").is_none()
}

/// Checks the selector and the template of a workload: the selector must be
/// there, not empty, and match the labels of the template.
pub(super) fn validate_workload(spec: &Value, kind: &str, errors: &mut Errors) {
    let path = Path::new("spec");
    let selector = spec.get("selector").filter(|selector| selector.is_object());
    match selector {
        None if kind == "daemonset" => {}
        None => errors.push(FieldError::required(&path.child("selector"), "")),
        Some(selector) => {
            validate(&path.child("selector"), selector, errors);
            if is_empty(selector) {
                errors.push(FieldError::invalid(
                    &path.child("selector"),
                    selector,
                    format!("empty selector is invalid for {kind}"),
                ));
            }
        }
    }
    let labels = spec.pointer("/template/metadata/labels");
    let unmatched = || {
        FieldError::invalid(
            &path.child("template.metadata.labels"),
            labels.unwrap_or(&Value::Null),
            "`selector` does not match template `labels`",
        )
    };
    let Some(selector) = selector.filter(|selector| !is_empty(selector)) else {
        // No selector matches nothing, an empty one everything.
        if selector.is_none() {
            errors.push(unmatched());
        }
        return;
    };
    match LabelSelector::from_object(selector) {
        Err(_) => errors.push(FieldError::invalid(
            &path.child("selector"),
            selector,
            "invalid label selector",
        )),
        Ok(parsed) => {
            if !parsed.matches(labels.and_then(Value::as_object)) {
                errors.push(unmatched());
            }
        }
    }
}
