//! Update: replacing an object.

use http::StatusCode;
use serde_json::Value;

use super::write::Proposal;
use super::{Call, meta, scale};
use crate::field::{Errors, FieldError, Path};
use crate::http::negotiate;
use crate::http::response::{self, Answer};
use crate::status::ApiError;

/// Replaces the object that the path names by the one in the body.
pub(super) fn update(call: &Call) -> Result<Answer, ApiError> {
    let resource = &call.resource;
    if call.subresource() == Some("scale") {
        let body = negotiate::parse_body(&call.headers, &call.body, "Scale")?;
        return scale::update(call, &body);
    }
    let mut object = negotiate::parse_body(&call.headers, &call.body, &resource.kind)?;
    resource.check_type(&mut object)?;
    check_name(&mut object, call.name())?;
    if resource.is_custom() && matches!(meta::text(&object, "resourceVersion"), "" | "0") {
        call.live()?;
        return Err(must_have_version(call));
    }
    let written = call.writer()?.update(&call.key(), |_| {
        Ok(Proposal {
            object: object.clone(),
            owned: false,
        })
    })?;
    let mut answer = call.answer(StatusCode::OK, &written.object);
    response::warn(&mut answer, &written.warnings);
    Ok(answer)
}

/// Refuses an object of another name than the path's; sets it where it is left out.
pub(super) fn check_name(object: &mut Value, name: &str) -> Result<(), ApiError> {
    let given = meta::text(object, "name");
    if given.is_empty() {
        let why = format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        );
        return Err(ApiError::bad_request(why));
    }
    if given != name {
        let why =
            format!("the name of the object ({given}) does not match the name on the URL ({name})");
        return Err(ApiError::bad_request(why));
    }
    Ok(())
}

/// Custom resources are only replaced by who has read them.
fn must_have_version(call: &Call) -> ApiError {
    let mut errors = Errors::new();
    let path = Path::new("metadata");
    errors.push(FieldError::invalid(
        &path.child("resourceVersion"),
        &0.into(),
        "must be specified for an update",
    ));
    ApiError::invalid(call.resource.about(call.name()), &errors)
}
