//! What of a plan the guard over a plugin's deletions lets through.

use super::{Run, Runner};
use crate::problem::Problem;
use crate::unanswered::Unanswered;
use reeve_api::Reason;
use reeve_core::plan::{Plan, Progress, Step, Withdrawal};
use reeve_core::prune::{Candidate, Cause, Hold, Request, Token};
use reeve_core::waves::Removal;
use reeve_core::{ObjectReference, UnitKey};

/// Why a plan may follow from a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt<'a> {
    /// The plugin returned nothing, and did not say that nothing is meant.
    Empty,
    /// The primary lives and is no longer selected.
    Deselected,
    /// The plugin was not shown all that it asked for, and answered all the same: the plan
    /// keeps what is not wanted, and nobody can approve anything else.
    Unanswered(&'a Unanswered),
}

impl Runner {
    /// Takes out of a plan the deletions that are held, and says so.
    pub(super) async fn guarded(
        &self,
        run: &Run,
        mut plan: Plan,
        doubt: Option<Doubt<'_>>,
    ) -> Result<(Plan, Vec<Problem>), Problem> {
        // It is not known what the unit will want, as while it is under way.
        if let Some(Doubt::Unanswered(unanswered)) = doubt {
            let kept: Vec<String> = plan.kept.iter().map(ToString::to_string).collect();
            let problem = || unanswered.keeps(&self.grant_command(&run.unit.plugin), &kept);
            let problems = (!kept.is_empty()).then(problem);
            return Ok((plan, problems.into_iter().collect()));
        }
        let of = |wanted: Withdrawal| {
            let mut steps = plan.steps();
            steps.any(|step| matches!(step, Step::Delete { reason, .. } if *reason == wanted))
        };
        let ends = of(Withdrawal::UnitEnded);
        let cause = match doubt {
            _ if ends => Cause::Ended,
            Some(Doubt::Deselected) => Cause::Deselected,
            _ => Cause::Withdrawn,
        };
        let mut candidates = if ends || of(Withdrawal::Deselected) || of(Withdrawal::Unwanted) {
            std::mem::take(&mut plan.surplus)
        } else {
            Vec::new()
        };
        // What is contributed to objects of others goes with what may be a mistake no more
        // than objects do.
        if doubt.is_some() {
            candidates.extend(plan.steps().filter_map(|step| match step {
                Step::Release { object, uid } => Some(Candidate {
                    reference: object.clone(),
                    uid: uid.clone(),
                    // Nothing is lost with fields of an object, whatever its kind.
                    removal: Removal::Permitted,
                }),
                _ => None,
            }));
        }
        // One that wants to delete nothing ends what it held; while it is under way
        // nobody knows what it will want.
        if candidates.is_empty() && plan.progress < Progress::Applied {
            return Ok((plan, Vec::new()));
        }
        if !candidates.is_empty() {
            self.recall(run).await?;
        }
        let request = Request {
            unit: &run.unit,
            cause,
            candidates,
            unit_owns: run.owned.len(),
            plugin_owns: run.plugin_owns,
            empty_not_meant: doubt == Some(Doubt::Empty),
        };
        let verdict = run
            .guard
            .lock()
            .review(request, &run.approvals, self.clock.now());
        let may_go = |wanted: &ObjectReference, wanted_uid: &str| {
            let mut allowed = verdict.delete.iter();
            allowed.any(|one| one.reference == *wanted && one.uid == wanted_uid)
        };
        for stage in &mut plan.stages {
            stage.retain(|step| match step {
                Step::Delete {
                    object,
                    uid,
                    reason: Withdrawal::Unwanted | Withdrawal::UnitEnded | Withdrawal::Deselected,
                    ..
                } => may_go(object, uid),
                Step::Release { object, uid } => doubt.is_none() || may_go(object, uid),
                _ => true,
            });
        }
        plan.stages.retain(|stage| !stage.is_empty());
        let holds = verdict.holds.iter();
        let holds = holds.map(|hold| hold_problem(&run.unit, hold));
        Ok((plan, holds.collect()))
    }

    /// Tells the guard once what the plugin has withdrawn before this agent led:
    /// the journal knows, since it is written before anything is deleted.
    pub(super) async fn recall(&self, run: &Run) -> Result<(), Problem> {
        let recalled = run.recalled.get_or_try_init(async || {
            let spent = self.executor.journal.withdrawn(&run.unit.plugin).await?;
            run.guard.lock().resume(spent, run.was_holding);
            Ok(())
        });
        match recalled.await {
            // Who only asks what would be done may not be allowed to read it.
            Err(problem) if self.rehearsal.is_none() => Err(problem),
            _ => Ok(()),
        }
    }
}

pub(super) fn hold_problem(unit: &UnitKey, hold: &Hold) -> Problem {
    Problem::lasting(
        Reason::DeletionHeld,
        format!("{hold}: {}", approve_command(&unit.plugin, &hold.token)),
    )
}

/// The command that lets held deletions go.
pub(crate) fn approve_command(plugin: &str, token: &Token) -> String {
    format!("`reeve approve {plugin} {token}`")
}
