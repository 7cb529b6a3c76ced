//! Validation of `metadata`, which is the same for all kinds, custom resources
//! included.

use serde_json::Value;

use super::edit::{entries, items, present, text};
use crate::field::{Errors, FieldError, Path, Repeated};
use crate::names::{self, Validator};

/// What differs between kinds.
#[derive(Debug, Clone, Copy)]
pub struct ObjectMetaRules {
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The rule of names.
    pub name: Validator,
}

/// All annotations of an object together may have this many bytes.
const ANNOTATIONS_MAX: usize = 256 * 1024;
const FIELD_MANAGER_MAX: usize = 128;
const METADATA: Path<'static> = Path::new("metadata");
pub(super) const IMMUTABLE: &str = "field is immutable";

/// Says what is wrong with the metadata of an object, its name made already.
pub fn validate_meta(object: &Value, rules: &ObjectMetaRules, errors: &mut Errors) {
    let meta = object.get("metadata").unwrap_or(&Value::Null);
    let prefix = text(meta, "generateName");
    if !prefix.is_empty() {
        let path = METADATA.child("generateName");
        for wrong in names::prefix_of(rules.name, prefix) {
            errors.push(FieldError::invalid_str(&path, prefix, wrong));
        }
    }
    let name = text(meta, "name");
    let path = METADATA.child("name");
    if name.is_empty() {
        errors.push(FieldError::required(
            &path,
            "name or generateName is required",
        ));
    } else {
        for wrong in (rules.name)(name) {
            errors.push(FieldError::invalid_str(&path, name, wrong));
        }
    }
    let namespace = text(meta, "namespace");
    let path = METADATA.child("namespace");
    if !rules.namespaced {
        if !namespace.is_empty() {
            errors.push(FieldError::forbidden(&path, "not allowed on this type"));
        }
    } else if namespace.is_empty() {
        errors.push(FieldError::required(&path, ""));
    } else {
        for wrong in names::dns1123_label(namespace) {
            errors.push(FieldError::invalid_str(&path, namespace, wrong));
        }
    }
    let generation = meta.get("generation").and_then(Value::as_i64);
    if let Some(generation) = generation.filter(|generation| *generation < 0) {
        errors.push(FieldError::invalid(
            &METADATA.child("generation"),
            &generation.into(),
            "must be greater than or equal to 0",
        ));
    }
    validate_labels(meta, &METADATA.child("labels"), "labels", errors);
    validate_annotations(meta, &METADATA.child("annotations"), errors);
    validate_owners(meta, errors);
    validate_finalizers(meta, errors);
    validate_managed_fields(meta, errors);
}

/// Says what is wrong with a change of metadata.
pub fn validate_meta_update(object: &Value, old: &Value, errors: &mut Errors) {
    let meta = object.get("metadata").unwrap_or(&Value::Null);
    let old = old.get("metadata").unwrap_or(&Value::Null);
    if present(old, "deletionTimestamp").is_some() {
        no_new_finalizers(meta, old, errors);
    }
    if text(meta, "resourceVersion").is_empty() {
        errors.push(FieldError::invalid_str(
            &METADATA.child("resourceVersion"),
            "",
            "must be specified for an update",
        ));
    }
    let generation = |meta: &Value| meta.get("generation").and_then(Value::as_i64).unwrap_or(0);
    if generation(meta) < generation(old) {
        errors.push(FieldError::invalid(
            &METADATA.child("generation"),
            &generation(meta).into(),
            "must not be decremented",
        ));
    }
    for field in ["name", "namespace", "uid"] {
        if text(meta, field) != text(old, field) {
            errors.push(FieldError::invalid_str(
                &METADATA.child(field),
                text(meta, field),
                IMMUTABLE,
            ));
        }
    }
    for field in [
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        if present(meta, field) != present(old, field) {
            errors.push(FieldError::invalid(
                &METADATA.child(field),
                meta.get(field).unwrap_or(&Value::Null),
                IMMUTABLE,
            ));
        }
    }
    validate_labels(meta, &METADATA.child("labels"), "labels", errors);
    validate_annotations(meta, &METADATA.child("annotations"), errors);
    validate_owners(meta, errors);
    validate_managed_fields(meta, errors);
}

/// Says what is wrong with the map of labels in `field` of `value`.
pub(crate) fn validate_labels(value: &Value, path: &Path<'_>, field: &str, errors: &mut Errors) {
    for (key, value) in entries(value, field) {
        for wrong in names::qualified_name(key) {
            errors.push(FieldError::invalid_str(path, key, wrong));
        }
        let value = value.as_str().unwrap_or_default();
        for wrong in names::label_value(value) {
            errors.push(FieldError::invalid_str(path, value, wrong));
        }
    }
}

