//! Selectors of pods that take values from the labels of their own pod, by keys that
//! stand beside them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::edit::{entries, items, items_mut, object, present, set, text};
use crate::field::{Errors, FieldError, Path};
use crate::names;

const MATCHED: &str = "matchLabelKeys";
const MISMATCHED: &str = "mismatchLabelKeys";
const UNSELECTED: &str = "must not be specified when labelSelector is not set";

/// Adds to the selectors of a new Pod what its labels are now.
pub(super) fn resolve(pod: &mut Value) {
    const LISTS: [&str; 2] = [
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    ];
    let labels = pod.pointer("/metadata/labels").cloned();
    let Some((labels, spec)) = labels.zip(pod.get_mut("spec")) else {
        return;
    };
    for constraint in items_mut(spec, "topologySpreadConstraints") {
        select(constraint, &labels);
    }
    for field in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = spec.pointer_mut(&format!("/affinity/{field}")) else {
            continue;
        };
        for list in LISTS {
            for term in items_mut(pods, list) {
                // One that is preferred has a weight, too.
                match term.get_mut("podAffinityTerm") {
                    Some(weighted) => select(weighted, &labels),
                    None => select(term, &labels),
                }
            }
        }
    }
}

/// Characters of the value of a label.
const LABEL_MAX: usize = 63;

fn select(term: &mut Value, labels: &Value) {
    let mut expressions: Vec<Value> = Vec::new();
    for (field, operator) in [(MATCHED, "In"), (MISMATCHED, "NotIn")] {
        for key in items(term, field).filter_map(Value::as_str) {
            // A value that is too long to be one is refused, and must not be copied for each key.
            let value = labels.get(key);
            let short = |value: &&Value| value.as_str().is_some_and(|text| text.len() <= LABEL_MAX);
            if let Some(value) = value.filter(short) {
                expressions.push(json!({"key": key, "operator": operator, "values": [value]}));
            }
        }
    }
    let selector = term.get_mut("labelSelector").filter(|s| s.is_object());
    if let Some(selector) = selector.filter(|_| !expressions.is_empty()) {
        let mut all: Vec<Value> = items(selector, "matchExpressions").cloned().collect();
        all.append(&mut expressions);
        set(selector, "matchExpressions", all);
    }
}

/// Checks the keys of a term or constraint at `path`.
pub(super) fn validate(path: &Path<'_>, term: &Value, errors: &mut Errors) {
    let selector = object(term, "labelSelector");
    let keys = |field: &'static str| items(term, field).map(|key| key.as_str().unwrap_or_default());
    for field in [MATCHED, MISMATCHED] {
        let list = path.child(field);
        if selector.is_none() && present(term, field).is_some() {
            errors.push(FieldError::forbidden(&list, UNSELECTED));
            continue;
        }
        for (index, key) in keys(field).enumerate() {
            for wrong in names::qualified_name(key) {
                errors.push(FieldError::invalid_str(&list.index(index), key, wrong));
            }
        }
    }
    if let Some(selector) = selector {
        let indexes: BTreeMap<&str, usize> = keys(MATCHED).zip(0..).collect();
        let mut selected: BTreeSet<&str> = entries(selector, "matchLabels")
            .map(|(key, _)| key.as_str())
            .collect();
        // The keys are already among the expressions: who is there twice was given.
        for expression in items(selector, "matchExpressions") {
            let key = text(expression, "key");
            if let (false, Some(index)) = (selected.insert(key), indexes.get(key)) {
                // So placed by the real server, too.
                let path = path.index(*index);
                let why = "exists in both matchLabelKeys and labelSelector";
                errors.push(FieldError::invalid_str(&path, key, why));
            }
        }
    }
    let mismatched: BTreeSet<&str> = keys(MISMATCHED).collect();
    let list = path.child(MATCHED);
    for (index, key) in keys(MATCHED).enumerate() {
        if mismatched.contains(key) {
            let why = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.push(FieldError::invalid_str(&list.index(index), key, why));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_get_the_labels_of_a_new_pod() {
        let term = json!({
            "labelSelector": {"matchExpressions": [{"key": "x", "operator": "Exists"}]},
            "matchLabelKeys": ["a", "none"],
            "mismatchLabelKeys": ["b"],
        });
        let mut pod = json!({
            "metadata": {"labels": {"a": "1", "b": "2"}},
            "spec": {
                "topologySpreadConstraints": [
                    {"labelSelector": {}, "matchLabelKeys": ["a"]},
                    {"matchLabelKeys": ["a"]},
                ],
                "affinity": {
                    "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
                    "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "podAffinityTerm": term},
                    ]},
                },
            },
        });
        resolve(&mut pod);
        let matched = json!({"key": "a", "operator": "In", "values": ["1"]});
        let mismatched = json!({"key": "b", "operator": "NotIn", "values": ["2"]});
        assert_eq!(
            pod["spec"]["topologySpreadConstraints"],
            json!([
                {"labelSelector": {"matchExpressions": [matched]}, "matchLabelKeys": ["a"]},
                {"matchLabelKeys": ["a"]},
            ])
        );
        let expected = json!([{"key": "x", "operator": "Exists"}, matched, mismatched]);
        for pointer in [
            "/podAffinity/requiredDuringSchedulingIgnoredDuringExecution/0",
            "/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/podAffinityTerm",
        ] {
            let term = pod["spec"]["affinity"].pointer(pointer).unwrap();
            assert_eq!(term["labelSelector"]["matchExpressions"], expected);
        }
    }

    #[test]
    fn keys_go_with_a_selector_and_not_twice() {
        let check = |term: Value, expected: &[&str]| {
            let mut errors = Errors::new();
            validate(&Path::new("t"), &term, &mut errors);
            let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected);
        };
        check(json!({}), &[]);
        check(
            json!({"labelSelector": {}, "matchLabelKeys": ["a"], "mismatchLabelKeys": ["b"]}),
            &[],
        );
        check(
            json!({"matchLabelKeys": ["a"], "mismatchLabelKeys": ["b"]}),
            &[
                "t.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
                "t.mismatchLabelKeys: Forbidden: must not be specified when labelSelector is not \
                 set",
            ],
        );
        check(
            json!({"labelSelector": {}, "matchLabelKeys": ["x", "a"], "mismatchLabelKeys": ["a"]}),
            &[
                "t.matchLabelKeys[1]: Invalid value: \"a\": exists in both matchLabelKeys and \
               mismatchLabelKeys",
            ],
        );
        let expression = json!({"key": "a", "operator": "In", "values": ["1"]});
        check(
            json!({
                "labelSelector": {"matchLabels": {"a": "1"}, "matchExpressions": [expression]},
                "matchLabelKeys": ["x", "a"],
            }),
            &["t[1]: Invalid value: \"a\": exists in both matchLabelKeys and labelSelector"],
        );
        let mut errors = Errors::new();
        let term = json!({"labelSelector": {}, "matchLabelKeys": ["bad key!"]});
        validate(&Path::new("t"), &term, &mut errors);
        assert_eq!(errors.len(), 1);
    }
}
