//! The rules of a schema: what a structural schema may say, and how.
//!
//! They are checked on the JSON of the schema, since they are about what it must
//! not contain as much as about what it means.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{entries, flag, items, text};

/// What may stand at the root of a schema with a status subresource, as the
/// server's message lists it, and as manifests write it.
const AT_ROOT: [(&str, &str); 22] = [
    ("Description", "description"),
    ("Type", "type"),
    ("Format", "format"),
    ("Title", "title"),
    ("Maximum", "maximum"),
    ("ExclusiveMaximum", "exclusiveMaximum"),
    ("Minimum", "minimum"),
    ("ExclusiveMinimum", "exclusiveMinimum"),
    ("MaxLength", "maxLength"),
    ("MinLength", "minLength"),
    ("Pattern", "pattern"),
    ("MaxItems", "maxItems"),
    ("MinItems", "minItems"),
    ("UniqueItems", "uniqueItems"),
    ("MultipleOf", "multipleOf"),
    ("Required", "required"),
    ("Items", "items"),
    ("Properties", "properties"),
    ("ExternalDocs", "externalDocs"),
    ("Example", "example"),
    (
        "XPreserveUnknownFields",
        "x-kubernetes-preserve-unknown-fields",
    ),
    ("XValidations", "x-kubernetes-validations"),
];

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Field,
    Item,
}

/// Says what only the root of a schema may not be.
pub(super) fn validate_root(path: &Path<'_>, schema: &Value, status: bool, errors: &mut Errors) {
    let kind = text(schema, "type");
    if status {
        if kind != "object" && schema.get("type").is_some() {
            errors.push(FieldError::invalid_str(
                &path.child("type"),
                kind,
                "only \"object\" is allowed as the type at the root of the schema if the status \
                 subresource is enabled",
            ));
        }
        let allowed = |field: &String| AT_ROOT.iter().any(|(_, name)| name == field);
        let fields = schema.as_object();
        if fields.is_some_and(|fields| !fields.keys().all(allowed)) {
            let names: Vec<&str> = AT_ROOT.iter().map(|(name, _)| *name).collect();
            errors.push(FieldError::invalid(
                path,
                schema,
                format!(
                    "only [{}] fields are allowed at the root of the schema if the status \
                     subresource is enabled",
                    names.join(" ")
                ),
            ));
        }
    }
    if flag(schema, "nullable") {
        errors.push(FieldError::forbidden(
            &path.child("nullable"),
            "nullable cannot be true at the root",
        ));
    }
}

/// Says what is wrong with a schema at `path`.
pub fn validate_schema(path: &Path<'_>, schema: &Value) -> Errors {
    let mut errors = Errors::new();
    structural(path, schema, Level::Root, &mut errors);
    complete(path, schema, path, schema, &mut errors);
    let mut errors: Vec<FieldError> = errors.into_iter().collect();
    errors.sort_by_key(ToString::to_string);
    let mut all = Errors::new();
    all.extend(errors);
    if all.is_empty() {
        defaults_fit(path, schema, &mut all);
    }
    allowed(path, schema, &mut all);
    all
}

