//! Bringing the cluster to what a plugin wants, as far as it may go now.

mod beforehand;
mod left_alone;
mod state;

pub(crate) use state::Sync;

use beforehand::only_for_failure;

use super::effects::unapproved;
use super::guarded::{Doubt, hold_problem};
use super::observe::{self, Answers, Observation};
use super::{Approved, Ran, Recreations, Run, Runner, UNWATCHED_RECHECK, recreations, unseen};
use crate::active::Active;
use crate::execute::Work;
use crate::problem::{Problem, chain};
use crate::request::Attempt;
use foldhash::HashMapExt as _;
use reeve_api::{RETRY_ANNOTATION, Reason, SyncMode};
use reeve_cluster::Object;
use reeve_core::health::{self, HealthStatus};
use reeve_core::outcome::{Event, Next};
use reeve_core::ownership::Owner;
use reeve_core::plan::{
    ApplyReason, Blocked, Plan, Preview, Progress, Refusal, Situation, Step, Wanted, prepare,
};
use reeve_core::waves::{ApplyMode, Member, Mode, Sequence, WAVE_TIMEOUT_ANNOTATION, order};
use reeve_core::{Desired, ObjectReference, UnitKey};
use std::collections::BTreeSet;

/// Rounds of planning and applying within one run. Objects that are healthy by
/// existing let wave after wave pass at once; a set of objects has no more waves
/// than objects, and this many only if somebody means harm.
const MAX_ROUNDS: usize = 1000;

/// Reason of the events about annotations.
const ANNOTATION_NOT_OBEYED: &str = "AnnotationNotObeyed";

