//! When nothing is written for a while, since nothing can be.

use reeve_core::backoff::Backoff;
use tokio::time::Instant;

/// The time after failures that say nothing about what was to be written.
#[derive(Default)]
pub(super) struct Pause {
    /// Failures in a row; those of writes that were under way together are one.
    failures: u32,
    /// When the last of them came.
    last: Option<Instant>,
    /// Until when nothing is begun.
    until: Option<Instant>,
}

impl Pause {
    /// Notes that a write failed which began then, and how long the API server has told to
    /// wait, if it has.
    pub(super) fn failed(&mut self, began: Instant, told: Option<Instant>) {
        if self.is_later(began) {
            let now = Instant::now();
            self.failures += 1;
            self.last = Some(now);
            self.until = Some(now + Backoff::CONNECTION.delay(self.failures, 1.0));
        }
        self.until = self.until.max(told);
    }

    /// Notes that the API server has answered to a write that began then. What it has told
    /// since holds.
    pub(super) fn answered(&mut self, began: Instant) {
        if self.is_later(began) {
            self.failures = 0;
        }
    }

    /// Whether something was begun after the last failure.
    fn is_later(&self, began: Instant) -> bool {
        self.last.is_none_or(|last| last < began)
    }

    /// Whether it is not known that the API server answers.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.failures > 0
    }

    pub(super) async fn over(&self) {
        if let Some(until) = self.until {
            tokio::time::sleep_until(until).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::advance;

    const SECOND: Duration = Duration::from_secs(1);

    async fn pause_of(pause: &Pause) -> Duration {
        let start = Instant::now();
        pause.over().await;
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_together_counts_once() {
        let mut pause = Pause::default();
        let began = Instant::now();
        advance(SECOND).await;
        for _ in 0..3 {
            pause.failed(began, None);
        }
        assert_eq!(pause_of(&pause).await, Backoff::CONNECTION.delay(1, 1.0));
        advance(SECOND).await;
        pause.failed(Instant::now() - SECOND / 2, None);
        assert_eq!(pause_of(&pause).await, Backoff::CONNECTION.delay(2, 1.0));
        let began = Instant::now();
        advance(SECOND).await;
        pause.answered(began);
        assert!(!pause.is_in_doubt());
        assert_eq!(pause_of(&pause).await, Duration::ZERO);
    }

    /// Slow writes that end one after another, and fail, are no reason to go on for ever.
    #[tokio::test(start_paused = true)]
    async fn each_round_of_slow_failures_counts() {
        let mut pause = Pause::default();
        let mut began = [Instant::now(); 4];
        for round in 1..6 {
            advance(7 * SECOND).await;
            for began in &mut began {
                pause.failed(*began, None);
                advance(SECOND / 2).await;
                *began = Instant::now();
            }
            assert_eq!(pause.failures, round);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_earlier_success_ends_no_pause() {
        let mut pause = Pause::default();
        let began = Instant::now();
        advance(SECOND).await;
        let told = Instant::now() + 20 * SECOND;
        pause.failed(began, Some(told));
        pause.answered(began);
        assert!(pause.is_in_doubt());
        pause.failed(began, None);
        pause.over().await;
        assert_eq!(Instant::now(), told);
    }
}
