//! Writes what the agent has to say: `Plugin` and `Unit` objects, and Events.
//!
//! Reports are coalesced: only the newest about each thing is written, and one
//! that fails is tried again unless a newer one has taken its place. Reporting
//! never holds up reconciling.

use crate::problem::chain;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use parking_lot::Mutex;
use reeve_api::{Plugin, PluginSpec, PluginStatus, Unit, UnitSpec, UnitStatus};
use reeve_cluster::{Event, EventKind, Recorder};
use reeve_core::ObjectReference;
use reeve_core::backoff::Backoff;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::Notify;

/// Field manager of what the agent writes in its own name.
const FIELD_MANAGER: &str = "reeve";

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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
}

#[derive(Default)]
struct Pending {
    reports: BTreeMap<About, Report>,
    /// What was written last: the next one after it has its turn, so that one
    /// that cannot be written does not hold up the others.
    last: Option<About>,
    writing: bool,
}

impl Reports {
    /// Hands in a report. It replaces an unwritten one about the same thing.
    pub(crate) fn put(&self, about: About, report: Report) {
        self.0.pending.lock().reports.insert(about, report);
        self.0.arrived.notify_one();
    }

    /// Whether everything has been written.
    pub(crate) fn is_idle(&self) -> bool {
        let pending = self.0.pending.lock();
        pending.reports.is_empty() && !pending.writing
    }

    async fn take(&self) -> (About, Report) {
        loop {
            {
                let mut pending = self.0.pending.lock();
                if let Some(next) = pending.next() {
                    pending.writing = true;
                    return next;
                }
            }
            self.0.arrived.notified().await;
        }
    }

    /// Ends a write. A report that failed is put back unless there is a newer one.
    fn written(&self, failed: Option<(About, Report)>) {
        let mut pending = self.0.pending.lock();
        pending.writing = false;
        if let Some((about, report)) = failed {
            pending.reports.entry(about).or_insert(report);
        }
    }
}

impl Pending {
    fn next(&mut self) -> Option<(About, Report)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let after = self.last.as_ref().map_or(Unbounded, Excluded);
        let next = self.reports.range((after, Unbounded)).next();
        let about = next.or_else(|| self.reports.first_key_value())?.0.clone();
        self.last = Some(about.clone());
        self.reports.remove_entry(&about)
    }
}

/// Writes reports, one after another, until it is dropped.
pub(crate) struct Reporter {
    pub(crate) reports: Reports,
    pub(crate) client: kube::Client,
    pub(crate) recorder: Recorder,
    pub(crate) namespace: Arc<str>,
}

impl Reporter {
    pub(crate) async fn run(self) {
        let mut failures = 0;
        loop {
            let (about, report) = self.reports.take().await;
            match self.write(&about, &report).await {
                Ok(()) => {
                    failures = 0;
                    self.reports.written(None);
                }
                Err(problem) => {
                    failures += 1;
                    tracing::warn!(?about, problem, "report not written");
                    // An event that cannot be written is worth less than the
                    // memory that keeping many of them would take.
                    let drop_it = matches!(report, Report::Event(_)) && failures > 3;
                    self.reports.written((!drop_it).then_some((about, report)));
                    tokio::time::sleep(Backoff::CONNECTION.delay(failures, 1.0)).await;
                }
            }
        }
    }

    async fn write(&self, about: &About, report: &Report) -> Result<(), String> {
        match (about, report) {
            (About::Plugin(name), Report::Plugin(status)) => self.write_plugin(name, status).await,
            (About::Unit(name), Report::Unit(Some(report))) => self.write_unit(name, report).await,
            (About::Unit(name), Report::Unit(None)) => {
                let units: Api<Unit> = Api::namespaced(self.client.clone(), &self.namespace);
                match units.delete(name, &DeleteParams::default()).await {
                    Err(error) if !is_not_found(&error) => Err(chain(&error)),
                    _ => Ok(()),
                }
            }
            (_, Report::Event(report)) => self.write_event(report).await,
            _ => Ok(()),
        }
    }

    async fn write_event(&self, report: &EventReport) -> Result<(), String> {
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
        let recorded = self.recorder.record(&event).await;
        recorded.map(|_| ()).map_err(|error| chain(&error))
    }

    async fn write_plugin(&self, name: &str, status: &PluginStatus) -> Result<(), String> {
        let plugins: Api<Plugin> = Api::namespaced(self.client.clone(), &self.namespace);
        let body = json!({
            "apiVersion": "reeve.dev/v1alpha1",
            "kind": "Plugin",
            "metadata": {"name": name},
            "status": status,
        });
        let params = PatchParams::apply(FIELD_MANAGER).force();
        match plugins
            .patch_status(name, &params, &Patch::Apply(&body))
            .await
        {
            Err(error) if is_not_found(&error) => {}
            other => return other.map(|_| ()).map_err(|error| chain(&error)),
        }
        let plugin = Plugin {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            spec: PluginSpec::default(),
            status: None,
        };
        match plugins.create(&PostParams::default(), &plugin).await {
            Err(error) if !is_already_exists(&error) => return Err(chain(&error)),
            _ => {}
        }
        plugins
            .patch_status(name, &params, &Patch::Apply(&body))
            .await
            .map(|_| ())
            .map_err(|error| chain(&error))
    }

    async fn write_unit(&self, name: &str, report: &UnitReport) -> Result<(), String> {
        let units: Api<Unit> = Api::namespaced(self.client.clone(), &self.namespace);
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let body = |field: &str, value: serde_json::Value| {
            json!({
                "apiVersion": "reeve.dev/v1alpha1",
                "kind": "Unit",
                "metadata": {"name": name},
                field: value,
            })
        };
        let spec = body("spec", json!(report.spec));
        let applied = units.patch(name, &params, &Patch::Apply(&spec)).await;
        applied.map_err(|error| chain(&error))?;
        let status = body("status", json!(report.status));
        let applied = units
            .patch_status(name, &params, &Patch::Apply(&status))
            .await;
        applied.map(|_| ()).map_err(|error| chain(&error))
    }
}

fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

fn is_already_exists(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}
