//! Hooks of a sync or of an end: how far they are, and what is done about them.

use super::difference::{ApplyReason, difference};
use super::surplus::Withdrawal;
use super::sync::{Hooks, State, Walk, applied, apply};
use super::{Observed, Step, Wanted};
use crate::health::{Gate, HealthStatus};
use crate::kind::ObjectReference;
use crate::waves::{Hook, HookState, Phase, Removal, Role};

impl Walk<'_, '_> {
    /// How far the hooks are, after looking at them once more.
    pub(super) fn hooks_now(&self) -> Hooks {
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

    /// How a hook of a phase is.
    pub(super) fn hook(&self, index: usize, one: &Wanted, hook: &Hook, phase: Phase) -> State {
        let reference = &one.stamped.reference;
        let state = self.plan.hooks.get(&hook_key(phase, reference));
        let ended = matches!(
            state,
            Some(HookState::Succeeded { .. } | HookState::Failed { .. })
        );
        if let Some(unserved) = self.unserved(one).filter(|_| !ended) {
            return unserved;
        }
        match state {
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
    pub(super) fn clean_up_hooks(&mut self) {
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

/// Whether a key of [`Hooks`] is of a hook in this phase.
pub fn is_of_phase(key: &str, phase: Phase) -> bool {
    let named = key.split_once(' ').map(|(name, _)| name);
    named == Some(phase.to_string().as_str())
}

pub(super) fn hook_key(phase: Phase, reference: &ObjectReference) -> String {
    format!("{phase} {reference}")
}
