//! Outside documents, answered by the caller's view.

use crate::meter::Breach;
use crate::state::State;
use crate::view::{Document, SourceError};

/// The last good version of a document.
pub(crate) fn read(state: &mut State, name: &str) -> Result<Result<Document, SourceError>, Breach> {
    let Some(view) = &state.view else {
        return Ok(Err(outside()));
    };
    let answer = view.source(name);
    if let Ok(document) = &answer {
        let bytes = document.body.len() + document.media_type.len();
        state.meter.count_host_bytes(bytes)?;
    }
    Ok(answer)
}

/// How old that is.
pub(crate) fn age(state: &State, name: &str) -> Result<u64, SourceError> {
    match &state.view {
        Some(view) => view.source_age(name),
        None => Err(outside()),
    }
}

/// What a plugin is, and what it does outside, must not depend on documents.
fn outside() -> SourceError {
    SourceError::Undeclared(
        "sources can be read in `reconcile` only; pass what an action needs in its `input`"
            .to_owned(),
    )
}
