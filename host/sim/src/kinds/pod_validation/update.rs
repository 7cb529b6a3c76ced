//! What may change in the spec of a Pod: images, and a few fields in one direction.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::containers::validate_image;
use super::{SPEC, placement, spec_of};
use crate::field::{Errors, FieldError};
use crate::kinds::edit::{copy, entries, integer, items, items_mut, present, remove, set, text};
use crate::kinds::quantities;
use crate::names;

const CONTAINERS: [&str; 2] = ["containers", "initContainers"];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// Says what is wrong with a change of a Pod.
pub(in crate::kinds) fn validate(pod: &Value, old: &Value, errors: &mut Errors) {
    const FORBIDDEN: &str = "pod updates may not change fields other than \
        `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
        `spec.tolerations` (only additions to existing tolerations),\
        `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously \
        negative)";
    let (spec, before) = (spec_of(pod), spec_of(old));
    let same_containers = CONTAINERS
        .iter()
        .all(|list| validate_containers(list, spec, before, errors));
    if !same_containers || !validate_deadline(spec, before, errors) {
        return;
    }
    validate_tolerations_kept(spec, before, errors);
    validate_no_new_gates(spec, before, errors);
    // What has been looked at is made what it was: the rest has to be the same.
    let mut spec = spec.clone();
    for list in CONTAINERS {
        for (container, before) in items_mut(&mut spec, list).zip(items(before, list)) {
            copy(container, before, "image");
        }
    }
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        copy(&mut spec, before, field);
    }
    if present(before, "schedulingGates").is_some() {
        place(&mut spec, before, errors);
    }
    if !quantities::is_same_spec(("", "v1"), "Pod", &spec, before) {
        errors.push(FieldError::forbidden(&SPEC, FORBIDDEN));
    }
}

/// Containers come and go with their Pod. Says whether there are as many as before.
fn validate_containers(list: &str, spec: &Value, before: &Value, errors: &mut Errors) -> bool {
    let path = SPEC.child(list);
    if items(spec, list).count() != items(before, list).count() {
        let why = "pod updates may not add or remove containers";
        errors.push(FieldError::forbidden(&path, why));
        return false;
    }
    // A second time, as by the real server.
    for (index, container) in items(spec, list).enumerate() {
        let path = path.index(index);
        if text(container, "image").is_empty() {
            errors.push(FieldError::required(&path.child("image"), ""));
        }
        validate_image(&path, container, errors);
    }
    true
}

/// The time a Pod has is set once and then only cut. Says whether the rest is looked at.
fn validate_deadline(spec: &Value, before: &Value, errors: &mut Errors) -> bool {
    const FIELD: &str = "activeDeadlineSeconds";
    const MAX: i64 = i32::MAX as i64;
    let path = SPEC.child(FIELD);
    let wrong = match (integer(spec, FIELD), integer(before, FIELD)) {
        (Some(seconds), _) if !(0..=MAX).contains(&seconds) => {
            FieldError::invalid(&path, &seconds.into(), names::in_range(0, MAX))
        }
        (Some(seconds), Some(before)) if before < seconds => {
            let why = "must be less than or equal to previous value";
            FieldError::invalid(&path, &seconds.into(), why)
        }
        (None, Some(_)) => {
            let why = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(&path, &Value::Null, why));
            return true;
        }
        _ => return true,
    };
    errors.push(wrong);
    false
}

/// Tolerations are only added; of those that are there, the seconds may change.
fn validate_tolerations_kept(spec: &Value, before: &Value, errors: &mut Errors) {
    let path = SPEC.child("tolerations");
    let lasting = |toleration: &Value| {
        let mut toleration = toleration.clone();
        remove(&mut toleration, "tolerationSeconds");
        toleration.to_string()
    };
    let kept: BTreeSet<String> = items(spec, "tolerations").map(lasting).collect();
    if items(before, "tolerations").any(|toleration| !kept.contains(&lasting(toleration))) {
        errors.push(FieldError::forbidden(
            &path,
            "existing toleration can not be modified except its tolerationSeconds",
        ));
        return;
    }
    placement::validate_tolerations(&path, spec, errors);
}

/// What holds back the scheduling of a pod is only taken away.
fn validate_no_new_gates(spec: &Value, before: &Value, errors: &mut Errors) {
    let list = SPEC.child("schedulingGates");
    let known: BTreeSet<&str> = items(before, "schedulingGates")
        .map(|gate| text(gate, "name"))
        .collect();
    for (index, gate) in items(spec, "schedulingGates").enumerate() {
        let name = text(gate, "name");
        if !known.contains(name) {
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.push(FieldError::forbidden(&list.index(index).child("name"), why));
        }
    }
}

/// While its scheduling is held back, a Pod may be bound to fewer nodes. Checks that,
/// and makes the nodes what they were.
fn place(spec: &mut Value, before: &Value, errors: &mut Errors) {
    const SELECTOR: &str = "nodeSelector";
    let null = Value::Null;
    let selector = spec.get(SELECTOR).unwrap_or(&null);
    if entries(before, SELECTOR).any(|(key, value)| selector.get(key) != Some(value)) {
        let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.push(FieldError::invalid(&SPEC.child(SELECTOR), selector, why));
    }
    copy(spec, before, SELECTOR);

    let nodes = spec.pointer("/affinity/nodeAffinity").unwrap_or(&null);
    let nodes_before = before.pointer("/affinity/nodeAffinity").unwrap_or(&null);
    if nodes == nodes_before {
        return;
    }
    validate_terms_kept(nodes, nodes_before, errors);
    let mut affinity = spec.get("affinity").cloned().unwrap_or_else(|| json!({}));
    let affinity_before = before.get("affinity");
    copy(
        &mut affinity,
        affinity_before.unwrap_or(&null),
        "nodeAffinity",
    );
    if affinity_before.is_none() && affinity == json!({}) {
        remove(spec, "affinity");
    } else {
        set(spec, "affinity", affinity);
    }
}

/// Each of several terms leaves a Pod some nodes: none is added, and each only gets
/// narrower. Preferences are free.
fn validate_terms_kept(nodes: &Value, before: &Value, errors: &mut Errors) {
    let terms = |nodes: &Value| -> Vec<Value> {
        let required = nodes.get(REQUIRED).unwrap_or(&Value::Null);
        items(required, "nodeSelectorTerms").cloned().collect()
    };
    let (terms, before) = (terms(nodes), terms(before));
    if before.is_empty() {
        return;
    }
    let path = SPEC.child("affinity");
    let path = path.child("nodeAffinity");
    let path = path.child(REQUIRED);
    let path = path.child("nodeSelectorTerms");
    if terms.len() != before.len() {
        let shown = if terms.is_empty() {
            Value::Null
        } else {
            terms.iter().map(placement::printed_term).collect()
        };
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(FieldError::invalid(&path, &shown, why));
        return;
    }
    for (index, (term, before)) in terms.iter().zip(&before).enumerate() {
        if !is_narrower(term, before) {
            let why = "only additions are allowed (no mutations or deletions)";
            let shown = placement::printed_term(term);
            errors.push(FieldError::invalid(&path.index(index), &shown, why));
        }
    }
}

/// Whether a term asks for all it did, and perhaps for more. One that asks for nothing
/// selects no node, and stays so.
fn is_narrower(term: &Value, before: &Value) -> bool {
    let lists = ["matchExpressions", "matchFields"];
    let all = |term: &Value| lists.map(|list| items(term, list).cloned().collect::<Vec<_>>());
    let (now, then) = (all(term), all(before));
    if then.iter().all(Vec::is_empty) {
        return now.iter().all(Vec::is_empty);
    }
    now.iter()
        .zip(&then)
        .all(|(now, then)| now.starts_with(then))
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "cases read better as values")]
mod tests {
    use super::*;

    /// What is said of a Pod with `before` in its spec when it is changed to `after`.
    #[track_caller]
    fn check(before: Value, after: Value, expected: &str) {
        let pod = |more: Value| {
            let mut spec = json!({"containers": [{"name": "c", "image": "i"}]});
            for (field, value) in more.as_object().unwrap() {
                set(&mut spec, field, value.clone());
            }
            json!({ "spec": spec })
        };
        let mut errors = Errors::new();
        validate(&pod(after), &pod(before), &mut errors);
        let found = if errors.is_empty() {
            String::new()
        } else {
            errors.aggregate()
        };
        assert!(found.starts_with(expected), "{found}");
        assert_eq!(found.is_empty(), expected.is_empty(), "{found}");
    }

    const OTHER: &str = "spec: Forbidden: pod updates may not change fields other than";

    #[test]
    fn amounts_may_be_written_otherwise() {
        let with = |memory: &str| json!({"overhead": {"memory": memory}});
        check(with("1Gi"), with("1073741824"), "");
        check(with("1Gi"), with("1073741825"), OTHER);
    }

    #[test]
    fn deadlines_are_set_and_cut() {
        let with = |seconds: i64| json!({ "activeDeadlineSeconds": seconds });
        check(json!({}), with(5), "");
        check(with(5), with(4), "");
        check(
            with(5),
            with(6),
            "spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous \
             value",
        );
        check(
            with(5),
            json!({}),
            "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive \
             integer to nil value",
        );
        check(
            with(5),
            with(1 << 40),
            "spec.activeDeadlineSeconds: Invalid value: 1099511627776: must be between 0 and \
             2147483647, inclusive",
        );
    }

    #[test]
    fn containers_get_other_images() {
        let with = |image: &str| json!({"initContainers": [{"name": "i", "image": image}]});
        check(with("a"), with("b"), "");
        check(
            with("a"),
            with(" b"),
            "spec.initContainers[0].image: Invalid value: \" b\": must not have",
        );
        check(
            with("a"),
            with(""),
            "spec.initContainers[0].image: Required value",
        );
        check(
            with("a"),
            json!({}),
            "spec.initContainers: Forbidden: pod updates may not add or remove containers",
        );
    }

    fn gated(more: Value) -> Value {
        let mut spec = json!({"schedulingGates": [{"name": "a.b/c"}]});
        for (field, value) in more.as_object().unwrap() {
            set(&mut spec, field, value.clone());
        }
        spec
    }

    #[test]
    fn a_held_pod_gets_a_narrower_selector() {
        let with = |selector: Value| json!({ "nodeSelector": selector });
        let (one, two) = (with(json!({"a": "b"})), with(json!({"a": "b", "c": "d"})));
        check(gated(json!({})), gated(one.clone()), "");
        check(gated(one.clone()), gated(two.clone()), "");
        // The gates may go at the same time.
        check(gated(one.clone()), two.clone(), "");
        check(one.clone(), two.clone(), OTHER);
        check(
            gated(two),
            gated(one),
            "spec.nodeSelector: Invalid value: {\"a\":\"b\"}: only additions to spec.nodeSelector \
             are allowed (no mutations or deletions)",
        );
    }

    fn required(terms: Value) -> Value {
        json!({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}})
    }

    #[test]
    fn a_held_pod_gets_narrower_terms() {
        let a = json!({"key": "a", "operator": "Exists"});
        let b = json!({"key": "b", "operator": "In", "values": ["x"]});
        let wide = required(json!([{"matchExpressions": [a]}]));
        let narrow = required(json!([{"matchExpressions": [a, b]}]));
        let fields = required(json!([{"matchExpressions": [a], "matchFields": [b]}]));
        check(gated(json!({})), gated(wide.clone()), "");
        check(gated(json!({"affinity": {}})), gated(wide.clone()), "");
        check(gated(wide.clone()), gated(narrow.clone()), "");
        check(gated(wide.clone()), gated(fields), "");
        check(wide.clone(), narrow.clone(), OTHER);
        let path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.\
                    nodeSelectorTerms";
        check(
            gated(narrow),
            gated(wide.clone()),
            &format!(
                "{path}[0]: Invalid value: {{\"MatchExpressions\":[{{\"Key\":\"a\",\"Operator\":\
                 \"Exists\",\"Values\":null}}],\"MatchFields\":null}}: only additions are allowed \
                 (no mutations or deletions)"
            ),
        );
        check(
            gated(wide.clone()),
            gated(json!({})),
            &format!("{path}: Invalid value: null: no additions/deletions to non-empty"),
        );
        check(
            gated(required(json!([{}]))),
            gated(wide),
            &format!("{path}[0]: Invalid value: "),
        );
    }

    #[test]
    fn a_held_pod_prefers_what_it_likes_but_stays_near_its_pods() {
        let prefer = |weight: i64| {
            json!({"affinity": {"nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight}],
            }}})
        };
        check(gated(prefer(1)), gated(prefer(2)), "");
        check(gated(prefer(1)), gated(json!({})), "");
        let near = json!({"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "z"}]}}});
        check(gated(json!({})), gated(near.clone()), OTHER);
        check(gated(near), gated(prefer(1)), OTHER);
    }
}
