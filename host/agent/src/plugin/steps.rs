//! Units that follow what they have made themselves.
//!
//! A plugin may read what it makes, and want something else for that. Where it comes to rest
//! after some steps that is in order; where it does not it would be run, and its objects
//! written, for ever. It is let go on, and more and more slowly.

use reeve_core::backoff::Backoff;
use std::time::Duration;

/// So many steps are made at once, as when a version is tried before it runs.
const AT_ONCE: u32 = 10;

/// Steps of one unit.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    /// Whether an object of the unit has changed by the agent's own write since a run began.
    own: bool,
    /// Whether anything else has that the unit goes by.
    other: bool,
    /// The same, of the run that is under way.
    running: (bool, bool),
    /// Steps one after the other.
    in_a_row: u32,
}

impl Steps {
    /// Something that the unit has read has changed; `own` says whether it is an object of the
    /// unit that the agent has written. Returns how long the unit is to wait before it runs
    /// for that.
    pub(crate) fn woken(&mut self, own: bool) -> Duration {
        match own {
            true => self.own = true,
            false => self.other = true,
        }
        match own {
            true => self.pause(),
            false => Duration::ZERO,
        }
    }

    /// A run begins.
    pub(crate) fn begin(&mut self) {
        self.running = (
            std::mem::take(&mut self.own),
            std::mem::take(&mut self.other),
        );
    }

    /// A run has ended; `differs` says whether it wants something else than the one before.
    pub(crate) fn end(&mut self, differs: bool) {
        let (own, other) = std::mem::take(&mut self.running);
        self.in_a_row = match own && differs && !other {
            true => self.in_a_row.saturating_add(1),
            false => 0,
        };
    }

    /// How many steps there were in a row, once these are too many.
    pub(crate) fn too_many(&self) -> Option<u32> {
        (self.in_a_row > AT_ONCE).then_some(self.in_a_row)
    }

    fn pause(&self) -> Duration {
        Backoff::UNIT.delay(self.in_a_row.saturating_sub(AT_ONCE), 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(steps: &mut Steps, own: bool, differs: bool) -> Duration {
        steps.begin();
        // Its own write is told before the run has ended.
        let pause = steps.woken(own);
        steps.end(differs);
        pause
    }

    #[test]
    fn endless_steps_are_made_more_and_more_slowly() {
        let mut steps = Steps::default();
        // The first is for another reason.
        for _ in 0..=AT_ONCE + 1 {
            assert_eq!(step(&mut steps, true, true), Duration::ZERO);
        }
        let mut before = Duration::ZERO;
        for _ in 0..5 {
            let pause = step(&mut steps, true, true);
            assert!(pause > before, "{pause:?}");
            before = pause;
        }
        assert_eq!(steps.too_many(), Some(AT_ONCE + 6));
        for _ in 0..30 {
            before = step(&mut steps, true, true);
        }
        assert_eq!(before, Backoff::UNIT.cap);
    }

    #[test]
    fn what_rests_or_goes_by_something_else_begins_anew() {
        for (own, differs) in [(true, false), (false, true)] {
            let mut steps = Steps::default();
            for _ in 0..20 {
                step(&mut steps, true, true);
            }
            assert!(steps.too_many().is_some());
            step(&mut steps, own, differs);
            step(&mut steps, true, own);
            assert_eq!(steps.too_many(), None, "{own} {differs}");
        }
    }
}
