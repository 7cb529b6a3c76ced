//! Outside documents, answered by the caller's view.

use crate::meter::Breach;
use crate::state::State;
use crate::view::{Document, SourceError};

/// The last good version of a document.
pub(crate) fn read(state: &mut State, name: &str) -> Result<Result<Document, SourceError>, Breach> {
    let Some(view) = &state.view else {
        // What a plugin is must not depend on the outside.
        return Ok(Err(SourceError::Undeclared(
            "sources can be read in `reconcile` only, not while a plugin describes itself"
                .to_owned(),
        )));
    };
    let answer = view.source(name);
    if let Ok(document) = &answer {
        let bytes = document.body.len() + document.media_type.len();
        state.meter.count_host_bytes(bytes)?;
    }
    Ok(answer)
}
