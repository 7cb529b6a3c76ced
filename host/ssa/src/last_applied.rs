//! The bridge from client-side apply.
//!
//! `kubectl apply` without `--server-side` leaves its last config in an
//! annotation. When the same user goes on with server-side apply (manager
//! `kubectl`), fields that still are as that config set them are no conflicts,
//! and the annotation is kept up to date.

use serde_json::Value;

use crate::encode;
use crate::schema::Schema;
use crate::set::FieldSet;
use crate::typed::{compare, field_set};

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// All annotations of an object together may have this many bytes.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// Whether the bridge is for this manager.
pub(crate) fn manages(manager: &str) -> bool {
    manager == "kubectl"
}

/// Fields of the last client-side config that are still as it set them; none
/// without such a config in this version.
pub(crate) fn unchanged_fields(
    schema: &Schema,
    live: &Value,
    api_version: &str,
) -> Option<FieldSet> {
    let last = annotation(live)?;
    let last: Value = serde_json::from_str(last).ok()?;
    if last["apiVersion"].as_str() != Some(api_version) {
        return None;
    }
    let comparison = compare(schema, &last, live).ok()?;
    Some(
        field_set(schema, &last)
            .difference(&comparison.modified)
            .difference(&comparison.added)
            .difference(&comparison.removed),
    )
}

/// Puts the applied config into the annotation, if there is one.
pub(crate) fn refresh(object: &mut Value, config: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = annotations_mut(&mut config) {
        annotations.remove(ANNOTATION);
    }
    let mut text = String::new();
    encode::value(&mut text, &config);
    text.push('\n');
    let Some(annotations) = annotations_mut(object) else {
        return;
    };
    annotations.insert(ANNOTATION.to_owned(), Value::from(text));
    let size: usize = annotations
        .iter()
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum();
    if size > MAX_ANNOTATIONS {
        annotations.remove(ANNOTATION);
    }
}

fn annotation(object: &Value) -> Option<&str> {
    object
        .pointer("/metadata/annotations")?
        .get(ANNOTATION)?
        .as_str()
        .filter(|text| !text.is_empty())
}

fn annotations_mut(object: &mut Value) -> Option<&mut serde_json::Map<String, Value>> {
    object.pointer_mut("/metadata/annotations")?.as_object_mut()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::builtin;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "cases read better as literals"
    )]
    fn object(data: Value, last: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"annotations": {ANNOTATION: last}}, "data": data,
        })
    }

    #[test]
    fn fields_as_they_were_applied_are_ours_to_change() {
        let schema = builtin::schema("", "v1", "ConfigMap").unwrap();
        let live = |last: &str| object(json!({"same": "1", "changed": "2"}), last);
        let data = r#"{"apiVersion":"v1","kind":"ConfigMap","data":{"same":"1","changed":"1","gone":"1"}}"#;
        for (last, fields) in [
            (
                data.to_owned(),
                Some(r#"{"f:apiVersion":{},"f:data":{"f:same":{}},"f:kind":{}}"#),
            ),
            (data.replace("v1", "v2"), None),
            ("not json".to_owned(), None),
            (String::new(), None),
        ] {
            let unchanged = unchanged_fields(schema, &live(&last), "v1");
            assert_eq!(
                unchanged.map(|set| set.to_fields_v1_json()).as_deref(),
                fields
            );
        }
    }

    #[test]
    fn the_annotation_follows_if_it_is_there() {
        let config = object(json!({"k": "<1>"}), "old");
        let mut with = object(json!({}), "old");
        refresh(&mut with, &config);
        assert_eq!(
            annotation(&with),
            Some(
                "{\"apiVersion\":\"v1\",\"data\":{\"k\":\"\\u003c1\\u003e\"},\"kind\":\"ConfigMap\",\"metadata\":{\"annotations\":{}}}\n"
            )
        );
        let mut without = object(json!({}), "");
        let before = without.clone();
        refresh(&mut without, &config);
        assert_eq!(without, before);
    }

    #[test]
    fn too_large_a_config_is_not_kept() {
        let mut object = object(json!({}), "old");
        let config = json!({"data": "x".repeat(MAX_ANNOTATIONS)});
        refresh(&mut object, &config);
        assert_eq!(annotation(&object), None);
    }
}
