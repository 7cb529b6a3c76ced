//! What the server's own encoding of built-in kinds leaves out.
//!
//! The server decodes into typed structures and encodes from them, so a null,
//! an empty list or an empty map that a client sends is not there when it is
//! read back.

use serde_json::Value;

/// Fields that hold maps rather than structures: an empty one is left out, and
/// a null entry is an empty text.
const MAPS: &[&str] = &[
    "allocatable",
    "annotations",
    "binaryData",
    "capacity",
    "data",
    "default",
    "defaultRequest",
    "hard",
    "labels",
    "limits",
    "matchLabels",
    "max",
    "maxLimitRequestRatio",
    "min",
    "nodeSelector",
    "parameters",
    "requests",
    "stringData",
    "used",
];

/// Lists that are left out when they are empty. Those outside of the metadata are
/// looked after when an object is read; the server itself writes no empty ones.
const METADATA_LISTS: &[&str] = &["finalizers", "ownerReferences"];

/// Removes what the encoding of a built-in kind leaves out.
pub(super) fn drop_unset(object: &mut Value) {
    // Two kinds hold content that is not theirs, in fields whose names say nothing.
    let parts: &[&str] = match object.get("kind").and_then(Value::as_str) {
        Some("ControllerRevision") => &["metadata"],
        Some("CustomResourceDefinition") => &["metadata", "status"],
        _ => return drop_inside(object),
    };
    for part in parts {
        if let Some(part) = object.get_mut(part) {
            drop_inside(part);
        }
    }
}

fn drop_inside(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            // Whose keys are not field names at all.
            if name == "managedFields" {
                return true;
            }
            if MAPS.contains(&name.as_str())
                && let Value::Object(entries) = value
            {
                for entry in entries.values_mut().filter(|entry| entry.is_null()) {
                    *entry = Value::String(String::new());
                }
                return !entries.is_empty();
            }
            drop_inside(value);
            match value {
                Value::Null => false,
                Value::Array(items) if METADATA_LISTS.contains(&name.as_str()) => !items.is_empty(),
                _ => true,
            }
        }),
        Value::Array(items) => items.iter_mut().for_each(drop_inside),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn leaves_out_what_is_not_set() {
        let mut object = json!({
            "metadata": {"name": "a", "labels": {}, "annotations": {"a": null}, "creationTimestamp": null},
            "spec": {"podSelector": {}, "egress": [{"to": null}]},
            "data": {},
        });
        drop_unset(&mut object);
        assert_eq!(
            object,
            json!({
                "metadata": {"name": "a", "annotations": {"a": ""}},
                "spec": {"podSelector": {}, "egress": [{}]},
            })
        );
    }

    #[test]
    fn keeps_free_form_content() {
        let schema = json!({"properties": {"a": {"default": {}}, "b": {"default": {"c": null}}}});
        let definition = json!({"versions": [{"schema": {"openAPIV3Schema": schema}}]});
        for mut object in [
            json!({"kind": "ControllerRevision", "data": {"a": null, "b": []}}),
            json!({"kind": "CustomResourceDefinition", "spec": definition}),
        ] {
            let before = object.clone();
            drop_unset(&mut object);
            assert_eq!(object, before);
        }
    }
}
