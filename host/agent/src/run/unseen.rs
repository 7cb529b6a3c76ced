//! What the store cannot tell: not to be seen is not to be gone.

use crate::active::Active;
use crate::problem::Problem;
use reeve_api::Reason;
use reeve_cluster::{Answer, Snapshot, WatchHandle, WatchState};
use reeve_core::ObjectReference;

/// Checks that of each of these objects a version of the store can tell whether it is
/// there. A watch that has lost its rights, or whose kind is not served, cannot: what it
/// no longer sees would be taken for gone, so that nothing would be pruned, a unit would
/// be forgotten, or a primary let go, with its objects still in the cluster.
///
/// Objects that no watch of the plugin covers are none that it looks for.
///
/// # Errors
///
/// Names the first object that cannot be seen, and why. Trying again helps once the
/// watch is back.
pub(super) fn check<'a>(
    active: &Active,
    snapshot: &Snapshot,
    objects: impl IntoIterator<Item = &'a ObjectReference>,
) -> Result<(), Problem> {
    let watches = &active.watches;
    for object in objects {
        for watches in [&watches.owned, &watches.contributed] {
            if let Some(state) = unseen(watches, snapshot, object) {
                return Err(problem(object, &state));
            }
        }
    }
    Ok(())
}

/// Why none of these watches can tell of an object, if one of them should.
fn unseen(
    watches: &[WatchHandle],
    snapshot: &Snapshot,
    object: &ObjectReference,
) -> Option<WatchState> {
    let mut why = None;
    for watch in watches {
        let spec = watch.spec();
        if spec.resource.kind != object.kind {
            continue;
        }
        match snapshot.get_in(spec, object.namespace.as_deref(), &object.name) {
            Answer::Found(_) | Answer::Absent => return None,
            Answer::NotSynced(state) => why = Some(state),
            Answer::NotWatched => {}
        }
    }
    why
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
