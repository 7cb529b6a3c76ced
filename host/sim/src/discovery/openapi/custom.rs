//! The schemas of custom resources, as their definitions have them and documents of
//! either version may say them.

use serde_json::{Map, Value, json};

use super::schema::{self, V3, gvk};
use crate::resource::Resource;
use crate::types::{self, META};

/// What is left out when it is false.
const FLAGS: &[&str] = &[
    "nullable",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "uniqueItems",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
];
const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// The schemas of an object and of a list of them, by name. Those of version 2 say of
/// what may hold anything nothing but that: clients of that version would refuse the
/// rest.
pub(super) fn schemas(resource: &Resource, definition: &Value, old: bool) -> Map<String, Value> {
    let versions = definition
        .pointer("/spec/versions")
        .and_then(Value::as_array);
    let version = versions
        .into_iter()
        .flatten()
        .find(|version| version["name"] == resource.version.as_str());
    let written = version.and_then(|version| version.pointer("/schema/openAPIV3Schema"));
    let loose = definition.pointer("/spec/preserveUnknownFields") == Some(&json!(true));
    let mut object = match written {
        Some(written) if !(old && (loose || is(written, PRESERVES))) => {
            let mut written = written.clone();
            clean(&mut written);
            if old {
                lower(&mut written);
            } else {
                unfold(&mut written);
            }
            embed(&mut written, old);
            for (field, known) in object_fields() {
                written["properties"][field] = known;
            }
            written
        }
        _ => json!({"type": "object"}),
    };
    let mut list = schema::list(resource);
    if let Some(fields) = version.and_then(selectable) {
        object["x-kubernetes-selectable-fields"] = fields.clone();
        list["x-kubernetes-selectable-fields"] = fields;
    }
    let Resource {
        group,
        version,
        kind,
        ..
    } = resource;
    object["x-kubernetes-group-version-kind"] = gvk(group, version, kind);
    if old {
        schema::lower(&mut object);
        schema::lower(&mut list);
    }
    let named = [
        (schema::name(resource), object),
        (schema::list_name(resource), list),
    ];
    named.into_iter().collect()
}

fn is(schema: &Value, what: &str) -> bool {
    schema.get(what) == Some(&Value::Bool(true))
}

fn selectable(version: &Value) -> Option<Value> {
    let fields = version.get("selectableFields")?.as_array()?;
    let fields: Vec<Value> = fields
        .iter()
        .filter_map(|field| field["jsonPath"].as_str())
        .map(|path| json!({"fieldPath": path.trim_start_matches('.')}))
        .collect();
    (!fields.is_empty()).then(|| json!(fields))
}

/// What every object has besides.
fn object_fields() -> Map<String, Value> {
    let mut fields = types::object_properties();
    if let Some(metadata) = fields.get_mut("metadata") {
        let said = metadata["description"].take();
        *metadata = json!({
            "description": said,
            "allOf": [{"$ref": format!("{V3}{META}.ObjectMeta")}],
        });
    }
    fields
}

/// The schemas right below this one.
fn below(schema: &mut Map<String, Value>) -> Vec<&mut Value> {
    let mut found = Vec::new();
    for (key, value) in schema.iter_mut() {
        match (key.as_str(), value) {
            ("properties", Value::Object(fields)) => found.extend(fields.values_mut()),
            ("items" | "additionalProperties", value @ Value::Object(_)) => found.push(value),
            _ => {}
        }
    }
    found
}

/// Leaves out what says nothing.
fn clean(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    schema.retain(|key, value| {
        let is_empty = match value {
            Value::Array(items) => {
                items.is_empty() && !["enum", "default", "example"].contains(&key.as_str())
            }
            Value::Object(fields) => fields.is_empty() && key == "properties",
            Value::Bool(false) => FLAGS.contains(&key.as_str()),
            Value::Null => key != "default" && key != "example",
            _ => false,
        };
        !is_empty
    });
    below(schema).into_iter().for_each(clean);
}

/// Says of what may be a number or a text that it may, for readers of version 3.
fn unfold(schema: &mut Value) {
    let is_either = is(schema, INT_OR_STRING);
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    if is_either {
        let either = json!([{"type": "integer"}, {"type": "string"}]);
        let in_all = |all: &Value| {
            let mut all = all.as_array().into_iter().flatten();
            all.any(|one| one["anyOf"] == either)
        };
        match schema.get("anyOf") {
            Some(any) if *any == either => {}
            _ if schema.get("allOf").is_some_and(in_all) => {}
            None => {
                schema.insert("anyOf".to_owned(), either);
            }
            Some(_) => {
                let all = schema.entry("allOf").or_insert_with(|| json!([]));
                if let Some(all) = all.as_array_mut() {
                    all.push(json!({"anyOf": either}));
                }
            }
        }
    }
    below(schema).into_iter().for_each(unfold);
}