/// Says what is wrong with the annotations of `meta`.
pub(crate) fn validate_annotations(meta: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut size = 0;
    for (key, value) in entries(meta, "annotations") {
        // Unlike labels, the case of the prefix does not matter.
        for wrong in names::qualified_name(&key.to_lowercase()) {
            errors.push(FieldError::invalid_str(path, key, wrong));
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_MAX {
        errors.push(FieldError::too_long(path, ANNOTATIONS_MAX));
    }
}

fn validate_owners(meta: &Value, errors: &mut Errors) {
    let path = METADATA.child("ownerReferences");
    let mut controller: Option<String> = None;
    let owners = meta.get("ownerReferences").unwrap_or(&Value::Null);
    let mut several = Repeated::of(path, owners);
    for owner in items(meta, "ownerReferences") {
        let api_version = text(owner, "apiVersion");
        let version = api_version
            .rsplit_once('/')
            .map_or(api_version, |(_, version)| version);
        let kind = text(owner, "kind");
        let name = text(owner, "name");
        // More than a group and a version is neither.
        if version.is_empty() || api_version.matches('/').count() > 1 {
            errors.push(FieldError::invalid_str(
                &path.child("apiVersion"),
                api_version,
                "version must not be empty",
            ));
        }
        for field in ["kind", "name", "uid"] {
            if text(owner, field).is_empty() {
                errors.push(FieldError::invalid_str(
                    &path.child(field),
                    "",
                    "must not be empty",
                ));
            }
        }
        if api_version == "v1" && kind == "Event" {
            errors.push(FieldError::invalid(
                &path,
                owner,
                "/v1, Kind=Event is disallowed from being an owner",
            ));
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            let this = format!("{kind}/{name}");
            match &controller {
                Some(first) => several.push(
                    format!(
                        "Only one reference can have Controller set to true. Found \"true\" in \
                         references for {first} and {this}"
                    ),
                    errors,
                ),
                None => controller = Some(this),
            }
        }
    }
}

fn validate_finalizers(meta: &Value, errors: &mut Errors) {
    let path = METADATA.child("finalizers");
    let has = |name: &str| items(meta, "finalizers").any(|f| f.as_str() == Some(name));
    for finalizer in items(meta, "finalizers").filter_map(Value::as_str) {
        for wrong in names::qualified_name(finalizer) {
            errors.push(FieldError::invalid_str(&path, finalizer, wrong));
        }
    }
    if has("orphan") && has("foregroundDeletion") {
        errors.push(FieldError::invalid(
            &path,
            meta.get("finalizers").unwrap_or(&Value::Null),
            "finalizer orphan and foregroundDeletion cannot be both set",
        ));
    }
}

/// Says which finalizers are named by nobody: built-in kinds are stricter there.
pub(super) fn validate_kube_finalizers(object: &Value, errors: &mut Errors) {
    let meta = object.get("metadata").unwrap_or(&Value::Null);
    let path = METADATA.child("finalizers");
    for (index, finalizer) in items(meta, "finalizers").enumerate() {
        let finalizer = finalizer.as_str().unwrap_or_default();
        if !names::is_known_finalizer(finalizer) {
            errors.push(FieldError::invalid_str(
                &path.index(index),
                finalizer,
                "name is neither a standard finalizer name nor is it fully qualified",
            ));
        }
    }
}

fn no_new_finalizers(meta: &Value, old: &Value, errors: &mut Errors) {
    let known = |name: &str| items(old, "finalizers").any(|f| f.as_str() == Some(name));
    let mut new: Vec<&str> = items(meta, "finalizers")
        .filter_map(Value::as_str)
        .filter(|name| !known(name))
        .collect();
    new.sort_unstable();
    new.dedup();
    if !new.is_empty() {
        let quoted: Vec<String> = new.iter().map(|name| crate::field::quoted(name)).collect();
        errors.push(FieldError::forbidden(
            &METADATA.child("finalizers"),
            format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{{{}}}",
                quoted.join(", ")
            ),
        ));
    }
}

fn validate_managed_fields(meta: &Value, errors: &mut Errors) {
    let path = METADATA.child("managedFields");
    for (index, entry) in items(meta, "managedFields").enumerate() {
        let path = path.index(index);
        let operation = text(entry, "operation");
        if !matches!(operation, "Apply" | "Update") {
            errors.push(FieldError::invalid_str(
                &path.child("operation"),
                operation,
                "must be `Apply` or `Update`",
            ));
        }
        let kind = text(entry, "fieldsType");
        if !matches!(kind, "" | "FieldsV1") {
            errors.push(FieldError::invalid_str(
                &path.child("fieldsType"),
                kind,
                "must be `FieldsV1`",
            ));
        }
        if text(entry, "manager").len() > FIELD_MANAGER_MAX {
            errors.push(FieldError::too_long(
                &path.child("manager"),
                FIELD_MANAGER_MAX,
            ));
        }
    }
}

/// Pushes the error of a field that cannot change, if it did. Absent and empty
/// are the same.
pub(super) fn validate_immutable(
    path: &Path<'_>,
    object: &Value,
    old: &Value,
    field: &str,
    errors: &mut Errors,
) {
    validate_immutable_or(path, object, old, field, &Value::Null, errors);
}

/// As [`validate_immutable`], of a field that shows as `zero` where it is left out: in Go,
/// that of a text is an empty one.
pub(super) fn validate_immutable_or(
    path: &Path<'_>,
    object: &Value,
    old: &Value,
    field: &str,
    zero: &Value,
    errors: &mut Errors,
) {
    if present(object, field) != present(old, field) {
        let value = object.get(field).unwrap_or(zero);
        errors.push(FieldError::invalid(path, value, IMMUTABLE));
    }
}

/// Pushes an error unless the integer in `field` is absent or not negative.
pub(super) fn validate_nonnegative(
    path: &Path<'_>,
    object: &Value,
    field: &str,
    errors: &mut Errors,
) {
    if let Some(number) = object.get(field).and_then(Value::as_i64)
        && number < 0
    {
        errors.push(FieldError::invalid(
            &path.child(field),
            &number.into(),
            "must be greater than or equal to 0",
        ));
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "cases read better as values")]
mod tests {
    use serde_json::json;

    use super::*;

    const RULES: ObjectMetaRules = ObjectMetaRules {
        namespaced: true,
        name: names::dns1123_subdomain,
    };

    fn created(meta: Value) -> Vec<String> {
        let mut errors = Errors::new();
        validate_meta(&json!({ "metadata": meta }), &RULES, &mut errors);
        errors.iter().map(ToString::to_string).collect()
    }

    fn updated(meta: Value, old: Value) -> Vec<String> {
        let mut errors = Errors::new();
        validate_meta_update(
            &json!({ "metadata": meta }),
            &json!({ "metadata": old }),
            &mut errors,
        );
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_and_namespaces() {
        assert!(created(json!({"name": "a", "namespace": "n"})).is_empty());
        assert_eq!(
            created(json!({})),
            [
                "metadata.name: Required value: name or generateName is required",
                "metadata.namespace: Required value",
            ]
        );
        let mut errors = Errors::new();
        let rules = ObjectMetaRules {
            namespaced: false,
            ..RULES
        };
        let object = json!({"metadata": {"name": "a", "namespace": "n"}});
        validate_meta(&object, &rules, &mut errors);
        assert_eq!(
            errors.aggregate(),
            "metadata.namespace: Forbidden: not allowed on this type"
        );
    }

    #[test]
    fn annotations_are_bounded() {
        let meta =
            |size| json!({"name": "a", "namespace": "n", "annotations": {"a": "x".repeat(size)}});
        assert!(created(meta(ANNOTATIONS_MAX - 1)).is_empty());
        assert_eq!(
            created(meta(ANNOTATIONS_MAX)),
            ["metadata.annotations: Too long: may not be more than 262144 bytes"]
        );
    }

    #[test]
    fn owners() {
        let meta = |owners| json!({"name": "a", "namespace": "n", "ownerReferences": owners});
        assert!(
            created(meta(
                json!([{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u"}])
            ))
            .is_empty()
        );
        assert_eq!(
            created(meta(
                json!([{"apiVersion": "v1", "kind": "A", "name": "a"}])
            )),
            ["metadata.ownerReferences.uid: Invalid value: \"\": must not be empty"]
        );
        let two = created(meta(json!([
            {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u", "controller": true},
            {"apiVersion": "v1", "kind": "B", "name": "b", "uid": "v", "controller": true},
        ])));
        assert_eq!(two.len(), 1);
        assert!(two[0].ends_with("Found \"true\" in references for A/a and B/b"));
    }

    #[test]
    fn changes() {
        let old = json!({"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1"});
        assert!(updated(old.clone(), old.clone()).is_empty());
        assert_eq!(
            updated(
                json!({"name": "a", "namespace": "n", "uid": "v", "resourceVersion": "1"}),
                old.clone()
            ),
            ["metadata.uid: Invalid value: \"v\": field is immutable"]
        );
        assert_eq!(
            updated(json!({"name": "a", "namespace": "n", "uid": "u"}), old),
            ["metadata.resourceVersion: Invalid value: \"\": must be specified for an update"]
        );
        let dying = json!({"name": "a", "uid": "u", "resourceVersion": "1", "finalizers": ["a/b"],
            "deletionTimestamp": "2026-01-01T00:00:00Z"});
        let mut more = dying.clone();
        more["finalizers"] = json!(["a/b", "a/c"]);
        assert_eq!(
            updated(more, dying),
            [
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is \
                 being deleted, found new finalizers []string{\"a/c\"}"
            ]
        );
    }
}
