//! Admission that looks at other objects: the limits of a namespace, service
//! accounts, priorities, default classes, the security of pods; and what policies say of
//! requests.
//!
//! What admission adds whatever else there is, the rows of [`crate::kinds`] say
//! themselves. As in the real server, [`mutate`] comes before an object is checked
//! and [`validate`] after it.

mod account;
mod classes;
mod limits;
pub(crate) mod policy;
mod priority;
mod runtime;
pub(crate) mod security;
pub(crate) mod webhooks;

use serde_json::Value;

use crate::resource::Resource;
use crate::server::Shared;
use crate::status::ApiError;

const PODS: &str = "pods";
const CLAIMS: &str = "persistentvolumeclaims";
const INGRESSES: &str = "ingresses.networking.k8s.io";
const PRIORITY_CLASSES: &str = "priorityclasses.scheduling.k8s.io";

/// Adds to a new object what follows from others.
///
/// # Errors
///
/// When it contradicts what follows, or names what is not there.
pub(crate) fn mutate(
    server: &Shared,
    resource: &Resource,
    object: &mut Value,
) -> Result<(), ApiError> {
    match &*resource.table {
        PODS => {}
        CLAIMS => {
            classes::assign_storage(server, object);
            return Ok(());
        }
        INGRESSES => {
            classes::assign_ingress(server, object);
            return Ok(());
        }
        _ => return Ok(()),
    }
    limits::fill(server, object);
    let mut assigned =
        account::assign(server, object).and_then(|()| priority::assign(server, object));
    if assigned.is_ok() {
        // A class adds to the tolerations that every pod gets.
        resource.admit(object);
        assigned = runtime::assign(server, object);
    }
    assigned.map_err(|why| forbidden(resource, object, &why))
}

/// Refuses an object that others do not allow: a new one, where there is no `old` one.
///
/// # Errors
///
/// When others do not allow it: the first that does not is named.
pub(crate) fn validate(
    server: &Shared,
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    let allowed = match &*resource.table {
        // The containers of a pod do not change.
        PODS if old.is_none() => {
            limits::check_pod(server, object).and_then(|()| runtime::check(server, object))
        }
        CLAIMS => limits::check_claim(server, object)
            .and_then(|()| old.map_or(Ok(()), |old| classes::check_growth(server, object, old))),
        PRIORITY_CLASSES => priority::check_default(server, object, old.is_none()),
        _ => Ok(()),
    };
    allowed.map_err(|why| forbidden(resource, object, &why))
}

/// Asks policies, and after them webhooks, about a request.
///
/// # Errors
///
/// What the first says that does not allow it.
pub(crate) fn ask(request: &policy::Request<'_>, warn: impl Fn(&str)) -> Result<(), ApiError> {
    policy::check(request, &warn)?;
    webhooks::check(request, &warn)
}

/// Has policies, and after them webhooks, change the object of a request, and returns what
/// came of it; none where nobody changed it. `settle` brings what they make into the form
/// that objects have, of policies strictly.
///
/// # Errors
///
/// What the first says that does not allow it, or cannot be carried out.
pub(crate) fn change(
    request: policy::Request<'_>,
    settle: impl Fn(&mut Value, bool) -> Result<(), ApiError>,
    warn: impl Fn(&str),
) -> Result<Option<Value>, ApiError> {
    let by_policies = policy::mutate(&request, |changed| settle(changed, true))?;
    let request = policy::Request {
        object: by_policies.as_ref().or(request.object),
        ..request
    };
    let by_webhooks = webhooks::mutate(&request, |changed| settle(changed, false), warn)?;
    Ok(by_webhooks.or(by_policies))
}

/// Whether somebody outside of the server may be asked about a request: webhooks, or those of
/// definitions, in whose versions policies have their parameters.
pub(crate) fn may_ask(server: &Shared) -> bool {
    webhooks::has_validating(server) || server.asks_webhooks && policy::has_validating(server)
}

/// 500: a patch of an object leaves none, in the words of the real server.
fn no_object(left: &Value) -> ApiError {
    let what = match left {
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Null | Value::Object(_) => "null",
    };
    ApiError::internal_error(&format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {what} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    ))
}

/// Whether there may be policies or webhooks that change requests.
pub(crate) fn may_change(server: &Shared) -> bool {
    policy::has_mutating(server) || webhooks::has_mutating(server)
}

fn forbidden(resource: &Resource, object: &Value, why: &str) -> ApiError {
    let name = crate::rest::meta::text(object, "name");
    ApiError::forbidden(resource.about(name), why)
}