/// Takes out what version 2 does not know, and the types of what may be null as well:
/// what has none is not looked at.
fn lower(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    for junctor in ["allOf", "oneOf", "anyOf", "not", "default"] {
        schema.remove(junctor);
    }
    let nullable = schema.remove("nullable").is_some();
    let preserves = schema.contains_key(PRESERVES);
    if nullable || preserves {
        schema.remove("items");
        schema.remove("properties");
    }
    let ty = schema.get("type").and_then(Value::as_str);
    let untyped = nullable
        || (ty == Some("array") && !schema.contains_key("items"))
        || (ty == Some("object") && preserves);
    if untyped {
        schema.remove("type");
    }
    let fields = schema.get("properties").and_then(Value::as_object);
    let may_be_null = |field: &Value| {
        let schema = fields
            .zip(field.as_str())
            .and_then(|(all, name)| all.get(name));
        schema.is_some_and(|schema| is(schema, "nullable"))
    };
    let values = schema.get("additionalProperties");
    let any_value = values.is_some_and(|values| is(values, "nullable"));
    let required = schema.get("required").and_then(Value::as_array);
    let required: Vec<Value> = required
        .into_iter()
        .flatten()
        .filter(|field| !any_value && !may_be_null(field))
        .cloned()
        .collect();
    schema.remove("required");
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    below(schema).into_iter().for_each(lower);
}

/// Gives objects within objects what every object has.
fn embed(schema: &mut Value, old: bool) {
    let embedded = is(schema, EMBEDDED) && !(old && is(schema, PRESERVES));
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    below(schema)
        .into_iter()
        .for_each(|schema| embed(schema, old));
    if !embedded {
        return;
    }
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    for (field, known) in object_fields() {
        properties[field] = known;
    }
    let required = schema.entry("required").or_insert_with(|| json!([]));
    if let Some(required) = required.as_array_mut() {
        for field in ["kind", "apiVersion"] {
            if !required.iter().any(|known| known == field) {
                required.push(json!(field));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "cases are written in place")]
    fn check(mut schema: Value, v2: Value, v3: Value) {
        clean(&mut schema);
        let mut old = schema.clone();
        lower(&mut old);
        assert_eq!(old, v2, "version 2 of {schema}");
        let mut new = schema.clone();
        unfold(&mut new);
        assert_eq!(new, v3, "version 3 of {schema}");
    }

    #[test]
    fn junctors_and_defaults_are_not_in_version_2() {
        let schema = json!({
            "type": "string", "default": "a", "pattern": "^a", "enum": ["a"], "nullable": false,
            "anyOf": [{"minLength": 1}], "allOf": [{"minLength": 1}], "not": {"minLength": 9},
        });
        let mut new = schema.clone();
        new.as_object_mut().unwrap().remove("nullable");
        check(
            schema,
            json!({"type": "string", "pattern": "^a", "enum": ["a"]}),
            new,
        );
    }

    #[test]
    fn what_may_be_null_has_no_type_in_version_2_and_is_not_required() {
        let schema = json!({"type": "object", "required": ["a", "b"], "properties": {
            "a": {"type": "object", "nullable": true, "properties": {"c": {"type": "string"}}},
            "b": {"type": "object", "required": ["k"], "additionalProperties":
                {"type": "string", "nullable": true}},
        }});
        let old = json!({"type": "object", "required": ["b"], "properties": {
            "a": {},
            "b": {"type": "object", "additionalProperties": {}},
        }});
        check(schema.clone(), old, schema);
    }

    #[test]
    fn what_keeps_unknown_fields_says_nothing_else_in_version_2() {
        let schema = json!({"type": "object", "properties": {
            "raw": {"type": "object", PRESERVES: true, "properties": {"a": {"type": "string"}}},
            "list": {"type": "array", PRESERVES: true, "items": {"type": "string"}},
        }});
        let old = json!({"type": "object", "properties": {
            "raw": {PRESERVES: true},
            "list": {PRESERVES: true},
        }});
        check(schema.clone(), old, schema);
    }

    #[test]
    fn numbers_or_texts_are_told_in_version_3() {
        let either = json!([{"type": "integer"}, {"type": "string"}]);
        check(
            json!({INT_OR_STRING: true}),
            json!({INT_OR_STRING: true}),
            json!({INT_OR_STRING: true, "anyOf": either}),
        );
        check(
            json!({INT_OR_STRING: true, "anyOf": [{"minimum": 1}]}),
            json!({INT_OR_STRING: true}),
            json!({INT_OR_STRING: true, "anyOf": [{"minimum": 1}], "allOf": [{"anyOf": either}]}),
        );
    }

    #[test]
    fn objects_within_objects_have_what_objects_have() {
        let mut schema = json!({"type": "object", EMBEDDED: true});
        embed(&mut schema, true);
        assert_eq!(schema["required"], json!(["kind", "apiVersion"]));
        assert_eq!(schema["properties"]["kind"]["type"], "string");
        let mut schema = json!({EMBEDDED: true, PRESERVES: true});
        embed(&mut schema, true);
        assert!(schema.get("properties").is_none());
        embed(&mut schema, false);
        assert!(schema.get("properties").is_some());
    }
}
