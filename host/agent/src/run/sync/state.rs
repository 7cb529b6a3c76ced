//! How far the sync of a unit is, between runs.

use crate::problem::Problem;
use crate::run::Approved;
use k8s_openapi::jiff::Timestamp;
use reeve_api::Reason;
use reeve_core::health::{Context, Overrides, Rule};
use reeve_core::plan::{Blocked, Hooks, Plan, Progress, Stubborn, Wanted, is_of_phase};
use reeve_core::waves::{HookState, Phase, WaveWait};
use reeve_core::{Digest, ObjectReference};
use serde_json::Value;

/// An object that is refused so often in a row is refused for good: it may have
/// changed just then, or a webhook been away for a moment.
const REFUSALS: u32 = 2;

/// How far a desired revision has come; what is remembered of a unit between
/// runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sync {
    /// The revision; none before the first answer.
    pub(crate) revision: Option<Digest>,
    /// Whether it was complete once.
    pub(crate) settled: bool,
    /// How far its hooks are.
    pub(crate) hooks: Hooks,
    /// What sending does not change.
    pub(crate) stubborn: Stubborn,
    /// Contributions that were sent and accepted: object and digest.
    pub(crate) sent: Vec<(ObjectReference, String)>,
    /// How far it is now.
    pub(crate) progress: Progress,
    /// What it waits for.
    pub(crate) blocked: Option<Blocked>,
    /// Since when the wave of that is waited for.
    pub(crate) wait: Option<WaveWait>,
    /// Whether all that it has to apply was looked at before the first of it was
    /// applied, and nothing would be refused.
    pub(crate) tried: bool,
    /// How often in a row objects were refused.
    pub(crate) refusals: u32,
    /// Whether it has failed, though no hook has; see [`Situation::failing`].
    ///
    /// [`Situation::failing`]: reeve_core::plan::Situation::failing
    pub(crate) failing: bool,
    /// What a person has approved, while it is being carried out.
    pub(crate) approved: Option<Approved>,
    /// The plan that a person approved last.
    pub(crate) used_approval: Option<String>,
}

impl Sync {
    /// Whether a restart must find it again.
    pub(crate) fn is_durable(&self) -> bool {
        self.hooks
            .values()
            .any(|state| *state != HookState::Pending)
            || self.approved.is_some()
    }

    /// Notes how a hook was doing that has just gone, if it is one that ran: who deletes
    /// Jobs when they are done may be faster than any look.
    pub(crate) fn note_gone(&mut self, uid: &str, live: impl FnOnce() -> Value, now: Timestamp) {
        let running =
            |state: &HookState| matches!(state, HookState::Running { uid: one } if one == uid);
        if !self.hooks.values().any(running) {
            return;
        }
        let live = live();
        let Ok(rule) = Rule::of(&live) else {
            return;
        };
        let context = Context {
            overrides: Overrides::of(&live).0,
            rule: rule.as_ref(),
            ..Context::at(now)
        };
        for state in self.hooks.values_mut().filter(|state| running(state)) {
            *state = state.clone().advance(Some(&live), &context);
        }
    }

    /// Keeps the ends of hooks that were noted while the run went on of which this is the
    /// result: they went before it could look.
    pub(crate) fn keep_ends(&mut self, noted: &Self) {
        for (name, state) in &mut self.hooks {
            let end = noted
                .hooks
                .get(name)
                .filter(|_| self.revision == noted.revision);
            if let (
                HookState::Running { uid } | HookState::Failed { uid, .. },
                Some(
                    end @ (HookState::Succeeded { uid: ended }
                    | HookState::Failed { uid: ended, .. }),
                ),
            ) = (&*state, end)
                && uid == ended
            {
                *state = end.clone();
            }
        }
    }

    /// A new attempt: a wave gets its time anew, and what a hook has ended begins
    /// again.
    pub(in crate::run) fn retried(self) -> Self {
        match self.progress {
            Progress::Failed => self.anew(),
            _ if self.settled => Self { wait: None, ..self },
            _ => {
                let hooks = self.hooks.into_iter();
                let hooks = hooks.map(|(name, state)| match is_of_phase(&name, Phase::SyncFail) {
                    true => (name, state.again()),
                    false => (name, state),
                });
                Self {
                    wait: None,
                    refusals: 0,
                    hooks: hooks.collect(),
                    ..self
                }
            }
        }
    }

