//! How far a desired revision has come, and what its next step is.

use super::contribute::Contribution;
use super::difference::{ApplyReason, difference};
use super::hooks::hook_key;
use super::observed::{Identity, Live};
use super::{Observed, Plan, Refusal, Situation, Step, Wanted};
use crate::health::{Applied, Gate, HealthStatus};
use crate::kind::ObjectReference;
use crate::ownership::APPLIED_ANNOTATION;
use crate::waves::{ApplyMode, HookState, Open, Phase, Role};
use foldhash::HashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// How far the hooks of a revision have come, by `<phase> <object>`.
pub type Hooks = BTreeMap<String, HookState>;

/// How far the sync of a revision is. In this order, the first is the least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Progress {
    /// A hook failed: nothing more is applied for this revision.
    Failed,
    /// Something is to be written now.
    Applying,
    /// Everything that may be applied is, and it waits.
    Waiting,
    /// Everything is applied, and something is not healthy yet.
    Applied,
    /// Everything is applied, observed and healthy.
    #[default]
    Complete,
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// Phase of the object that is waited for.
    pub phase: Phase,
    /// Its wave; none where waves are not what orders.
    pub wave: Option<i64>,
    /// The object.
    pub object: ObjectReference,
    /// How it is.
    pub status: HealthStatus,
    /// Why, for people.
    pub reason: String,
}

/// How one object of an open step is.
pub(super) enum State {
    /// Nothing holds up the next step.
    Done,
    /// This is to be done.
    Do(Step),
    /// It is waited for.
    Wait(HealthStatus, String, Option<Duration>),
    /// It failed.
    Fail(String),
    /// It is somebody else's: it is not done, and what comes later waits.
    Refused(Box<Refusal>),
}

/// Adds to the plan what the sync needs next.
pub(super) fn advance(
    situation: &Situation<'_>,
    live: &Live<'_>,
    wanted: &HashMap<Identity<'_>, usize>,
    plan: &mut Plan,
) {
    let mut walk = Walk {
        situation,
        live,
        wanted,
        plan,
    };
    walk.plan.hooks = walk.hooks_now();
    if situation.settled {
        walk.repair();
    } else {
        walk.go_on();
    }
}

pub(super) struct Walk<'w, 'a> {
    pub(super) situation: &'w Situation<'a>,
    pub(super) live: &'w Live<'a>,
    pub(super) wanted: &'w HashMap<Identity<'w>, usize>,
    pub(super) plan: &'w mut Plan,
}

impl Walk<'_, '_> {
    pub(super) fn wanted(&self, reference: &ObjectReference) -> Option<(usize, &Wanted)> {
        let index = *self.wanted.get(&super::observed::identity(reference))?;
        Some((index, self.situation.wanted.get(index)?))
    }

    /// Repairs what has drifted, without gates; hooks have run. What is not well
    /// is told.
    fn repair(&mut self) {
        let steps = &self.situation.sequence.steps;
        for step in steps {
            for group in &step.groups {
                let mut stage = Vec::new();
                for reference in group {
                    let Some((index, one)) = self.wanted(reference) else {
                        continue;
                    };
                    if matches!(one.member.options.role, Role::Hook(_)) {
                        continue;
                    }
                    match self.object(index, one) {
                        State::Refused(refusal) => self.plan.refusals.push(*refusal),
                        State::Done => self.plan.unchanged += 1,
                        State::Do(write) => stage.push(write),
                        State::Wait(status, reason, recheck) => {
                            self.plan.unchanged += 1;
                            self.block(step.phase, step.wave, reference, status, reason);
                            self.recheck(recheck);
                        }
                        State::Fail(reason) => {
                            self.plan.unchanged += 1;
                            let status = HealthStatus::Degraded;
                            self.block(step.phase, step.wave, reference, status, reason);
                        }
                    }
                }
                self.push(stage);
            }
        }
        if self.plan.blocked.is_some() {
            self.plan.progress = Progress::Applied;
        }
    }

