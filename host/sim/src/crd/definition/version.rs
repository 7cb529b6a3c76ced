//! What each version of a definition says: schema, subresources, columns,
//! selectable fields.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{SPEC, versions};
use crate::crd::rules;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{flag, items, text};
use crate::names;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];
const SELECTABLE_MAX: usize = 8;
const WARNING_MAX: usize = 256;

/// Checks the versions, each for itself; `old` is the definition before a change.
pub(super) fn validate_versions(
    definition: &Value,
    old: Option<&Value>,
    spec: &Value,
    errors: &mut Errors,
) {
    let path = SPEC.child("versions");
    for (index, version) in versions(definition).enumerate() {
        if version.pointer("/schema/openAPIV3Schema").is_none() {
            let path = path.index(index);
            let path = path.child("schema");
            errors.push(FieldError::required(&path.child("openAPIV3Schema"), ""));
        }
    }
    let shared = Shared::of(definition);
    let mut seen = BTreeSet::new();
    let mut unique = true;
    let mut storage = 0;
    for (index, version) in versions(definition).enumerate() {
        let path = path.index(index);
        let name = text(version, "name");
        storage += usize::from(flag(version, "storage"));
        unique &= seen.insert(name);
        let wrong = names::dns1035_label(name);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid_str(
                &path.child("name"),
                name,
                wrong.join(","),
            ));
        }
        validate_deprecation(&path, version, errors);
        if !shared.schema {
            validate_version_schema(&path.child("schema"), version, old, errors);
        }
        if !shared.subresources {
            validate_scale(&path.child("subresources"), version, errors);
        }
        if !shared.columns {
            validate_columns(&path, version, errors);
        }
        if !shared.selectable {
            validate_selectable(&path, version, errors);
        }
    }
    let all = spec.get("versions").unwrap_or(&Value::Null);
    if !unique {
        errors.push(FieldError::invalid(
            &path,
            all,
            "must contain unique version names",
        ));
    }
    if storage != 1 {
        errors.push(FieldError::invalid(
            &path,
            all,
            "must have exactly one version marked as storage version",
        ));
    }
}

/// What all versions have in common. The server keeps that once, at the top of
/// its own form of the spec, and that is where it finds fault with it.
struct Shared {
    schema: bool,
    subresources: bool,
    columns: bool,
    selectable: bool,
}

impl Shared {
    fn of(definition: &Value) -> Self {
        let same = |field: &str| {
            let mut values = versions(definition).map(|version| version.get(field));
            let first = values.next().flatten();
            first.is_some() && values.all(|value| value == first)
        };
        Shared {
            schema: same("schema"),
            subresources: same("subresources"),
            columns: same("additionalPrinterColumns"),
            selectable: same("selectableFields"),
        }
    }
}

/// Checks what all versions share.
pub(super) fn validate_shared(definition: &Value, old: Option<&Value>, errors: &mut Errors) {
    let shared = Shared::of(definition);
    let Some(version) = versions(definition).next() else {
        return;
    };
    if shared.schema {
        validate_version_schema(&SPEC.child("validation"), version, old, errors);
    }
    if shared.subresources {
        validate_scale(&SPEC.child("subresources"), version, errors);
    }
    if shared.columns {
        validate_columns(&SPEC, version, errors);
    }
    if shared.selectable {
        validate_selectable(&SPEC, version, errors);
    }
}

fn validate_deprecation(path: &Path<'_>, version: &Value, errors: &mut Errors) {
    if let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) {
        let unprintable = warning.char_indices().find(|(_, c)| c.is_control());
        let wrong = if !flag(version, "deprecated") {
            Some("can only be set for deprecated versions".to_owned())
        } else if warning.len() > WARNING_MAX {
            Some("must be <= 256 characters long".to_owned())
        } else if warning.is_empty() {
            Some("must not be an empty string".to_owned())
        } else {
            unprintable.map(|(at, _)| {
                format!(
                    "must only contain printable UTF-8 characters; non-printable character found at index {at}"
                )
            })
        };
        if let Some(wrong) = wrong {
            let path = path.child("deprecationWarning");
            errors.push(FieldError::invalid_str(&path, warning, wrong));
        }
    }
}

/// Checks the schema of a version, which may have had the same before.
fn validate_version_schema(
    path: &Path<'_>,
    version: &Value,
    old: Option<&Value>,
    errors: &mut Errors,
) {
    let mut before = old.into_iter().flat_map(versions);
    let before = before.find(|before| text(before, "name") == text(version, "name"));
    let is_old = before.is_some_and(|before| before.get("schema") == version.get("schema"));
    if let Some(schema) = version.pointer("/schema/openAPIV3Schema") {
        let path = path.child("openAPIV3Schema");
        let status = version.pointer("/subresources/status").is_some();
        rules::validate_root(&path, schema, status, errors);
        errors.extend(rules::validate_schema(&path, schema, is_old));
    }
}

