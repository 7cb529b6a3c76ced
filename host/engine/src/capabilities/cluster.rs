//! Reads from the cluster, answered by the caller's view.

use crate::meter::Breach;
use crate::state::State;
use crate::view::{ListQuery, ReadError};
use bytes::Bytes;
use reeve_core::ObjectReference;

/// An answer for the guest, unless a limit ends the call.
pub(crate) type Answer<T> = Result<Result<T, ReadError>, Breach>;

/// One object, or parts of it.
pub(crate) fn get(
    state: &mut State,
    object: &ObjectReference,
    projection: &[String],
) -> Answer<Option<Bytes>> {
    let Some(view) = &state.view else {
        return Ok(Err(outside()));
    };
    let answer = view.get(object, projection);
    if let Ok(Some(bytes)) = &answer {
        state.meter.count_host_bytes(bytes.len())?;
    }
    Ok(answer)
}

/// All objects that match.
pub(crate) fn list(state: &mut State, query: &ListQuery) -> Answer<Vec<Bytes>> {
    let Some(view) = &state.view else {
        return Ok(Err(outside()));
    };
    let answer = view.list(query);
    if let Ok(objects) = &answer {
        let bytes = objects.iter().map(Bytes::len).sum();
        state.meter.count_host_bytes(bytes)?;
    }
    Ok(answer)
}

/// The names of all objects that match.
pub(crate) fn list_keys(state: &mut State, query: &ListQuery) -> Answer<Vec<ObjectReference>> {
    let Some(view) = &state.view else {
        return Ok(Err(outside()));
    };
    let answer = view.list_keys(query);
    if let Ok(keys) = &answer {
        let bytes = keys.iter().map(size).sum();
        state.meter.count_host_bytes(bytes)?;
    }
    Ok(answer)
}

fn size(reference: &ObjectReference) -> usize {
    let kind = &reference.kind;
    let namespace = reference.namespace.as_ref().map_or(0, String::len);
    kind.group.len() + kind.version.len() + kind.kind.len() + namespace + reference.name.len()
}

/// What a plugin is, and what it does outside, must not depend on the cluster.
fn outside() -> ReadError {
    ReadError::Undeclared(
        "the cluster can be read in `reconcile` only; pass what an action needs in its `input`"
            .to_owned(),
    )
}
