//! Ownership of fields: what `managedFields` say after a write.

use std::sync::Arc;

use reeve_ssa::{Apply, ApplyError, FieldSet, Update, Version};
use serde_json::Value;

use super::Writer;
use crate::conversion;
use crate::resource::{Nature, Resource};
use crate::status::ApiError;

/// The object with its ownership after a create, an update or a patch.
pub(super) fn update(
    writer: &Writer<'_>,
    live: Option<&Value>,
    object: &Value,
) -> Result<Value, ApiError> {
    let resource = writer.resource;
    let siblings = writer.server.registry.siblings(resource);
    let subresource = writer.part.subresource().unwrap_or_default();
    let compared = live.and_then(|live| resource.as_compared(live));
    Ok(reeve_ssa::update(Update {
        schema: resource.schema(),
        versions: &versions(resource, &siblings),
        live: compared.as_ref().or(live),
        object,
        manager: writer.manager,
        subresource,
        now: &writer.server.clock.timestamp(),
        reset: &reset(resource, subresource),
    }))
}

/// The object, with its ownership, that an apply makes.
pub(crate) fn apply(
    writer: &Writer<'_>,
    live: Option<&Value>,
    config: &Value,
    force: bool,
) -> Result<Value, ApiError> {
    let resource = writer.resource;
    let siblings = writer.server.registry.siblings(resource);
    let subresource = writer.part.subresource().unwrap_or_default();
    let applied = reeve_ssa::apply(Apply {
        schema: resource.schema(),
        versions: &versions(resource, &siblings),
        live,
        config,
        manager: writer.manager,
        force,
        subresource,
        now: &writer.server.clock.timestamp(),
        reset: &reset(resource, subresource),
    });
    applied.map(|applied| applied.object).map_err(refused)
}

/// Why nothing was applied, as the caller is told.
pub(super) fn refused(error: ApplyError) -> ApiError {
    match error {
        ApplyError::Conflict(conflicts) => {
            let causes = match conflicts.causes() {
                Value::Array(causes) => causes,
                _ => Vec::new(),
            };
            ApiError::apply_conflict(conflicts.to_string(), causes)
        }
        ApplyError::ManagedFieldsInConfig => ApiError::bad_request(error.to_string()),
        _ => ApiError::internal(error.to_string()),
    }
}

/// The versions of a resource that others may own fields in.
fn versions<'a>(of: &Resource, siblings: &'a [Arc<Resource>]) -> Vec<Version<'a>> {
    siblings
        .iter()
        .map(|resource| Version {
            api_version: &resource.api_version,
            schema: resource.schema(),
            conversion: conversion::between(of, resource),
        })
        .collect()
}

/// The fields that a write cannot own, because it cannot set them.
fn reset(resource: &Resource, subresource: &str) -> FieldSet {
    match &resource.nature {
        Nature::Custom(custom) => reeve_ssa::reset::custom(custom.has_status, subresource),
        Nature::Builtin(kind) => reeve_ssa::reset::built_in(kind.group, kind.kind, subresource),
    }
}
