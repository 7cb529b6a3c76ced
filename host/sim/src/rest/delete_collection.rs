//! Delete collection: everything that a list would show.

use http::StatusCode;

use super::options::{DeleteOptions, ListOptions};
use super::{Call, list};
use crate::http::response::{self, Answer};
use crate::status::ApiError;

/// Deletes the selected objects and answers with the list of them.
pub(super) fn delete_collection(call: &Call) -> Result<Answer, ApiError> {
    let options = DeleteOptions::parse(call)?;
    let listed = list::select(call, &ListOptions::parse(&call.query, false)?)?;
    let writer = call.writer()?;
    for object in &listed.objects {
        match writer.delete(object.key(), &options) {
            // Somebody else deleted it meanwhile: that is what was wanted.
            Err(error) if error.code() == 404 => {}
            other => {
                other?;
            }
        }
    }
    let value = call.rendering().list(&listed);
    Ok(response::encoded(
        StatusCode::OK,
        call.accepted.encoding,
        &value,
    ))
}
