//! Get: one object, or one of its subresources.

use http::StatusCode;

use super::list::wait_for;
use super::options::parse_version;
use super::{Call, connect, scale};
use crate::http::response::Answer;
use crate::status::ApiError;

/// Answers one object. Every read is of the latest version: there is no cache
/// that could be behind. A version that is yet to come is waited for.
pub(super) async fn get(call: &Call) -> Result<Answer, ApiError> {
    if let Some(version) = call.query.get("resourceVersion") {
        let version = parse_version(version).map_err(ApiError::internal)?;
        wait_for(call, version).await?;
    }
    if call.subresource() == Some("log") {
        return connect::log(call);
    }
    let object = call.resource.shown_anew(call.live()?).await?;
    match call.subresource() {
        Some("scale") => scale::answer(call, &object.value_as(&call.resource)),
        _ => call.answer(StatusCode::OK, object),
    }
}