impl Runner {
    /// Plans and applies until nothing may be done now, or something fails.
    pub(super) async fn bring_about(
        &self,
        run: &Run,
        primary: &Object,
        desired: Desired,
        ran: &mut Ran,
    ) {
        let Run { unit, active, .. } = run;
        let owner = Owner {
            unit: unit.clone(),
            uid: primary.uid().to_owned(),
        };
        let effects = unapproved(run, &desired.actions);
        let prepared = {
            // Let go of at once: as long as it is held, what changes is copied.
            let snapshot = self.store.snapshot();
            let live = |reference: &ObjectReference| {
                observe::find(active, &snapshot, reference).map(|object| object.whole())
            };
            let manager = &active.field_manager;
            prepare(&owner, manager, desired.objects, &active.policy, &live)
        };
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                let problem = Problem::lasting(Reason::OutcomeRefused, chain(&error));
                ran.problems.push(problem);
                return;
            }
        };
        let (mut wanted, revision, needs) = (prepared.wanted, prepared.revision, prepared.needs);
        ran.events.extend(told(&prepared.warnings));
        let members: Vec<Member> = wanted.iter().map(|one| one.member.clone()).collect();
        let sequence = match order(&members, Mode::default()) {
            Ok(sequence) => sequence,
            Err(error) => {
                let problem = Problem::lasting(Reason::OutcomeRefused, error.to_string());
                ran.problems.push(problem);
                return;
            }
        };
        for notice in &sequence.notices {
            tracing::debug!(plugin = %unit.plugin, primary = %unit.primary, %notice, "order");
        }
        let mut sync = run.sync.clone();
        if sync.revision != Some(revision) {
            sync = Sync {
                revision: Some(revision),
                used_approval: sync.used_approval,
                ..Sync::default()
            };
        }
        sync = match run.attempt {
            Attempt::Same | Attempt::Look => sync,
            Attempt::Retry => sync.retried(),
            Attempt::Anew => sync.anew(),
        };
        let contributing = contributing(&wanted);
        if let Some(object) = contributing.iter().find(|object| object.kind.is_secret()) {
            let message = format!(
                "{object}: nobody may watch Secrets, so what is contributed to one would not be \
                 looked after; apply a Secret of its own"
            );
            let problem = Problem::lasting(Reason::OutcomeRefused, message);
            ran.problems.push(problem);
            ran.sync = Some(sync);
            return;
        }
        let unwatched = contributing.iter().map(|object| object.kind.to_string());
        ran.contributes = unwatched
            .filter(|kind| !active.contributes.contains(kind))
            .collect();
        ran.contributing = Some(contributing);
        if !ran.contributes.is_empty() {
            let kinds = ran.contributes.iter().cloned().collect::<Vec<_>>();
            let message = format!(
                "the plugin is about to contribute to objects of {}; it waits until this is noted \
                 in the status of its Plugin, and they are watched",
                kinds.join(", ")
            );
            ran.problems
                .push(Problem::lasting(Reason::Waiting, message));
            ran.sync = Some(sync);
            return;
        }
        let unanswered = ran.unanswered.clone();
        let empty = wanted.is_empty() && !desired.empty_is_meant;
        let doubt = match &unanswered {
            Some(unanswered) => Some(Doubt::Unanswered(unanswered)),
            None => empty.then_some(Doubt::Empty),
        };
        let mut candidates: BTreeSet<ObjectReference> = run.owned.iter().cloned().collect();
        candidates.extend(run.contributed.iter().cloned());
        candidates.extend(wanted.iter().map(|one| one.stamped.reference.clone()));
        let left_alone = self.left_alone(run, &wanted).await;
        if !left_alone.is_empty() {
            ran.next = ran.next.at_the_latest(UNWATCHED_RECHECK);
        }
        let mut sent: BTreeSet<usize> = BTreeSet::new();
        let mut answers = Answers::new();
        let mut holds_primary = false;
        for _ in 0..MAX_ROUNDS {
            let looked = match self.look(active, unit, &candidates, &answers).await {
                Ok(looked) => looked.sparing(&left_alone, unanswered.is_some()),
                Err(problem) => {
                    ran.problems = vec![problem];
                    ran.sync = Some(sync);
                    return;
                }
            };
            sync.failing = sync.is_refused();
            let mut plan = next(&owner, &wanted, &sequence, &looked, &sync);
            sync.note(&plan, self.clock.now());
            if !sync.failing && sync.is_late(&wanted, self.clock.now()) {
                sync.failing = true;
                plan = next(&owner, &wanted, &sequence, &looked, &sync);
                sync.note(&plan, self.clock.now());
            }
            let preview = |sync: &Sync| {
                looked.with_situation(&owner, &wanted, &sequence, sync, |situation| {
                    Preview::of(situation, &revision).with_effects(effects.clone())
                })
            };
            if let Some(rehearsal) = self.rehearsal.as_deref().filter(|one| one.is_whole()) {
                rehearsal.take_down_whole(preview(&sync), doubt == Some(Doubt::Empty));
                ran.sync = Some(sync);
                return;
            }
            let about = Some(Approved::Sync);
            if !plan.is_empty() && !self.may_write(run, about, preview, &mut sync, ran) {
                ran.problems
                    .extend(plan.refusals.iter().map(refusal_problem));
                ran.sync = Some(sync);
                return;
            }
            let (mut plan, held) = match self.guarded(run, plan, doubt).await {
                Ok(guarded) => guarded,
                Err(problem) => {
                    ran.problems = vec![problem];
                    ran.sync = Some(sync);
                    return;
                }
            };
            let dropped = send_once(&mut plan, &mut sent);
            // It counts as unchanged from now on.
            let differing = looked.note_stubborn(&wanted, &dropped, &answers, &mut sync.stubborn);
            if differing.new {
                continue;
            }
            ran.problems = plan.refusals.iter().map(refusal_problem).collect();
            // The watch tells of these, which brings on the next run.
            ran.problems
                .extend(differing.changed.iter().map(changed_problem));
            ran.problems.extend(held);
            if let Some(after) = plan.recheck_after {
                ran.next = ran.next.at_the_latest(after.max(Next::SHORTEST));
            }
            if let Some(rehearsal) = &self.rehearsal {
                rehearsal.take_down(&owner, &wanted, &sequence, &looked, &sync, plan);
                ran.problems.extend(waiting_problem(&sync));
                ran.sync = Some(sync);
                return;
            }
            if plan.is_empty() {
                // Whatever was held of these is not wanted any more, or done.
                recreations::forget(run);
                let unchanged = u64::try_from(plan.unchanged).unwrap_or(u64::MAX);
                self.metrics.unchanged(&unit.plugin, unchanged);
                ran.problems
                    .extend(self.waiting(&sync, &wanted, &mut ran.next));
                let complete = sync.progress == Progress::Complete;
                // What is kept may be what the primary waits for.
                let lets_go = complete && plan.kept.is_empty();
                let approved = run.mode == SyncMode::OnRequest && sync.approved.is_some();
                let may = run.mode == SyncMode::Auto || approved;
                // What it does here makes it another version.
                if may
                    && !holds_primary
                    && let Err(problem) = self.hold(run, primary, needs, lets_go).await
                {
                    ran.problems.push(problem);
                }
                // What goes in waves goes by one word: the next is due when this one is gone.
                let is_going = looked.observed.iter().any(|one| one.deleting);
                if complete && !is_going {
                    sync.approved = None;
                }
                if needs.hooks && !run.may_hold && ran.problems.is_empty() {
                    ran.problems.push(cannot_hold(active, unit));
                }
                ran.sync = Some(sync);
                return;
            }
            // Nothing is made that could be left behind.
            if !holds_primary && needs.any() {
                if let Err(problem) = self.hold(run, primary, needs, false).await {
                    ran.problems.insert(0, problem);
                    ran.sync = Some(sync);
                    return;
                }
                holds_primary = true;
            }
            let remembered = self.remember_secrets(run, primary.uid(), &wanted, &plan);
            if let Err(problem) = remembered.await {
                ran.problems.insert(0, problem);
                ran.sync = Some(sync);
                return;
            }
            let contributed = contributed(&wanted, &plan);
            let recreations = Recreations::new(run, self);
            let work = Work {
                active,
                owner: &owner,
                recreations: Some(&recreations),
            };
            let mut refused = Vec::new();
            if !sync.settled && !sync.tried {
                refused = self
                    .beforehand(&work, &wanted, &sequence, &looked, &sync, &plan)
                    .await;
                sync.tried = refused.is_empty();
                if !sync.tried {
                    only_for_failure(&mut plan, &wanted);
                }
            }
            let_go_of_made(&plan, &mut wanted);
            let mut executed = self.executor.execute(work, &wanted, plan).await;
            executed.problems.splice(0..0, refused);
            let held = recreations.hold();
            let held = held.map(|hold| hold_problem(unit, &hold));
            executed.problems.splice(0..0, held);
            ran.contested.extend(executed.contested);
            for answer in executed.answers {
                ran.written.push(answer.object.clone());
                answers.insert(answer.object.reference(), answer);
            }
            if executed.problems.is_empty() {
                sync.sent
                    .retain(|(object, _)| !contributed.iter().any(|(new, _)| new == object));
                sync.sent.extend(contributed);
            }
            let turned = sync.note_refusals(&executed.problems);
            if !executed.problems.is_empty() {
                // Nothing else may bring on the hooks for that.
                ran.again |= turned && !sequence.on_failure.is_empty();
                ran.problems.splice(0..0, executed.problems);
                ran.sync = Some(sync);
                return;
            }
        }
        let message = format!("{MAX_ROUNDS} rounds of applying have not come to an end");
        ran.problems
            .push(Problem::passing(Reason::ApplyFailed, message));
        ran.sync = Some(sync);
    }

    /// Looks at what a unit has and wants. That all of it can be seen is part of it.
    pub(super) async fn look(
        &self,
        active: &Active,
        unit: &UnitKey,
        candidates: &BTreeSet<ObjectReference>,
        answers: &Answers,
    ) -> Result<Observation, Problem> {
        self.read_secrets(active, unit, candidates).await;
        let snapshot = self.store.snapshot();
        let found = unseen::find(active, &snapshot, candidates)?;
        let now = self.clock.now();
        let candidates = candidates.iter().zip(found);
        Ok(Observation::of(
            active, &snapshot, candidates, unit, answers, now,
        ))
    }

    /// What keeps a unit from being ready although everything that may be applied
    /// is. A wave that takes too long is looked at again when it does.
    fn waiting(&self, sync: &Sync, wanted: &[Wanted], next: &mut Next) -> Option<Problem> {
        let problem = waiting_problem(sync)?;
        // Nothing waits behind it, and most such objects have nothing to report.
        let settling = |blocked: &Blocked| health::is_settling(&blocked.reason);
        if sync.progress == Progress::Applied && sync.blocked.as_ref().is_some_and(settling) {
            return None;
        }
        let Some(wait) = &sync.wait else {
            return Some(problem);
        };
        let timeout = wait.timeout(wanted);
        if let Some(left) = wait.left(timeout, self.clock.now()) {
            *next = next.at_the_latest(left.max(Next::SHORTEST));
            return Some(problem);
        }
        // A failure says more than that it takes long.
        if !problem.waits() {
            return Some(problem);
        }
        let Problem { message, .. } = problem;
        let timeout = timeout.as_secs();
        Some(Problem::lasting(
            Reason::WaveTimedOut,
            format!(
                "{message}. That takes longer than the {timeout} s that the wave may take ({WAVE_TIMEOUT_ANNOTATION}); it is waited for all the same. Change what is desired, or set the annotation {RETRY_ANNOTATION} on the primary for a new attempt"
            ),
        ))
    }
}

