//! What a webhook made of an object: one of the same type, in a form that can be read, or a
//! refusal in the words of the real server.

use serde_json::Value;

use super::super::policy::Request;
use super::super::policy::matching::Equivalent;
use crate::decode;
use crate::field::{Errors, FieldError, Path};
use crate::kinds;
use crate::kinds::edit::{set, text};
use crate::status::{About, ApiError};
use crate::typed::Typed;

/// Where the types of kube-apiserver are registered, as its messages name the place.
pub(super) const SCHEME: &str = "pkg/runtime/scheme.go:111";

/// Holds what was made of an object to the type that the webhook saw it as.
///
/// # Errors
///
/// When it is of another type, or cannot be read as an object of this one.
pub(super) fn check(
    request: &Request<'_>,
    seen: &Equivalent<'_>,
    made: &mut Value,
) -> Result<(), ApiError> {
    let typed = seen.typed();
    if request.sent.is_none() && request.resource.is_custom() {
        check_custom(request, typed, made)?;
        return check_metadata(request, made);
    }
    // What is left out is that of the request.
    for (field, wanted) in [("apiVersion", typed.api_version), ("kind", typed.kind)] {
        if text(made, field).is_empty() {
            set(made, field, wanted);
        }
    }
    let (api_version, kind) = (text(made, "apiVersion"), text(made, "kind"));
    if (api_version, kind) == (typed.api_version, typed.kind) {
        return Ok(());
    }
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    Err(match kinds::by_kind(group, version, kind) {
        None => ApiError::internal_error(&format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme {SCHEME:?}"
        )),
        Some(_) => ApiError::internal(format!(
            "converting ({version}.{kind}) to ({}.{}): unknown conversion",
            package(typed.group),
            typed.kind
        )),
    })
}

/// The Go package of the internal types of a group.
fn package(group: &str) -> &str {
    match group.split('.').next().unwrap_or_default() {
        "" | "events" => "core",
        first => first,
    }
}

fn check_custom(request: &Request<'_>, typed: Typed<'_>, made: &Value) -> Result<(), ApiError> {
    let (api_version, kind) = (text(made, "apiVersion"), text(made, "kind"));
    if kind.is_empty() {
        return Err(ApiError::internal_error(&format!(
            "Object 'Kind' is missing in '{made}'"
        )));
    }
    if api_version != typed.api_version {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        return Err(ApiError::internal(if group == typed.group {
            format!("request to convert CR from an invalid group/version: {api_version}")
        } else {
            format!(
                "{group}/{version}, Kind={kind} is unstructured and is not suitable for converting to {:?}",
                typed.api_version
            )
        }));
    }
    if kind != typed.kind {
        let why = format!("must be {}", typed.kind);
        let mut errors = Errors::new();
        errors.push(FieldError::invalid_str(&Path::new("kind"), kind, why));
        let about = About {
            group: typed.group,
            resource: kind,
            name: request.name(),
        };
        return Err(ApiError::invalid(about, &errors));
    }
    Ok(())
}

/// Looks whether there is metadata, and drops what of it cannot be read, and what it has no
/// field for: nobody would get that again.
fn check_metadata(request: &Request<'_>, made: &mut Value) -> Result<(), ApiError> {
    let is_map = made.get("metadata").map(Value::is_object);
    if request.old.is_some() && is_map != Some(true) {
        let path = Path::new("metadata");
        let path = path.child("resourceVersion");
        let mut errors = Errors::new();
        let why = "must be specified for an update";
        errors.push(FieldError::invalid(&path, &0.into(), why));
        let about = request.resource.about(request.name());
        return Err(ApiError::invalid(about, &errors));
    }
    if is_map == Some(false) {
        let why = "system metadata was not initialized";
        return Err(ApiError::internal_error(why));
    }
    if let Some(metadata) = made.get_mut("metadata") {
        if let Value::Object(fields) = metadata {
            decode::drop_malformed_metadata(fields);
        }
        decode::prune_metadata(metadata, "metadata");
    }
    Ok(())
}
