//! Defaults and validation of a CustomResourceDefinition.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::rules;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{default_to, ensure_object, flag, items, present, set, text, text_at};
use crate::names;

const SPEC: Path<'static> = Path::new("spec");
const STATUS: Path<'static> = Path::new("status");
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 9] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
    "binary",
];
const SELECTABLE_MAX: usize = 8;
const WARNING_MAX: usize = 256;

/// Fills in the names and the conversion that may be left out.
pub fn default(definition: &mut Value) {
    let Some(spec) = ensure_object(definition, "spec") else {
        return;
    };
    if let Some(names) = ensure_object(spec, "names") {
        let kind = text(names, "kind").to_owned();
        default_to(names, "singular", kind.to_lowercase());
        if !kind.is_empty() {
            default_to(names, "listKind", format!("{kind}List"));
        }
        for field in ["plural", "kind"] {
            default_to(names, field, "");
        }
    }
    if spec.get("conversion").is_none() {
        set(spec, "conversion", json!({"strategy": "None"}));
    }
    if let Some(service) = spec.pointer_mut("/conversion/webhook/clientConfig/service") {
        default_to(service, "port", 443);
    }
    // Its only value is the one that is not written.
    if !flag(spec, "preserveUnknownFields") {
        crate::kinds::edit::remove(spec, "preserveUnknownFields");
    }
}

/// The status of a new definition.
pub fn prepare_create(definition: &mut Value) {
    let stored: Vec<Value> = storage_version(definition)
        .map(Value::from)
        .into_iter()
        .collect();
    set(
        definition,
        "status",
        json!({
            "acceptedNames": {"kind": "", "plural": ""},
            "conditions": null,
            "storedVersions": stored,
        }),
    );
}

/// Remembers that objects may now be stored in the storage version.
pub fn prepare_update(definition: &mut Value, _old: &Value) {
    let Some(version) = storage_version(definition).map(str::to_owned) else {
        return;
    };
    let Some(status) = ensure_object(definition, "status") else {
        return;
    };
    let mut stored: Vec<Value> = items(status, "storedVersions").cloned().collect();
    if !stored.iter().any(|known| *known == version) {
        stored.push(version.into());
        set(status, "storedVersions", stored);
    }
}

fn storage_version(definition: &Value) -> Option<&str> {
    versions(definition)
        .find(|version| flag(version, "storage"))
        .map(|version| text(version, "name"))
}

fn versions(definition: &Value) -> impl Iterator<Item = &Value> {
    items(definition.get("spec").unwrap_or(&Value::Null), "versions")
}

/// Says what is wrong with a definition, its metadata's general rules aside.
pub fn validate(definition: &Value, errors: &mut Errors) {
    let spec = definition.get("spec").unwrap_or(&Value::Null);
    let names = spec.get("names").unwrap_or(&Value::Null);
    validate_name(definition, spec, names, errors);
    validate_group(spec, errors);
    match text(spec, "scope") {
        "" => errors.push(FieldError::required(&SPEC.child("scope"), "")),
        "Cluster" | "Namespaced" => {}
        other => errors.push(FieldError::not_supported(
            &SPEC.child("scope"),
            &other.into(),
            &["Cluster", "Namespaced"],
        )),
    }
    validate_versions(definition, spec, errors);
    validate_names(names, errors);
    validate_shared(definition, errors);
    validate_conversion(spec, errors);
    validate_stored_versions(definition, errors);
    if flag(spec, "preserveUnknownFields") {
        errors.push(FieldError::invalid(
            &SPEC.child("preserveUnknownFields"),
            &json!(true),
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
             spec.versions[*].schema instead",
        ));
    }
}

/// Says what of a definition may not change.
pub fn validate_update(definition: &Value, old: &Value, errors: &mut Errors) {
    let established =
        items(old.get("status").unwrap_or(&Value::Null), "conditions").any(|condition| {
            text(condition, "type") == "Established" && text(condition, "status") == "True"
        });
    let names = SPEC.child("names");
    let fields = [
        ("/spec/scope", SPEC.child("scope"), established),
        ("/spec/names/kind", names.child("kind"), established),
        ("/spec/group", SPEC.child("group"), true),
        ("/spec/names/plural", names.child("plural"), true),
    ];
    for (pointer, path, fixed) in fields {
        if fixed && text_at(definition, pointer) != text_at(old, pointer) {
            errors.push(FieldError::invalid_str(
                &path,
                text_at(definition, pointer),
                "field is immutable",
            ));
        }
    }
}

