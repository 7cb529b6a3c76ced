//! Update: replacing an object.

use http::StatusCode;
use serde_json::Value;

use super::precondition::Versioned;
use super::write::Proposal;
use super::{Call, meta, scale};
use crate::decode::Decoded;
use crate::field::Errors;
use crate::http::response::Answer;
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
    if resource.is_custom() && call.live().is_err() {
        // What is unknown is told also of what cannot be written.
        writer.decode(&mut object.clone(), complaints.clone(), false)?;
    }
    let written = writer.update(&call.key(), |_| {
        Ok(Proposal {
            object: object.clone(),
            owned: false,
            version: Versioned::ByCaller,
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
