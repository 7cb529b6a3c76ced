//! When nothing is written for a while, since nothing can be.

use reeve_core::backoff::Backoff;
use tokio::time::Instant;

/// The time after a failure that says nothing about what was to be written.
#[derive(Default)]
pub(super) struct Pause {
    /// Failures in a row.
    failures: u32,
    /// When the last of them came, and until when nothing is begun.
    last: Option<(Instant, Instant)>,
}

impl Pause {
    /// Notes that a write failed which began then. Those that were under way together fail
    /// together, and count once.
    pub(super) fn failed(&mut self, began: Instant, told: Option<Instant>) {
        let now = Instant::now();
        let mut until = self.last.map_or(now, |(_, until)| until);
        if self.last.is_none_or(|(last, _)| last < began) {
            self.failures += 1;
            until = now + Backoff::CONNECTION.delay(self.failures, 1.0);
        }
        self.last = Some((now, told.map_or(until, |told| told.max(until))));
    }

    pub(super) async fn over(&self) {
        if let Some((_, until)) = self.last {
            tokio::time::sleep_until(until).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn what_fails_together_counts_once() {
        let mut pause = Pause::default();
        let began = Instant::now();
        tokio::time::advance(Duration::from_secs(1)).await;
        for _ in 0..3 {
            pause.failed(began, None);
        }
        assert_eq!(pause.failures, 1);
        let first = Instant::now();
        pause.over().await;
        let first = first.elapsed();
        assert_eq!(first, Backoff::CONNECTION.delay(1, 1.0));
        // That is tried again, and the API server says when to come back.
        let began = Instant::now();
        let told = began + Duration::from_secs(3600);
        pause.failed(began, Some(told));
        pause.failed(began, None);
        assert_eq!(pause.failures, 2);
        pause.over().await;
        assert_eq!(Instant::now(), told);
    }
}