fn validate_columns(path: &Path<'_>, version: &Value, errors: &mut Errors) {
    let columns = path.child("additionalPrinterColumns");
    for (index, column) in items(version, "additionalPrinterColumns").enumerate() {
        validate_column(&columns.index(index), column, errors);
    }
}

fn validate_scale(path: &Path<'_>, version: &Value, errors: &mut Errors) {
    let Some(scale) = version.pointer("/subresources/scale") else {
        return;
    };
    let checks = [
        ("specReplicasPath", "scale.specReplicasPath", ".spec."),
        ("statusReplicasPath", "scale.statusReplicasPath", ".status."),
    ];
    for (field, shown, under) in checks {
        let path = path.child(shown);
        let value = text(scale, field);
        if value.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else if !value.starts_with('.') {
            errors.push(simple_path(&path, value));
        } else if !value.starts_with(under) {
            let under = under.trim_end_matches('.');
            errors.push(FieldError::invalid_str(
                &path,
                value,
                format!("should be a json path under {under}"),
            ));
        }
    }
    let selector = text(scale, "labelSelectorPath");
    let path = path.child("scale.labelSelectorPath");
    if selector.is_empty() {
        return;
    }
    if !selector.starts_with('.') {
        errors.push(simple_path(&path, selector));
    } else if !selector.starts_with(".spec.") && !selector.starts_with(".status.") {
        errors.push(FieldError::invalid_str(
            &path,
            selector,
            "should be a json path under either .spec or .status",
        ));
    }
}

fn simple_path(path: &Path<'_>, value: &str) -> FieldError {
    FieldError::invalid_str(path, value, "must be a simple json path starting with .")
}

fn validate_column(path: &Path<'_>, column: &Value, errors: &mut Errors) {
    if text(column, "name").is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    let kind = text(column, "type");
    let types = format!("must be one of {}", COLUMN_TYPES.join(","));
    if kind.is_empty() {
        errors.push(FieldError::required(&path.child("type"), types));
    } else if !COLUMN_TYPES.contains(&kind) {
        errors.push(FieldError::invalid_str(&path.child("type"), kind, types));
    }
    let format = text(column, "format");
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        let mut formats = COLUMN_FORMATS;
        formats.sort_unstable();
        errors.push(FieldError::invalid_str(
            &path.child("format"),
            format,
            format!("must be one of {}", formats.join(",")),
        ));
    }
    let json_path = text(column, "jsonPath");
    if json_path.is_empty() {
        errors.push(FieldError::required(&path.child("JSONPath"), ""));
    } else if !json_path.starts_with('.') {
        errors.push(simple_path(&path.child("JSONPath"), json_path));
    }
}

fn validate_selectable(place: &Path<'_>, version: &Value, errors: &mut Errors) {
    let path = &place.child("selectableFields");
    let schema = version.pointer("/schema/openAPIV3Schema");
    if let Some(field) = schema.and_then(rules::unsupported)
        && items(version, "selectableFields").next().is_some()
    {
        errors.push(FieldError::invalid_str(
            &place.child("schema.openAPIV3Schema"),
            "",
            format!("OpenAPIV3Schema '{field}' is not supported"),
        ));
    }
    let mut seen = BTreeSet::new();
    for (index, field) in items(version, "selectableFields").enumerate() {
        let path = path.index(index);
        let path = path.child("jsonPath");
        let json_path = text(field, "jsonPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        if !json_path.starts_with(['.', '[']) {
            let end = json_path.find(['.', '[', ']']).unwrap_or(json_path.len());
            let (token, _) = json_path.split_at(end);
            errors.push(FieldError::invalid_str(
                &path,
                json_path,
                format!("is an invalid path: expected [ or . but got: {token}"),
            ));
            continue;
        }
        let steps = json_path.trim_start_matches('.').split('.');
        let found = schema.and_then(|schema| {
            steps
                .clone()
                .try_fold(schema, |at, step| at.get("properties")?.get(step))
        });
        match found {
            None => {
                let why = if json_path.contains('[') {
                    "is an invalid path: array notation is not allowed"
                } else {
                    "is an invalid path: does not refer to a valid field"
                };
                errors.push(FieldError::invalid_str(&path, json_path, why));
                continue;
            }
            Some(found) if !matches!(text(found, "type"), "string" | "boolean" | "integer") => {
                errors.push(FieldError::invalid_str(
                    &path,
                    json_path,
                    "must point to a field of type string, boolean or integer. Enum string \
                     fields and strings with formats are allowed.",
                ));
            }
            Some(_) => {}
        }
        if steps.clone().next() == Some("metadata") {
            errors.push(FieldError::invalid_str(
                &path,
                json_path,
                "must not point to fields in metadata",
            ));
        }
        if !seen.insert(json_path) {
            errors.push(FieldError::duplicate(&path, &json_path.into()));
        }
    }
    if seen.len() > SELECTABLE_MAX {
        errors.push(FieldError::too_many(path, seen.len(), SELECTABLE_MAX));
    }
}
