//! Ownership of fields: what `managedFields` say after a write.

use std::sync::LazyLock;

use reeve_ssa::{Apply, ApplyError, FieldSet, Path, Update, Version};
use serde_json::Value;

use super::Writer;
use crate::resource::{Nature, Resource};
use crate::status::ApiError;

/// The object with its ownership after a create, an update or a patch.
pub(super) fn update(
    writer: &Writer<'_>,
    live: Option<&Value>,
    object: &Value,
) -> Result<Value, ApiError> {
    let resource = writer.resource;
    let siblings = siblings(writer);
    let subresource = writer.part.subresource().unwrap_or_default();
    Ok(reeve_ssa::update(Update {
        schema: resource.schema(),
        versions: &versions(&siblings),
        live,
        object,
        manager: writer.manager,
        subresource,
        now: &writer.server.clock.timestamp(),
        reset: reset(resource, subresource),
    }))
}

/// The object, with its ownership, that an apply makes.
pub(super) fn apply(
    writer: &Writer<'_>,
    live: Option<&Value>,
    config: &Value,
    force: bool,
) -> Result<Value, ApiError> {
    let resource = writer.resource;
    let siblings = siblings(writer);
    let subresource = writer.part.subresource().unwrap_or_default();
    let applied = reeve_ssa::apply(Apply {
        schema: resource.schema(),
        versions: &versions(&siblings),
        live,
        config,
        manager: writer.manager,
        force,
        subresource,
        now: &writer.server.clock.timestamp(),
        reset: reset(resource, subresource),
    });
    match applied {
        Ok(applied) => Ok(applied.object),
        Err(ApplyError::Conflict(conflicts)) => {
            let causes = match conflicts.causes() {
                Value::Array(causes) => causes,
                _ => Vec::new(),
            };
            Err(ApiError::apply_conflict(conflicts.to_string(), causes))
        }
        Err(error @ ApplyError::ManagedFieldsInConfig) => {
            Err(ApiError::bad_request(error.to_string()))
        }
        Err(error) => Err(ApiError::internal(error.to_string())),
    }
}

/// The other versions of a custom resource, whose owners are understood, too.
fn siblings(writer: &Writer<'_>) -> Vec<std::sync::Arc<Resource>> {
    if !writer.resource.is_custom() {
        return Vec::new();
    }
    let mut all = writer.server.registry.customs();
    all.retain(|r| r.table == writer.resource.table && r.version != writer.resource.version);
    all
}

fn versions(siblings: &[std::sync::Arc<Resource>]) -> Vec<Version<'_>> {
    siblings
        .iter()
        .map(|resource| Version {
            api_version: &resource.api_version,
            schema: resource.schema(),
        })
        .collect()
}

/// The fields that a write cannot own, because it cannot set them.
fn reset(resource: &Resource, subresource: &str) -> &'static FieldSet {
    static NONE: LazyLock<FieldSet> = LazyLock::new(FieldSet::new);
    static STATUS: LazyLock<FieldSet> = LazyLock::new(|| set(&["status"]));
    static SPEC: LazyLock<FieldSet> = LazyLock::new(|| set(&["spec"]));
    static ALL_BUT_STATUS: LazyLock<FieldSet> = LazyLock::new(|| set(&["metadata", "spec"]));
    match &resource.nature {
        Nature::Custom(custom) if !custom.has_status => &NONE,
        Nature::Custom(_) if subresource == "status" => &ALL_BUT_STATUS,
        Nature::Custom(_) if subresource.is_empty() => &STATUS,
        Nature::Custom(_) => &NONE,
        Nature::Builtin(kind) => {
            let named = (!subresource.is_empty()).then_some(subresource);
            match kind.reset_fields(named) {
                ["status"] => &STATUS,
                ["spec"] => &SPEC,
                _ => &NONE,
            }
        }
    }
}

fn set(fields: &[&str]) -> FieldSet {
    let mut set = FieldSet::new();
    for field in fields {
        set.insert(&Path::fields([*field]));
    }
    set
}
