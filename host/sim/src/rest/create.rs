//! Create.

use http::StatusCode;

use super::write::Proposal;
use super::{Call, bind, evict, meta};
use crate::decode::Decoded;
use crate::field::Errors;
use crate::http::response::{self, Answer};
use crate::status::ApiError;
use crate::typed::TOKEN_REQUEST;
use crate::{reviews, tokens};

/// Stores the object in the body, or answers the question that it is.
pub(super) fn create(call: &Call) -> Result<Answer, ApiError> {
    let resource = &call.resource;
    call.query.check_write("CreateOptions", Errors::new())?;
    match call.subresource() {
        None if resource.group.is_empty() && resource.plural == "bindings" => {
            return bind::bind(call);
        }
        None if !resource.is_stored() => return reviews::review(call),
        None => {}
        Some("token") if resource.plural == "serviceaccounts" => {
            let answer = tokens::request(call, call.read_as(TOKEN_REQUEST)?)?;
            return Ok(response::encoded(
                StatusCode::CREATED,
                call.accepted.encoding,
                &answer,
            ));
        }
        Some("binding") if resource.plural == "pods" => return bind::bind(call),
        Some("eviction") if resource.plural == "pods" => return evict::evict(call),
        Some(_) => return Err(ApiError::method_not_allowed()),
    }
    if call.path.name.is_some() {
        return Err(ApiError::method_not_allowed());
    }
    let Decoded {
        mut object,
        complaints,
        hollow,
        blank,
        ..
    } = call.read()?;
    if resource.namespaced && call.namespace().is_empty() {
        return Err(ApiError::method_not_allowed());
    }
    meta::of_mut(&mut object);
    let proposal = Proposal {
        object,
        owned: false,
        complaints,
        hollow,
        blank,
        ..Proposal::default()
    };
    let written = call.writer()?.create(call.namespace(), proposal)?;
    call.answer(StatusCode::CREATED, written.object)
}
