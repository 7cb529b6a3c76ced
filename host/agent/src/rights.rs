//! How long a plugin may act on what was answered about its rights.
//!
//! Nobody tells the agent that a right was taken away, so it asks. What a plugin is
//! shown depends on its rights, so they are asked about anew before a unit runs on
//! an answer that is no longer fresh. A plugin with nothing to do is shown nothing;
//! it is asked about less and less often, for the sake of what its status says.

use reeve_core::UnitKey;
use std::time::Duration;
use tokio::time::Instant;

/// What is known of the rights of a plugin that runs.
#[derive(Debug)]
pub(crate) struct Rights {
    answered: Instant,
    /// When the first question ended without an answer, of those since the last answer.
    untold: Option<Instant>,
    /// Time until they are asked about although nothing runs.
    pause: Duration,
    /// Whether something ran since the last answer.
    used: bool,
    asking: bool,
    waiting: Vec<UnitKey>,
    /// When to ask although it is not due, and how long after the question before.
    hurry: Option<(Instant, Duration)>,
}

impl Rights {
    /// How long units run on one answer. The answer itself may be ten seconds old
    /// when it comes, see [`reeve_cluster::REVIEW_TTL`].
    const FRESH: Duration = Duration::from_secs(30);
    /// The longest time after which the status of a plugin with nothing to do is
    /// found to be wrong. A thousand such plugins with five questions each make
    /// less than ten requests a second.
    const LONGEST_PAUSE: Duration = Duration::from_secs(600);

    /// How long units run on the last answer although nobody gives another. The agent does
    /// not stop for a moment of an API server's, and who takes a right away need not wait
    /// for it to return.
    const UNTOLD: Duration = Duration::from_secs(120);

    /// What an API server takes to serve a kind once its definition is established.
    const MOMENT: Duration = Duration::from_millis(250);

    /// Rights that were answered just now.
    pub(crate) fn answered(now: Instant) -> Self {
        Self {
            answered: now,
            untold: None,
            pause: Self::FRESH,
            used: false,
            asking: false,
            waiting: Vec::new(),
            hurry: None,
        }
    }

    /// Whether a unit may run on the last answer. One that may not waits for the
    /// next, which is due at once.
    pub(crate) fn admit(&mut self, unit: &UnitKey, now: Instant) -> bool {
        self.used = true;
        let fresh = now.duration_since(self.answered) < Self::FRESH && !self.is_stale(now);
        if !fresh {
            self.waiting.push(unit.clone());
        }
        fresh
    }

    /// Whether nobody has answered for so long that nothing may run on what is known. That
    /// begins with a question: what nobody asked about is not unknown.
    pub(crate) fn is_stale(&self, now: Instant) -> bool {
        let untold = self.untold.map(|since| now.duration_since(since));
        untold.is_some_and(|untold| untold >= Self::UNTOLD)
    }

    /// When to ask; none while an answer is awaited.
    pub(crate) fn due(&self) -> Option<Instant> {
        let pause = if self.waiting.is_empty() {
            self.pause
        } else {
            Self::FRESH
        };
        let due = self.answered + pause;
        let due = self.hurry.map_or(due, |(soon, _)| soon.min(due));
        (!self.asking).then_some(due)
    }

    /// Asks within a moment, and then again and again with growing pauses, until these
    /// are as long as usual: something is about to change of which nobody tells.
    pub(crate) fn hurry(&mut self, now: Instant) {
        self.hurry = Some((now + Self::MOMENT, Self::MOMENT));
    }

    /// Lets the next question come after the shortest pause, whatever is used:
    /// something else waits for its answer, too.
    pub(crate) fn ask_soon(&mut self) {
        self.pause = Self::FRESH;
    }

    /// Notes that they are being asked about.
    pub(crate) fn ask(&mut self) {
        self.asking = true;
    }

    /// Notes that there is an answer. Returns the units that waited for it.
    pub(crate) fn renew(&mut self, now: Instant) -> Vec<UnitKey> {
        self.untold = None;
        self.end_question(now)
    }

    /// Notes that there will be no answer: not to be told is not to be refused, for a while.
    /// Returns the units that waited for it and go on; later, they wait for the next.
    pub(crate) fn give_up(&mut self, now: Instant) -> Vec<UnitKey> {
        self.untold.get_or_insert(now);
        self.end_question(now)
    }

