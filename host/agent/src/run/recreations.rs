//! Objects that are deleted to be made anew count against the budget of the plugin as
//! those that it withdraws: a version that changes an immutable field of each of ten
//! thousand objects must stop early, too.

use super::{Run, Runner};
use crate::problem::Problem;
use parking_lot::Mutex;
use reeve_cluster::Object;
use reeve_core::prune::{Candidate, Cause, Hold, Request};
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

/// Forgets what the guard knows of what a unit makes anew. Mostly it knows of nothing, and it
/// takes longer to tell its name.
pub(super) fn forget(run: &Run) {
    let mut guard = run.guard.lock();
    if !guard.knows_nothing() {
        guard.forget(&recreations_of(&run.unit));
    }
}

/// Asks the guard of a plugin whether objects may be made anew, one after another, and
/// remembers what of a run is held.
pub(crate) struct Recreations<'a> {
    run: &'a Run,
    runner: &'a Runner,
    held: Mutex<(Vec<Candidate>, Option<Hold>)>,
}

impl<'a> Recreations<'a> {
    pub(super) fn new(run: &'a Run, runner: &'a Runner) -> Self {
        Self {
            run,
            runner,
            held: Mutex::default(),
        }
    }

    /// Whether an object may be deleted now to be made anew.
    pub(crate) async fn allow(&self, live: &Object) -> Result<bool, Problem> {
        let (run, runner) = (self.run, self.runner);
        runner.recall(run).await?;
        let asks = recreations_of(&run.unit);
        let candidate = Candidate {
            reference: live.reference(),
            uid: live.uid().to_owned(),
            // Kinds that lose data were refused before.
            removal: Removal::Permitted,
        };
        let now = runner.clock.now();
        let mut held = self.held.lock();
        let mut guard = run.guard.lock();
        guard.approve_held_of(&asks, &run.approvals, now);
        let mut candidates = held.0.clone();
        candidates.push(candidate.clone());
        let request = Request {
            unit: &asks,
            cause: Cause::Withdrawn,
            candidates,
            // It is there again at once: what counts is the budget.
            unit_owns: usize::MAX,
            plugin_owns: usize::MAX,
            empty_not_meant: false,
        };
        let mut verdict = guard.review(request, &run.approvals, now);
        let allowed = verdict.delete.iter().any(|one| one.uid == candidate.uid);
        if !allowed {
            held.0.push(candidate);
            held.1 = verdict.holds.pop();
        }
        Ok(allowed)
    }

    /// What of the run is held, if anything.
    pub(super) fn hold(&self) -> Option<Hold> {
        self.held.lock().1.clone()
    }
}
