//! What keeps a sync from beginning: found before the first of its objects is written.

use super::{Sync, next};
use crate::execute::Work;
use crate::problem::Problem;
use crate::run::Runner;
use crate::run::observe::Observation;
use reeve_core::ObjectReference;
use reeve_core::plan::{ApplyReason, Plan, Step, Wanted, Withdrawal};
use reeve_core::waves::{Phase, Role, Sequence};
use std::collections::BTreeSet;

impl Runner {
    /// Looks at all that a sync is to apply before it applies the first of it: what of
    /// its later steps the API server would refuse, and what is somebody else's and
    /// must not be. Asks nothing for a sync that applies all it has to at once.
    pub(super) async fn beforehand(
        &self,
        work: &Work<'_>,
        wanted: &[Wanted],
        sequence: &Sequence,
        looked: &Observation,
        sync: &Sync,
        plan: &Plan,
    ) -> Vec<Problem> {
        // What differs at all is what would be repaired if nothing had to wait.
        let without_gates = Sync {
            settled: true,
            ..sync.clone()
        };
        let everything = next(work.owner, wanted, sequence, looked, &without_gates);
        let mut problems = self.shared(work, wanted, &everything).await;
        let now: BTreeSet<usize> = plan.steps().filter_map(applied).collect();
        let defined = definitions(wanted, &everything);
        let later: Vec<Step> = everything
            .steps()
            .filter(|step| {
                let one = applied(step)
                    .filter(|index| !now.contains(index))
                    .and_then(|index| wanted.get(index));
                one.is_some_and(|one| {
                    let kind = &one.stamped.reference.kind;
                    // By then it may be another kind.
                    let redefined = defined
                        .iter()
                        .any(|(group, name)| *group == kind.group && *name == kind.kind);
                    !one.member.options.sync.skip_dry_run && !redefined
                })
            })
            .cloned()
            .collect();
        problems.extend(self.executor.would_be_refused(work, wanted, &later).await);
        problems
    }

    /// Objects that are to be the unit's alone (`FailOnSharedResource`) and are
    /// somebody else's.
    async fn shared(&self, work: &Work<'_>, wanted: &[Wanted], everything: &Plan) -> Vec<Problem> {
        let mut problems = Vec::new();
        for step in everything.steps() {
            let Step::Apply {
                wanted: index,
                reason: ApplyReason::Absent,
                ..
            } = step
            else {
                continue;
            };
            let one = wanted.get(*index);
            let Some(one) = one.filter(|one| one.member.options.sync.fail_on_shared_resource)
            else {
                continue;
            };
            if let Err(mut problem) = self.executor.foresee(work, one, None).await {
                let text = "; nothing is applied before it can be, as its option \
                            FailOnSharedResource=true says";
                problem.message.push_str(text);
                problems.push(problem);
            }
        }
        problems
    }
}

/// Leaves of a plan what is done for a sync that has failed: its hooks for that case.
pub(super) fn only_for_failure(plan: &mut Plan, wanted: &[Wanted]) {
    let is_for_failure = |one: &Wanted| match &one.member.options.role {
        Role::Hook(hook) => hook.phases.contains(&Phase::SyncFail),
        Role::Resource | Role::Skipped => false,
    };
    let of = |object: &ObjectReference| {
        let mut all = wanted.iter();
        all.any(|one| one.stamped.reference == *object && is_for_failure(one))
    };
    for stage in &mut plan.stages {
        stage.retain(|step| match step {
            Step::Apply { wanted: index, .. } => wanted.get(*index).is_some_and(is_for_failure),
            Step::Delete {
                object,
                reason: Withdrawal::EarlierHook | Withdrawal::HookEnded,
                ..
            } => of(object),
            Step::Delete { .. } | Step::Contribute { .. } | Step::Release { .. } => false,
        });
    }
    plan.stages.retain(|stage| !stage.is_empty());
}

/// Which of the desired objects a step applies.
fn applied(step: &Step) -> Option<usize> {
    match step {
        Step::Apply { wanted, .. } => Some(*wanted),
        _ => None,
    }
}

/// Groups and kinds whose definitions a plan applies.
fn definitions(wanted: &[Wanted], plan: &Plan) -> Vec<(String, String)> {
    let applied = plan.steps().filter_map(applied);
    let applied = applied.filter_map(|index| wanted.get(index));
    applied
        .filter_map(|one| one.member.defines.clone())
        .collect()
}
