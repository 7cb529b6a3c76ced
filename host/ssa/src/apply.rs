//! Server-side apply.

use serde_json::{Value, json};

use crate::conflict::Conflicts;
use crate::last_applied;
use crate::managed::{ManagedFields, ManagedFieldsError, ManagerId, Owned, keep_times};
use crate::ownership::{Failure, Scope, Version};
use crate::schema::Schema;
use crate::set::FieldSet;
use crate::typed::{Duplicates, TypeErrors, validate};
use crate::value;

/// The manager of what an object had before anything was tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// An apply request.
///
/// What belongs to other parts of a server is not done here: decoding,
/// defaulting, admission, validation, `generation`, `resourceVersion`. A
/// server calls this first and does those to the answer.
#[derive(Clone, Copy, Debug)]
pub struct Apply<'a> {
    /// The type of both objects.
    pub schema: &'a Schema,
    /// Other versions of the same resource; empty for built-in kinds.
    pub versions: &'a [Version<'a>],
    /// The object as it is stored, in the version of `config`; none when it
    /// is to be created.
    pub live: Option<&'a Value>,
    /// The body of the request.
    pub config: &'a Value,
    /// `fieldManager`.
    pub manager: &'a str,
    /// Whether to take fields that others own.
    pub force: bool,
    /// The subresource that the request goes to; empty for the object itself.
    pub subresource: &'a str,
    /// The time of the request, RFC 3339 to the second, in UTC.
    pub now: &'a str,
    /// Fields that this request cannot set, such as `status` when it goes to
    /// an object that has the subresource. Nobody comes to own them by it.
    pub reset: &'a FieldSet,
}

/// The answer to an apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The object with its new `managedFields`.
    pub object: Value,
    /// Whether it differs from what is stored, in anything.
    pub changed: bool,
}

/// Why nothing was applied. Each prints as the server's message.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Others own fields that would change (409, reason `Conflict`).
    #[error(transparent)]
    Conflict(Conflicts),
    /// The config has managed fields of its own (400, `BadRequest`).
    #[error("metadata.managedFields must be nil")]
    ManagedFieldsInConfig,
    /// The config does not fit its type (500, no reason).
    #[error("failed to create typed patch object ({object}): {errors}")]
    Config {
        /// Namespace, name and kind, as the server prints them.
        object: String,
        /// What does not fit.
        errors: TypeErrors,
    },
    /// The stored object does not fit its type (500, no reason).
    #[error("failed to create typed live object ({object}): {errors}")]
    Live {
        /// Namespace, name and kind, as the server prints them.
        object: String,
        /// What does not fit.
        errors: TypeErrors,
    },
    /// The same, when nobody tracked the stored object so far (500, no
    /// reason).
    #[error(
        "failed to create manager for existing fields: \
         failed to convert new object ({object}) to smd typed: {errors}"
    )]
    Untracked {
        /// Namespace, name and kind, as the server prints them.
        object: String,
        /// What does not fit.
        errors: TypeErrors,
    },
    /// The two cannot be merged (500, no reason).
    #[error("failed to merge config: {0}")]
    Merge(TypeErrors),
    /// The stored managed fields are malformed (500, no reason).
    #[error("failed to decode managed fields: {0}")]
    ManagedFields(#[from] ManagedFieldsError),
}

/// Applies a config to an object, or creates the object from it.
///
/// Everything in the config becomes owned by the manager. What it owned before
/// and leaves out now is given up, and removed when nobody else owns it.
/// Fields that others own are shared when the value is the same, and conflict
/// when it is not.
pub fn apply(request: Apply<'_>) -> Result<Applied, ApplyError> {
    let Apply { schema, config, .. } = request;
    let mut live = match request.live {
        Some(live) => live.clone(),
        None => json!({ "apiVersion": config["apiVersion"], "kind": config["kind"] }),
    };
    let mut managers = ManagedFields::of(&live)?;
    ManagedFields::default().write_to(&mut live);
    schema.normalize(&mut live);
    let live_fits = validate(schema, &live, Duplicates::Allowed);

    let scope = Scope {
        schema,
        versions: request.versions,
        api_version: config["apiVersion"].as_str().unwrap_or_default(),
        reset: request.reset,
    };
    if managers.is_empty() {
        live_fits.clone().map_err(|errors| ApplyError::Untracked {
            object: describe(&live),
            errors,
        })?;
        track_existing(&scope, &live, &mut managers, &request);
    }
    if config
        .pointer("/metadata/managedFields")
        .is_some_and(|entries| !entries.is_null())
    {
        return Err(ApplyError::ManagedFieldsInConfig);
    }
    validate(schema, config, Duplicates::Refused).map_err(|errors| ApplyError::Config {
        object: describe(config),
        errors,
    })?;
    live_fits.map_err(|errors| ApplyError::Live {
        object: describe(&live),
        errors,
    })?;

    let id = ManagerId::apply(request.manager, request.subresource);
    let attempt = |force| {
        let mut owners = managers.clone();
        let object = scope.apply(&live, config, &mut owners, &id, force)?;
        Ok((object, owners))
    };
    let mut applied = attempt(request.force);
    if let Err(Failure::Conflict(conflicts)) = &applied
        && last_applied::manages(request.manager)
        && let Some(allowed) = last_applied::unchanged_fields(schema, &live, scope.api_version)
    {
        applied = match conflicts.outside(&allowed) {
            Some(left) => Err(Failure::Conflict(left)),
            None => attempt(true),
        };
    }
    let (mut object, mut owners) = applied.map_err(|failure| match failure {
        Failure::Conflict(conflicts) => ApplyError::Conflict(conflicts),
        Failure::Type(errors) => ApplyError::Merge(errors),
    })?;

    // An apply that changes no value is not a change of its entry's time,
    // even when it comes to share ownership.
    if !value::equal(&live, &object)
        && let Some(owned) = owners.0.get_mut(&id)
    {
        owned.time = Some(request.now.to_owned());
    }
    if last_applied::manages(request.manager) {
        last_applied::refresh(&mut object, config);
    }
    schema.normalize(&mut object);
    owners.write_to(&mut object);
    let changed = match request.live {
        Some(live) => {
            keep_times(live, &mut object);
            !value::equal(live, &object)
        }
        None => true,
    };
    Ok(Applied { object, changed })
}

/// An object that nobody tracked so far: all it has is owned by one manager.
fn track_existing(
    scope: &Scope<'_>,
    live: &Value,
    managers: &mut ManagedFields,
    request: &Apply<'_>,
) {
    let mut nothing = json!({ "apiVersion": live["apiVersion"], "kind": live["kind"] });
    scope.schema.normalize(&mut nothing);
    if let Ok(Some(set)) = scope.update(&nothing, live, managers) {
        managers.0.insert(
            ManagerId::update(BEFORE_FIRST_APPLY, scope.api_version, request.subresource),
            Owned {
                set,
                api_version: scope.api_version.to_owned(),
                time: Some(request.now.to_owned()),
            },
        );
    }
}

/// `namespace/name; group/version, Kind=kind`.
fn describe(object: &Value) -> String {
    let text = |pointer| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or("")
    };
    let api_version = text("/apiVersion");
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!(
        "{}/{}; {slash}{api_version}, Kind={}",
        text("/metadata/namespace"),
        text("/metadata/name"),
        text("/kind")
    )
}
