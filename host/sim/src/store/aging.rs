//! How history grows old.
//!
//! The real server has etcd forget, every five minutes, what was five minutes before
//! (`--etcd-compaction-interval`): from then on nothing can be read as it was then. What
//! watches are told comes from a cache, which forgets the changes of a resource when
//! others come to it. Here nobody wakes up for that: it is looked at when something is
//! written or read, which makes no difference to who asks.

use std::time::Duration;

use super::table::Bounds;
use super::{Compacted, State, Store};
use crate::clock::Clock;

/// By which clock history grows old.
#[derive(Debug)]
pub(super) struct Aging {
    clock: Clock,
    /// How often what was before is forgotten.
    interval: Duration,
}

/// What was when history was last forgotten.
#[derive(Debug, Default)]
pub(super) struct Ticks {
    /// The time of it, of all that has passed.
    last: Duration,
    /// The version at that time.
    version: u64,
    /// The oldest version that can be read.
    oldest: u64,
}

impl Ticks {
    /// The same versions, before any time passed.
    pub(super) fn fork(&self) -> Self {
        Ticks {
            last: Duration::ZERO,
            version: self.version,
            oldest: self.oldest,
        }
    }
}

impl Store {
    /// Has history grow old by a clock: what was before the last time but one that the
    /// interval ended cannot be read any more, and a watch cannot begin before a change that
    /// is older than that, unless only a few came since. To be called once, before anything
    /// is written by others.
    pub(crate) fn grows_old(&self, clock: Clock, interval: Duration) {
        let mut state = self.state.lock();
        state.ticks.last = clock.passed();
        // There is one clock, which is set when the server is made.
        let _ = self.aging.set(Aging { clock, interval });
        // What came before the clock is as old as the server is.
        let now = self.bounds().now;
        state.tables.values_mut().for_each(|table| table.dates(now));
    }

    /// What is kept of a history now.
    pub(super) fn bounds(&self) -> Bounds {
        let seconds = |span: Duration| u32::try_from(span.as_secs()).unwrap_or(u32::MAX);
        let aging = self.aging.get();
        Bounds {
            most: self.history,
            now: aging.map_or(0, |aging| seconds(aging.clock.passed())),
            age: aging.map(|aging| seconds(aging.interval)),
        }
    }
}

impl State {
    /// Looks whether it is time to forget. The present version is that of the last time,
    /// so this comes before each write.
    pub(super) fn tick(&mut self, aging: Option<&Aging>) {
        let Some(Aging { clock, interval }) = aging else {
            return;
        };
        let since = clock.passed().saturating_sub(self.ticks.last);
        let times = since.as_nanos() / interval.as_nanos().max(1);
        if times == 0 {
            return;
        }
        let version = self.version;
        let ticks = &mut self.ticks;
        ticks.oldest = if times == 1 { ticks.version } else { version };
        ticks.version = version;
        ticks.last += *interval * u32::try_from(times).unwrap_or(u32::MAX);
    }

    /// Whether what was at a version can be read as it was.
    pub(super) fn readable(&mut self, at: u64, aging: Option<&Aging>) -> Result<(), Compacted> {
        self.tick(aging);
        let oldest = self.ticks.oldest;
        if at < oldest {
            return Err(Compacted { oldest });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use serde_json::json;

    use super::super::{Range, TableName};
    use super::*;
    use crate::state::Entry;

    const INTERVAL: Duration = Duration::from_secs(300);

    #[test]
    fn what_was_cannot_be_read_for_ever() {
        let (clock, hand) = Clock::by_hand(UNIX_EPOCH);
        let store = Store::new(1000);
        store.grows_old(clock, INTERVAL);
        let t = TableName::from("as");
        let make = |key: &str| store.create(&t, key, json!({})).unwrap().version();
        let read = |at: u64| store.list("as", &Range::default(), Some(at)).is_ok();
        let first = make("a");
        hand.advance(INTERVAL / 2);
        let second = make("b");
        hand.advance(INTERVAL);
        assert!(read(first), "it was read a moment after the first time");
        let third = make("c");
        hand.advance(INTERVAL);
        // Forgotten is what was before the last time, in which both were made.
        assert_eq!(
            (read(first), read(second), read(third)),
            (false, true, true)
        );
        hand.advance(INTERVAL * 5);
        assert_eq!((read(second), read(third)), (false, true));
        // Watches that have seen all of it go on from there.
        assert!(store.changes("as", third).is_ok());
    }

    #[test]
    fn a_history_from_before_the_clock_is_as_old_as_the_server() {
        let (clock, hand) = Clock::by_hand(UNIX_EPOCH);
        hand.advance(INTERVAL * 10);
        let store = Store::restored(1000, 7);
        let t = TableName::from("as");
        // As a log is gone through: before there is a clock to tell their time.
        for version in 8..158 {
            let replayed = store.replay(&Entry::Put {
                version,
                table: &t,
                key: &format!("old-{version}"),
                json: b"{}",
                mark: None,
            });
            assert_eq!(replayed, Ok(()));
        }
        store.grows_old(clock, INTERVAL);
        let make = |key: &str| store.create(&t, key, json!({})).unwrap().version();
        make("at-once");
        assert!(
            store.changes("as", 8).is_ok(),
            "all of it is of this moment"
        );
        assert!(store.list("as", &Range::default(), Some(8)).is_ok());
        hand.advance(INTERVAL + Duration::from_secs(1));
        make("later");
        assert!(store.changes("as", 8).is_err(), "and old from then on");
    }

    #[test]
    fn of_changes_that_are_old_a_few_are_kept() {
        let (clock, hand) = Clock::by_hand(UNIX_EPOCH);
        let store = Store::new(1000);
        store.grows_old(clock, INTERVAL);
        let t = TableName::from("as");
        let make = |key: &str| store.create(&t, key, json!({})).unwrap().version();
        let first = make("first");
        for number in 0..150 {
            make(&format!("old-{number}"));
        }
        hand.advance(INTERVAL);
        make("at-the-end-of-it");
        assert!(
            store.changes("as", first).is_ok(),
            "they are just not too old"
        );
        hand.advance(Duration::from_secs(1));
        let last = make("after");
        let oldest = store.changes("as", first).unwrap_err().oldest;
        assert_eq!(store.changes("as", oldest).unwrap().1.len(), 100);
        // By a clock that nobody advances nothing more is forgotten.
        let more: Vec<u64> = (0..200)
            .map(|number| make(&format!("new-{number}")))
            .collect();
        assert_eq!(store.changes("as", last).unwrap().1.len(), more.len());
    }
}
