//! How far a desired revision has come, and what its next step is.

use super::contribute::Contribution;
use super::difference::{ApplyReason, difference};
use super::observed::{Identity, Live};
use super::surplus::Withdrawal;
use super::{Observed, Plan, Refusal, Situation, Step, Wanted};
use crate::health::{Applied, Gate, HealthStatus};
use crate::kind::ObjectReference;
use crate::waves::{ApplyMode, Hook, HookState, Open, Phase, Removal, Role};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
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
enum State {
    /// Nothing holds up the next step.
    Done,
    /// This is to be done.
    Do(Step),
    /// It is waited for.
    Wait(HealthStatus, String, Option<Duration>),
    /// It failed.
    Fail(String),
    /// It is not done, and nothing waits for it.
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

struct Walk<'w, 'a> {
    situation: &'w Situation<'a>,
    live: &'w Live<'a>,
    wanted: &'w HashMap<Identity<'w>, usize>,
    plan: &'w mut Plan,
}

impl Walk<'_, '_> {
    fn wanted(&self, reference: &ObjectReference) -> Option<(usize, &Wanted)> {
        let index = *self.wanted.get(&super::observed::identity(reference))?;
        Some((index, self.situation.wanted.get(index)?))
    }

    /// How far the hooks are, after looking at them once more.
    fn hooks_now(&self) -> Hooks {
        let mut hooks = Hooks::new();
        if self.situation.settled {
            return self.situation.hooks.clone();
        }
        for one in self.situation.wanted {
            let Role::Hook(hook) = &one.member.options.role else {
                continue;
            };
            let live = self.live.get(&one.stamped.reference);
            for phase in &hook.phases {
                let key = hook_key(*phase, &one.stamped.reference);
                let state = self.situation.hooks.get(&key).cloned().unwrap_or_default();
                hooks.insert(key, self.judge(one, live, state));
            }
        }
        hooks
    }

    /// The state of a hook after a look at its object. An object of an earlier
    /// revision is not this hook's.
    fn judge(&self, one: &Wanted, live: Option<&Observed>, state: HookState) -> HookState {
        let ours =
            live.filter(|live| difference(&one.stamped, live, self.situation.schemas).is_none());
        let (uid, verdict) = match (&state, ours) {
            (HookState::Succeeded { .. } | HookState::Failed { .. }, _) => return state,
            (HookState::Pending | HookState::Again { .. }, None) => return HookState::Pending,
            // The one that is to make room.
            (HookState::Again { uid }, Some(live)) if *uid == live.uid => return state,
            (HookState::Running { uid }, None) => {
                return HookState::Failed {
                    uid: uid.clone(),
                    reason: "it was deleted before its end was seen".to_owned(),
                };
            }
            (HookState::Running { uid }, Some(live)) if *uid != live.uid => {
                return HookState::Failed {
                    uid: uid.clone(),
                    reason: "it was replaced before its end was seen".to_owned(),
                };
            }
            (_, Some(live)) => {
                let applied = applied(one, live);
                (live.uid.clone(), (self.situation.gate)(live, Some(applied)))
            }
        };
        match verdict {
            Gate::Pass => HookState::Succeeded { uid },
            Gate::Fail { reason } => HookState::Failed { uid, reason },
            Gate::Wait { .. } => HookState::Running { uid },
        }
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
                        State::Refused(refusal) => {
                            self.plan.refusals.push(*refusal);
                            State::Done
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
        let mut failed = None;
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
                    if hook {
                        failed = Some(());
                    }
                    self.block(*phase, *wave, reference, HealthStatus::Degraded, reason);
                }
            }
        }
        self.push(stage);
        let behind = |state: &&State| matches!(state, State::Do(_));
        self.plan.waiting = states.values().filter(behind).count();
        if failed.is_some() {
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
        self.clean_up_hooks();
    }

