//! The state of one unit.

use super::steps::Steps;
use super::tally::{Counted, Course, Health, Tally};
use crate::effects::Effects;
use crate::event_limit::EventLimit;
use crate::execute::{Contested, Lost};
use crate::problem::Problem;
use crate::request::Attempt;
use crate::run::Sync;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use reeve_api::PlanStatus;
use reeve_core::ObjectReference;
use reeve_core::backoff::Backoff;
use reeve_core::outcome::Event;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// One primary of a plugin.
#[derive(Debug, Default)]
pub(crate) struct UnitState {
    /// How it is, as far as units are counted by that.
    counted: Counted,
    /// Failures in a row.
    pub(crate) failures: u32,
    /// What the plugin wants for it.
    pub(crate) desired: Vec<ObjectReference>,
    /// Objects of others to which it wants to contribute.
    pub(crate) contributing: Vec<ObjectReference>,
    /// Conditions as last reported.
    pub(crate) conditions: Vec<Condition>,
    /// Whether there is a `Unit` object.
    pub(crate) reported: bool,
    /// Repairs of drift that followed closely on one another, and when the last
    /// one was.
    pub(crate) drifts: u32,
    pub(crate) drifted_at: Option<Instant>,
    /// How it follows what it has made itself.
    pub(crate) steps: Steps,
    /// What was taken from the unit again and again, while that goes on.
    pub(crate) fight: Option<String>,
    /// Events of the last answer.
    pub(crate) events: Vec<Event>,
    /// Those of the last answer of an earlier term: they are told again, as the same.
    pub(crate) told_before: Vec<Event>,
    /// How many more may be recorded.
    pub(crate) event_limit: EventLimit,
    /// What keeps it from being ready.
    pub(crate) problem: Option<Problem>,
    /// How far its last revision is.
    pub(crate) sync: Sync,
    /// Since when the object that the sync waits for is waited for.
    pub(crate) blocked_since: Option<(String, Timestamp)>,
    /// Whether the primary waits for the unit's end when it is deleted.
    pub(crate) held: bool,
    /// The plan that a person has approved.
    pub(crate) approved_plan: Option<String>,
    /// Outside effects that a person lets the agent forget, by their tokens.
    pub(crate) forgotten: BTreeSet<String>,
    /// What would be written, where that waits for a person.
    pub(crate) plan: Option<PlanStatus>,
    /// What a person has asked for since the last run.
    pub(crate) attempt: Attempt,
    /// Whether a person has asked for it by its primary, and looks for what came of it.
    pub(crate) named: bool,
    /// Outside effects.
    pub(crate) effects: Effects,
    /// Writes whose answers were lost.
    pub(crate) lost: Lost,
}

/// Repairs of drift within this time belong to one fight.
const DRIFT_WINDOW: Duration = Duration::from_secs(60);
/// So many repairs are made at once; whoever then still changes the field has a
/// reason, and is answered with growing delays.
const DRIFTS_AT_ONCE: u32 = 3;

impl UnitState {
    /// One that counts in its plugin's tally.
    pub(crate) fn new(tally: Arc<Tally>) -> Self {
        Self {
            counted: Counted::new(tally),
            ..Self::default()
        }
    }

    /// Whether the primary exists, as far as is known.
    pub(crate) fn is_present(&self) -> bool {
        self.counted.get().present
    }

    /// Whether it counts as one of the plugin's units: as long as the primary exists, and
    /// after that while something is in its way.
    pub(crate) fn is_counted(&self) -> bool {
        self.counted.get().is_counted()
    }

    pub(crate) fn set_present(&mut self, present: bool) {
        let course = self.counted.get();
        self.counted.set(Course { present, ..course });
    }

    pub(crate) fn health(&self) -> Health {
        self.counted.get().health
    }

    pub(crate) fn set_health(&mut self, health: Health) {
        let course = self.counted.get();
        self.counted.set(Course { health, ..course });
    }

    /// Notes that it has run since the guard was made, or is yet to.
    pub(crate) fn set_heard(&mut self, heard: bool) {
        let course = self.counted.get();
        self.counted.set(Course { heard, ..course });
    }

    /// Notes whether it has run under the version that runs.
    pub(crate) fn set_caught_up(&mut self, caught_up: bool) {
        let course = self.counted.get();
        self.counted.set(Course {
            caught_up,
            ..course
        });
    }

    /// Notes a repair of drift.
    fn repaired(&mut self, now: Instant) {
        let closely = self
            .drifted_at
            .is_some_and(|last| now - last < DRIFT_WINDOW.max(self.pause()));
        self.drifts = if closely {
            self.drifts.saturating_add(1)
        } else {
            1
        };
        self.drifted_at = Some(now);
    }

    /// Notes what was taken back, if anything, and says for how long the unit is in a
    /// fight with somebody, if it is.
    pub(crate) fn fought(&mut self, contested: &[Contested], now: Instant) -> Option<Instant> {
        if !contested.is_empty() {
            self.repaired(now);
            if self.drifts >= DRIFTS_AT_ONCE {
                self.fight = Some(crate::execute::fight(contested));
            }
        }
        let over = self.drifted_at? + DRIFT_WINDOW.max(self.pause());
        if self.fight.is_some() && now >= over {
            self.fight = None;
        }
        self.fight.is_some().then_some(over)
    }

    /// Begins a new attempt, since a person asked for it. Whoever only looks begins none.
    pub(crate) fn try_anew(&mut self, attempt: Attempt) {
        self.attempt = self.attempt.max(attempt);
        if attempt <= Attempt::Look {
            return;
        }
        self.failures = 0;
        self.drifts = 0;
        self.steps = Steps::default();
    }

    /// When drift is to be repaired, if not at once.
    pub(crate) fn drift_delay(&self) -> Option<Instant> {
        let last = self.drifted_at.filter(|_| self.drifts >= DRIFTS_AT_ONCE)?;
        Some(last + self.pause())
    }

    fn pause(&self) -> Duration {
        Backoff::UNIT.delay(self.drifts.saturating_sub(DRIFTS_AT_ONCE - 1), 1.0)
    }
}
