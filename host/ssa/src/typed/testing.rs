//! A type with one field of every sort, and sets from text.

use serde_json::{Value, json};

use crate::path::{Path, PathElement};
use crate::schema::Schema;
use crate::set::FieldSet;

pub(crate) fn schema() -> Schema {
    let text = json!({"type": "string"});
    let texts = json!({"type": "object", "additionalProperties": text});
    Schema::from_crd(&json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "properties": {
            "text": text,
            "number": {"type": "number"},
            "map": texts,
            "structs": {"type": "object", "additionalProperties": {
                "type": "object", "properties": {"a": text},
            }},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic",
                "additionalProperties": text},
            "list": {"type": "array", "items": text},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
            "items": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["id", "kind"],
                "items": {"type": "object", "properties": {
                    "id": {"type": "integer"},
                    "kind": {"type": "string", "default": "x"},
                    "value": text,
                }},
            },
            "either": {"x-kubernetes-int-or-string": true},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    }}}))
    .unwrap()
}

/// A set from paths below `spec`, steps parted by a space and encoded as in
/// fieldsV1 without the `f:`.
pub(crate) fn set(paths: &[&str]) -> FieldSet {
    let element = |step: &str| match step.split_once(':') {
        Some(("k" | "v" | "i", _)) => PathElement::parse(step).unwrap(),
        _ => PathElement::field(step),
    };
    paths
        .iter()
        .map(|path| {
            let steps = path.split(' ').filter(|step| !step.is_empty());
            Path(std::iter::once("spec").chain(steps).map(element).collect())
        })
        .collect()
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "cases read better as literals"
)]
pub(crate) fn spec(spec: Value) -> Value {
    json!({"spec": spec})
}