    /// A hook has failed: what this sync has not begun stays undone, and the hooks
    /// for that case run. Whether they fail too changes nothing.
    fn fail(&mut self) {
        self.plan.stages.clear();
        self.plan.progress = Progress::Failed;
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
                break;
            }
        }
        self.clean_up_hooks();
    }

    /// How an ordinary object is.
    fn object(&self, index: usize, one: &Wanted) -> State {
        let options = &one.member.options;
        if options.skip_reconcile || options.apply == ApplyMode::Ignore {
            return State::Done;
        }
        if options.apply == ApplyMode::Contribute {
            return self.contribution(index, one);
        }
        let Some(live) = self.live.get(&one.stamped.reference) else {
            return State::Do(apply(index, ApplyReason::Absent, None));
        };
        if live.deleting {
            let reason = "it is being deleted, and made anew when it is gone";
            return State::Wait(HealthStatus::Terminating, reason.to_owned(), None);
        }
        let left_alone = options.apply == ApplyMode::IfNotPresent;
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
        match (self.situation.gate)(live, Some(applied(one, live))) {
            Gate::Pass => State::Done,
            Gate::Wait {
                status,
                reason,
                recheck_after,
            } => State::Wait(status, reason, recheck_after),
            Gate::Fail { reason } => State::Fail(reason),
        }
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

    /// How a hook of a phase is.
    fn hook(&self, index: usize, one: &Wanted, hook: &Hook, phase: Phase) -> State {
        let reference = &one.stamped.reference;
        match self.plan.hooks.get(&hook_key(phase, reference)) {
            Some(HookState::Succeeded { .. }) => State::Done,
            Some(HookState::Failed { reason, .. }) => State::Fail(reason.clone()),
            Some(HookState::Running { .. }) => {
                State::Wait(HealthStatus::Progressing, "the hook runs".to_owned(), None)
            }
            Some(HookState::Again { uid })
                if let Some(live) = self.live.get(reference)
                    && live.uid == *uid
                    && !live.deleting =>
            {
                State::Do(earlier_hook(reference, live))
            }
            Some(HookState::Pending | HookState::Again { .. }) | None => match self
                .live
                .get(reference)
            {
                None => State::Do(apply(index, ApplyReason::Absent, None)),
                Some(live) if live.deleting => State::Wait(
                    HealthStatus::Terminating,
                    "the hook of an earlier sync is being deleted".to_owned(),
                    None,
                ),
                Some(live) if hook.deletes_before_creation() => {
                    State::Do(earlier_hook(reference, live))
                }
                Some(live) => State::Do(apply(index, ApplyReason::Changed, Some(live.uid.clone()))),
            },
        }
    }

    /// Deletes hooks whose end says so.
    fn clean_up_hooks(&mut self) {
        let mut stage = Vec::new();
        for one in self.situation.wanted {
            let Role::Hook(hook) = &one.member.options.role else {
                continue;
            };
            let Some(live) = self.live.get(&one.stamped.reference) else {
                continue;
            };
            let ended = hook.phases.iter().any(|phase| {
                let key = hook_key(*phase, &one.stamped.reference);
                let state = self.plan.hooks.get(&key);
                state.is_some_and(|state| {
                    let uid = match state {
                        HookState::Succeeded { uid } | HookState::Failed { uid, .. } => uid,
                        HookState::Pending
                        | HookState::Again { .. }
                        | HookState::Running { .. } => return false,
                    };
                    *uid == live.uid && hook.deletes_after(state)
                })
            });
            if ended && !live.deleting {
                stage.push(Step::Delete {
                    object: one.stamped.reference.clone(),
                    uid: live.uid.clone(),
                    reason: Withdrawal::HookEnded,
                    removal: Removal::Permitted,
                });
            }
        }
        self.push(stage);
    }

    fn push(&mut self, stage: Vec<Step>) {
        if !stage.is_empty() {
            self.plan.stages.push(stage);
        }
    }

    /// The worst of the first step is what is told.
    fn block(
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

    fn recheck(&mut self, after: Option<Duration>) {
        self.plan.recheck_after = match (self.plan.recheck_after, after) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

/// A hook runs anew by being made anew.
fn earlier_hook(reference: &ObjectReference, live: &Observed) -> Step {
    Step::Delete {
        object: reference.clone(),
        uid: live.uid.clone(),
        reason: Withdrawal::EarlierHook,
        removal: Removal::Permitted,
    }
}

fn apply(wanted: usize, reason: ApplyReason, uid: Option<String>) -> Step {
    Step::Apply {
        wanted,
        reason,
        uid,
    }
}

/// What is known of our apply of an object that carries what we sent last.
fn applied<'a>(one: &'a Wanted, live: &Observed) -> Applied<'a> {
    Applied {
        generation: live.generation,
        digest: &one.stamped.applied,
        body: &one.stamped.body,
    }
}

pub(super) fn hook_key(phase: Phase, reference: &ObjectReference) -> String {
    format!("{phase} {reference}")
}
