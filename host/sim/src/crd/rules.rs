//! The rules of a schema: what a structural schema may say, and how.
//!
//! They are checked on the JSON of the schema, since they are about what it must
//! not contain as much as about what it means.

mod allowed;
mod costs;
mod expressions;
mod field_path;
mod structure;

use serde_json::Value;

use self::allowed::allowed;
use self::structure::{Level, complete, structural};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{entries, flag, text};

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

/// Says what is wrong with a schema at `path`. What one of its rules costs is no longer
/// asked where it is an old one.
pub(super) fn validate_schema(path: &Path<'_>, schema: &Value, is_old: bool) -> Errors {
    let mut errors = Errors::new();
    // Nothing more is made of a schema that has what none may have.
    let readable = unsupported(schema).is_none();
    if readable {
        structural(path, schema, Level::Root, &mut errors);
        complete(path, schema, path, schema, &mut errors);
    }
    let mut errors: Vec<FieldError> = errors.into_iter().collect();
    errors.sort_by_key(ToString::to_string);
    let mut all = Errors::new();
    all.extend(errors);
    if readable && all.is_empty() {
        defaults_fit(path, schema, &mut all);
    }
    allowed(path, schema, is_old, &mut all);
    all
}

/// The first field, here or further down, that no schema may have, as messages name it.
pub(super) fn unsupported(schema: &Value) -> Option<&'static str> {
    const FIELDS: [&str; 7] = [
        "id",
        "schema",
        "$ref",
        "patternProperties",
        "dependencies",
        "additionalItems",
        "definitions",
    ];
    let has = |field: &&str| match *field {
        "schema" => schema.get("$schema").is_some(),
        field => schema.get(field).is_some(),
    };
    FIELDS.into_iter().find(has).or_else(|| {
        let properties = entries(schema, "properties").map(|(_, property)| property);
        let others = ["items", "additionalProperties"].map(|field| schema.get(field));
        let others = others
            .into_iter()
            .flatten()
            .filter(|other| other.is_object());
        properties.chain(others).find_map(unsupported)
    })
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
            // A default is looked at as an object of its own.
            let mut found = Errors::new();
            parsed.validate_value(&Path::ROOT, default, &mut found);
            errors.extend(found.into_iter().map(|mut error| {
                error.field = match error.field.as_str() {
                    "" => path.to_string(),
                    item if item.starts_with('[') => format!("{path}{item}"),
                    field => format!("{path}.{field}"),
                };
                error
            }));
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
#[expect(clippy::needless_pass_by_value, reason = "cases read better as values")]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: Value, expected: &[&str]) {
        let errors = validate_schema(&Path::new("s"), &schema, false);
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
                "s.properties[a].default: Invalid value: \"string\":  in body must be of type \
                 integer: \"string\"",
            ],
        );
    }
}
