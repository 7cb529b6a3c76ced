//! Writes what the agent has to say: `Plugin` and `Unit` objects, and Events.
//!
//! Reports are coalesced: only the newest about each thing is written, and one
//! that fails is tried again unless a newer one has taken its place, later each
//! time, while the others go on. Reporting never holds up reconciling.

mod begun;
mod names;
mod pace;
mod pause;
mod pending;
mod plugins;
mod units;

use crate::problem::chain;
use crate::secret_names::Remembered;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use k8s_openapi::jiff::Timestamp;
use parking_lot::Mutex;
use pause::Pause;
use pending::{Failed, Pending};
use reeve_api::{KeptSecret, PluginStatus, UnitSpec, UnitStatus};
use reeve_cluster::{
    Apply, Cluster, Event, EventKind, Preconditions, Recorder, Resource, Store, WatchSpec,
    WriteError,
};
use reeve_core::ObjectReference;
use reeve_core::backoff::Backoff;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Field manager of what the agent writes in its own name.
const FIELD_MANAGER: &str = "reeve";

/// Reports that are written at once, each about something else. Whoever is about to make an
/// outside effect waits for one, and most of the time for the API server's disk. After a
/// failure one is enough to find out whether others would succeed.
const WRITES_AT_ONCE: usize = 4;

/// A `Unit` that is refused this often in a row is not just in somebody's way.
const REFUSALS: u32 = 3;

/// What can be said.
#[derive(Clone, Debug)]
pub(crate) enum Report {
    /// How a plugin is.
    Plugin(Box<PluginStatus>),
    /// How a unit is, or that there is nothing to say about it.
    Unit(Option<Box<UnitReport>>),
    /// Something that happened to a primary.
    Event(Box<EventReport>),
}

/// Something that happened to a primary.
#[derive(Clone, Debug)]
pub(crate) struct EventReport {
    pub(crate) primary: ObjectReference,
    pub(crate) uid: String,
    pub(crate) event: reeve_core::outcome::Event,
    pub(crate) at: Timestamp,
}

/// How a unit is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UnitReport {
    pub(crate) spec: UnitSpec,
    pub(crate) status: UnitStatus,
}

/// What a report is about; a newer one takes the place of an older.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum About {
    Plugin(String),
    Unit(String),
    Event(String),
}

/// Where reports are handed in.
#[derive(Clone, Default)]
pub(crate) struct Reports(Arc<Shared>);

#[derive(Default)]
struct Shared {
    pending: Mutex<Pending>,
    arrived: Notify,
    /// One who waits for the end of a write.
    done: Notify,
    /// Those who wait until names are remembered.
    remembered: Notify,
    /// One who wants to know which units cannot be written.
    refused: Notify,
}

impl Reports {
    /// For a reporter that writes what says the same of a unit in other words so long after the
    /// last time at the earliest.
    pub(crate) fn with_interval(interval: Duration) -> Self {
        let reports = Self::default();
        reports.0.pending.lock().pace.interval = interval;
        reports
    }

    /// Hands in a report. It replaces an unwritten one about the same thing.
    pub(crate) fn put(&self, about: About, report: Report) {
        self.put_of(about, report, false);
    }

    /// The same of a unit that runs again at once: what is said after that replaces it
    /// unwritten, unless that takes long.
    pub(crate) fn put_for_now(&self, about: About, report: Report) {
        self.put_of(about, report, true);
    }

    fn put_of(&self, about: About, report: Report, runs_on: bool) {
        let mut pending = self.0.pending.lock();
        if pending.muted {
            return;
        }
        pending.put(about, report, runs_on);
        drop(pending);
        self.0.arrived.notify_one();
    }

    /// Forgets what was not written, and takes nothing in until it is unmuted: it
    /// is for the leader to report.
    pub(crate) fn mute(&self) {
        let mut pending = self.0.pending.lock();
        pending.muted = true;
        pending.clear();
        drop(pending);
        self.0.remembered.notify_waiters();
        self.0.done.notify_one();
    }

    /// Forgets with which status a `Plugin` object was made: it is gone.
    pub(crate) fn forget_made(&self, plugin: &str) {
        self.0.pending.lock().made.remove(plugin);
    }

    /// Takes reports in again.
    pub(crate) fn unmute(&self) {
        self.0.pending.lock().muted = false;
    }

    /// Waits until everything has been written, from now on without any delay that is for the
    /// sake of the API server.
    pub(crate) async fn idle(&self) {
        self.0.pending.lock().hurry();
        self.0.arrived.notify_one();
        while !self.is_idle() {
            self.0.done.notified().await;
        }
    }

