//! What a HorizontalPodAutoscaler goes by, and how fast.

use serde_json::Value;

use super::validate_reference;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{integer, items, object, present, text};
use crate::kinds::pod_validation::supported;
use crate::kinds::resources::{quantity, validate_container_name};
use crate::names;

const SPEC: Path<'static> = Path::new("spec");
/// What a metric may be of, as it is called and where it is described; in the order in
/// which the server looks at them.
const SOURCES: [(&str, &str); 5] = [
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];
const TYPES: [&str; 5] = [
    "ContainerResource",
    "External",
    "Object",
    "Pods",
    "Resource",
];
/// The longest a decision is held back, and the longest a policy looks back: an hour,
/// and half of one.
const LONGEST_WINDOW: i64 = 3600;
const LONGEST_PERIOD: i64 = 1800;

/// Checks the metrics.
pub(super) fn validate_metrics(spec: &Value, errors: &mut Errors) {
    let path = SPEC.child("metrics");
    let mut has_own = false;
    for (index, metric) in items(spec, "metrics").enumerate() {
        validate_metric(&path.index(index), metric, errors);
        has_own |= matches!(text(metric, "type"), "Object" | "External");
    }
    if integer(spec, "minReplicas") == Some(0) && !has_own {
        errors.push(FieldError::forbidden(
            &path,
            "must specify at least one Object or External metric to support scaling to zero replicas",
        ));
    }
}

fn validate_metric(path: &Path<'_>, metric: &Value, errors: &mut Errors) {
    let kind = text(metric, "type");
    let of_type = path.child("type");
    if kind.is_empty() {
        let why = "must specify a metric source type";
        errors.push(FieldError::required(&of_type, why));
    }
    let unknown = || FieldError::not_supported(&of_type, &kind.into(), &TYPES);
    let is_known = TYPES.contains(&kind);
    if !is_known {
        errors.push(unknown());
    }
    let mut sources = SOURCES
        .iter()
        .filter_map(|(_, field)| Some((*field, object(metric, field)?)));
    let all: Vec<&str> = sources.clone().map(|(field, _)| field).collect();
    if let Some((field, source)) = sources.next() {
        validate_source(&path.child(field), field, source, errors);
    }
    let expected = SOURCES.iter().find(|(name, _)| *name == kind);
    let expected = expected.map(|(_, field)| *field);
    match expected {
        Some(field) if object(metric, field).is_none() => errors.push(FieldError::required(
            &path.child(field),
            "must populate information for the given metric source",
        )),
        Some(_) => {}
        // A second time, as by the real server.
        None => errors.push(unknown()),
    }
    if all.len() > 1 {
        for field in all.iter().filter(|field| Some(**field) != expected) {
            let why = "must populate the given metric source only";
            errors.push(FieldError::forbidden(&path.child(field), why));
        }
    }
}

fn validate_source(path: &Path<'_>, field: &str, source: &Value, errors: &mut Errors) {
    let target = source.get("target").unwrap_or(&Value::Null);
    let of_target = path.child("target");
    let has = |field: &str| present(target, field).is_some();
    let require = |field: &str, why: &str, errors: &mut Errors| {
        errors.push(FieldError::required(&of_target.child(field), why));
    };
    match field {
        "object" => {
            let described = source.get("describedObject").unwrap_or(&Value::Null);
            validate_reference(&path.child("describedObject"), described, true, errors);
            validate_identifier(&path.child("metric"), source, errors);
            validate_target(&of_target, target, errors);
            if !has("value") && !has("averageValue") {
                let why = "must set either a target value or averageValue";
                require("averageValue", why, errors);
            }
        }
        "external" => {
            validate_identifier(&path.child("metric"), source, errors);
            validate_target(&of_target, target, errors);
            match (has("value"), has("averageValue")) {
                (false, false) => require(
                    "averageValue",
                    "must set either a target value for metric or a per-pod target",
                    errors,
                ),
                (true, true) => errors.push(FieldError::forbidden(
                    &of_target.child("value"),
                    "may not set both a target value for metric and a per-pod target",
                )),
                _ => {}
            }
        }
        "pods" => {
            validate_identifier(&path.child("metric"), source, errors);
            validate_target(&of_target, target, errors);
            if !has("averageValue") {
                let why = "must specify a positive target averageValue";
                require("averageValue", why, errors);
            }
        }
        _ => validate_resource(path, field, source, errors),
    }
}