/// The rules that make a schema structural: a type everywhere, and value
/// validations that do not say what a value is.
fn structural(path: &Path<'_>, schema: &Value, level: Level, errors: &mut Errors) {
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
        && let Err(why) = super::pattern::compile(pattern)
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
fn complete(
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

/// Checks what the server allows anywhere in a schema.
fn allowed(path: &Path<'_>, schema: &Value, errors: &mut Errors) {
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
            allowed(&path.child("additionalProperties"), additional, errors);
        }
    }
    for (name, property) in entries(schema, "properties") {
        let path = path.child("properties");
        allowed(&path.key(name), property, errors);
    }
    if let Some(not) = schema.get("not") {
        allowed(&path.child("not"), not, errors);
    }
    for junctor in ["allOf", "oneOf", "anyOf"] {
        let path = path.child(junctor);
        for (index, nested) in items(schema, junctor).enumerate() {
            allowed(&path.index(index), nested, errors);
        }
    }
    if let Some(item) = schema.get("items").filter(|item| item.is_object()) {
        allowed(&path.child("items"), item, errors);
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
    expressions(path, schema, errors);
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

fn expressions(path: &Path<'_>, schema: &Value, errors: &mut Errors) {
    let path = path.child("x-kubernetes-validations");
    for (index, rule) in items(schema, "x-kubernetes-validations").enumerate() {
        let path = path.index(index);
        let expression = text(rule, "rule").trim();
        let message = text(rule, "message");
        let given = text(rule, "message");
        let lines = |text: &str| text.contains(['\n', '\r']);
        if expression.is_empty() {
            errors.push(FieldError::required(
                &path.child("rule"),
                "rule is not specified",
            ));
        } else if !message.is_empty() && message.trim().is_empty() {
            errors.push(FieldError::invalid_str(
                &path.child("message"),
                given,
                "must be non-empty if specified",
            ));
        } else if lines(message.trim()) {
            errors.push(FieldError::invalid_str(
                &path.child("message"),
                given,
                "must not contain line breaks",
            ));
        } else if lines(expression) && message.trim().is_empty() {
            errors.push(FieldError::required(
                &path.child("message"),
                "message must be specified if rule contains line breaks",
            ));
        }
        let reason = text(rule, "reason");
        if rule.get("reason").is_some() && !REASONS.contains(&reason) {
            errors.push(FieldError::not_supported(
                &path.child("reason"),
                &reason.into(),
                &REASONS,
            ));
        }
        for field in ["rule", "messageExpression"] {
            let expression = text(rule, field);
            if !expression.trim().is_empty()
                && let Err(why) = super::expression::check(expression)
            {
                errors.push(FieldError::invalid(
                    &path.child(field),
                    rule,
                    format!("compilation failed: {why}"),
                ));
            }
        }
    }
}

/// Defaults must themselves be as the schema says.
fn defaults_fit(path: &Path<'_>, schema: &Value, errors: &mut Errors) {
    if let Some(default) = schema.get("default")
        && let Ok(parsed) = super::Schema::parse(schema)
    {
        let path = path.child("default");
        let mut pruned = default.clone();
        parsed.prune_value(&mut pruned);
        if pruned != *default {
            errors.push(FieldError::invalid(
                &path,
                default,
                "must not have unknown fields",
            ));
        } else {
            parsed.validate_value(&path, default, errors);
        }
    }
    for (name, property) in entries(schema, "properties") {
        let path = path.child("properties");
        defaults_fit(&path.key(name), property, errors);
    }
    if let Some(item) = schema.get("items") {
        defaults_fit(&path.child("items"), item, errors);
    }
    if let Some(additional) = schema.get("additionalProperties").filter(|a| a.is_object()) {
        defaults_fit(&path.child("additionalProperties"), additional, errors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: Value, expected: &[&str]) {
        let errors = validate_schema(&Path::new("s"), &schema);
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{schema:#}");
    }

    #[test]
    fn structural_schemas() {
        check(json!({"type": "object"}), &[]);
        check(
            json!({}),
            &["s.type: Required value: must not be empty at the root"],
        );
        check(
            json!({"type": "object", "properties": {"a": {}, "b": {"type": "array"}}}),
            &[
                "s.properties[a].type: Required value: must not be empty for specified object \
                 fields",
                "s.properties[b].items: Required value: must be specified",
            ],
        );
        check(
            json!({"type": "object", "properties": {"a": {"x-kubernetes-int-or-string": true}}}),
            &[],
        );
        check(
            json!({"type": "object", "properties": {"a": {
                "x-kubernetes-int-or-string": true,
                "anyOf": [{"type": "integer"}, {"type": "string"}],
            }}}),
            &[],
        );
        check(
            json!({"type": "object", "anyOf": [{"properties": {"a": {"type": "string"}}}]}),
            &[
                "s.anyOf[0].properties[a].type: Forbidden: must be empty to be structural",
                "s.properties[a]: Required value: because it is defined in s.anyOf[0].properties[a]",
            ],
        );
        check(
            json!({"type": "object", "properties": {"metadata": {
                "type": "object", "properties": {"labels": {"type": "object"}},
            }}}),
            &[
                "s.properties[metadata]: Forbidden: must not specify anything other than name and \
                 generateName, but metadata is implicitly specified",
            ],
        );
    }

    #[test]
    fn list_types() {
        let list = |extra: Value| {
            let mut list = json!({"type": "array", "items": {"type": "object", "properties": {
                "name": {"type": "string"}}}});
            for (key, value) in extra.as_object().unwrap() {
                list[key] = value.clone();
            }
            json!({"type": "object", "properties": {"l": list}})
        };
        check(list(json!({"x-kubernetes-list-type": "atomic"})), &[]);
        check(
            list(json!({"x-kubernetes-list-type": "map"})),
            &[
                "s.properties[l].x-kubernetes-list-map-keys: Required value: must not be empty if \
                 x-kubernetes-list-type is map",
            ],
        );
        check(
            list(json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})),
            &[
                "s.properties[l].items.properties[name].default: Required value: this property is \
                 in x-kubernetes-list-map-keys, so it must have a default or be a required \
                 property",
            ],
        );
    }

    #[test]
    fn defaults_must_fit() {
        let schema = |default: Value| json!({"type": "object", "properties": {"a": {"type": "integer", "default": default}}});
        check(schema(json!(1)), &[]);
        check(
            schema(json!("x")),
            &[
                "s.properties[a].default: Invalid value: \"string\": s.properties[a].default in \
                 body must be of type integer: \"string\"",
            ],
        );
    }
}