/// What is to be made is sent as text, and nobody looks at its value after that.
fn let_go_of_made(plan: &Plan, wanted: &mut [Wanted]) {
    for step in plan.steps() {
        if let Step::Apply {
            wanted: index,
            reason: ApplyReason::Absent,
            ..
        } = step
            && let Some(one) = wanted.get_mut(*index)
        {
            one.stamped.let_go();
        }
    }
}

/// Takes out of a plan what this run has sent before. What the API server did not
/// take over as it was sent (a pruned field, say) may differ after each apply; once a
/// run is enough. Returns what was taken out.
fn send_once(plan: &mut Plan, sent: &mut BTreeSet<usize>) -> Vec<usize> {
    let mut dropped = Vec::new();
    for stage in &mut plan.stages {
        stage.retain(|step| match step {
            Step::Apply { wanted, .. } => {
                let first = sent.insert(*wanted);
                if !first {
                    dropped.push(*wanted);
                }
                first
            }
            Step::Contribute { wanted, .. } => sent.insert(*wanted),
            Step::Delete { .. } | Step::Release { .. } => true,
        });
    }
    plan.stages.retain(|stage| !stage.is_empty());
    dropped
}

pub(super) fn next(
    owner: &Owner,
    wanted: &[Wanted],
    sequence: &Sequence,
    looked: &Observation,
    sync: &Sync,
) -> Plan {
    looked.with_situation(owner, wanted, sequence, sync, reeve_core::plan)
}

