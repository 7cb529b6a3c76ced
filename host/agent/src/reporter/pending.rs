//! Reports that are to be written, and which of them is the next.

use super::begun::Begun;
use super::names::Names;
use super::pace::{Pace, differ_in_words, same_once};
use super::{About, Report, UnitReport};
use reeve_api::{KeptSecret, PluginStatus};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tokio::time::Instant;

/// After so many times the pace of words, what is said of a unit that runs on is written
/// though it does so still: its turn may come late among many.
const RUNS_ON: u32 = 4;

/// Attempts at one report that did not succeed.
#[derive(Debug)]
pub(super) struct Failed {
    /// How many there were in a row.
    pub(super) attempts: u32,
    /// When there is to be the next.
    pub(super) until: Instant,
    /// What is wrong with this one, if it is not the API server that is.
    pub(super) problem: Option<String>,
}

/// All that is to be written.
#[derive(Default)]
pub(super) struct Pending {
    /// The newest of each. Each is either due, or its turn comes later.
    reports: BTreeMap<About, Waiting>,
    /// Those that may be written as soon as no older one about the same thing is.
    due: BTreeSet<About>,
    /// When it is the turn of the others.
    later: Later,
    /// Those that were tried in vain. A newer report about the same thing has no better
    /// chances.
    pub(super) failed: BTreeMap<About, Failed>,
    /// What was written last: the next one after it has its turn, so that one
    /// that cannot be written does not hold up the others.
    last: Option<About>,
    /// What is being written, and how long it could have waited. A newer report about the same
    /// thing waits for its end.
    writing: BTreeMap<About, Haste>,
    /// Whether somebody else is the one who reports.
    pub(super) muted: bool,
    /// Whether somebody waits until everything is written.
    hurried: bool,
    /// Which units were written just now.
    pub(super) pace: Pace,
    /// What was last said of each unit that something is said of: one for each
    /// `Unit` object that should exist.
    pub(super) units: HashMap<String, Box<UnitReport>>,
    /// With which status a `Plugin` object was made, until the next report about it.
    pub(super) made: BTreeMap<String, PluginStatus>,
    /// Secrets that units have.
    pub(super) names: Names,
    /// Those who wait until effects are written.
    pub(super) begun: Begun,
    /// Whether it is the turn of those for whom nobody waits.
    others_are_next: bool,
}

/// A report that is to be written.
struct Waiting {
    report: Report,
    haste: Haste,
}

/// How soon a report is to be written: as soon as the most urgent of those that it has
/// replaced unwritten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Haste {
    /// The unit runs on, and what is said then is news: this is written if that takes long.
    RunsOn,
    /// Nothing but words has changed since what was written last.
    Words,
    /// At once.
    #[default]
    News,
}

/// Whose turn comes when.
#[derive(Debug, Default)]
struct Later {
    at: BTreeMap<About, Instant>,
    order: BTreeSet<(Instant, About)>,
}

impl Later {
    fn put(&mut self, about: About, at: Instant) {
        self.take(&about);
        self.at.insert(about.clone(), at);
        self.order.insert((at, about));
    }

    fn take(&mut self, about: &About) {
        if let Some((about, at)) = self.at.remove_entry(about) {
            self.order.remove(&(at, about));
        }
    }

    /// One whose turn has come.
    fn take_due(&mut self, now: Instant) -> Option<About> {
        let first = self.order.first().is_some_and(|(at, _)| *at <= now);
        let (_, about) = first.then(|| self.order.pop_first()).flatten()?;
        self.at.remove(&about);
        Some(about)
    }
}

