//! What the store cannot tell: not to be seen is not to be gone.

use crate::active::Active;
use crate::problem::Problem;
use reeve_api::Reason;
use reeve_cluster::{Answer, Object, Snapshot, WatchHandle, WatchState};
use reeve_core::ObjectReference;
use std::sync::Arc;

/// Checks that of each of these objects a version of the store can tell whether it is
/// there. A watch that has lost its rights, or whose kind is not served, cannot: what it
/// no longer sees would be taken for gone, so that nothing would be pruned, a unit would
/// be forgotten, or a primary let go, with its objects still in the cluster.
///
/// Objects that no watch of the plugin covers are none that it looks for. Returns for each,
/// in turn, the object if the plugin owns it as far as its watches tell.
///
/// # Errors
///
/// Names the first object that cannot be seen, and why. Trying again helps once the
/// watch is back.
pub(super) fn find<'a>(
    active: &Active,
    snapshot: &Snapshot,
    objects: impl IntoIterator<Item = &'a ObjectReference>,
) -> Result<Vec<Option<Arc<Object>>>, Problem> {
    let watches = &active.watches;
    let found = objects.into_iter().map(|object| {
        let seen = |watches: &[WatchHandle]| {
            let seen = seen(watches, snapshot, object);
            seen.map_err(|state| problem(object, &state))
        };
        let owned = seen(&watches.owned)?;
        seen(&watches.contributed)?;
        Ok(owned)
    });
    found.collect()
}

/// An object as one of these watches has it.
///
/// # Errors
///
/// Why none of them can tell of it, if one of them should.
fn seen(
    watches: &[WatchHandle],
    snapshot: &Snapshot,
    object: &ObjectReference,
) -> Result<Option<Arc<Object>>, WatchState> {
    let (mut told, mut unseen) = (false, None);
    for watch in watches {
        let spec = watch.spec();
        if spec.resource.kind != object.kind {
            continue;
        }
        match snapshot.get_in(spec, object.namespace.as_deref(), &object.name) {
            Answer::Found(found) => return Ok(Some(found)),
            Answer::Absent => told = true,
            Answer::NotSynced(state) => unseen = Some(state),
            Answer::NotWatched => {}
        }
    }
    match unseen {
        Some(state) if !told => Err(state),
        _ => Ok(None),
    }
}

fn problem(object: &ObjectReference, state: &WatchState) -> Problem {
    let reason = match state {
        WatchState::Forbidden { .. } => Reason::Forbidden,
        WatchState::NotServed => Reason::KindNotServed,
        WatchState::Syncing | WatchState::Synced | WatchState::Failing { .. } => Reason::Syncing,
    };
    Problem::passing(
        reason,
        format!("{object} cannot be seen: {state}; nothing is changed until it can"),
    )
}