    /// The next step of a sync, and of nothing behind it.
    fn go_on(&mut self) {
        let sequence = self.situation.sequence;
        let mut states: BTreeMap<(Phase, &ObjectReference), State> = BTreeMap::new();
        for step in &sequence.steps {
            for reference in step.objects() {
                if let Some((index, one)) = self.wanted(reference) {
                    let state = match &one.member.options.role {
                        Role::Hook(hook) => self.hook(index, one, hook, step.phase),
                        _ => self.object(index, one),
                    };
                    let state = match state {
                        // Whoever waits for what it contributes waits for whoever holds
                        // that.
                        State::Refused(refusal) => {
                            let reason = refusal.to_string();
                            self.plan.refusals.push(*refusal);
                            State::Fail(reason)
                        }
                        state => state,
                    };
                    states.insert((step.phase, reference), state);
                }
            }
        }
        let done = |phase: Phase, reference: &ObjectReference| {
            matches!(states.get(&(phase, reference)), None | Some(State::Done))
        };
        let open = sequence.startable(done);
        let last_step = sequence.steps.last().is_some_and(|last| {
            let in_last = |one: &Open<'_>| (last.phase, last.wave) == (one.phase, one.wave);
            open.iter().all(in_last)
        });
        let left = states
            .values()
            .filter(|state| !matches!(state, State::Done))
            .count();
        self.plan.unchanged = states.len() - left;
        let mut hook_failed = false;
        let mut failing = self.situation.failing || self.failure_is_dealt_with();
        let mut applying = 0;
        let mut stage: Vec<Step> = Vec::new();
        let mut stage_kind = None;
        for Open {
            phase,
            wave,
            object: reference,
        } in &open
        {
            match states.remove(&(*phase, *reference)) {
                None | Some(State::Done | State::Refused(_)) => {}
                Some(State::Do(step)) => {
                    applying += 1;
                    // Kinds go one after another, the objects of one together.
                    let kind = Some((&reference.kind.group, &reference.kind.kind));
                    if stage_kind != kind {
                        self.push(std::mem::take(&mut stage));
                        stage_kind = kind;
                    }
                    stage.push(step);
                }
                Some(State::Wait(status, reason, recheck)) => {
                    self.block(*phase, *wave, reference, status, reason);
                    self.recheck(recheck);
                }
                Some(State::Fail(reason)) => {
                    let hook = self
                        .wanted(reference)
                        .is_some_and(|(_, one)| matches!(one.member.options.role, Role::Hook(_)));
                    hook_failed |= hook;
                    failing = true;
                    self.block(*phase, *wave, reference, HealthStatus::Degraded, reason);
                }
            }
        }
        self.push(stage);
        let behind = |state: &&State| matches!(state, State::Do(_));
        self.plan.waiting = states.values().filter(behind).count();
        if hook_failed {
            self.fail();
            return;
        }
        self.plan.progress = if applying > 0 {
            Progress::Applying
        } else if open.is_empty() {
            Progress::Complete
        } else if last_step && self.plan.waiting == 0 {
            Progress::Applied
        } else {
            Progress::Waiting
        };
        // What is begun is ended, though all be well meanwhile.
        if failing && self.deal_with_failure() {
            self.plan.progress = self.plan.progress.min(Progress::Applied);
        }
        self.clean_up_hooks();
    }

    /// A hook has failed: what this sync has not begun stays undone, and the hooks
    /// for that case run.
    fn fail(&mut self) {
        self.plan.stages.clear();
        self.plan.progress = Progress::Failed;
        self.deal_with_failure();
        self.clean_up_hooks();
    }

    /// Whether a hook for the case of a failure has begun. One that has other phases,
    /// too, may have begun for those.
    fn failure_is_dealt_with(&self) -> bool {
        let only_for_failure = |one: &&Wanted| match &one.member.options.role {
            Role::Hook(hook) => hook.phases.iter().all(|phase| *phase == Phase::SyncFail),
            Role::Resource | Role::Skipped => false,
        };
        let mut hooks = self.situation.wanted.iter().filter(only_for_failure);
        hooks.any(|one| {
            let key = hook_key(Phase::SyncFail, &one.stamped.reference);
            let state = self.plan.hooks.get(&key);
            !matches!(
                state,
                None | Some(HookState::Pending | HookState::Again { .. })
            )
        })
    }

    /// Runs the hooks for the case of a failure, once a sync. Whether they fail too
    /// changes nothing. Returns whether one of them has yet to end.
    fn deal_with_failure(&mut self) -> bool {
        for step in &self.situation.sequence.on_failure {
            let mut open = false;
            let mut stage = Vec::new();
            for reference in step.objects() {
                let Some((index, one)) = self.wanted(reference) else {
                    continue;
                };
                let Role::Hook(hook) = &one.member.options.role else {
                    continue;
                };
                match self.hook(index, one, hook, step.phase) {
                    State::Do(write) => stage.push(write),
                    State::Wait(..) => open = true,
                    State::Done | State::Fail(_) | State::Refused(_) => {}
                }
            }
            open |= !stage.is_empty();
            self.push(stage);
            if open {
                return true;
            }
        }
        false
    }

