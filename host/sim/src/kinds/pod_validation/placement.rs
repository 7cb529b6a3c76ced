//! Where a pod may run: tolerations, spread and affinity.

use std::collections::HashMap;

use serde_json::Value;

use super::supported;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{as_printed, integer, items, items_mut, present, text};
use crate::kinds::{label_keys, selectors};
use crate::names;

/// Checks the tolerations of a pod.
pub(in crate::kinds) fn validate_tolerations(list: &Path<'_>, spec: &Value, errors: &mut Errors) {
    for (index, toleration) in items(spec, "tolerations").enumerate() {
        let path = list.index(index);
        let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
        let (value, effect) = (text(toleration, "value"), text(toleration, "effect"));
        if !key.is_empty() {
            for wrong in names::qualified_name(key) {
                errors.push(FieldError::invalid_str(&path.child("key"), key, wrong));
            }
        }
        if key.is_empty() && operator != "Exists" {
            errors.push(FieldError::invalid_str(
                &path.child("operator"),
                operator,
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
            ));
        }
        if integer(toleration, "tolerationSeconds").is_some() && effect != "NoExecute" {
            errors.push(FieldError::invalid_str(
                &path.child("effect"),
                effect,
                "effect must be 'NoExecute' when `tolerationSeconds` is set",
            ));
        }
        let path_of_operator = path.child("operator");
        match operator {
            "" | "Equal" => {
                let wrong = names::label_value(value);
                if !wrong.is_empty() {
                    errors.push(FieldError::invalid_str(
                        &path_of_operator,
                        value,
                        wrong.join(";"),
                    ));
                }
            }
            "Exists" if value.is_empty() => {}
            "Exists" => errors.push(FieldError::invalid_str(
                &path_of_operator,
                value,
                "value must be empty when `operator` is 'Exists'",
            )),
            // Known, and not turned on.
            "Lt" | "Gt" => errors.push(FieldError::not_supported(
                &path_of_operator,
                &operator.into(),
                &["Equal", "Exists", "Lt", "Gt"],
            )),
            _ => errors.push(FieldError::not_supported(
                &path_of_operator,
                &operator.into(),
                &["Equal", "Exists"],
            )),
        }
        supported(
            &path,
            toleration,
            "effect",
            &["NoSchedule", "PreferNoSchedule", "NoExecute"],
            errors,
        );
    }
}

