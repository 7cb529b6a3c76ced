//! Objects that are deleted to be made anew count against the budget of the plugin as
//! those that it withdraws: a version that changes an immutable field of each of ten
//! thousand objects must stop early, too.

use super::{Run, Runner, sync};
use crate::problem::Problem;
use reeve_cluster::Object;
use reeve_core::prune::{Candidate, Cause, Request};
use reeve_core::waves::Removal;
use reeve_core::{ObjectReference, UnitKey};

/// As whom a unit asks the guard about what is made anew, so that it does not take the
/// place of what it asks about what it withdraws.
pub(crate) fn recreations_of(unit: &UnitKey) -> UnitKey {
    let primary = &unit.primary;
    // No object can have such a name.
    let name = format!("{}/recreated", primary.name);
    let primary = ObjectReference::new(primary.kind.clone(), primary.namespace.clone(), name);
    UnitKey::new(unit.plugin.clone(), primary)
}

/// Asks the guard of a plugin whether objects may be made anew.
#[derive(Clone, Copy)]
pub(crate) struct Recreations<'a> {
    pub(super) run: &'a Run,
    pub(super) runner: &'a Runner,
}

impl Recreations<'_> {
    /// Whether an object may be deleted now to be made anew.
    pub(crate) async fn allow(&self, live: &Object) -> Result<(), Problem> {
        let (run, runner) = (self.run, self.runner);
        runner.recall(run).await?;
        let asks = recreations_of(&run.unit);
        let candidate = Candidate {
            reference: live.reference(),
            uid: live.uid().to_owned(),
            // Kinds that lose data were refused before.
            removal: Removal::Permitted,
        };
        let request = Request {
            unit: &asks,
            cause: Cause::Withdrawn,
            candidates: vec![candidate],
            // It is there again at once: what counts is the budget.
            unit_owns: usize::MAX,
            plugin_owns: usize::MAX,
            empty_not_meant: false,
        };
        let now = runner.clock.now();
        let verdict = run.guard.lock().review(request, &run.approvals, now);
        match verdict.holds.first() {
            None => Ok(()),
            Some(hold) => Err(sync::hold_problem(&run.unit, hold)),
        }
    }
}
