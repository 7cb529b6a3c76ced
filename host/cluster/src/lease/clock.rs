//! The clock by which a lease is judged.

use std::fmt;
use std::time::Duration;

/// A point on a [`BootClock`], as the time since some fixed moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub Duration);

impl Moment {
    /// The moment this much later.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }

    /// The time from `earlier` to this moment; zero if it is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// A clock that never stands still, is never set, and never goes back. Time in
/// which the machine sleeps or the process is stopped counts.
pub trait BootClock: fmt::Debug + Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Moment;
}

/// The machine's own.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemBootClock;

impl BootClock for SystemBootClock {
    fn now(&self) -> Moment {
        // Linux stops CLOCK_MONOTONIC while the machine sleeps; elsewhere it is
        // the clock that does not.
        #[cfg(target_os = "linux")]
        const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
        let time = rustix::time::clock_gettime(CLOCK);
        // Neither is ever negative.
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
        Moment(Duration::new(seconds, nanoseconds))
    }
}

/// tokio's clock, which a test can pause and advance.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock(tokio::time::Instant);

impl TokioClock {
    /// A clock that shows zero now. Must be made within a tokio runtime.
    #[expect(clippy::new_without_default, reason = "it has to be made in a runtime")]
    pub fn new() -> Self {
        Self(tokio::time::Instant::now())
    }
}

impl BootClock for TokioClock {
    fn now(&self) -> Moment {
        Moment(self.0.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_goes_on() {
        let clock = SystemBootClock;
        let first = clock.now();
        assert!(first.0 > Duration::ZERO);
        let mut later = clock.now();
        while later == first {
            later = clock.now();
        }
        assert!(later > first);
    }
}
