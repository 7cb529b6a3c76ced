//! The clock that timestamps come from.
//!
//! The server never reads the wall clock itself: a test or a scenario hands in
//! its own clock, so that two runs give the same objects.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use k8s_openapi::jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;

/// A source of the present time; cheap to clone.
#[derive(Clone)]
pub struct Clock {
    source: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    /// How far the clock is off its source, in milliseconds: it can be made to jump.
    skew: Arc<AtomicI64>,
    pace: Pace,
}

/// What makes time pass for those who wait. A jump of the clock does not: as with the
/// clocks of a machine, of which one is set and the other is not.
#[derive(Clone)]
enum Pace {
    /// The runtime's time, since then.
    Runtime(Instant),
    Hand(Hand),
}

/// Moves a clock on; see [`Clock::by_hand`]. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Hand {
    passed: Arc<watch::Sender<Duration>>,
}

impl Hand {
    /// Lets so much time pass. Who waits for a time that has come by this goes on.
    pub fn advance(&self, by: Duration) {
        self.passed
            .send_modify(|passed| *passed = passed.saturating_add(by));
    }

    fn passed(&self) -> Duration {
        *self.passed.borrow()
    }
}

impl Clock {
    /// A clock that asks `now` each time. Who waits by it waits in the time of tokio.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Clock {
            source: Arc::new(now),
            skew: Arc::default(),
            pace: Pace::Runtime(Instant::now()),
        }
    }

    /// A clock that reads `start` and stands still but for the hand that it comes with:
    /// everything in a server that waits by its clock waits for that hand, in whatever
    /// time its callers live.
    pub fn by_hand(start: SystemTime) -> (Self, Hand) {
        let hand = Hand {
            passed: Arc::new(watch::Sender::new(Duration::ZERO)),
        };
        let own = hand.clone();
        let clock = Clock {
            source: Arc::new(move || start + own.passed()),
            skew: Arc::default(),
            pace: Pace::Hand(hand.clone()),
        };
        (clock, hand)
    }

    /// The wall clock.
    pub fn system() -> Self {
        Clock::new(SystemTime::now)
    }

    /// A clock that reads `start` now and moves with tokio's, so that it stands
    /// still and jumps as a paused runtime does.
    pub fn following_tokio(start: SystemTime) -> Self {
        let origin = Instant::now();
        Clock::new(move || start + origin.elapsed())
    }

    /// The present time.
    pub fn now(&self) -> SystemTime {
        let now = (self.source)();
        let skew = self.skew.load(Ordering::Relaxed);
        let by = Duration::from_millis(skew.unsigned_abs());
        let skewed = if skew < 0 {
            now.checked_sub(by)
        } else {
            now.checked_add(by)
        };
        skewed.unwrap_or(now)
    }

    /// The same clock, which jumps without the others.
    pub(crate) fn separate(self) -> Self {
        Clock {
            skew: Arc::new(AtomicI64::new(self.skew.load(Ordering::Relaxed))),
            source: self.source,
            pace: self.pace,
        }
    }

    /// How much time has passed since some moment before, in which no jump shows.
    pub(crate) fn passed(&self) -> Duration {
        match &self.pace {
            Pace::Runtime(origin) => origin.elapsed(),
            Pace::Hand(hand) => hand.passed(),
        }
    }

    /// Waits until so much time has [`passed`](Self::passed).
    pub(crate) async fn reaches(&self, at: Duration) {
        match &self.pace {
            Pace::Runtime(_) => tokio::time::sleep(at.saturating_sub(self.passed())).await,
            Pace::Hand(hand) => {
                // This end is there as long as the clock is.
                let _ = hand
                    .passed
                    .subscribe()
                    .wait_for(|passed| *passed >= at)
                    .await;
            }
        }
    }

    /// Makes the clock jump by so many milliseconds, back where they are negative.
    pub(crate) fn jump(&self, by: i64) {
        self.skew.fetch_add(by, Ordering::Relaxed);
    }

    /// The present time as `metadata.creationTimestamp` writes it: RFC 3339, UTC,
    /// whole seconds.
    pub fn timestamp(&self) -> String {
        rfc3339(self.now())
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::system()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.timestamp()).finish()
    }
}

/// `time` in RFC 3339, UTC, whole seconds. Times before 1970 are shown as 1970.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    seconds_of(Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX))
}

/// `time` in RFC 3339, UTC, without its fraction of a second.
pub(crate) fn seconds_of(time: Timestamp) -> String {
    let nanoseconds = time.as_nanosecond().rem_euclid(1_000_000_000);
    let whole = (time.as_nanosecond() - nanoseconds) / 1_000_000_000;
    let whole = i64::try_from(whole)
        .ok()
        .and_then(|s| Timestamp::from_second(s).ok());
    whole.unwrap_or(time).to_string()
}

/// The time that a text in RFC 3339 means, from 1970 on.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let time: Timestamp = text.parse().ok()?;
    let since = Duration::try_from(time.as_duration()).ok()?;
    UNIX_EPOCH.checked_add(since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        let time = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        assert_eq!(parse(&rfc3339(time)), Some(time));
        assert_eq!(parse("1969-01-01T00:00:00Z"), None);
        assert_eq!(parse("yesterday"), None);
    }

    #[test]
    fn timestamps_are_whole_seconds_in_utc() {
        let clock = Clock::new(|| UNIX_EPOCH + Duration::from_millis(1_700_000_000_900));
        assert_eq!(clock.timestamp(), "2023-11-14T22:13:20Z");
    }

    #[test]
    fn clocks_jump_apart() {
        let clock = Clock::new(|| UNIX_EPOCH + Duration::from_secs(100));
        let own = clock.clone().separate();
        own.jump(5000);
        own.jump(-65_000);
        assert_eq!(own.timestamp(), "1970-01-01T00:00:40Z");
        assert_eq!(clock.timestamp(), "1970-01-01T00:01:40Z");
    }

    #[tokio::test]
    async fn a_clock_by_hand_lets_nobody_pass_before_its_time() {
        let (clock, hand) = Clock::by_hand(UNIX_EPOCH);
        let waits = clock.reaches(Duration::from_secs(60));
        tokio::pin!(waits);
        hand.advance(Duration::from_secs(59));
        assert!(futures::poll!(&mut waits).is_pending());
        // No jump is time that passes.
        clock.jump(3_600_000);
        assert!(futures::poll!(&mut waits).is_pending());
        hand.advance(Duration::from_secs(1));
        waits.await;
        assert_eq!(clock.timestamp(), "1970-01-01T01:01:00Z");
    }

    #[tokio::test(start_paused = true)]
    async fn a_following_clock_moves_with_the_runtime() {
        let clock = Clock::following_tokio(UNIX_EPOCH);
        tokio::time::sleep(Duration::from_secs(61)).await;
        assert_eq!(clock.timestamp(), "1970-01-01T00:01:01Z");
    }
}