/// Checks how a pod is spread.
pub(super) fn validate_spread(list: &Path<'_>, spec: &Value, errors: &mut Errors) {
    let constraints: Vec<&Value> = items(spec, "topologySpreadConstraints").collect();
    // Where the same is said for the last time.
    let last: HashMap<(&str, &str), usize> = constraints
        .iter()
        .enumerate()
        .map(|(index, constraint)| {
            let key = text(constraint, "topologyKey");
            ((key, text(constraint, "whenUnsatisfiable")), index)
        })
        .collect();
    for (index, constraint) in constraints.iter().enumerate() {
        let path = list.index(index);
        let positive = |field: &str, number: i64, errors: &mut Errors| {
            if number <= 0 {
                errors.push(FieldError::invalid(
                    &path.child(field),
                    &number.into(),
                    "must be greater than zero",
                ));
            }
        };
        let skew = integer(constraint, "maxSkew").unwrap_or(0);
        positive("maxSkew", skew, errors);
        let (key, action) = (
            text(constraint, "topologyKey"),
            text(constraint, "whenUnsatisfiable"),
        );
        if key.is_empty() {
            errors.push(FieldError::required(
                &path.child("topologyKey"),
                "can not be empty",
            ));
        }
        let actions = ["DoNotSchedule", "ScheduleAnyway"];
        if !actions.contains(&action) {
            errors.push(FieldError::not_supported(
                &path.child("whenUnsatisfiable"),
                &action.into(),
                &actions,
            ));
        }
        if last.get(&(key, action)).is_some_and(|last| *last > index) {
            errors.push(FieldError::duplicate(
                &path.child("{topologyKey, whenUnsatisfiable}"),
                &format!("{{{key}, {action}}}").into(),
            ));
        }
        if let Some(domains) = integer(constraint, "minDomains") {
            positive("minDomains", domains, errors);
            if action != "DoNotSchedule" {
                errors.push(FieldError::invalid(
                    &path.child("minDomains"),
                    &domains.into(),
                    format!(
                        "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                    ),
                ));
            }
        }
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            supported(&path, constraint, field, &["Honor", "Ignore"], errors);
        }
        label_keys::validate(&path, constraint, errors);
        if let Some(selector) = constraint.get("labelSelector") {
            selectors::validate(&path.child("labelSelector"), selector, errors);
        }
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Checks to what a pod is drawn.
pub(super) fn validate_affinity(path: &Path<'_>, spec: &Value, errors: &mut Errors) {
    let Some(affinity) = spec.get("affinity").filter(|a| a.is_object()) else {
        return;
    };
    if let Some(nodes) = affinity.get("nodeAffinity") {
        let path = path.child("nodeAffinity");
        if let Some(selector) = nodes.get(REQUIRED).filter(|s| s.is_object()) {
            validate_nodes(&path.child(REQUIRED), selector, errors);
        }
        let list = path.child(PREFERRED);
        for (index, preferred) in items(nodes, PREFERRED).enumerate() {
            let path = list.index(index);
            validate_weight(&path, preferred, errors);
            let term = preferred.get("preference").unwrap_or(&Value::Null);
            validate_term(&path.child("preference"), term, Term::Preferred, errors);
        }
    }
    for field in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = affinity.get(field) else {
            continue;
        };
        let path = path.child(field);
        let list = path.child(REQUIRED);
        for (index, term) in items(pods, REQUIRED).enumerate() {
            validate_pod_term(&list.index(index), term, errors);
        }
        let list = path.child(PREFERRED);
        for (index, preferred) in items(pods, PREFERRED).enumerate() {
            let path = list.index(index);
            validate_weight(&path, preferred, errors);
            let term = preferred.get("podAffinityTerm").unwrap_or(&Value::Null);
            validate_pod_term(&path.child("podAffinityTerm"), term, errors);
        }
    }
}

fn validate_weight(path: &Path<'_>, preferred: &Value, errors: &mut Errors) {
    let weight = integer(preferred, "weight").unwrap_or(0);
    if !(1..=100).contains(&weight) {
        errors.push(FieldError::invalid(
            &path.child("weight"),
            &weight.into(),
            "must be in the range 1-100",
        ));
    }
}

/// What a term means to the choice of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Term {
    Required,
    /// What no node can have may be preferred: the pod runs all the same.
    Preferred,
}

