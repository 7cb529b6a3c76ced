//! The rules that make a schema structural: a type everywhere, and value
//! validations that do not say what a value is.

use serde_json::{Map, Value, json};

use crate::crd::pattern;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{entries, flag, items, text};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Root,
    Field,
    Item,
}

/// Checks a schema and those below it.
pub(super) fn structural(path: &Path<'_>, schema: &Value, level: Level, errors: &mut Errors) {
    let kind = text(schema, "type");
    if kind == "array" && schema.get("items").is_none() {
        errors.push(FieldError::required(
            &path.child("items"),
            "must be specified",
        ));
    }
    if let Some(item) = schema.get("items") {
        structural(&path.child("items"), item, Level::Item, errors);
    }
    for (name, property) in entries(schema, "properties") {
        let path = path.child("properties");
        structural(&path.key(name), property, Level::Field, errors);
    }
    let additional = path.child("additionalProperties");
    if let Some(schema) = schema.get("additionalProperties") {
        if level == Level::Root {
            errors.push(FieldError::forbidden(
                &additional,
                "must not be used at the root",
            ));
        }
        if schema.is_object() {
            structural(&additional, schema, Level::Field, errors);
        }
    }
    extensions(path, schema, errors);
    value_validation(path, schema, true, errors);
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    let untyped_allowed = flag(schema, "x-kubernetes-int-or-string")
        || flag(schema, "x-kubernetes-preserve-unknown-fields");
    if embedded && kind != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() {
            FieldError::required(&path.child("type"), why)
        } else {
            FieldError::invalid_str(&path.child("type"), kind, why)
        });
    } else if kind.is_empty() && !untyped_allowed {
        let why = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(&path.child("type"), why));
    }
    if embedded && schema.get("additionalProperties").is_some() {
        errors.push(FieldError::forbidden(
            &additional,
            "must not be used if x-kubernetes-embedded-resource is set",
        ));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid_str(
            &path.child("type"),
            kind,
            "must be object at the root",
        ));
    }
    metadata(path, schema, level, embedded, errors);
    let properties = schema.get("properties").and_then(Value::as_object);
    if embedded
        && !flag(schema, "x-kubernetes-preserve-unknown-fields")
        && properties.is_none_or(Map::is_empty)
    {
        errors.push(FieldError::required(
            &path.child("properties"),
            "must not be empty if x-kubernetes-embedded-resource is true without \
             x-kubernetes-preserve-unknown-fields",
        ));
    }
}

/// What a schema may say about the fields that every object has.
fn metadata(path: &Path<'_>, schema: &Value, level: Level, embedded: bool, errors: &mut Errors) {
    let resource = level == Level::Root || embedded;
    let properties = path.child("properties");
    for field in ["kind", "apiVersion"] {
        if let Some(property) = schema.pointer(&format!("/properties/{field}"))
            && resource
            && text(property, "type") != "string"
        {
            let path = properties.key(field);
            errors.push(FieldError::invalid_str(
                &path.child("type"),
                text(property, "type"),
                "must be string",
            ));
        }
    }
    let Some(property) = schema.pointer("/properties/metadata") else {
        return;
    };
    let path = properties.key("metadata");
    if resource && text(property, "type") != "object" {
        errors.push(FieldError::invalid_str(
            &path.child("type"),
            text(property, "type"),
            "must be object",
        ));
    }
    if level == Level::Root {
        let only_names = entries(property, "properties")
            .all(|(name, _)| name == "name" || name == "generateName");
        let nothing_else = property.as_object().is_none_or(|fields| {
            fields
                .keys()
                .all(|key| matches!(key.as_str(), "type" | "properties" | "default"))
        });
        if !only_names || !nothing_else {
            errors.push(FieldError::forbidden(
                &path,
                "must not specify anything other than name and generateName, but metadata is \
                 implicitly specified",
            ));
        }
    }
}

fn extensions(path: &Path<'_>, schema: &Value, errors: &mut Errors) {
    if !flag(schema, "x-kubernetes-int-or-string") {
        return;
    }
    for field in [
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
    ] {
        if flag(schema, field) {
            errors.push(FieldError::invalid(
                &path.child(field),
                &json!(true),
                "must be false if x-kubernetes-int-or-string is true",
            ));
        }
    }
}

