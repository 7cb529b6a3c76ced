//! The time, as an input that the caller records.

use crate::fault::FaultKind;
use crate::meter::Breach;
use crate::state::State;

/// Milliseconds since the epoch. Outside of `reconcile` there is no time to read:
/// a manifest that depended on it would change by itself.
pub(crate) fn now(state: &State) -> Result<u64, Breach> {
    match &state.view {
        Some(view) => Ok(view.now()),
        None => Err(Breach(FaultKind::Refused { what: "clock.now" })),
    }
}
