//! What may stand anywhere in a schema: types, kinds of lists and maps.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::costs::Costs;
use super::expressions::{Findings, Place, expressions};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{entries, flag, items, text};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Checks what the server allows anywhere in a schema. Rules are looked into where
/// nothing else is wrong, neither with the schema as a whole nor where they are; what one
/// of them costs only where the schema is not an old one.
pub(super) fn allowed(path: &Path<'_>, schema: &Value, is_old: bool, errors: &mut Errors) {
    let place = Place {
        is_resource: true,
        uncorrelated: None,
        is_compiled: errors.is_empty(),
        count: Some(1),
    };
    let mut rules = Findings {
        errors: Errors::new(),
        costs: Costs::new(is_old),
    };
    visit(path, schema, place, errors, &mut rules);
    errors.extend(rules.errors);
    rules.costs.judge(path, errors);
}

/// Checks a schema and those below it. What is wrong with `rules` is told last.
fn visit(
    path: &Path<'_>,
    schema: &Value,
    place: Place<'_>,
    errors: &mut Errors,
    rules: &mut Findings,
) {
    let before = errors.len();
    let kind = text(schema, "type");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(
            &path.child("type"),
            &kind.into(),
            &TYPES,
        ));
    }
    for field in [
        "id",
        "additionalItems",
        "patternProperties",
        "definitions",
        "dependencies",
        "$ref",
    ] {
        if schema.get(field).is_some() {
            errors.push(FieldError::forbidden(
                &path.child(field),
                format!("{field} is not supported"),
            ));
        }
    }
    if kind == "null" {
        errors.push(FieldError::forbidden(
            &path.child("type"),
            "type cannot be set to null, use nullable as an alternative",
        ));
    }
    if schema.get("items").is_some_and(Value::is_array) {
        errors.push(FieldError::forbidden(
            &path.child("items"),
            "items must be a schema object and not an array",
        ));
    }
    if flag(schema, "uniqueItems") {
        errors.push(FieldError::forbidden(
            &path.child("uniqueItems"),
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ));
    }
    let additional = schema.get("additionalProperties");
    let properties = schema.get("properties").and_then(Value::as_object);
    if let Some(additional) = additional {
        if properties.is_some_and(|p| !p.is_empty()) && *additional != json!(true) {
            errors.push(FieldError::forbidden(
                &path.child("additionalProperties"),
                "additionalProperties and properties are mutual exclusive",
            ));
        }
        if additional.is_object() {
            let path = path.child("additionalProperties");
            visit(
                &path,
                additional,
                place.of(additional, schema),
                errors,
                rules,
            );
        }
    }
    for (name, property) in entries(schema, "properties") {
        let path = path.child("properties");
        visit(
            &path.key(name),
            property,
            place.of(property, schema),
            errors,
            rules,
        );
    }
    // What only validates has no rules of its own.
    let mut nowhere = place;
    nowhere.is_compiled = false;
    if let Some(not) = schema.get("not") {
        visit(&path.child("not"), not, nowhere, errors, rules);
    }
    for junctor in ["allOf", "oneOf", "anyOf"] {
        let path = path.child(junctor);
        for (index, nested) in items(schema, junctor).enumerate() {
            visit(&path.index(index), nested, nowhere, errors, rules);
        }
    }
    if let Some(item) = schema.get("items").filter(|item| item.is_object()) {
        let here = path.to_string();
        let mut place = place.of(item, schema);
        // Items have a past only where something tells them apart.
        if text(schema, "x-kubernetes-list-type") != "map" && place.uncorrelated.is_none() {
            place.uncorrelated = Some(&here);
        }
        visit(&path.child("items"), item, place, errors, rules);
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(false)) {
        errors.push(FieldError::invalid(
            &path.child("x-kubernetes-preserve-unknown-fields"),
            &json!(false),
            "must be true or undefined",
        ));
    }
    map_type(path, schema, kind, errors);
    list_type(path, schema, kind, errors);
    let is_sound = errors.len() == before;
    expressions(path, schema, place, is_sound, errors, rules);
}

fn map_type(path: &Path<'_>, schema: &Value, kind: &str, errors: &mut Errors) {
    let Some(map_type) = schema.get("x-kubernetes-map-type") else {
        return;
    };
    if kind != "object" {
        let why = "must be object if x-kubernetes-map-type is specified";
        errors.push(wrong_type(path, kind, why));
    }
    if !matches!(map_type.as_str(), Some("atomic" | "granular")) {
        errors.push(FieldError::not_supported(
            &path.child("x-kubernetes-map-type"),
            map_type,
            &["atomic", "granular"],
        ));
    }
}

