//! What of a unit's trouble is recorded as an Event of its primary: what an operator
//! would want to have been told when it began, and not only finds when looking.

use crate::problem::Problem;
use crate::run::Sync;
use reeve_api::Reason;
use reeve_core::outcome::Event;

/// The events of a run that ended with these problems.
///
/// What passes by itself within moments makes none: a unit that waits, an API server
/// that is away, an object that was refused once.
pub(super) fn events(problems: &[Problem], sync: &Sync) -> Vec<Event> {
    let told = problems.iter().filter(|problem| match problem.reason {
        Reason::HookFailed
        | Reason::WaveTimedOut
        | Reason::DeletionHeld
        | Reason::OutcomeRefused
        | Reason::NamespaceReserved
        | Reason::NotConvergent
        | Reason::Terminal
        | Reason::Trapped
        | Reason::LimitExceeded
        | Reason::FieldImmutable => true,
        Reason::ApplyFailed | Reason::Conflict | Reason::Forbidden => sync.is_refused(),
        _ => false,
    });
    told.map(Problem::event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_is_told() {
        let once = Sync {
            refusals: 1,
            ..Sync::default()
        };
        let twice = Sync {
            refusals: 2,
            ..Sync::default()
        };
        for (reason, sync, told) in [
            (Reason::WaveTimedOut, &once, true),
            (Reason::DeletionHeld, &once, true),
            (Reason::ApplyFailed, &once, false),
            (Reason::ApplyFailed, &twice, true),
            (Reason::Unreachable, &twice, false),
            (Reason::Waiting, &twice, false),
        ] {
            let events = events(&[Problem::passing(reason, "why")], sync);
            assert_eq!(!events.is_empty(), told, "{reason}");
            let right = |event: &Event| event.warning && event.message == "why";
            assert!(events.iter().all(right), "{events:?}");
        }
    }
}