impl Pending {
    /// Takes a report in, in the place of an older one about the same thing. It is of a unit
    /// that `runs_on`, or of what rests for now.
    pub(super) fn put(&mut self, about: About, report: Report, runs_on: bool) {
        let mut haste = Haste::News;
        if let (About::Unit(name), Report::Unit(report)) = (&about, &report) {
            let before = match report {
                Some(report) => self.units.insert(name.clone(), report.clone()),
                None => self.units.remove(name),
            };
            if let (Some(before), Some(report)) = (before, report) {
                // What a unit that runs on said is not written yet, so nothing was said last
                // from which this differs in words.
                let waits = self.reports.get(&about);
                let is_written = waits.is_none_or(|waits| waits.haste != Haste::RunsOn);
                let words = is_written && before != *report && differ_in_words(&before, report);
                haste = match words {
                    // Hooks that have run, and what a person has approved, must not be lost.
                    _ if runs_on && same_once(&before, report) => Haste::RunsOn,
                    true => Haste::Words,
                    false => Haste::News,
                };
            }
        }
        self.place(about, report, haste);
    }

    /// Has a report written, as soon as it or what it replaces is urgent, and it was not tried
    /// in vain.
    pub(super) fn place(&mut self, about: About, report: Report, haste: Haste) {
        let replaced = self.reports.get(&about);
        let haste = replaced.map_or(haste, |replaced| haste.max(replaced.haste));
        self.reports
            .insert(about.clone(), Waiting { report, haste });
        self.turn(about, haste);
    }

    /// Says when it is the turn of a report.
    fn turn(&mut self, about: About, haste: Haste) {
        let now = Instant::now();
        let failed = self.failed.get(&about).map(|failed| failed.until);
        let rests = match haste {
            Haste::News => None,
            _ if self.hurried => None,
            // From the first of them on: a unit may run on and on.
            Haste::RunsOn => {
                let latest = now + self.pace.interval * RUNS_ON;
                let before = self.later.at.get(&about);
                Some(before.map_or(latest, |before| latest.min(*before)))
            }
            // What is being written is written now.
            Haste::Words if self.writing.contains_key(&about) => Some(now + self.pace.interval),
            Haste::Words => self.pace.rests_until(&about, now),
        };
        self.due.remove(&about);
        self.later.take(&about);
        match rests.max(failed).filter(|at| now < *at) {
            Some(at) => self.later.put(about, at),
            None => drop(self.due.insert(about)),
        }
    }

    /// Has a `Unit` object that somebody has changed, and that has these names now, written
    /// with what was last said.
    pub(super) fn put_right(&mut self, object: &str, found: BTreeSet<KeptSecret>) {
        if self.muted {
            return;
        }
        let lacks_names = self.names.changed(object, found);
        let said = self.units.get(object).cloned();
        let about = About::Unit(object.to_owned());
        if (lacks_names || said.is_some()) && !self.reports.contains_key(&about) {
            self.place(about, Report::Unit(said), Haste::Words);
        }
    }

    /// Has a `Unit` object written with what was last said, unless it is to be anyway.
    pub(super) fn say_again(&mut self, object: &str) {
        let said = self.units.get(object).cloned();
        self.place(
            About::Unit(object.to_owned()),
            Report::Unit(said),
            Haste::News,
        );
    }

    /// Lets nothing wait that could, from now on.
    pub(super) fn hurry(&mut self) {
        self.hurried = true;
        self.pace.clear();
        for about in self.reports.keys().cloned().collect::<Vec<_>>() {
            self.turn(about, Haste::News);
        }
    }

    /// Forgets what is not written.
    pub(super) fn clear(&mut self) {
        self.reports.clear();
        self.due.clear();
        self.later = Later::default();
        self.failed.clear();
        self.pace.clear();
        self.units.clear();
        self.made.clear();
        self.begun.clear();
    }

    /// How many reports are not written.
    pub(super) fn len(&self) -> usize {
        self.reports.len() + self.begun.len()
    }

    /// Whether everything has been written.
    pub(super) fn is_idle(&self) -> bool {
        self.reports.is_empty() && self.writing.is_empty()
    }

    pub(super) fn attempts(&self, about: &About) -> u32 {
        self.failed.get(about).map_or(0, |failed| failed.attempts)
    }