    /// Says again what was last said of a unit, whose `Unit` object is gone. Where
    /// the agent itself deleted it, there is nothing to say.
    pub(crate) fn repeat_unit(&self, name: &str) {
        let mut pending = self.0.pending.lock();
        // Whoever reports has seen to it.
        let muted = pending.muted;
        let remembers = pending.names.lost(name, muted);
        if !muted && (remembers || pending.units.contains_key(name)) {
            pending.say_again(name);
            drop(pending);
            self.0.arrived.notify_one();
        }
    }

    /// Says again what was last said of a unit, whose `Unit` object somebody has changed.
    /// It has these names of Secrets now.
    pub(crate) fn put_unit_right(&self, name: &str, found: BTreeSet<KeptSecret>) {
        self.0.pending.lock().put_right(name, found);
        self.0.arrived.notify_one();
    }

    /// Takes up which Secrets a `Unit` object remembers. While somebody else reports, that
    /// is what there is to know; else what was told of it here is newer.
    pub(crate) fn recall(&self, found: Remembered) {
        let mut pending = self.0.pending.lock();
        let anew = pending.muted;
        pending.names.recall(found, anew);
    }

    /// Has the names of Secrets written down, and says whether they are; not when somebody
    /// else is the one who reports.
    pub(crate) async fn remember(
        &self,
        object: &str,
        spec: &UnitSpec,
        names: &BTreeSet<KeptSecret>,
    ) -> bool {
        let mut asked = false;
        loop {
            let written = self.0.remembered.notified();
            tokio::pin!(written);
            written.as_mut().enable();
            {
                let mut pending = self.0.pending.lock();
                if pending.muted {
                    return false;
                }
                let there = match asked {
                    false => pending.names.add(object, spec, names),
                    true => pending.names.has_written(object, names),
                };
                if there {
                    return true;
                }
                if !asked {
                    asked = true;
                    pending.say_again(object);
                    self.0.arrived.notify_one();
                }
            }
            written.await;
        }
    }

    /// Forgets the names of all Secrets of a unit but these.
    pub(crate) fn keep_names(&self, object: &str, names: &BTreeSet<KeptSecret>) {
        let mut pending = self.0.pending.lock();
        if !pending.muted && pending.names.retain(object, names) {
            pending.say_again(object);
            drop(pending);
            self.0.arrived.notify_one();
        }
    }

    /// Forgets all names that such `Unit` objects have.
    pub(crate) fn forget_names(&self, which: impl Fn(&str) -> bool) {
        let objects: Vec<String> = {
            let pending = self.0.pending.lock();
            let objects = pending.names.objects();
            let ours = objects.filter(|object| which(object));
            ours.cloned().collect()
        };
        for object in objects {
            self.keep_names(&object, &BTreeSet::new());
        }
    }

    /// What was last said of a unit.
    pub(crate) fn said(&self, name: &str) -> Option<UnitReport> {
        let pending = self.0.pending.lock();
        pending.units.get(name).map(|report| (**report).clone())
    }

    /// What was last said of each unit whose `Unit` object has such a name.
    pub(crate) fn said_where(&self, named: impl Fn(&str) -> bool) -> Vec<(String, UnitReport)> {
        let pending = self.0.pending.lock();
        let said = pending.units.iter().filter(|(name, _)| named(name));
        said.map(|(name, report)| (name.clone(), (**report).clone()))
            .collect()
    }

    /// How many units something is said of, and how many reports are not written.
    pub(crate) fn len(&self) -> usize {
        let pending = self.0.pending.lock();
        let said = pending.units.len() + pending.names.len();
        said + pending.len()
    }