/// Checks the junctors of a schema. `top` is false inside of one.
fn value_validation(path: &Path<'_>, schema: &Value, top: bool, errors: &mut Errors) {
    // The one place where a junctor may say the type: an integer or a string.
    let either = schema.get("anyOf").is_some_and(is_int_or_string);
    let first_either = schema
        .pointer("/allOf/0/anyOf")
        .is_some_and(is_int_or_string);
    for junctor in ["anyOf", "allOf", "oneOf"] {
        let path = path.child(junctor);
        for (index, nested) in items(schema, junctor).enumerate() {
            if junctor == "anyOf" && top && either {
                continue;
            }
            let skip = junctor == "allOf" && top && first_either && index == 0;
            nested_validation(&path.index(index), nested, skip, errors);
        }
    }
    if let Some(nested) = schema.get("not") {
        nested_validation(&path.child("not"), nested, false, errors);
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && let Err(why) = pattern::compile(pattern)
    {
        errors.push(FieldError::invalid_str(
            &path.child("pattern"),
            pattern,
            format!("must be a valid regular expression, but isn't: {why}"),
        ));
    }
}

fn is_int_or_string(any_of: &Value) -> bool {
    *any_of == json!([{"type": "integer"}, {"type": "string"}])
}

/// Checks a schema inside a junctor, which may validate but not describe.
fn nested_validation(path: &Path<'_>, schema: &Value, skip_any_of: bool, errors: &mut Errors) {
    if !skip_any_of {
        value_validation(path, schema, false, errors);
    }
    if let Some(item) = schema.get("items") {
        nested_validation(&path.child("items"), item, false, errors);
    }
    for (name, property) in entries(schema, "properties") {
        let path = path.child("properties");
        nested_validation(&path.key(name), property, false, errors);
    }
    let mut forbid = |field: &str, why: &str| {
        errors.push(FieldError::forbidden(&path.child(field), why));
    };
    for (field, why) in [
        ("type", "must be empty to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
    ] {
        if !text(schema, field).is_empty() {
            forbid(field, why);
        }
    }
    for field in ["additionalProperties", "default"] {
        if schema.get(field).is_some() {
            forbid(field, "must be undefined to be structural");
        }
    }
    for field in [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        if flag(schema, field) {
            forbid(field, "must be false to be structural");
        }
    }
    for field in ["x-kubernetes-list-type", "x-kubernetes-map-type"] {
        if schema.get(field).is_some() {
            forbid(field, "must be undefined to be structural");
        }
    }
    for field in ["x-kubernetes-list-map-keys", "x-kubernetes-validations"] {
        if items(schema, field).next().is_some() {
            forbid(field, "must be empty to be structural");
        }
    }
    if schema.pointer("/properties/metadata").is_some() {
        let path = path.child("properties");
        errors.push(FieldError::forbidden(
            &path.key("metadata"),
            "must not be specified in a nested context",
        ));
    }
}

/// What a junctor validates must be described outside of it.
pub(super) fn complete(
    path: &Path<'_>,
    schema: &Value,
    nested_path: &Path<'_>,
    nested: &Value,
    errors: &mut Errors,
) {
    for junctor in ["allOf", "anyOf", "oneOf"] {
        let nested_path = nested_path.child(junctor);
        for (index, nested) in items(nested, junctor).enumerate() {
            complete_nested(path, schema, &nested_path.index(index), nested, errors);
        }
    }
    if let Some(not) = nested.get("not") {
        complete_nested(path, schema, &nested_path.child("not"), not, errors);
    }
}

fn complete_nested(
    path: &Path<'_>,
    schema: &Value,
    nested_path: &Path<'_>,
    nested: &Value,
    errors: &mut Errors,
) {
    complete(path, schema, nested_path, nested, errors);
    let mut follow =
        |path: &Path<'_>, schema: Option<&Value>, at: &Path<'_>, nested: &Value| match schema {
            Some(schema) => complete_nested(path, schema, at, nested, errors),
            None => errors.push(FieldError::required(
                path,
                format!("because it is defined in {at}"),
            )),
        };
    if let Some(item) = nested.get("items") {
        follow(
            &path.child("items"),
            schema.get("items"),
            &nested_path.child("items"),
            item,
        );
    }
    let (properties, nested_properties) =
        (path.child("properties"), nested_path.child("properties"));
    for (name, property) in entries(nested, "properties") {
        follow(
            &properties.key(name),
            schema.get("properties").and_then(|all| all.get(name)),
            &nested_properties.key(name),
            property,
        );
    }
}