/// Checks what a node is selected by.
fn validate_term(path: &Path<'_>, term: &Value, meaning: Term, errors: &mut Errors) {
    let list = path.child("matchExpressions");
    for (index, expression) in items(term, "matchExpressions").enumerate() {
        let path = list.index(index);
        let values = path.child("values");
        let count = items(expression, "values").count();
        let operator = text(expression, "operator");
        match operator {
            "In" | "NotIn" if count == 0 => errors.push(FieldError::required(
                &values,
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if count > 0 => errors.push(FieldError::forbidden(
                &values,
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "Gt" | "Lt" if count != 1 => errors.push(FieldError::required(
                &values,
                "must be specified single value when `operator` is 'Lt' or 'Gt'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            _ => errors.push(FieldError::invalid_str(
                &path.child("operator"),
                operator,
                "not a valid selector operator",
            )),
        }
        selectors::validate_key(&path, expression, errors);
        if meaning == Term::Required {
            selectors::validate_values(&path, expression, errors);
        }
    }
    let list = path.child("matchFields");
    for (index, expression) in items(term, "matchFields").enumerate() {
        validate_node_field(&list.index(index), expression, errors);
    }
}

/// Checks a field that a node is selected by: its name is the only one.
fn validate_node_field(path: &Path<'_>, expression: &Value, errors: &mut Errors) {
    let (key, operator) = (text(expression, "key"), text(expression, "operator"));
    let list = path.child("values");
    if !matches!(operator, "In" | "NotIn") {
        let why = "not a valid selector operator";
        errors.push(FieldError::invalid_str(
            &path.child("operator"),
            operator,
            why,
        ));
    } else if items(expression, "values").count() != 1 {
        let why =
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
        errors.push(FieldError::required(&list, why));
    }
    if key != "metadata.name" {
        let why = "not a valid field selector key";
        errors.push(FieldError::invalid_str(&path.child("key"), key, why));
        return;
    }
    for (index, name) in items(expression, "values").enumerate() {
        let name = name.as_str().unwrap_or_default();
        for wrong in names::dns1123_subdomain(name) {
            errors.push(FieldError::invalid_str(&list.index(index), name, wrong));
        }
    }
}

/// Checks a selector of nodes, which has at least one term.
pub(in crate::kinds) fn validate_nodes(path: &Path<'_>, selector: &Value, errors: &mut Errors) {
    let list = path.child("nodeSelectorTerms");
    if present(selector, "nodeSelectorTerms").is_none() {
        errors.push(FieldError::required(
            &list,
            "must have at least one node selector term",
        ));
    }
    for (index, term) in items(selector, "nodeSelectorTerms").enumerate() {
        validate_term(&list.index(index), term, Term::Required, errors);
    }
}

/// A term as the server prints it.
pub(in crate::kinds) fn printed_term(term: &Value) -> Value {
    let mut printed = as_printed(
        term,
        &[
            ("MatchExpressions", "matchExpressions"),
            ("MatchFields", "matchFields"),
        ],
    );
    for list in ["MatchExpressions", "MatchFields"] {
        for expression in items_mut(&mut printed, list) {
            *expression = as_printed(
                expression,
                &[
                    ("Key", "key"),
                    ("Operator", "operator"),
                    ("Values", "values"),
                ],
            );
        }
    }
    printed
}

/// Checks near or far from which pods another one is to be.
fn validate_pod_term(path: &Path<'_>, term: &Value, errors: &mut Errors) {
    for field in ["labelSelector", "namespaceSelector"] {
        if let Some(selector) = term.get(field) {
            selectors::validate(&path.child(field), selector, errors);
        }
    }
    for namespace in items(term, "namespaces") {
        let namespace = namespace.as_str().unwrap_or_default();
        for wrong in names::dns1123_label(namespace) {
            // So called by the real server, too.
            errors.push(FieldError::invalid_str(
                &path.child("namespace"),
                namespace,
                wrong,
            ));
        }
    }
    label_keys::validate(path, term, errors);
    let key = text(term, "topologyKey");
    let path = path.child("topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(&path, "can not be empty"));
    }
    for wrong in names::qualified_name(key) {
        errors.push(FieldError::invalid_str(&path, key, wrong));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_same_spread_is_said_once() {
        let constraint = |key: &str, action: &str| json!({"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action});
        let spec = json!({"topologySpreadConstraints": [
            constraint("a", "DoNotSchedule"),
            constraint("a", "ScheduleAnyway"),
            constraint("a", "DoNotSchedule"),
            constraint("a", "DoNotSchedule"),
        ]});
        let mut errors = Errors::new();
        validate_spread(&Path::new("s"), &spec, &mut errors);
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let expected = |index: usize| {
            format!(
                "s[{index}].{{topologyKey, whenUnsatisfiable}}: Duplicate value: \"{{a, \
                 DoNotSchedule}}\""
            )
        };
        assert_eq!(found, [expected(0), expected(2)]);
    }

    #[test]
    fn preferred_nodes_may_have_any_value() {
        let term = json!({"matchExpressions": [
            {"key": "bad key!", "operator": "In", "values": ["Intel Xeon"]},
        ]});
        let spec = json!({"affinity": {"nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": [term]},
            PREFERRED: [{"weight": 1, "preference": term}],
        }}});
        let mut errors = Errors::new();
        validate_affinity(&Path::new("affinity"), &spec, &mut errors);
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        let path = format!("affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]");
        assert_eq!(
            fields,
            [
                format!("{path}.matchExpressions[0].key"),
                format!("{path}.matchExpressions[0].values[0]"),
                format!("affinity.nodeAffinity.{PREFERRED}[0].preference.matchExpressions[0].key"),
            ]
        );
    }
}
