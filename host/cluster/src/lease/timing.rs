//! How the times of a lease hang together.

use std::time::Duration;

/// Others take over this long after they last saw the Lease change. The default of
/// client-go's leader election, which the controllers of Kubernetes use.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);

/// The leader begins nothing when it has not renewed for this long. client-go's
/// default.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(10);

/// The leader renews, and the others look, this often. client-go's default.
pub const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// A write that is begun in the last moment has at least this long before it is
/// abandoned. An apply takes some milliseconds; what is longer under way when a
/// lease cannot be renewed hangs for the same reason.
pub const SHORTEST_WRITE: Duration = Duration::from_secs(1);

/// The least distance between the end of our last write and somebody else's first:
/// for what the API server still does with a request whose connection is gone.
const LEAST_SLACK: Duration = Duration::from_secs(1);

/// The part of the lease by which clocks may differ in the time that it takes:
/// a twentieth. Clocks that are slewed differ by a thousandth.
const SLACK_PART: u32 = 20;

/// The share of the retry period by which looks are spread, so that followers do
/// not look in step. client-go spreads by 1.2 times the period, for hundreds of
/// candidates; a handful needs less and takes over sooner.
pub const RETRY_JITTER: f64 = 0.2;

/// The times of a lease, which fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTiming {
    duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
}

/// Times that do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    /// The Lease holds whole seconds.
    #[error("the lease duration has to be a whole number of seconds, at least 1, not {}", seconds(*.0))]
    Duration(Duration),
    /// Too few attempts to renew.
    #[error(
        "the retry period {} has to be more than zero and less than half of the renew deadline {}",
        seconds(*.retry_period), seconds(*.renew_deadline)
    )]
    RetryPeriod {
        /// The period.
        retry_period: Duration,
        /// The deadline.
        renew_deadline: Duration,
    },
    /// Two leaders could write at once.
    #[error(
        "the renew deadline {} leaves no time to finish writes before others take over; \
         with a lease duration of {} it can be {} at the most",
        seconds(*.renew_deadline), seconds(*.duration), seconds(*.longest)
    )]
    RenewDeadline {
        /// The deadline.
        renew_deadline: Duration,
        /// The duration.
        duration: Duration,
        /// The longest deadline that goes with the duration.
        longest: Duration,
    },
}

impl Default for LeaseTiming {
    fn default() -> Self {
        Self {
            duration: LEASE_DURATION,
            renew_deadline: RENEW_DEADLINE,
            retry_period: RETRY_PERIOD,
        }
    }
}

impl LeaseTiming {
    /// Times that fit together.
    ///
    /// # Errors
    ///
    /// When they do not: the renew deadline and [`SHORTEST_WRITE`] have to end
    /// before the lease does, less the slack, and an attempt to renew may fail
    /// without losing the lease.
    pub fn new(
        duration: Duration,
        renew_deadline: Duration,
        retry_period: Duration,
    ) -> Result<Self, TimingError> {
        let this = Self {
            duration,
            renew_deadline,
            retry_period,
        };
        if duration.is_zero() || duration.subsec_nanos() != 0 || this.whole_seconds().is_none() {
            return Err(TimingError::Duration(duration));
        }
        let longest = this.hold().saturating_sub(SHORTEST_WRITE);
        if renew_deadline > longest {
            return Err(TimingError::RenewDeadline {
                renew_deadline,
                duration,
                longest,
            });
        }
        if retry_period.is_zero() || retry_period.saturating_mul(2) >= renew_deadline {
            return Err(TimingError::RetryPeriod {
                retry_period,
                renew_deadline,
            });
        }
        Ok(this)
    }

    /// Others take over this long after they last saw the Lease change.
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// No write begins this long after the last renewal was sent.
    pub fn renew_deadline(&self) -> Duration {
        self.renew_deadline
    }

    /// The leader renews, and the others look, this often.
    pub fn retry_period(&self) -> Duration {
        self.retry_period
    }

    /// No write is under way this long after the last renewal was sent.
    pub fn hold(&self) -> Duration {
        self.duration.saturating_sub(self.slack())
    }

    fn slack(&self) -> Duration {
        LEAST_SLACK.max(self.duration / SLACK_PART)
    }

    /// The duration as the Lease holds it.
    pub(super) fn whole_seconds(&self) -> Option<i32> {
        i32::try_from(self.duration.as_secs()).ok()
    }
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_fit_together() {
        let default = LeaseTiming::default();
        let made = LeaseTiming::new(LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD);
        assert_eq!(made, Ok(default));
        assert_eq!(default.hold(), Duration::from_secs(14));
        assert!(default.renew_deadline() + SHORTEST_WRITE <= default.hold());
    }

    #[test]
    fn times_that_do_not_fit_are_refused() {
        let millis = Duration::from_millis;
        for (duration, deadline, period, expected) in [
            (4_000, 2_000, 500, None),
            (200_000, 189_000, 500, None),
            (0, 0, 0, Some("whole number of seconds")),
            (15_500, 10_000, 2_000, Some("not 15.5 s")),
            (15_000, 13_001, 2_000, Some("it can be 13 s at the most")),
            (200_000, 190_000, 500, Some("it can be 189 s at the most")),
            (1_000, 500, 100, Some("it can be 0 s at the most")),
            (
                15_000,
                10_000,
                5_000,
                Some("less than half of the renew deadline 10 s"),
            ),
            (15_000, 10_000, 0, Some("more than zero")),
        ] {
            let made = LeaseTiming::new(millis(duration), millis(deadline), millis(period));
            match (made, expected) {
                (Ok(_), None) => {}
                (Err(error), Some(text)) => {
                    assert!(error.to_string().contains(text), "{error}");
                }
                (made, expected) => panic!("{made:?} instead of {expected:?}"),
            }
        }
    }
}
