//! Growing delays between attempts.

use std::time::Duration;

/// How long to wait before attempt after attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Delay after the first failure.
    pub base: Duration,
    /// No delay is longer than this.
    pub cap: Duration,
}

impl Backoff {
    /// For units: half a second, doubled up to five minutes. A unit that fails
    /// costs its neighbours little at these rates, and a cause that goes away by
    /// itself (a namespace about to be made) is met within seconds.
    pub const UNIT: Self = Self {
        base: Duration::from_millis(500),
        cap: Duration::from_secs(300),
    };

    /// For connections and discovery: a quarter of a second, up to ten seconds, so
    /// that an API server that returns is met soon by every agent, but not at once.
    pub const CONNECTION: Self = Self {
        base: Duration::from_millis(250),
        cap: Duration::from_secs(10),
    };

    /// The delay after this many failures in a row, the first being 1, spread by
    /// `jitter` in 0..=1 over the upper half of the interval. No failures, no delay.
    pub fn delay(&self, failures: u32, jitter: f64) -> Duration {
        if failures == 0 {
            return Duration::ZERO;
        }
        let doubled = 2u32.saturating_pow(failures - 1);
        let full = self.base.saturating_mul(doubled).min(self.cap);
        full.mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_cap() {
        let backoff = Backoff {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(10),
        };
        for (failures, seconds) in [
            (0, 0),
            (1, 1),
            (2, 2),
            (3, 4),
            (4, 8),
            (5, 10),
            (u32::MAX, 10),
        ] {
            assert_eq!(
                backoff.delay(failures, 1.0),
                Duration::from_secs(seconds),
                "{failures}"
            );
        }
    }

    #[test]
    fn jitter_keeps_the_upper_half() {
        let backoff = Backoff::UNIT;
        assert_eq!(backoff.delay(1, 0.0), backoff.base / 2);
        assert_eq!(backoff.delay(1, f64::MAX), backoff.base);
    }
}
