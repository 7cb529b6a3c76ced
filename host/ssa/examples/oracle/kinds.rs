//! The kinds of objects that are generated.

use reeve_ssa::{Schema, builtin};
use serde_json::{Map, Value, json};

use crate::Result;

/// A kind of object, with the schema from which objects are made.
pub(crate) struct Kind {
    /// The oracle's name for the schema.
    pub(crate) name: &'static str,
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) json: Value,
    pub(crate) schema: Schema,
}

pub(crate) fn custom_kinds() -> Result<Vec<Kind>> {
    let kinds = schemas().into_iter().map(|(name, json)| {
        let schema = match &json {
            Value::Null => Schema::untyped(),
            json => Schema::from_crd(json)?,
        };
        Ok(Kind {
            name,
            api_version: "test/v1".to_owned(),
            kind: "Thing".to_owned(),
            json,
            schema,
        })
    });
    kinds.collect()
}

pub(crate) fn built_in_kinds(folder: &str) -> Result<Vec<Kind>> {
    let mut out = Vec::new();
    for (name, json) in components(folder)? {
        let gvk = &json["x-kubernetes-group-version-kind"][0];
        let text = |key: &str| gvk[key].as_str().unwrap_or_default().to_owned();
        let (group, version, kind) = (text("group"), text("version"), text("kind"));
        let Some(schema) = builtin::schema(&group, &version, &kind) else {
            continue;
        };
        let api_version = match group.as_str() {
            "" => version,
            _ => format!("{group}/{version}"),
        };
        out.push(Kind {
            name: "built-in",
            api_version,
            kind,
            json: json!({"$ref": format!("#/components/schemas/{name}")}),
            schema: schema.clone(),
        });
    }
    Ok(out)
}

pub(crate) fn components(folder: &str) -> Result<Map<String, Value>> {
    let mut out = Map::new();
    for entry in std::fs::read_dir(folder)? {
        let document: Value = serde_json::from_slice(&std::fs::read(entry?.path())?)?;
        if let Some(schemas) = document["components"]["schemas"].as_object() {
            out.extend(schemas.clone());
        }
    }
    Ok(out)
}

fn schemas() -> Vec<(&'static str, Value)> {
    let text = json!({"type": "string"});
    let leaf = json!({"type": "object", "properties": {"a": text, "b": {"type": "integer"}}});
    let item = json!({"type": "object", "properties": {
        "id": {"type": "integer"},
        "kind": {"type": "string", "default": "x"},
        "value": text,
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "more": leaf,
        "map": {"type": "object", "additionalProperties": leaf},
    }});
    let fields = json!({
        "text": text,
        "number": {"type": "number"},
        "flag": {"type": "boolean"},
        "either": {"x-kubernetes-int-or-string": true},
        "map": {"type": "object", "additionalProperties": text},
        "structs": {"type": "object", "additionalProperties": leaf},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": text},
        "struct": leaf,
        "list": {"type": "array", "items": leaf},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "numbers": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}},
        "items": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["id", "kind"], "items": item},
        "names": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": text, "value": text}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "half": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"known": leaf}},
        "any": {"x-kubernetes-preserve-unknown-fields": true},
    });
    vec![
        (
            "typed",
            json!({"type": "object", "properties": {
                "spec": {"type": "object", "properties": fields},
                "status": {"type": "object", "properties": {"phase": text}},
            }}),
        ),
        ("flat", json!({"type": "object", "properties": fields})),
        (
            "open",
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"spec": {"type": "object", "properties": {"set": fields["set"], "text": text}}}}),
        ),
        ("untyped", Value::Null),
    ]
}