    /// The sync of the same revision from its beginning, hooks included.
    pub(super) fn anew(self) -> Self {
        let hooks = self.hooks.into_iter();
        Self {
            revision: self.revision,
            hooks: hooks.map(|(name, state)| (name, state.again())).collect(),
            used_approval: self.used_approval,
            ..Self::default()
        }
    }

    /// Notes how far a plan says that it is.
    pub(super) fn note(&mut self, plan: &Plan, now: Timestamp) {
        self.hooks.clone_from(&plan.hooks);
        self.progress = plan.progress;
        self.blocked.clone_from(&plan.blocked);
        self.settled |= plan.progress == Progress::Complete;
        let blocked = plan.blocked.as_ref().filter(|_| !self.settled);
        self.wait = WaveWait::follow(self.wait.take(), blocked, now);
    }

    /// Whether its wave takes longer than it may.
    pub(super) fn is_late(&self, wanted: &[Wanted], now: Timestamp) -> bool {
        let wait = self.wait.as_ref();
        wait.is_some_and(|wait| wait.left(wait.timeout(wanted), now).is_none())
    }

    /// Whether objects are refused, and not just for a moment.
    pub(crate) fn is_refused(&self) -> bool {
        self.refusals >= REFUSALS
    }

    /// Notes what came of carrying out a plan. Returns whether that is what makes it a
    /// refusal.
    pub(super) fn note_refusals(&mut self, problems: &[Problem]) -> bool {
        let before = self.is_refused();
        let is_refusal = |problem: &&Problem| {
            matches!(
                problem.reason,
                Reason::Forbidden
                    | Reason::Conflict
                    | Reason::FieldImmutable
                    | Reason::OutcomeRefused
                    | Reason::ApplyFailed
            )
        };
        let refused: Vec<&Problem> = problems.iter().filter(is_refusal).collect();
        self.refusals = if refused.is_empty() {
            0
        } else if refused.iter().all(|problem| problem.retries) {
            self.refusals.saturating_add(1)
        } else {
            // It is not tried a second time.
            REFUSALS
        };
        self.is_refused() && !before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_hook_that_went_before_any_look_ended_as_it_was_seen_last() {
        let running = |uid: &str| HookState::Running { uid: uid.into() };
        let job = |status: Value| {
            json!({
                "apiVersion": "batch/v1", "kind": "Job",
                "metadata": {"name": "hook", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"template": {}}, "status": status,
            })
        };
        let ended = |kind| json!({"conditions": [{"type": kind, "status": "True"}]});
        let now = Timestamp::UNIX_EPOCH;
        let after = |uid: &str, status: Value| {
            let mut sync = Sync::default();
            sync.hooks.insert("PreSync Job hook".into(), running(uid));
            sync.note_gone("u", || job(status), now);
            sync
        };
        let state = |sync: &Sync| sync.hooks["PreSync Job hook"].clone();
        let done = after("u", ended("Complete"));
        assert_eq!(state(&done), HookState::Succeeded { uid: "u".into() });
        let failed = state(&after("u", ended("Failed")));
        assert!(matches!(failed, HookState::Failed { uid, .. } if uid == "u"));
        assert_eq!(state(&after("u", json!({}))), running("u"));
        assert_eq!(
            state(&after("another", ended("Complete"))),
            running("another")
        );
        // A run that was under way has found it gone.
        let mut ran = Sync::default();
        let gone = HookState::Failed {
            uid: "u".into(),
            reason: "it was deleted before its end was seen".into(),
        };
        ran.hooks.insert("PreSync Job hook".into(), gone.clone());
        ran.keep_ends(&after("another", json!({})));
        assert_eq!(state(&ran), gone);
        ran.keep_ends(&done);
        assert_eq!(state(&ran), state(&done));
    }

    #[test]
    fn a_refusal_is_one_that_lasts() {
        let passing = |reason| Problem::passing(reason, "");
        let mut sync = Sync::default();
        let mut turned = |problems: &[Problem]| sync.note_refusals(problems);
        assert!(!turned(&[passing(Reason::ApplyFailed)]));
        assert!(!turned(&[]), "it was for a moment");
        assert!(!turned(&[passing(Reason::Forbidden)]));
        assert!(turned(&[passing(Reason::Forbidden)]));
        assert!(!turned(&[passing(Reason::Forbidden)]), "once is once");
        assert!(
            !turned(&[passing(Reason::Unreachable)]),
            "nobody refuses it"
        );
        let lasting = Problem::lasting(Reason::FieldImmutable, "");
        assert!(turned(&[passing(Reason::Unreachable), lasting]));
        assert!(sync.is_refused() && !sync.retried().is_refused());
    }
}