fn validate_name(definition: &Value, spec: &Value, names: &Value, errors: &mut Errors) {
    let name = text_at(definition, "/metadata/name");
    let required = format!("{}.{}", text(names, "plural"), text(spec, "group"));
    if !name.is_empty() && name != required {
        let meta = Path::new("metadata");
        errors.push(FieldError::invalid_str(
            &meta.child("name"),
            name,
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
}

fn validate_group(spec: &Value, errors: &mut Errors) {
    let path = SPEC.child("group");
    let group = text(spec, "group");
    let wrong = names::dns1123_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required(&path, ""));
    } else if !wrong.is_empty() {
        errors.push(FieldError::invalid_str(&path, group, wrong.join(",")));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid_str(
            &path,
            group,
            "should be a domain with at least one dot",
        ));
    }
}

fn validate_versions(definition: &Value, spec: &Value, errors: &mut Errors) {
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
            validate_version_schema(&path.child("schema"), version, errors);
        }
        if !shared.subresources {
            validate_scale(&path.child("subresources"), version, errors);
        }
        if !shared.columns {
            validate_columns(&path, version, errors);
        }
        if !shared.selectable {
            validate_selectable(&path.child("selectableFields"), version, errors);
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
fn validate_shared(definition: &Value, errors: &mut Errors) {
    let shared = Shared::of(definition);
    let Some(version) = versions(definition).next() else {
        return;
    };
    if shared.schema {
        validate_version_schema(&SPEC.child("validation"), version, errors);
    }
    if shared.subresources {
        validate_scale(&SPEC.child("subresources"), version, errors);
    }
    if shared.columns {
        validate_columns(&SPEC, version, errors);
    }
    if shared.selectable {
        validate_selectable(&SPEC.child("selectableFields"), version, errors);
    }
}

fn validate_deprecation(path: &Path<'_>, version: &Value, errors: &mut Errors) {
    if let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) {
        let wrong = if !flag(version, "deprecated") {
            Some("can only be set for deprecated versions")
        } else if warning.len() > WARNING_MAX {
            Some("must be <= 256 characters long")
        } else if warning.is_empty() {
            Some("must not be an empty string")
        } else {
            None
        };
        if let Some(wrong) = wrong {
            let path = path.child("deprecationWarning");
            errors.push(FieldError::invalid_str(&path, warning, wrong));
        }
    }
}

