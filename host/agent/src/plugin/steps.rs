//! Units that follow what they have made themselves.
//!
//! A plugin may read what it makes, and want something else for that. Where it comes to rest
//! after some steps that is in order; where it does not it would be run, and its objects
//! written, for ever. It is let go on, and more and more slowly.

use reeve_core::backoff::Backoff;
use std::time::Duration;

/// So many steps are made at once. One that makes something when it sees that something else
/// is there takes as many as it has such objects.
pub(crate) const AT_ONCE: u32 = 10;

/// No unit waits longer than this where an object of another unit has changed by the agent's
/// own write: it may follow many of them, which are made one after the other.
const LONGEST_FOR_OTHERS: Duration = Duration::from_secs(10);

/// What a unit is woken by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waker {
    /// What it has made or contributed to, as the agent has written it.
    Itself,
    /// What the agent has written for another unit.
    Other,
    /// Anything else.
    World,
}

/// Steps of one unit.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    /// Whether the agent's own writes have woken it since a run began.
    woken: bool,
    /// The same, of the run that is under way.
    follows: bool,
    /// Steps that followed closely on one another.
    made: u32,
}

impl Steps {
    /// Something that the unit has read has changed. Returns how long the unit is to wait
    /// before it runs for that.
    pub(crate) fn woken(&mut self, by: Waker) -> Duration {
        self.woken |= by != Waker::World;
        match by {
            Waker::Itself => self.pause(),
            Waker::Other => self.pause().min(LONGEST_FOR_OTHERS),
            Waker::World => Duration::ZERO,
        }
    }

    /// A run begins.
    pub(crate) fn begin(&mut self) {
        self.follows = std::mem::take(&mut self.woken);
    }

    /// A run has ended; `differs` says whether it wants something else than the one before.
    /// Each that does not halves the count: what others do in between is told apart by that.
    pub(crate) fn end(&mut self, differs: bool) {
        let follows = std::mem::take(&mut self.follows);
        match (differs, follows) {
            (true, true) => self.made = self.made.saturating_add(1),
            (true, false) => {}
            (false, _) => self.made /= 2,
        }
    }

    /// How long it is to wait before it follows its own writes again; none while it may at
    /// once.
    pub(crate) fn pause(&self) -> Duration {
        Backoff::UNIT.delay(self.made.saturating_sub(AT_ONCE), 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(steps: &mut Steps, by: Waker, differs: bool) -> Duration {
        steps.begin();
        // Its own write is told before the run has ended.
        let pause = steps.woken(by);
        steps.end(differs);
        pause
    }

    #[test]
    fn endless_steps_are_made_more_and_more_slowly() {
        let mut steps = Steps::default();
        // The first is for another reason.
        for _ in 0..=AT_ONCE + 1 {
            assert_eq!(step(&mut steps, Waker::Itself, true), Duration::ZERO);
        }
        let mut before = Duration::ZERO;
        for _ in 0..5 {
            let pause = step(&mut steps, Waker::Itself, true);
            assert!(pause > before, "{pause:?}");
            before = pause;
        }
        for _ in 0..30 {
            before = step(&mut steps, Waker::Itself, true);
        }
        assert_eq!(before, Backoff::UNIT.cap);
        // Whoever follows others waits less, and whatever the world does is answered at once.
        assert_eq!(steps.woken(Waker::Other), LONGEST_FOR_OTHERS);
        assert_eq!(steps.woken(Waker::World), Duration::ZERO);
    }

    /// Each change of the world is written, and seen once more as written.
    #[test]
    fn who_rests_in_between_is_never_slowed() {
        let mut steps = Steps::default();
        for _ in 0..1_000 {
            assert_eq!(step(&mut steps, Waker::Itself, true), Duration::ZERO);
            assert_eq!(step(&mut steps, Waker::World, false), Duration::ZERO);
        }
    }

    #[test]
    fn what_comes_to_rest_is_soon_as_before() {
        let mut steps = Steps::default();
        for _ in 0..20 {
            step(&mut steps, Waker::Itself, true);
        }
        assert!(!steps.pause().is_zero());
        step(&mut steps, Waker::World, false);
        assert!(steps.pause().is_zero());
    }

    /// Where others answer what it writes, and it answers them.
    #[test]
    fn who_is_woken_by_others_in_between_is_slowed_too() {
        let mut steps = Steps::default();
        for _ in 0..20 {
            step(&mut steps, Waker::Itself, true);
            step(&mut steps, Waker::World, true);
        }
        assert!(!steps.pause().is_zero());
    }
}
