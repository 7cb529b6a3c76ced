//! What can wait a moment to be said of a unit: that it waits for something else by now.
//!
//! A unit whose objects become healthy one after another is run for each of them, and says
//! each time what it waits for next. Whoever reads that is content with every now and then;
//! the API server has better things to do.

use super::{About, UnitReport};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use reeve_api::{SyncStatus, UnitStatus};
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// Room for this many before those are looked for that are over.
const FEW: usize = 64;

/// When `Unit` objects were written last; none that was written longer ago than counts.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// How long after one was written it is at least until it is written again, where only the
    /// words would be others.
    pub(super) interval: Duration,
    written: HashMap<About, Instant>,
    /// How many there may be before those are forgotten that no longer count.
    room: usize,
}

impl Pace {
    /// Notes that something was written.
    pub(super) fn written(&mut self, about: &About, now: Instant) {
        self.written.insert(about.clone(), now);
        if self.written.len() > self.room {
            self.written
                .retain(|_, written| now < *written + self.interval);
            self.room = FEW.max(2 * self.written.len());
        }
    }

    /// When there is next to be something that can wait; none where that is now.
    pub(super) fn rests_until(&self, about: &About, now: Instant) -> Option<Instant> {
        let until = *self.written.get(about)? + self.interval;
        (now < until).then_some(until)
    }

    pub(super) fn clear(&mut self) {
        self.written.clear();
    }
}

/// Whether two reports of a unit tell the same but for the words: the messages of conditions,
/// and which object is waited for.
pub(super) fn differ_in_words(one: &UnitReport, other: &UnitReport) -> bool {
    // A new field belongs below, or is words.
    let UnitStatus {
        digest,
        failures,
        sync,
        plan,
        actions,
        secrets,
        conditions,
    } = &one.status;
    let status = &other.status;
    let (of_one, of_other) = (conditions.iter(), status.conditions.iter());
    one.spec == other.spec
        && (digest, failures) == (&status.digest, &status.failures)
        && (plan, actions, secrets) == (&status.plan, &status.actions, &status.secrets)
        && sync.as_ref().map(without_words) == status.sync.as_ref().map(without_words)
        && of_one.map(kind_of).eq(of_other.map(kind_of))
}

/// Whether two reports tell the same of what must not happen twice to a unit, though nothing
/// but its sync knows that it has: hooks, what a person has approved.
pub(super) fn same_once(one: &UnitReport, other: &UnitReport) -> bool {
    let [one, other] = [one, other].map(|report| {
        let sync = report.status.sync.as_ref();
        sync.map(|sync| (&sync.hooks, &sync.approved, &sync.used_approval))
            .filter(|(hooks, approved, used)| {
                !hooks.is_empty() || approved.is_some() || used.is_some()
            })
    });
    one == other
}

fn without_words(sync: &SyncStatus) -> SyncStatus {
    let mut sync = sync.clone();
    if let Some(blocked) = &mut sync.blocked_by {
        blocked.object.clear();
        blocked.status.clear();
        blocked.reason.clear();
        blocked.since = None;
    }
    sync
}

/// What a condition says, but for its message. It has another time where its status is another.
fn kind_of(condition: &Condition) -> (&str, &str, &str) {
    let Condition {
        type_,
        status,
        reason,
        message: _,
        last_transition_time: _,
        observed_generation: _,
    } = condition;
    (type_, status, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(5);
    use k8s_openapi::jiff::Timestamp;
    use reeve_api::{BlockedBy, UnitSpec, condition};

    fn report(reason: &str, message: &str, wave: i64, object: &str) -> UnitReport {
        let at = Timestamp::UNIX_EPOCH;
        let ready = condition(
            "Ready",
            "False",
            reason.to_owned(),
            message.to_owned(),
            None,
            at,
        );
        UnitReport {
            spec: UnitSpec::default(),
            status: UnitStatus {
                conditions: vec![ready],
                sync: Some(SyncStatus {
                    blocked_by: Some(BlockedBy {
                        wave: Some(wave),
                        object: object.to_owned(),
                        ..BlockedBy::default()
                    }),
                    ..SyncStatus::default()
                }),
                ..UnitStatus::default()
            },
        }
    }

    #[test]
    fn words_are_no_news_and_the_rest_is() {
        let one = report("Waiting", "for a", 1, "a");
        let same = |other| differ_in_words(&one, &other);
        assert!(same(report("Waiting", "for b", 1, "b")));
        assert!(!same(report("Failed", "for a", 1, "a")));
        assert!(!same(report("Waiting", "for a", 2, "a")));
        let mut failing = one.clone();
        failing.status.failures = 1;
        assert!(!same(failing));
    }

    #[tokio::test(start_paused = true)]
    async fn what_no_longer_counts_is_forgotten() {
        let mut pace = Pace {
            interval: INTERVAL,
            ..Pace::default()
        };
        for number in 0..1000 {
            let about = About::Unit(number.to_string());
            pace.written(&about, Instant::now());
            assert!(pace.rests_until(&about, Instant::now()).is_some());
            tokio::time::advance(INTERVAL / 2).await;
            assert!(pace.written.len() <= FEW + 1, "{number}");
        }
        tokio::time::advance(INTERVAL).await;
        let last = About::Unit("999".to_owned());
        assert_eq!(pace.rests_until(&last, Instant::now()), None);
    }
}
