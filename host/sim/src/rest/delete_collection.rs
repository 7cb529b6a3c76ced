//! Delete collection: everything that a list would show.

use http::StatusCode;

use super::delete::deleting;
use super::options::{DeleteOptions, ListOptions, VersionMatch};
use super::{Call, list};
use crate::http::response::{self, Answer};
use crate::status::ApiError;

/// Deletes the selected objects and answers with the list of them.
pub(super) async fn delete_collection(call: &Call) -> Result<Answer, ApiError> {
    let options = DeleteOptions::parse(call)?;
    let mut selected = ListOptions::parse(&call.query, false)?;
    // What is deleted is read in pages, and pages of a version are of that one.
    if selected.matching.is_none() && selected.version.is_some_and(|version| version > 0) {
        selected.matching = Some(VersionMatch::Exact);
    }
    let listed = list::select(call, &selected).await?;
    let writer = deleting(call, &options)?;
    // An empty namespace in the path is a way to list all of them, and none to delete.
    let nowhere = call.resource.namespaced && call.namespace().is_empty();
    if nowhere && !listed.objects.is_empty() {
        return Err(ApiError::bad_request("Namespace parameter required."));
    }
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