    fn end_question(&mut self, now: Instant) -> Vec<UnitKey> {
        let (untold, stale) = (self.untold, self.is_stale(now));
        let pause = if self.used {
            Self::FRESH
        } else {
            (self.pause * 2).min(Self::LONGEST_PAUSE)
        };
        let mut waited = self.end();
        let hurry = self.hurry.map(|(_, after)| after * 2);
        let hurry = hurry.filter(|after| *after < Self::FRESH);
        *self = Self {
            pause,
            hurry: hurry.map(|after| (now + after, after)),
            untold,
            ..Self::answered(now)
        };
        if stale {
            self.waiting = std::mem::take(&mut waited);
            // As often as if something ran.
            self.pause = Self::FRESH;
        }
        waited
    }

    /// Ends them. Returns the units that waited for an answer.
    pub(crate) fn end(&mut self) -> Vec<UnitKey> {
        std::mem::take(&mut self.waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::{GroupVersionKind, ObjectReference};

    fn unit() -> UnitKey {
        let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
        UnitKey::new("quotas", ObjectReference::new(kind, None, "alice"))
    }

    fn seconds(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    #[test]
    fn a_unit_waits_for_a_fresh_answer() {
        let start = Instant::now();
        let mut rights = Rights::answered(start);
        assert!(rights.admit(&unit(), start + seconds(29)));
        assert!(!rights.admit(&unit(), start + seconds(31)));
        assert!(rights.due().is_some_and(|due| due <= start + seconds(31)));
        rights.ask();
        assert_eq!(rights.due(), None);
        assert_eq!(rights.renew(start + seconds(32)), [unit()]);
        assert!(rights.admit(&unit(), start + seconds(32)));
        assert_eq!(rights.renew(start + seconds(62)), []);
    }

    #[test]
    fn without_answers_units_wait_in_the_end() {
        let start = Instant::now();
        let mut rights = Rights::answered(start);
        // Nobody had anything to do for a while, and so nobody asked.
        for after in [531, 562, 593, 624] {
            let now = start + seconds(after);
            assert!(!rights.admit(&unit(), now));
            rights.ask();
            assert_eq!(rights.give_up(now), [unit()]);
            assert!(rights.admit(&unit(), now));
        }
        // What was admitted before the last question runs on it no longer.
        assert!(rights.admit(&unit(), start + seconds(650)));
        assert!(!rights.admit(&unit(), start + seconds(651)));
        rights.ask();
        assert_eq!(rights.give_up(start + seconds(655)), []);
        assert!(rights.is_stale(start + seconds(655)));
        assert!(rights.due().is_some_and(|due| due <= start + seconds(685)));
        rights.ask();
        assert_eq!(rights.renew(start + seconds(685)), [unit()]);
        assert!(rights.admit(&unit(), start + seconds(685)));
    }

    #[test]
    fn who_is_in_a_hurry_asks_often_and_not_for_ever() {
        let start = Instant::now();
        let mut rights = Rights::answered(start);
        let mut now = start + seconds(10);
        rights.hurry(now);
        let mut pauses = Vec::new();
        for _ in 0..9 {
            let due = rights.due().unwrap();
            pauses.push(due.duration_since(now).as_millis());
            now = due;
            rights.ask();
            rights.renew(now);
        }
        let expected = [250, 500, 1000, 2000, 4000, 8000, 16000];
        assert_eq!(pauses[..7], expected);
        assert!(
            pauses[7..].iter().all(|pause| *pause >= 30_000),
            "{pauses:?}"
        );
    }

    #[test]
    fn who_has_nothing_to_do_is_asked_about_less_and_less_often() {
        let mut now = Instant::now();
        let mut rights = Rights::answered(now);
        let mut pauses = Vec::new();
        let mut ask = |rights: &mut Rights, now: &mut Instant| {
            let due = rights.due().unwrap();
            pauses.push(due.duration_since(*now).as_secs());
            *now = due;
            rights.ask();
            rights.renew(due);
        };
        for _ in 0..7 {
            ask(&mut rights, &mut now);
        }
        rights.admit(&unit(), now);
        for _ in 0..3 {
            ask(&mut rights, &mut now);
        }
        assert_eq!(pauses, [30, 60, 120, 240, 480, 600, 600, 600, 30, 60]);
    }
}