/// Checks a metric of what pods or containers use.
fn validate_resource(path: &Path<'_>, field: &str, source: &Value, errors: &mut Errors) {
    let name = text(source, "name");
    let of_name = path.child("name");
    if name.is_empty() {
        let why = "must specify a resource name";
        errors.push(FieldError::required(&of_name, why));
    } else if field == "containerResource" {
        validate_container_name(&of_name, name, errors);
    }
    if field == "containerResource" {
        let container = text(source, "container");
        let path = path.child("container");
        if container.is_empty() {
            errors.push(FieldError::required(&path, "must specify a container"));
        } else {
            for wrong in names::dns1123_label(container) {
                errors.push(FieldError::invalid_str(&path, container, wrong));
            }
        }
    }
    let target = source.get("target").unwrap_or(&Value::Null);
    let path = path.child("target");
    validate_target(&path, target, errors);
    let has = |field: &str| present(target, field).is_some();
    match (has("averageUtilization"), has("averageValue")) {
        (false, false) => errors.push(FieldError::required(
            &path.child("averageUtilization"),
            "must set either a target raw value or a target utilization",
        )),
        (true, true) => errors.push(FieldError::forbidden(
            &path.child("averageValue"),
            "may not set both a target raw value and a target utilization",
        )),
        _ => {}
    }
}

fn validate_target(path: &Path<'_>, target: &Value, errors: &mut Errors) {
    let kind = text(target, "type");
    let of_type = path.child("type");
    if kind.is_empty() {
        let why = "must specify a metric target type";
        errors.push(FieldError::required(&of_type, why));
    }
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        let why = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid_str(&of_type, kind, why));
    }
    for field in ["value", "averageValue"] {
        let Some(given) = target.get(field) else {
            continue;
        };
        if quantity(given).is_some_and(|amount| amount.is_negative() || amount.is_zero()) {
            let path = path.child(field);
            errors.push(FieldError::invalid(&path, given, "must be positive"));
        }
    }
    if let Some(percent) = integer(target, "averageUtilization").filter(|given| *given < 1) {
        errors.push(FieldError::invalid(
            &path.child("averageUtilization"),
            &percent.into(),
            "must be greater than 0",
        ));
    }
}

fn validate_identifier(path: &Path<'_>, source: &Value, errors: &mut Errors) {
    let metric = source.get("metric").unwrap_or(&Value::Null);
    let name = text(metric, "name");
    let path = path.child("name");
    if name.is_empty() {
        errors.push(FieldError::required(&path, "must specify a metric name"));
    }
    for wrong in names::path_segment(name) {
        errors.push(FieldError::invalid_str(&path, name, wrong));
    }
}

/// Checks how fast it may go up and down.
pub(super) fn validate_behavior(spec: &Value, errors: &mut Errors) {
    let Some(behavior) = spec.get("behavior") else {
        return;
    };
    let path = SPEC.child("behavior");
    for direction in ["scaleUp", "scaleDown"] {
        if let Some(rules) = object(behavior, direction) {
            validate_rules(&path.child(direction), rules, errors);
        }
    }
}