    /// The next report that is due, which is being written then, or else when one will be, if
    /// there is any.
    pub(super) fn next(&mut self, now: Instant) -> Result<(About, Report), Option<Instant>> {
        use std::ops::Bound::{Excluded, Unbounded};
        while let Some(about) = self.later.take_due(now) {
            self.due.insert(about);
        }
        let is_free = |about: &&About| !self.writing.contains_key(*about);
        // Each keeps a run from going on, and takes turns with the others: those who wait
        // may come without end.
        let awaited = self.begun.awaited();
        let mut awaited = awaited.map(|object| About::Unit(object.clone()));
        let first = match self.others_are_next {
            true => None,
            false => awaited.find(|about| self.due.contains(about) && is_free(&about)),
        };
        let after = self.last.as_ref().map_or(Unbounded, Excluded);
        let mut others = self.due.range((after, Unbounded)).chain(&self.due);
        self.others_are_next = first.is_some();
        let about = first.or_else(|| others.find(is_free).cloned());
        let next = about.and_then(|about| self.reports.remove_entry(&about));
        let Some((about, Waiting { report, haste })) = next else {
            let next = self.later.order.iter();
            let mut next = next.filter(|(_, about)| is_free(&about));
            return Err(next.next().map(|(at, _)| *at));
        };
        self.due.remove(&about);
        self.last = Some(about.clone());
        self.writing.insert(about.clone(), haste);
        Ok((about, report))
    }

    /// Ends a write that succeeded, or is not to be tried again. `sent` says whether there was
    /// anything to send. Returns whether it had failed before for a reason of its own.
    pub(super) fn written(&mut self, about: &About, sent: bool) -> bool {
        self.writing.remove(about);
        if sent && matches!(about, About::Unit(_)) {
            self.pace.written(about, Instant::now());
        }
        let failed = self.failed.remove(about);
        failed.is_some_and(|failed| failed.problem.is_some())
    }

    /// Ends a write that failed. The report is put back unless there is a newer one, to be tried
    /// again then. Returns how it had failed before.
    pub(super) fn put_back(
        &mut self,
        about: About,
        report: Report,
        failed: Failed,
    ) -> Option<Failed> {
        let haste = self.writing.remove(&about).unwrap_or_default();
        let before = self.failed.insert(about.clone(), failed);
        let waiting = self.reports.entry(about.clone());
        let waiting = waiting.or_insert(Waiting { report, haste });
        // What has failed is news still.
        waiting.haste = waiting.haste.max(haste);
        let haste = waiting.haste;
        self.turn(about, haste);
        before
    }

