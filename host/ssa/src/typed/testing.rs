//! A type with one field of every sort, and sets from text.

use proptest::prelude::*;
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

fn text() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!("a")),
        Just(json!("b")),
        Just(Value::Null),
        Just(json!({}))
    ]
}

fn texts() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[ab]", text(), 0..3).prop_map(|map| json!(map))
}

fn field() -> impl Strategy<Value = (&'static str, Value)> {
    let item =
        (0..2, prop::option::of("[xy]"), prop::option::of(text())).prop_map(|(id, kind, value)| {
            let mut item = json!({"id": id});
            for (name, value) in [("kind", kind.map(Value::from)), ("value", value)] {
                if let Some(value) = value {
                    item[name] = value;
                }
            }
            item
        });
    let list = |element: BoxedStrategy<Value>| prop::collection::vec(element, 0..4);
    let lists = |name, element| list(element).prop_map(move |items| (name, json!(items)));
    let structs = prop::collection::btree_map("[ab]", texts(), 0..3);
    prop_oneof![
        text().prop_map(|value| ("text", value)),
        prop_oneof![Just(json!(1)), Just(Value::Null)].prop_map(|value| ("number", value)),
        prop_oneof![texts(), text()].prop_map(|value| ("map", value)),
        structs.prop_map(|value| ("structs", json!(value))),
        texts().prop_map(|value| ("whole", value)),
        lists("list", text().boxed()),
        lists(
            "set",
            prop_oneof![Just(json!("a")), Just(json!("b"))].boxed()
        ),
        lists("items", item.boxed()),
        prop_oneof![Just(json!(1)), text()].prop_map(|value| ("either", value)),
        texts().prop_map(|value| ("free", value)),
        Just(("unknown", json!({"a": [1]}))),
    ]
}

/// Any object of the type, and some that do not fit it.
pub(crate) fn object() -> impl Strategy<Value = Value> {
    let metadata = prop_oneof![
        Just(json!({"name": "n", "uid": "u"})),
        Just(json!({"labels": {"a": "b"}, "finalizers": ["x/y"]})),
        Just(json!({"name": {"not": "a name"}, "generation": null})),
        Just(Value::Null),
    ];
    (
        prop::collection::vec(field(), 0..5),
        prop::option::of(metadata),
        text(),
    )
        .prop_map(|(fields, metadata, kind)| {
            let spec: serde_json::Map<String, Value> = fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect();
            let mut object = json!({"apiVersion": "v1", "kind": kind, "spec": spec});
            if let Some(metadata) = metadata {
                object["metadata"] = metadata;
            }
            object
        })
}
