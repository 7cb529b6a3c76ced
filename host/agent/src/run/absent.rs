//! Objects that must not exist though we never made them.
//!
//! Their deletion goes the way of every withdrawal: it counts against the budget
//! of the plugin, is held where there is too much of it, and is written down
//! before it is done.

use super::{Ran, Run, Runner, Sync, guarded};
use reeve_core::outcome::Absence;
use reeve_core::plan::Preview;
use reeve_core::prune::{Candidate, Cause, Request};
use reeve_core::waves::Removal;
use reeve_core::{ObjectReference, UnitKey};

/// As whom a unit asks the guard about what must not exist, so that it does not
/// take the place of what it asks about its own objects.
pub(crate) fn absences_of(unit: &UnitKey) -> UnitKey {
    let primary = &unit.primary;
    // No object can have such a name.
    let name = format!("{}/absent", primary.name);
    let primary = ObjectReference::new(primary.kind.clone(), primary.namespace.clone(), name);
    UnitKey::new(unit.plugin.clone(), primary)
}

impl Runner {
    /// Sees to it that objects do not exist, as far as their preconditions hold
    /// and the guard lets them go.
    pub(super) async fn bring_to_an_end(&self, run: &Run, absences: &[Absence], ran: &mut Ran) {
        let Run { unit, active, .. } = run;
        let mut found = Vec::new();
        for absence in absences {
            match self.executor.unwanted(active, absence).await {
                Ok(live) => found.extend(live),
                Err(problem) => ran.problems.push(problem),
            }
        }
        if let Some(unanswered) = ran.unanswered.as_ref().filter(|_| !found.is_empty()) {
            let kept = found.iter().map(|live| live.reference().to_string());
            let kept: Vec<String> = kept.collect();
            let problem = unanswered.keeps(&self.grant_command(&unit.plugin), &kept);
            ran.problems.push(problem);
            return;
        }
        let candidates = found.iter().map(|live| Candidate {
            reference: live.reference(),
            uid: live.uid().to_owned(),
            // Kinds that lose data were refused before.
            removal: Removal::Permitted,
        });
        let candidates: Vec<Candidate> = candidates.collect();
        let mut sync = ran.sync.take().unwrap_or_default();
        // They go all at once: no approval has to outlast this run.
        let preview = |_: &Sync| Preview::of_absences(&candidates);
        let may_go = found.is_empty() || self.may_write(run, None, preview, &mut sync, ran);
        ran.sync = Some(sync);
        if !may_go {
            return;
        }
        if let Some(rehearsal) = &self.rehearsal {
            found
                .iter()
                .for_each(|live| rehearsal.take_down_absence(live));
            return;
        }
        if !found.is_empty()
            && let Err(problem) = self.recall(run).await
        {
            ran.problems.push(problem);
            return;
        }
        // What was held of these before is let go of where it is not there any more.
        if found.is_empty() && run.guard.lock().knows_nothing() {
            return;
        }
        let asks = absences_of(unit);
        let request = Request {
            unit: &asks,
            cause: Cause::Withdrawn,
            candidates,
            // None of them is the unit's: what counts is the budget.
            unit_owns: usize::MAX,
            plugin_owns: usize::MAX,
            empty_not_meant: false,
        };
        let now = self.clock.now();
        let verdict = run.guard.lock().review(request, &run.approvals, now);
        let holds = verdict.holds.iter();
        ran.problems
            .extend(holds.map(|hold| guarded::hold_problem(unit, hold)));
        for live in &found {
            let allowed = verdict.delete.iter().any(|one| one.uid == live.uid());
            if allowed && let Err(problem) = self.executor.end(active, unit, live).await {
                ran.problems.push(problem);
            }
        }
    }
}
