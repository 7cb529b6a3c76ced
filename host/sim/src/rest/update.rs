//! Update: replacing an object.

use http::StatusCode;
use serde_json::Value;

use super::write::Proposal;
use super::{Call, meta, scale};
use crate::decode::Decoded;
use crate::field::{Errors, FieldError, Path};
use crate::http::response::Answer;
use crate::resource::Resource;
use crate::status::ApiError;
use crate::typed::SCALE;

/// Replaces the object that the path names by the one in the body.
pub(super) fn update(call: &Call) -> Result<Answer, ApiError> {
    let resource = &call.resource;
    call.query.check_write("UpdateOptions", Errors::new())?;
    if call.subresource() == Some("scale") {
        return scale::update(call, &call.read_as(SCALE)?);
    }
    let Decoded {
        mut object,
        complaints,
        hollow,
        blank,
        ..
    } = call.read()?;
    check_name(&mut object, call.name())?;
    let writer = call.writer()?;
    if resource.creates_on_update() && call.subresource().is_none() && call.live().is_err() {
        meta::of_mut(&mut object).remove("resourceVersion");
        let proposal = Proposal {
            object,
            owned: false,
            complaints,
            hollow,
            blank,
            ..Proposal::default()
        };
        let written = writer.create_if(call.namespace(), proposal, || call.may_create())?;
        return call.answer(StatusCode::CREATED, written.object);
    }
    let versioned = check_version(call, &object);
    if resource.is_custom() && (versioned.is_err() || call.live().is_err()) {
        // What is unknown is told also of what cannot be written.
        writer.decode(&mut object.clone(), complaints.clone(), false)?;
    }
    if versioned.is_err() {
        resource.shown_now(call.live()?)?;
    }
    versioned?;
    let written = writer.update(&call.key(), |_| {
        Ok(Proposal {
            object: object.clone(),
            owned: false,
            complaints: complaints.clone(),
            hollow: hollow.clone(),
            blank: blank.clone(),
            ..Proposal::default()
        })
    })?;
    call.answer(StatusCode::OK, written.object)
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

/// Some kinds are only changed by who has read the object: the version of that has to be
/// in it.
pub(super) fn check_version(call: &Call, object: &Value) -> Result<(), ApiError> {
    check_versioned(&call.resource, call.name(), object)
}

/// As [`check_version`], of a resource by name.
pub(super) fn check_versioned(
    resource: &Resource,
    name: &str,
    object: &Value,
) -> Result<(), ApiError> {
    let is_missing = matches!(meta::text(object, "resourceVersion"), "" | "0");
    if !resource.is_conditional() || !is_missing {
        return Ok(());
    }
    let mut errors = Errors::new();
    let path = Path::new("metadata");
    errors.push(FieldError::invalid(
        &path.child("resourceVersion"),
        &0.into(),
        "must be specified for an update",
    ));
    Err(ApiError::invalid(resource.about(name), &errors))
}