fn wrong_type(path: &Path<'_>, kind: &str, why: &str) -> FieldError {
    if kind.is_empty() {
        FieldError::required(&path.child("type"), why)
    } else {
        FieldError::invalid_str(&path.child("type"), kind, why)
    }
}

fn list_type(path: &Path<'_>, schema: &Value, kind: &str, errors: &mut Errors) {
    let given = schema.get("x-kubernetes-list-type");
    let list_type = given.and_then(Value::as_str);
    let type_path = path.child("x-kubernetes-list-type");
    let keys_path = path.child("x-kubernetes-list-map-keys");
    let keys: Vec<&str> = items(schema, "x-kubernetes-list-map-keys")
        .filter_map(Value::as_str)
        .collect();
    let item = schema.get("items").filter(|item| item.is_object());
    if given.is_some() && kind != "array" {
        let why = "must be array if x-kubernetes-list-type is specified";
        errors.push(wrong_type(path, kind, why));
    } else if let (Some("set"), Some(item)) = (list_type, item) {
        let path = path.child("items");
        let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let (field, wrong) = match text(item, "type") {
            "array" => (
                "x-kubernetes-list-type",
                !matches!(text(item, "x-kubernetes-list-type"), "" | "atomic"),
            ),
            "object" => (
                "x-kubernetes-map-type",
                text(item, "x-kubernetes-map-type") != "atomic",
            ),
            _ => ("", false),
        };
        if wrong {
            let shown = item.get("x-kubernetes-list-type").unwrap_or(&Value::Null);
            errors.push(FieldError::invalid(&path.child(field), shown, why));
        }
    }
    if let Some(given) = given
        && !matches!(list_type, Some("atomic" | "set" | "map"))
    {
        errors.push(FieldError::not_supported(
            &type_path,
            given,
            &["atomic", "set", "map"],
        ));
    }
    if !keys.is_empty() && list_type != Some("map") {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match given {
            None => FieldError::required(&type_path, why),
            Some(given) => FieldError::invalid(&type_path, given, why),
        });
    }
    if let (Some("set" | "map"), Some(item)) = (list_type, item)
        && flag(item, "nullable")
    {
        let path = path.child("items");
        errors.push(FieldError::forbidden(
            &path.child("nullable"),
            format!(
                "cannot be nullable when x-kubernetes-list-type is {}",
                list_type.unwrap_or_default()
            ),
        ));
    }
    if list_type != Some("map") {
        return;
    }
    if keys.is_empty() {
        errors.push(FieldError::required(
            &keys_path,
            "must not be empty if x-kubernetes-list-type is map",
        ));
    }
    match item {
        None => errors.push(FieldError::required(
            &path.child("items"),
            "must have a schema if x-kubernetes-list-type is map",
        )),
        Some(item) if text(item, "type") != "object" => {
            let path = path.child("items");
            errors.push(FieldError::invalid_str(
                &path.child("type"),
                text(item, "type"),
                "must be object if parent array's x-kubernetes-list-type is map",
            ));
        }
        Some(item) => map_keys(path, schema, item, &keys, errors),
    }
}

fn map_keys(path: &Path<'_>, schema: &Value, item: &Value, keys: &[&str], errors: &mut Errors) {
    let keys_path = path.child("x-kubernetes-list-map-keys");
    let listed = schema
        .get("x-kubernetes-list-map-keys")
        .unwrap_or(&Value::Null);
    let item_path = path.child("items");
    let properties = item_path.child("properties");
    let mut seen = BTreeSet::new();
    for key in keys {
        let path = properties.key(key);
        match item.get("properties").and_then(|all| all.get(*key)) {
            None => errors.push(FieldError::invalid(
                &keys_path,
                listed,
                "entries must all be names of item properties",
            )),
            Some(property) => {
                if matches!(text(property, "type"), "array" | "object") {
                    errors.push(FieldError::invalid_str(
                        &path.child("type"),
                        text(item, "type"),
                        "must be a scalar type if parent array's x-kubernetes-list-type is map",
                    ));
                }
                let required = items(item, "required").any(|required| required == *key);
                if !required && property.get("default").is_none() {
                    errors.push(FieldError::required(
                        &path.child("default"),
                        "this property is in x-kubernetes-list-map-keys, so it must have a \
                         default or be a required property",
                    ));
                }
                if flag(property, "nullable") {
                    errors.push(FieldError::forbidden(
                        &path.child("nullable"),
                        "this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
                    ));
                }
            }
        }
        if !seen.insert(key) {
            errors.push(FieldError::invalid(
                &keys_path,
                listed,
                "must not contain duplicate entries",
            ));
        }
    }
}