impl Observation {
    /// Decides something about all that is known of a sync.
    pub(super) fn with_situation<T>(
        &self,
        owner: &Owner,
        wanted: &[Wanted],
        sequence: &Sequence,
        sync: &Sync,
        decide: impl FnOnce(&Situation<'_>) -> T,
    ) -> T {
        decide(&Situation {
            owner,
            wanted,
            sequence,
            observed: &self.observed,
            gate: &|observed, applied| self.gate(observed, applied),
            hooks: &sync.hooks,
            schemas: &self.schemas,
            stubborn: &sync.stubborn,
            contributions: self.contributions(&sync.sent),
            unserved: &self.unserved,
            left_alone: &self.left_alone,
            keeps: self.keeps,
            failing: sync.failing,
            settled: sync.settled,
        })
    }
}

/// So many annotations are told of one by one, before the rest is only counted: a unit
/// may record no more than a few events at once.
const WARNINGS: usize = 10;

/// What is recorded of annotations that are not understood, or not obeyed.
fn told(warnings: &[String]) -> Vec<Event> {
    let event = |message: String| Event {
        warning: true,
        reason: ANNOTATION_NOT_OBEYED.to_owned(),
        message,
    };
    let told = warnings.iter().take(WARNINGS).cloned().map(event);
    let rest = warnings.len().saturating_sub(WARNINGS);
    let rest = (rest > 0).then(|| event(format!("{rest} more annotations are not understood")));
    told.chain(rest).collect()
}

/// Objects of others to which the unit wants to contribute.
fn contributing(wanted: &[Wanted]) -> Vec<ObjectReference> {
    let contributions = wanted
        .iter()
        .filter(|one| one.member.options.apply == ApplyMode::Contribute);
    contributions
        .map(|one| one.stamped.reference.clone())
        .collect()
}

/// What a plan contributes: objects and digests.
fn contributed(wanted: &[Wanted], plan: &Plan) -> Vec<(ObjectReference, String)> {
    let steps = plan.steps().filter_map(|step| match step {
        Step::Contribute { wanted: index, .. } => wanted.get(*index),
        _ => None,
    });
    steps
        .map(|one| (one.stamped.reference.clone(), one.stamped.applied.clone()))
        .collect()
}

/// What keeps a unit from being ready although everything that may be applied is.
fn waiting_problem(sync: &Sync) -> Option<Problem> {
    let blocked = sync.blocked.as_ref()?;
    let Blocked {
        phase,
        wave,
        object,
        status,
        reason,
    } = blocked;
    let place = match wave {
        Some(wave) => format!("{phase} wave {wave}"),
        None => phase.to_string(),
    };
    let (what, held) = match sync.progress {
        Progress::Complete => return None,
        Progress::Failed => (
            Reason::HookFailed,
            "; nothing more is applied for this revision",
        ),
        Progress::Waiting => (Reason::Waiting, "; what comes after it waits"),
        Progress::Applying | Progress::Applied => (Reason::Waiting, ""),
    };
    let what = match status {
        HealthStatus::Degraded if what == Reason::Waiting => Reason::Degraded,
        _ => what,
    };
    let message = format!("{place}: {object} is {status}: {reason}{held}");
    Some(Problem::lasting(what, message))
}

/// Somebody has changed an object between its apply and the end of the run.
fn changed_problem(object: &ObjectReference) -> Problem {
    let message = format!(
        "{object} was changed by somebody while it was applied; it is put back in the next run"
    );
    Problem::lasting(Reason::Waiting, message)
}

pub(super) fn refusal_problem(refusal: &Refusal) -> Problem {
    match refusal {
        // They may give it up where we do not watch.
        Refusal::FieldsHeld { .. } => Problem::passing(Reason::Conflict, refusal.to_string()),
        Refusal::OtherUnit { .. } | Refusal::Held { .. } | Refusal::Foreign { .. } => {
            Problem::lasting(Reason::Conflict, refusal.to_string())
        }
    }
}

/// That hooks would not run at the end of a unit.
fn cannot_hold(active: &Active, unit: &UnitKey) -> Problem {
    let kind = &unit.primary.kind;
    let resource = active.resource(kind);
    let resource = resource.map_or_else(|| kind.to_string(), ToString::to_string);
    Problem::lasting(
        Reason::Forbidden,
        format!(
            "its PreDelete and PostDelete hooks would not run: {} may not patch {resource} \
             cluster-wide, and so cannot have {} wait for them with a finalizer; grant that, or \
             return no such hooks",
            active.identity, unit.primary
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::plan::ApplyReason;

    #[test]
    fn what_differs_after_each_apply_is_sent_once_a_run() {
        let apply = |wanted| Step::Apply {
            wanted,
            reason: ApplyReason::Drifted,
            uid: None,
        };
        let mut sent = BTreeSet::new();
        let mut plan = |stages: Vec<Vec<Step>>| {
            let mut plan = Plan {
                stages,
                ..Plan::default()
            };
            send_once(&mut plan, &mut sent);
            plan.steps().count()
        };
        assert_eq!(plan(vec![vec![apply(0), apply(1)]]), 2);
        assert_eq!(plan(vec![vec![apply(0)], vec![apply(2)]]), 1);
        assert_eq!(plan(vec![vec![apply(0), apply(1)]]), 0);
    }
}