    /// Notes that a write is over.
    pub(super) fn no_longer_writes(&mut self, about: &About) {
        self.writing.remove(about);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Reports;
    use super::*;
    use futures::FutureExt as _;
    use reeve_api::{HookStatus, SyncStatus, UnitSpec, UnitStatus, condition};
    use std::time::Duration;

    const INTERVAL: Duration = Duration::from_secs(5);

    fn unit(name: &str) -> About {
        About::Unit(name.to_owned())
    }

    fn put(reports: &Reports, name: &str, reason: &str, message: &str) {
        let at = k8s_openapi::jiff::Timestamp::UNIX_EPOCH;
        let (reason, message) = (reason.to_owned(), message.to_owned());
        let report = UnitReport {
            spec: UnitSpec::default(),
            status: UnitStatus {
                conditions: vec![condition("Ready", "False", reason, message, None, at)],
                ..UnitStatus::default()
            },
        };
        reports.put(unit(name), Report::Unit(Some(Box::new(report))));
    }

    /// Writes what is next, and says the message of it and when that was.
    async fn write(reports: &Reports, start: Instant) -> (String, Duration) {
        let (about, report) = reports.take().await;
        reports.written(&about, true);
        let Report::Unit(Some(said)) = report else {
            panic!("{report:?}");
        };
        (said.status.conditions[0].message.clone(), start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn words_wait_for_their_time_and_news_do_not() {
        let reports = Reports::with_interval(INTERVAL);
        let start = Instant::now();
        let mut written = Vec::new();
        for second in 0_u64..11 {
            put(&reports, "a", "Waiting", &second.to_string());
            put(
                &reports,
                "b",
                if second == 2 { "Failed" } else { "Waiting" },
                "b",
            );
            while let Some(one) = write(&reports, start).now_or_never() {
                written.push(one);
            }
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let of = |which: &dyn Fn(&str) -> bool| {
            let of = written.iter().filter(|(message, _)| which(message));
            of.map(|(_, at)| at.as_secs()).collect::<Vec<_>>()
        };
        assert_eq!(of(&|message| message != "b"), [0, 5, 10]);
        // It fails, and waits again. Where nothing is new, nothing waits.
        assert_eq!(of(&|message| message == "b").len(), 11);
        // What is written is the newest.
        put(&reports, "a", "Waiting", "older");
        put(&reports, "a", "Waiting", "newest");
        assert_eq!(write(&reports, start).await.0, "newest");
        assert_eq!(start.elapsed(), INTERVAL * 3);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_waits_when_all_is_to_be_written() {
        let reports = Reports::with_interval(INTERVAL);
        let start = Instant::now();
        put(&reports, "a", "Waiting", "first");
        write(&reports, start).await;
        put(&reports, "a", "Waiting", "second");
        assert!(reports.take().now_or_never().is_none());
        let idle = reports.idle();
        tokio::pin!(idle);
        assert!(idle.as_mut().now_or_never().is_none());
        assert_eq!(write(&reports, start).await.0, "second");
        idle.await;
        put(&reports, "a", "Waiting", "third");
        assert_eq!(write(&reports, start).await.0, "third");
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    /// What is gone is made anew at once, and who waits for what is written waits for nothing
    /// else.
    #[tokio::test(start_paused = true)]
    async fn what_is_waited_for_does_not_wait() {
        let reports = Reports::with_interval(INTERVAL);
        let start = Instant::now();
        for message in ["first", "second"] {
            put(&reports, "a", "Waiting", message);
            if message == "first" {
                write(&reports, start).await;
            }
        }
        reports.repeat_unit("a");
        assert_eq!(write(&reports, start).await.0, "second");
        put(&reports, "a", "Waiting", "third");
        let said = reports.said("a").unwrap();
        let recorded = reports.record_effects("a", said);
        tokio::pin!(recorded);
        assert!(recorded.as_mut().now_or_never().is_none());
        assert_eq!(write(&reports, start).await.0, "third");
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    /// Has what is next refused.
    async fn refuse(reports: &Reports) {
        let (about, report) = reports.take().await;
        reports.failed(about, report, Some("no".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn words_wait_for_both_where_the_last_were_refused() {
        let reports = Reports::with_interval(INTERVAL);
        let start = Instant::now();
        put(&reports, "a", "Waiting", "first");
        write(&reports, start).await;
        put(&reports, "a", "Waiting", "second");
        refuse(&reports).await;
        assert_eq!(start.elapsed(), INTERVAL);
        put(&reports, "a", "Waiting", "third");
        let written = write(&reports, start).await;
        assert_eq!(written.0, "third");
        let delay = reeve_core::backoff::Backoff::CONNECTION.delay(1, 1.0);
        assert_eq!(written.1, INTERVAL + delay);
        assert!(reports.is_idle());
    }

    /// What was refused is news still, whatever is said since in other words.
    #[tokio::test(start_paused = true)]
    async fn refused_news_do_not_wait_for_words() {
        let reports = Reports::with_interval(INTERVAL);
        let start = Instant::now();
        put(&reports, "a", "Waiting", "first");
        write(&reports, start).await;
        put(&reports, "a", "Failed", "second");
        refuse(&reports).await;
        put(&reports, "a", "Failed", "third");
        let written = write(&reports, start).await;
        let delay = reeve_core::backoff::Backoff::CONNECTION.delay(1, 1.0);
        assert_eq!(written, ("third".to_owned(), delay));
        // So are they where words have come meanwhile.
        put(&reports, "a", "Waiting", "fourth");
        let (about, report) = reports.take().await;
        put(&reports, "a", "Waiting", "fifth");
        reports.failed(about, report, Some("no".to_owned()));
        let written = write(&reports, start).await;
        assert_eq!(written, ("fifth".to_owned(), delay * 2));
    }

    #[tokio::test(start_paused = true)]
    async fn words_wait_for_what_is_being_written() {
        let reports = Reports::with_interval(INTERVAL);
        put(&reports, "a", "Waiting", "first");
        let (about, _) = reports.take().await;
        put(&reports, "a", "Waiting", "second");
        reports.written(&about, true);
        let start = Instant::now();
        assert_eq!(write(&reports, start).await.1, INTERVAL);
    }

    /// What a unit that runs on says is written with what it says at its rest, unless that is
    /// long in coming, or something must not happen twice.
    #[tokio::test(start_paused = true)]
    async fn what_a_unit_that_runs_on_says_waits_for_its_rest() {
        let reports = Reports::with_interval(INTERVAL);
        put(&reports, "a", "Begun", "first");
        let start = Instant::now();
        write(&reports, start).await;
        let runs_on = |message: &str, hooks: usize| {
            let mut said = reports.said("a").unwrap();
            said.status.conditions[0].message = message.to_owned();
            said.status.failures += 1;
            said.status.sync = Some(SyncStatus {
                hooks: vec![HookStatus::default(); hooks],
                ..SyncStatus::default()
            });
            let report = Report::Unit(Some(Box::new(said)));
            reports.put_for_now(unit("a"), report);
        };
        // News replaces it.
        runs_on("second", 0);
        assert!(write(&reports, start).now_or_never().is_none());
        put(&reports, "a", "Waiting", "third");
        let written = write(&reports, start).await;
        assert_eq!(written, ("third".to_owned(), Duration::ZERO));
        // There is none for long.
        runs_on("fourth", 0);
        let long = INTERVAL * RUNS_ON;
        assert_eq!(write(&reports, start).await, ("fourth".to_owned(), long));
        // It runs on and on.
        let step = INTERVAL * RUNS_ON / 2;
        for message in ["once", "twice", "thrice"] {
            runs_on(message, 0);
            tokio::time::advance(step - Duration::from_millis(1)).await;
        }
        let long = long * 2;
        let (message, at) = write(&reports, start).await;
        assert_eq!((&*message, at < long + step), ("thrice", true));
        // What has never been written is no word for word.
        runs_on("waits", 0);
        let mut said = reports.said("a").unwrap();
        said.status.conditions[0].message = "rests".to_owned();
        reports.put(unit("a"), Report::Unit(Some(Box::new(said))));
        let rested = start.elapsed();
        assert_eq!(write(&reports, start).await, ("rests".to_owned(), rested));
        let long = rested;
        // A hook has run.
        runs_on("fifth", 1);
        assert_eq!(write(&reports, start).await, ("fifth".to_owned(), long));
        // It does not make what is news wait.
        put(&reports, "a", "Failed", "sixth");
        runs_on("seventh", 0);
        assert_eq!(write(&reports, start).await, ("seventh".to_owned(), long));
    }

    /// What is sent to nobody is no reason to wait.
    #[tokio::test(start_paused = true)]
    async fn what_stands_is_looked_at_at_once() {
        let reports = Reports::with_interval(INTERVAL);
        let start = Instant::now();
        put(&reports, "a", "Waiting", "first");
        write(&reports, start).await;
        tokio::time::advance(INTERVAL).await;
        for _ in 0..3 {
            put(&reports, "a", "Waiting", "first");
            let (about, _) = reports.take().await;
            reports.written(&about, false);
        }
        put(&reports, "a", "Waiting", "second");
        assert_eq!(write(&reports, start).await.1, INTERVAL);
    }
}