    /// Whether everything has been written.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.pending.lock().is_idle()
    }

    /// The next report that is to be written. Nothing is lost where nobody waits for it any
    /// more.
    async fn take(&self) -> (About, Report) {
        loop {
            let due = {
                let mut pending = self.0.pending.lock();
                match pending.next(Instant::now()) {
                    Ok(next) => return next,
                    Err(due) => due,
                }
            };
            let arrived = self.0.arrived.notified();
            match due {
                None => arrived.await,
                // What arrives may be due before.
                Some(due) => tokio::select! {
                    () = arrived => {}
                    () = tokio::time::sleep_until(due) => {}
                },
            }
        }
    }

    /// What the API server says of a unit that it refuses to have written again and
    /// again, if of any whose `Unit` object has such a name.
    pub(crate) fn refused(&self, named: impl Fn(&str) -> bool) -> Option<String> {
        let pending = self.0.pending.lock();
        let mut failed = pending.failed.iter();
        failed.find_map(|(about, failed)| match about {
            About::Unit(name) if failed.attempts >= REFUSALS && named(name) => {
                failed.problem.clone()
            }
            _ => None,
        })
    }

    /// Waits until that changes.
    pub(crate) async fn refused_changed(&self) {
        self.0.refused.notified().await;
    }

    /// Ends a write that succeeded, or is not to be tried again.
    fn written(&self, about: &About, sent: bool) {
        let mut pending = self.0.pending.lock();
        if pending.written(about, sent) {
            self.0.refused.notify_one();
        }
        self.0.done.notify_one();
    }

    /// Ends a write that failed. The report is put back unless there is a newer one, to
    /// be tried again after its own delay, if the `problem` is its own.
    fn failed(&self, about: About, report: Report, problem: Option<String>) {
        let mut pending = self.0.pending.lock();
        if pending.muted {
            pending.no_longer_writes(&about);
        } else {
            let attempts = pending.attempts(&about) + 1;
            let delay = match &problem {
                Some(_) => Backoff::CONNECTION.delay(attempts, 1.0),
                None => Duration::ZERO,
            };
            let until = Instant::now() + delay;
            let failed = Failed {
                attempts,
                until,
                problem,
            };
            let text = failed.problem.clone();
            let before = pending.put_back(about, report, failed);
            // Who listens looks at all that failed: it is told of news alone.
            let told = before.filter(|before| before.attempts >= REFUSALS);
            let told = told.and_then(|before| before.problem);
            if attempts >= REFUSALS && told != text {
                self.0.refused.notify_one();
            }
        }
        self.0.done.notify_one();
    }

    /// How often a report was tried in vain.
    fn attempts(&self, about: &About) -> u32 {
        self.0.pending.lock().attempts(about)
    }
}

/// Whether an error says something about one report, and nothing about the API server.
fn is_about_one(error: &WriteError) -> bool {
    match error {
        WriteError::Unreachable { .. } | WriteError::Throttled { .. } => false,
        // The store behind it takes no object as large as this one.
        WriteError::Refused { code, message, .. } => {
            *code < 500 || message.contains("request is too large")
        }
        _ => true,
    }
}

/// An event that cannot be written is worth less than the memory that keeping many of
/// them would take.
const EVENT_ATTEMPTS: u32 = 3;

/// Writes reports until it is dropped, [`WRITES_AT_ONCE`] at a time.
pub(crate) struct Reporter {
    pub(crate) reports: Reports,
    pub(crate) cluster: Cluster,
    pub(crate) plugins: Resource,
    pub(crate) units: Arc<WatchSpec>,
    pub(crate) store: Store,
    pub(crate) recorder: Recorder,
    pub(crate) namespace: Arc<str>,
}

impl Reporter {
    pub(crate) async fn run(self) {
        let mut pause = Pause::default();
        let mut under_way = FuturesUnordered::new();
        loop {
            let room = match pause.is_in_doubt() {
                true => 1,
                false => WRITES_AT_ONCE,
            };
            let next = async {
                pause.over().await;
                self.reports.take().await
            };
            tokio::select! {
                (about, report) = next, if under_way.len() < room => {
                    let began = Instant::now();
                    let this = &self;
                    under_way.push(async move {
                        let written = this.write(&about, &report).await;
                        (about, report, began, written)
                    });
                }
                Some((about, report, began, written)) = under_way.next() => {
                    match &written {
                        Err(error) if error.is_not_leader() => {}
                        Err(error) if !is_about_one(error) => {
                            pause.failed(began, self.cluster.told_to_wait(None));
                        }
                        _ => pause.answered(began),
                    }
                    self.ended(about, report, written);
                }
            }
        }
    }

    /// Takes note of the end of a write.
    fn ended(&self, about: About, report: Report, written: Result<bool, WriteError>) {
        match written {
            Ok(sent) => self.reports.written(&about, sent),
            // Whoever leads now reports.
            Err(error) if error.is_not_leader() => self.reports.written(&about, false),
            Err(error) => {
                let problem = chain(&error);
                tracing::warn!(?about, %problem, "report not written");
                let one = is_about_one(&error);
                let vain = one || self.reports.attempts(&about) >= EVENT_ATTEMPTS;
                if matches!(report, Report::Event(_)) && vain {
                    self.reports.written(&about, true);
                } else {
                    self.reports.failed(about, report, one.then_some(problem));
                }
            }
        }
    }

    /// Writes a report, and says whether there was anything to send.
    async fn write(&self, about: &About, report: &Report) -> Result<bool, WriteError> {
        match (about, report) {
            (About::Plugin(name), Report::Plugin(status)) => {
                self.write_plugin(name, status).await.map(|()| true)
            }
            (About::Unit(name), Report::Unit(said)) => {
                let said = said.as_deref();
                self.write_about_unit(name, said).await
            }
            (_, Report::Event(report)) => self.write_event(report).await.map(|()| true),
            _ => Ok(false),
        }
    }