    /// How an ordinary object is.
    fn object(&self, index: usize, one: &Wanted) -> State {
        let options = &one.member.options;
        if options.skip_reconcile || options.apply == ApplyMode::Ignore {
            return State::Done;
        }
        if let Some(unserved) = self.unserved(one) {
            return unserved;
        }
        if options.apply == ApplyMode::Contribute {
            return self.contribution(index, one);
        }
        let left_alone = options.apply == ApplyMode::IfNotPresent;
        let Some(live) = self.live.get(&one.stamped.reference) else {
            // It is there, and whose it is does not matter.
            if left_alone && self.situation.left_alone.contains(&one.stamped.reference) {
                return State::Done;
            }
            return State::Do(apply(index, ApplyReason::Absent, None));
        };
        if live.deleting {
            let reason = "it is being deleted, and made anew when it is gone";
            return State::Wait(HealthStatus::Terminating, reason.to_owned(), None);
        }
        let stubborn = || {
            let known = self.situation.stubborn.get(&live.reference);
            known.is_some_and(|known| *known == live.fingerprint())
        };
        if !left_alone
            && let Some(reason) = difference(&one.stamped, live, self.situation.schemas)
            && !stubborn()
        {
            return State::Do(apply(index, reason, Some(live.uid.clone())));
        }
        // What is left alone is judged as what it is: what is wanted now was never sent.
        let sent = live.annotations.get(APPLIED_ANNOTATION) == Some(&one.stamped.applied);
        let applied = (sent || !left_alone).then(|| applied(one, live));
        match (self.situation.gate)(live, applied) {
            Gate::Pass => State::Done,
            Gate::Wait {
                status,
                reason,
                recheck_after,
            } => State::Wait(status, reason, recheck_after),
            Gate::Fail { reason } => State::Fail(reason),
        }
    }

    /// That an object waits for its kind, if it does.
    pub(super) fn unserved(&self, one: &Wanted) -> Option<State> {
        let kind = &one.stamped.reference.kind;
        let waits = self.situation.unserved.contains(kind);
        waits.then(|| {
            let reason = format!(
                "the api server does not serve {kind} yet: its definition is not there, or not \
                 established, or has no such version; it is made when the kind is served"
            );
            State::Wait(HealthStatus::Missing, reason, None)
        })
    }

    /// How a contribution to somebody's object is. The object's health is its
    /// owner's concern.
    fn contribution(&self, index: usize, one: &Wanted) -> State {
        if self.live.get(&one.stamped.reference).is_some() {
            let reason = "the unit made this object itself, and has yet to let go of it: delete \
                          it, or return it without `reeve.dev/apply: Contribute`";
            return State::Fail(reason.to_owned());
        }
        let wait = |status, reason: &str| State::Wait(status, reason.to_owned(), None);
        match self.situation.contributions.judge(self.situation, one) {
            Contribution::InPlace => State::Done,
            Contribution::Absent => wait(
                HealthStatus::Missing,
                "it does not exist, and is contributed to when somebody has made it",
            ),
            Contribution::Deleting => wait(HealthStatus::Terminating, "it is being deleted"),
            Contribution::Held(refusal) => State::Refused(refusal),
            Contribution::Differs { uid, again } => State::Do(Step::Contribute {
                wanted: index,
                uid,
                again,
            }),
        }
    }

    pub(super) fn push(&mut self, stage: Vec<Step>) {
        if !stage.is_empty() {
            self.plan.stages.push(stage);
        }
    }

    /// The worst of the first step is what is told.
    pub(super) fn block(
        &mut self,
        phase: Phase,
        wave: Option<i64>,
        object: &ObjectReference,
        status: HealthStatus,
        reason: String,
    ) {
        let worse = self
            .plan
            .blocked
            .as_ref()
            .is_none_or(|told| status > told.status);
        if worse {
            self.plan.blocked = Some(Blocked {
                phase,
                wave,
                object: object.clone(),
                status,
                reason,
            });
        }
    }

    pub(super) fn recheck(&mut self, after: Option<Duration>) {
        self.plan.recheck_after = match (self.plan.recheck_after, after) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

pub(super) fn apply(wanted: usize, reason: ApplyReason, uid: Option<String>) -> Step {
    Step::Apply {
        wanted,
        reason,
        uid,
    }
}

/// What is known of our apply of an object that carries what we sent last.
pub(super) fn applied<'a>(one: &'a Wanted, live: &Observed) -> Applied<'a> {
    Applied {
        generation: live.generation,
        digest: &one.stamped.applied,
        body: one.stamped.written(),
    }
}
