//! Which objects a quota looks at, by its scopes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::usage::{CLAIMS, PODS};
use crate::kinds::edit::{integer, items, object, text, text_at};
use crate::kinds::qos_class;

/// Whether an object is in all scopes of a quota. Kinds that have no scopes are in none.
pub(super) fn includes(quota: &Value, table: &str, object: &Value) -> bool {
    let spec = quota.get("spec").unwrap_or(&Value::Null);
    let scopes = items(spec, "scopes").filter_map(Value::as_str);
    let mut scopes = scopes.map(|scope| Requirement {
        scope,
        operator: "Exists",
        values: BTreeSet::new(),
    });
    let selector = spec.get("scopeSelector").unwrap_or(&Value::Null);
    let mut selected = items(selector, "matchExpressions").map(|expression| Requirement {
        scope: text(expression, "scopeName"),
        operator: text(expression, "operator"),
        values: items(expression, "values")
            .filter_map(Value::as_str)
            .collect(),
    });
    scopes.all(|one| one.holds(table, object)) && selected.all(|one| one.holds(table, object))
}

struct Requirement<'a> {
    scope: &'a str,
    operator: &'a str,
    values: BTreeSet<&'a str>,
}

impl Requirement<'_> {
    fn holds(&self, table: &str, object: &Value) -> bool {
        match table {
            PODS => self.holds_for_pod(object),
            CLAIMS if self.scope == "VolumeAttributesClass" => {
                self.names(&attribute_classes(object))
            }
            _ => false,
        }
    }

    fn holds_for_pod(&self, pod: &Value) -> bool {
        let spec = pod.get("spec").unwrap_or(&Value::Null);
        let ends = || integer(spec, "activeDeadlineSeconds").is_some_and(|seconds| seconds >= 0);
        let best_effort = || {
            let known = text_at(pod, "/status/qosClass");
            let class = if known.is_empty() {
                qos_class(spec)
            } else {
                known
            };
            class == "BestEffort"
        };
        match self.scope {
            "Terminating" => ends(),
            "NotTerminating" => !ends(),
            "BestEffort" => best_effort(),
            "NotBestEffort" => !best_effort(),
            "PriorityClass" => {
                let class = text(spec, "priorityClassName");
                let classes = Some(class).filter(|class| !class.is_empty());
                self.names(&classes.into_iter().collect())
            }
            "CrossNamespacePodAffinity" => looks_elsewhere(spec),
            _ => false,
        }
    }

    /// Whether the operator holds for one of the names that an object has.
    fn names(&self, names: &BTreeSet<&str>) -> bool {
        let any = |test: &dyn Fn(&str) -> bool| names.iter().any(|name| test(name));
        match self.operator {
            "Exists" => !names.is_empty(),
            "DoesNotExist" => names.is_empty(),
            "In" => any(&|name| self.values.contains(name)),
            "NotIn" => names.is_empty() || any(&|name| !self.values.contains(name)),
            _ => false,
        }
    }
}

/// The classes that a claim has, had or is to have.
fn attribute_classes(claim: &Value) -> BTreeSet<&str> {
    let places = [
        "/spec/volumeAttributesClassName",
        "/status/currentVolumeAttributesClassName",
        "/status/modifyVolumeStatus/targetVolumeAttributesClassName",
    ];
    let names = places.map(|place| text_at(claim, place));
    names.into_iter().filter(|name| !name.is_empty()).collect()
}

/// Whether a pod wants to be near, or far from, pods of other namespaces.
fn looks_elsewhere(spec: &Value) -> bool {
    let affinity = spec.get("affinity").unwrap_or(&Value::Null);
    let sorts = ["podAffinity", "podAntiAffinity"];
    let sorts = sorts.iter().filter_map(|sort| object(affinity, sort));
    let mut terms = sorts.flat_map(|sort| {
        let weighted = items(sort, "preferredDuringSchedulingIgnoredDuringExecution");
        let weighted = weighted.filter_map(|term| object(term, "podAffinityTerm"));
        items(sort, "requiredDuringSchedulingIgnoredDuringExecution").chain(weighted)
    });
    terms.any(|term| {
        items(term, "namespaces").next().is_some() || object(term, "namespaceSelector").is_some()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(spec: &Value, table: &str, object: &Value, expected: bool) {
        let quota = json!({ "spec": spec });
        assert_eq!(includes(&quota, table, object), expected, "{spec} {object}");
    }

    #[test]
    fn pods_are_in_the_scopes_that_they_fit() {
        let plain = json!({"spec": {"containers": [{"name": "a"}]}});
        let asking = json!({"spec": {
            "activeDeadlineSeconds": 5,
            "priorityClassName": "high",
            "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}],
            "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "x", "namespaceSelector": {}},
            ]}},
        }});
        for (scope, holds_plain, holds_asking) in [
            ("Terminating", false, true),
            ("NotTerminating", true, false),
            ("BestEffort", true, false),
            ("NotBestEffort", false, true),
            ("PriorityClass", false, true),
            ("CrossNamespacePodAffinity", false, true),
            ("VolumeAttributesClass", false, false),
        ] {
            check(&json!({"scopes": [scope]}), PODS, &plain, holds_plain);
            check(&json!({"scopes": [scope]}), PODS, &asking, holds_asking);
        }
        check(
            &json!({"scopes": ["Terminating", "BestEffort"]}),
            PODS,
            &asking,
            false,
        );
        check(&json!({}), "secrets", &json!({}), true);
        check(
            &json!({"scopes": ["BestEffort"]}),
            "secrets",
            &json!({}),
            false,
        );
    }

    #[test]
    fn selectors_look_at_the_class() {
        let selecting = |operator: &str, values: Value| {
            let one = json!({"scopeName": "PriorityClass", "operator": operator, "values": values});
            json!({"scopeSelector": {"matchExpressions": [one]}})
        };
        let high = json!({"spec": {"priorityClassName": "high"}});
        let none = json!({"spec": {}});
        for (operator, values, of_high, of_none) in [
            ("Exists", json!([]), true, false),
            ("DoesNotExist", json!([]), false, true),
            ("In", json!(["high", "low"]), true, false),
            ("In", json!(["low"]), false, false),
            ("NotIn", json!(["high"]), false, true),
            ("NotIn", json!(["low"]), true, true),
        ] {
            check(&selecting(operator, values.clone()), PODS, &high, of_high);
            check(&selecting(operator, values), PODS, &none, of_none);
        }
    }
}