    async fn write_event(&self, report: &EventReport) -> Result<(), WriteError> {
        let EventReport {
            primary,
            uid,
            event,
            at,
        } = report;
        let event = Event {
            involved: primary,
            uid,
            kind: if event.warning {
                EventKind::Warning
            } else {
                EventKind::Normal
            },
            reason: &event.reason,
            action: "Reconcile",
            message: &event.message,
            at: SystemTime::from(*at),
        };
        self.recorder.record(&event).await.map(drop)
    }

    fn apply<'a>(&'a self, resource: &'a Resource, name: &'a str, body: &'a Value) -> Apply<'a> {
        Apply {
            resource,
            namespace: Some(&self.namespace),
            name,
            body: body.into(),
            onto: Preconditions::default(),
            manager: FIELD_MANAGER,
            force: true,
            strict: true,
            dry_run: false,
            identity: None,
        }
    }
}

fn body(resource: &Resource, name: &str, field: &str, value: &Value) -> Value {
    json!({
        "apiVersion": resource.kind.api_version(),
        "kind": resource.kind.kind,
        "metadata": {"name": name},
        field: value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    fn unit(name: &str) -> About {
        About::Unit(name.to_owned())
    }

    fn put(reports: &Reports, name: &str) {
        reports.put(unit(name), Report::Unit(None));
    }

    /// One that is refused waits longer and longer, and nobody waits for it.
    #[tokio::test(start_paused = true)]
    async fn a_report_that_fails_delays_no_other() {
        let reports = Reports::default();
        for name in ["bad", "good", "late"] {
            put(&reports, name);
        }
        let start = Instant::now();
        let mut order = Vec::new();
        for round in 0..8 {
            let (about, report) = reports.take().await;
            match about == unit("bad") {
                true => reports.failed(about.clone(), report, Some("no".to_owned())),
                false => reports.written(&about, true),
            }
            order.push((about, start.elapsed()));
            if round == 4 {
                put(&reports, "new");
            }
        }
        let bad: Vec<Duration> = order
            .iter()
            .filter(|(about, _)| *about == unit("bad"))
            .map(|(_, at)| *at)
            .collect();
        assert_eq!(bad.len(), 5);
        let gaps: Vec<Duration> = bad.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| !gap.is_zero()), "{gaps:?}");
        assert!(gaps.is_sorted(), "{gaps:?}");
        let at = |name: &str| {
            order
                .iter()
                .find(|(about, _)| *about == unit(name))
                .unwrap()
                .1
        };
        assert_eq!((at("good"), at("late")), (Duration::ZERO, Duration::ZERO));
        // It came after the third attempt, and did not wait for the fourth.
        assert_eq!(at("new"), bad[2]);
        assert!(!reports.is_idle());
        // Once it succeeds, it begins anew.
        let (about, _) = reports.take().await;
        reports.written(&about, true);
        assert!(reports.is_idle());
        assert_eq!(reports.attempts(&unit("bad")), 0);
    }

    #[tokio::test]
    async fn only_one_report_about_a_thing_is_written_at_once() {
        let reports = Reports::default();
        put(&reports, "a");
        assert_eq!(reports.take().await.0, unit("a"));
        put(&reports, "a");
        let none = reports.take().now_or_never();
        assert!(none.is_none(), "{none:?}");
        put(&reports, "b");
        assert_eq!(reports.take().await.0, unit("b"));
        reports.written(&unit("a"), true);
        assert!(!reports.is_idle());
        assert_eq!(reports.take().await.0, unit("a"));
        reports.written(&unit("a"), true);
        assert!(!reports.is_idle(), "the other is being written");
        reports.written(&unit("b"), true);
        assert!(reports.is_idle());
    }

    /// One that failed before and is tried again is no reason to look again and again
    /// whether it may be.
    #[tokio::test(start_paused = true)]
    async fn who_waits_for_the_end_of_a_write_waits_for_no_time() {
        let reports = Reports::default();
        put(&reports, "a");
        let (about, report) = reports.take().await;
        reports.failed(about, report, Some("no".to_owned()));
        assert_eq!(reports.take().await.0, unit("a"));
        put(&reports, "a");
        let due = reports.0.pending.lock().next(Instant::now());
        assert!(matches!(due, Err(None)), "{due:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_its_own_fault_has_no_delay_of_its_own() {
        let reports = Reports::default();
        put(&reports, "a");
        let start = Instant::now();
        for attempts in 1..5 {
            let (about, report) = reports.take().await;
            reports.failed(about, report, None);
            assert_eq!(reports.attempts(&unit("a")), attempts);
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}