fn validate_version_schema(path: &Path<'_>, version: &Value, errors: &mut Errors) {
    if let Some(schema) = version.pointer("/schema/openAPIV3Schema") {
        let path = path.child("openAPIV3Schema");
        let status = version.pointer("/subresources/status").is_some();
        rules::validate_root(&path, schema, status, errors);
        errors.extend(rules::validate_schema(&path, schema));
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

fn validate_selectable(path: &Path<'_>, version: &Value, errors: &mut Errors) {
    let schema = version.pointer("/schema/openAPIV3Schema");
    let mut seen = BTreeSet::new();
    for (index, field) in items(version, "selectableFields").enumerate() {
        let path = path.index(index);
        let path = path.child("jsonPath");
        let json_path = text(field, "jsonPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let steps = json_path.trim_start_matches('.').split('.');
        let found = schema.and_then(|schema| {
            steps
                .clone()
                .try_fold(schema, |at, step| at.get("properties")?.get(step))
        });
        match found {
            None => errors.push(FieldError::invalid_str(
                &path,
                json_path,
                format!(
                    "is an invalid path: does not refer to a valid field: {}",
                    json_path.trim_start_matches('.')
                ),
            )),
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

fn validate_names(given: &Value, errors: &mut Errors) {
    let path = SPEC.child("names");
    for field in ["plural", "singular", "kind", "listKind"] {
        if text(given, field).is_empty() {
            errors.push(FieldError::required(&path.child(field), ""));
        }
    }
    for field in ["plural", "singular"] {
        let name = text(given, field);
        let wrong = names::dns1035_label(name);
        if !name.is_empty() && !wrong.is_empty() {
            errors.push(FieldError::invalid_str(
                &path.child(field),
                name,
                wrong.join(","),
            ));
        }
    }
    for field in ["kind", "listKind"] {
        let name = text(given, field);
        let wrong = names::dns1035_label(&name.to_lowercase());
        if !name.is_empty() && !wrong.is_empty() {
            errors.push(FieldError::invalid_str(
                &path.child(field),
                name,
                format!(
                    "may have mixed case, but should otherwise match: {}",
                    wrong.join(",")
                ),
            ));
        }
    }
    validate_label_list(&path, given, "shortNames", errors);
    let (kind, list) = (text(given, "kind"), text(given, "listKind"));
    if !kind.is_empty() && kind == list {
        errors.push(FieldError::invalid_str(
            &path.child("listKind"),
            list,
            "kind and listKind may not be the same",
        ));
    }
    validate_label_list(&path, given, "categories", errors);
}

fn validate_label_list(path: &Path<'_>, given: &Value, field: &str, errors: &mut Errors) {
    let path = path.child(field);
    for (index, name) in items(given, field).enumerate() {
        let name = name.as_str().unwrap_or_default();
        let wrong = names::dns1035_label(name);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid_str(
                &path.index(index),
                name,
                wrong.join(","),
            ));
        }
    }
}

fn validate_conversion(spec: &Value, errors: &mut Errors) {
    let conversion = spec.get("conversion").unwrap_or(&Value::Null);
    let path = SPEC.child("conversion");
    match text(conversion, "strategy") {
        "" => errors.push(FieldError::required(&path.child("strategy"), "")),
        "None" => {
            if present(conversion, "webhook").is_some() {
                errors.push(FieldError::forbidden(
                    &path.child("webhookClientConfig"),
                    "should not be set when strategy is not set to Webhook",
                ));
            }
        }
        "Webhook" => {
            if conversion.pointer("/webhook/clientConfig").is_none() {
                errors.push(FieldError::required(
                    &path.child("webhookClientConfig"),
                    "required when strategy is set to Webhook",
                ));
            }
        }
        other => errors.push(FieldError::not_supported(
            &path.child("strategy"),
            &other.into(),
            &["None", "Webhook"],
        )),
    }
}

fn validate_stored_versions(definition: &Value, errors: &mut Errors) {
    let path = STATUS.child("storedVersions");
    let status = definition.get("status").unwrap_or(&Value::Null);
    if present(status, "storedVersions").is_none() {
        errors.push(FieldError::invalid(
            &path,
            &json!([]),
            "must have at least one stored version",
        ));
        return;
    }
    for (index, stored) in items(status, "storedVersions").enumerate() {
        let name = stored.as_str().unwrap_or_default();
        if !versions(definition).any(|version| text(version, "name") == name) {
            errors.push(FieldError::invalid_str(
                &path.index(index),
                name,
                format!(
                    "missing from spec.versions; {name} was previously a storage version, and \
                     must remain in spec.versions until a storage migration ensures no data \
                     remains persisted in {name} and removes {name} from status.storedVersions"
                ),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> Value {
        json!({
            "metadata": {"name": "as.x.io"},
            "spec": {
                "group": "x.io",
                "scope": "Namespaced",
                "names": {"plural": "as", "kind": "A"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }],
            },
        })
    }

    fn complaints(change: impl FnOnce(&mut Value)) -> Vec<String> {
        let mut definition = definition();
        change(&mut definition);
        default(&mut definition);
        prepare_create(&mut definition);
        let mut errors = Errors::new();
        validate(&definition, &mut errors);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_are_filled_in() {
        let mut definition = definition();
        default(&mut definition);
        assert_eq!(
            definition["spec"]["names"],
            json!({"plural": "as", "kind": "A", "singular": "a", "listKind": "AList"})
        );
        assert_eq!(
            definition["spec"]["conversion"],
            json!({"strategy": "None"})
        );
        prepare_create(&mut definition);
        assert_eq!(definition["status"]["storedVersions"], json!(["v1"]));
    }

    #[test]
    fn complains() {
        assert_eq!(complaints(|_| {}), Vec::<String>::new());
        let check = |pointer: &str, value: Value, expected: &str| {
            let found = complaints(|d| *d.pointer_mut(pointer).unwrap() = value);
            assert!(found.iter().any(|f| f == expected), "{found:#?}");
        };
        check(
            "/metadata/name",
            json!("bs.x.io"),
            "metadata.name: Invalid value: \"bs.x.io\": must be spec.names.plural+\".\"+spec.group",
        );
        check(
            "/spec/group",
            json!("x"),
            "spec.group: Invalid value: \"x\": should be a domain with at least one dot",
        );
        check(
            "/spec/scope",
            json!("World"),
            "spec.scope: Unsupported value: \"World\": supported values: \"Cluster\", \
             \"Namespaced\"",
        );
        check(
            "/spec/versions/0/schema",
            json!({}),
            "spec.versions[0].schema.openAPIV3Schema: Required value",
        );
        let found = complaints(|d| d["spec"]["versions"][0]["storage"] = json!(false));
        assert!(found[0].contains("must have exactly one version marked as storage version"));
    }

    #[test]
    fn a_new_storage_version_is_remembered() {
        let mut old = definition();
        default(&mut old);
        prepare_create(&mut old);
        let mut new = old.clone();
        new["spec"]["versions"][0]["storage"] = json!(false);
        let mut second = new["spec"]["versions"][0].clone();
        second["name"] = json!("v2");
        second["storage"] = json!(true);
        new["spec"]["versions"].as_array_mut().unwrap().push(second);
        prepare_update(&mut new, &old);
        assert_eq!(new["status"]["storedVersions"], json!(["v1", "v2"]));
        new["spec"]["versions"].as_array_mut().unwrap().remove(0);
        let mut errors = Errors::new();
        validate(&new, &mut errors);
        assert!(
            errors
                .aggregate()
                .contains("missing from spec.versions; v1 was previously")
        );
    }
}