fn validate_rules(path: &Path<'_>, rules: &Value, errors: &mut Errors) {
    if let Some(window) = integer(rules, "stabilizationWindowSeconds") {
        let why = match window {
            ..0 => Some("must be greater than or equal to zero".to_owned()),
            _ if window > LONGEST_WINDOW => {
                Some(format!("must be less than or equal to {LONGEST_WINDOW}"))
            }
            _ => None,
        };
        if let Some(why) = why {
            let path = path.child("stabilizationWindowSeconds");
            errors.push(FieldError::invalid(&path, &window.into(), why));
        }
    }
    let choices = ["Disabled", "Max", "Min"];
    supported(path, rules, "selectPolicy", &choices, errors);
    let policies = path.child("policies");
    if present(rules, "policies").is_none() {
        let why = "must specify at least one Policy";
        errors.push(FieldError::required(&policies, why));
    }
    for (index, policy) in items(rules, "policies").enumerate() {
        validate_policy(&policies.index(index), policy, errors);
    }
    if let Some(tolerance) = rules.get("tolerance")
        && quantity(tolerance).is_some_and(|amount| amount.is_negative())
    {
        errors.push(FieldError::invalid(
            &path.child("tolerance"),
            tolerance,
            "must be greater than or equal to 0",
        ));
    }
}

fn validate_policy(path: &Path<'_>, policy: &Value, errors: &mut Errors) {
    let kind = text(policy, "type");
    if !matches!(kind, "Pods" | "Percent") {
        let path = path.child("type");
        let kinds = ["Percent", "Pods"];
        errors.push(FieldError::not_supported(&path, &kind.into(), &kinds));
    }
    for field in ["value", "periodSeconds"] {
        let given = integer(policy, field).unwrap_or(0);
        if given <= 0 {
            let path = path.child(field);
            let why = "must be greater than zero";
            errors.push(FieldError::invalid(&path, &given.into(), why));
        }
    }
    if let Some(period) = integer(policy, "periodSeconds").filter(|p| *p > LONGEST_PERIOD) {
        errors.push(FieldError::invalid(
            &path.child("periodSeconds"),
            &period.into(),
            format!("must be less than or equal to {LONGEST_PERIOD}"),
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(spec: &Value, expected: &[&str]) {
        let mut errors = Errors::new();
        validate_metrics(spec, &mut errors);
        validate_behavior(spec, &mut errors);
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{spec}");
    }

    fn metric(metric: &Value) -> Value {
        json!({ "metrics": [metric] })
    }

    #[test]
    fn metrics_are_described_where_their_type_says() {
        let cpu =
            json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}});
        check(&metric(&json!({"type": "Resource", "resource": cpu})), &[]);
        check(
            &metric(&json!({"type": "Pods", "resource": cpu})),
            &[
                "spec.metrics[0].pods: Required value: must populate information for the given metric source",
            ],
        );
        check(
            &metric(
                &json!({"type": "Resource", "resource": {"target": {"type": "Value", "averageUtilization": 0}}}),
            ),
            &[
                "spec.metrics[0].resource.name: Required value: must specify a resource name",
                "spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0",
            ],
        );
        let external =
            json!({"metric": {"name": "queue"}, "target": {"type": "Value", "value": "-1"}});
        check(
            &metric(&json!({"type": "External", "external": external})),
            &["spec.metrics[0].external.target.value: Invalid value: \"-1\": must be positive"],
        );
        check(
            &metric(&json!({"type": "External", "external": external, "resource": cpu})),
            &[
                "spec.metrics[0].external.target.value: Invalid value: \"-1\": must be positive",
                "spec.metrics[0].resource: Forbidden: must populate the given metric source only",
            ],
        );
    }

    #[test]
    fn behavior_has_bounds() {
        let up = |rules: Value| json!({"behavior": {"scaleUp": rules}});
        let policy = json!({"type": "Pods", "value": 1, "periodSeconds": 15});
        check(&up(json!({"policies": [policy]})), &[]);
        check(
            &up(json!({"stabilizationWindowSeconds": 3601, "selectPolicy": "Most"})),
            &[
                "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600",
                "spec.behavior.scaleUp.selectPolicy: Unsupported value: \"Most\": supported values: \"Disabled\", \"Max\", \"Min\"",
                "spec.behavior.scaleUp.policies: Required value: must specify at least one Policy",
            ],
        );
        check(
            &up(json!({"policies": [{"type": "Share", "value": 0, "periodSeconds": 1801}]})),
            &[
                "spec.behavior.scaleUp.policies[0].type: Unsupported value: \"Share\": supported values: \"Percent\", \"Pods\"",
                "spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero",
                "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800",
            ],
        );
    }
}
