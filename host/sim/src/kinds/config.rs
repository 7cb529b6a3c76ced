//! ConfigMaps, and the rows of the core group's plain data: ConfigMaps, Secrets,
//! ServiceAccounts, quotas and limit ranges.

use serde_json::{Value, json};

use super::edit::{entries, flag, items_mut, present};
use super::row::{Kind, UpdateOrder};
use super::verbs::Subresource;
use super::{limit_range, resource_quota, secret, statuses};
use crate::field::{Errors, FieldError, Path};
use crate::names;
use crate::selector::{FieldLabel, FieldLabels};

const V1: (&str, &str) = ("", "v1");
const STATUS: &[Subresource] = &[Subresource::STATUS];
static SECRET_FIELDS: FieldLabels = FieldLabels::of(&[FieldLabel::text("type", &["/type"])]);

pub(super) const ROWS: &[Kind] = &[
    Kind::namespaced(V1, "ConfigMap", "configmaps")
        .short(&["cm"])
        .validated(validate)
        .update_validated(validate_update)
        .update_order(UpdateOrder::ImmutableFirst),
    Kind::namespaced(V1, "Secret", "secrets")
        .fields(&SECRET_FIELDS)
        .defaulted(secret::default)
        .validated(secret::validate)
        .update_validated(secret::validate_update)
        .update_order(UpdateOrder::ImmutableFirst),
    Kind::namespaced(V1, "ServiceAccount", "serviceaccounts")
        .returned_when_deleted()
        .short(&["sa"])
        .subresources(&[Subresource::of("token", &["create"]).with_body(
            "authentication.k8s.io",
            "v1",
            "TokenRequest",
        )])
        .prepared(clean_secrets, |account, _| clean_secrets(account))
        .update_order(UpdateOrder::WholeObject),
    Kind::namespaced(V1, "ResourceQuota", "resourcequotas")
        .returned_when_deleted()
        .short(&["quota"])
        .subresources(STATUS)
        .status("{}")
        .quantities(&["spec.hard.*", "status.hard.*", "status.used.*"])
        .defaulted(resource_quota::default)
        .validated(resource_quota::validate)
        .update_validated(resource_quota::validate_update)
        .status_validated(statuses::validate_quota),
    Kind::namespaced(V1, "LimitRange", "limitranges")
        .created_on_update()
        .short(&["limits"])
        .atomic_quantities(&[
            "spec.limits[].max.*",
            "spec.limits[].min.*",
            "spec.limits[].default.*",
            "spec.limits[].defaultRequest.*",
            "spec.limits[].maxLimitRequestRatio.*",
        ])
        .defaulted(limit_range::default)
        .validated(limit_range::validate)
        .update_order(UpdateOrder::WholeObject),
];

/// Of the Secrets of a ServiceAccount only the names are kept.
fn clean_secrets(account: &mut Value) {
    for secret in items_mut(account, "secrets") {
        let name = present(secret, "name").cloned();
        *secret = name.map_or_else(|| json!({}), |name| json!({ "name": name }));
    }
}

/// What a ConfigMap or a Secret can hold, in bytes.
pub(super) const DATA_MAX: usize = 1024 * 1024;

fn validate(object: &Value, errors: &mut Errors) {
    let mut size = 0;
    let data = Path::new("data");
    let binary = Path::new("binaryData");
    for (key, value) in entries(object, "data") {
        check_key(&data.key(key), key, errors);
        if object
            .get("binaryData")
            .is_some_and(|other| other.get(key).is_some())
        {
            errors.push(FieldError::invalid_str(
                &data.key(key),
                key,
                "duplicate of key present in binaryData",
            ));
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (key, value) in entries(object, "binaryData") {
        check_key(&binary.key(key), key, errors);
        size += decoded_len(value);
    }
    if size > DATA_MAX {
        errors.push(FieldError::too_long(&Path::new("[]"), DATA_MAX));
    }
}

fn validate_update(object: &Value, old: &Value, errors: &mut Errors) {
    validate_frozen(object, old, &["data", "binaryData"], errors);
}

/// What an object marked immutable may not change.
pub(super) fn validate_frozen(object: &Value, old: &Value, fields: &[&str], errors: &mut Errors) {
    const FROZEN: &str = "field is immutable when `immutable` is set";
    if !flag(old, "immutable") {
        return;
    }
    if !flag(object, "immutable") {
        errors.push(FieldError::forbidden(&Path::new("immutable"), FROZEN));
    }
    for field in fields {
        if present(object, field) != present(old, field) {
            errors.push(FieldError::forbidden(&Path::new(field), FROZEN));
        }
    }
}

pub(super) fn check_key(path: &Path<'_>, key: &str, errors: &mut Errors) {
    for wrong in names::config_key(key) {
        errors.push(FieldError::invalid_str(path, key, wrong));
    }
}

/// How many bytes a base64 text stands for, which was found to be one when it was
/// read.
pub(super) fn decoded_len(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    let filling = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(filling)
}
