//! Ownership of fields: what `managedFields` say after a write.

use std::sync::Arc;

use reeve_ssa::{Apply, ApplyError, Conversion, FieldSet, Update, Version};
use serde_json::Value;

use super::Writer;
use crate::conversion;
use crate::resource::{Nature, Resource};
use crate::status::ApiError;

/// The object with its ownership after a create, an update or a patch.
pub(super) fn update(
    writer: &Writer<'_>,
    live: Option<&Value>,
    object: Value,
) -> Result<Value, ApiError> {
    let resource = writer.resource;
    let siblings = writer.server.registry.siblings(resource);
    let asked = conversion::asked(resource).filter(|_| writer.user.is_some());
    let versions = versions(
        resource,
        &siblings,
        asked.as_ref().map(|ask| ask as &Ask<'_>),
    );
    let subresource = writer.part.subresource().unwrap_or_default();
    let compared = live.and_then(|live| resource.as_compared(live));
    Ok(reeve_ssa::update(Update {
        schema: resource.schema(),
        versions: &versions,
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
    let asked = conversion::asked(resource).filter(|_| writer.user.is_some());
    let versions = versions(
        resource,
        &siblings,
        asked.as_ref().map(|ask| ask as &Ask<'_>),
    );
    let subresource = writer.part.subresource().unwrap_or_default();
    let applied = reeve_ssa::apply(Apply {
        schema: resource.schema(),
        versions: &versions,
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

/// Who is asked for an object in another version.
type Ask<'a> = dyn Fn(&Value, &str) -> Result<Value, String> + Sync + 'a;

/// The versions of a resource that others may own fields in. Where a webhook makes the one of
/// the other and is not to be `asked`, the change is looked at as it is: the server itself
/// changes nothing that has another name there.
fn versions<'a>(
    of: &'a Resource,
    siblings: &'a [Arc<Resource>],
    asked: Option<&'a Ask<'a>>,
) -> Vec<Version<'a>> {
    let is_as_it_is = of.has_converter() && asked.is_none();
    siblings
        .iter()
        .map(|resource| Version {
            api_version: &resource.api_version,
            schema: if is_as_it_is {
                of.schema()
            } else {
                resource.schema()
            },
            conversion: match asked {
                Some(ask) => Some(Conversion::Asked(ask)),
                None => conversion::between(of, resource),
            },
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
