//! Pod templates and selectors, as the workloads' controllers read them.

use serde_json::{Map, Value, json};

use crate::kinds::edit::text;
use crate::rest::meta;
use crate::selector::LabelSelector;

/// The selector of a Service (a map of labels) or of any other object that has
/// one; none where nothing is selected.
pub(super) fn selector(object: &Value) -> Option<LabelSelector> {
    let selector = object.pointer("/spec/selector")?;
    if text(object, "kind") == "Service" {
        let labels = selector.as_object().filter(|labels| !labels.is_empty())?;
        return LabelSelector::from_object(&json!({"matchLabels": labels})).ok();
    }
    if !selector.is_object() {
        return None;
    }
    LabelSelector::from_object(selector).ok()
}

/// The labels of an object.
pub(super) fn labels(object: &Value) -> Option<&Map<String, Value>> {
    object
        .pointer("/metadata/labels")
        .and_then(Value::as_object)
}

/// A reference to the controller of a new object.
pub(super) fn controller_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta::text(owner, "name"),
        "uid": meta::text(owner, "uid"),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// A new pod of a workload: what its template says, owned by the workload. The
/// name is still to be given.
pub(super) fn pod(owner: &Value, template: &Value) -> Value {
    let mut metadata = json!({
        "labels": template.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({})),
        "ownerReferences": [controller_reference(owner)],
    });
    for field in ["annotations", "finalizers"] {
        if let Some(value) = template.pointer(&format!("/metadata/{field}")) {
            metadata[field] = value.clone();
        }
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": template.get("spec").cloned().unwrap_or_default(),
    })
}

/// Whether a pod has not ended and is not being deleted.
pub(super) fn is_active(pod: &Value) -> bool {
    !is_over(pod) && !meta::is_terminating(pod)
}

/// Whether a pod has ended.
pub(super) fn is_over(pod: &Value) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// The phase of a pod.
pub(super) fn phase(pod: &Value) -> &str {
    pod.get("status").map_or("", |status| text(status, "phase"))
}

/// An integer, or a percentage of `total`, rounded up or down.
pub(super) fn share(value: Option<&Value>, total: i64, up: bool) -> i64 {
    match value {
        Some(Value::String(text)) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            let scaled = percent.saturating_mul(total);
            if up {
                scaled.saturating_add(99) / 100
            } else {
                scaled / 100
            }
        }
        Some(number) => number.as_i64().unwrap_or(0),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_as_asked() {
        for (value, total, up, expected) in [
            (json!("25%"), 3, true, 1),
            (json!("25%"), 3, false, 0),
            (json!("100%"), 3, false, 3),
            (json!(2), 3, false, 2),
            (Value::Null, 3, true, 0),
        ] {
            assert_eq!(
                share(Some(&value), total, up),
                expected,
                "{value} of {total}"
            );
        }
    }

    #[test]
    fn selectors_of_services_are_maps() {
        let service = json!({"kind": "Service", "spec": {"selector": {"app": "web"}}});
        let pod = json!({"metadata": {"labels": {"app": "web"}}});
        assert!(selector(&service).unwrap().matches(labels(&pod)));
        let headless = json!({"kind": "Service", "spec": {"selector": {}}});
        assert_eq!(selector(&headless), None);
    }
}
