//! The wall clock, as an input.
//!
//! Waiting is tokio's business, which a test can pause; what time it is comes
//! from here, so that the harness can decide that too.

use k8s_openapi::jiff::Timestamp;

/// Tells the time.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that starts where it is told and goes on with tokio's time, so that it
/// stands still while tokio's time is paused.
#[derive(Clone, Copy, Debug)]
pub struct VirtualClock {
    start: Timestamp,
    since: tokio::time::Instant,
}

impl VirtualClock {
    /// A clock that shows `start` now. Must be called within a tokio runtime.
    pub fn new(start: Timestamp) -> Self {
        Self {
            start,
            since: tokio::time::Instant::now(),
        }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.start
            .checked_add(self.since.elapsed())
            .unwrap_or(self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn virtual_time_is_tokios() {
        let clock = VirtualClock::new(Timestamp::from_second(100).unwrap());
        assert_eq!(clock.now().as_second(), 100);
        tokio::time::sleep(Duration::from_secs(7)).await;
        assert_eq!(clock.now().as_second(), 107);
    }
}
