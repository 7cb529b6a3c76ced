//! What the agent says of itself, of plugins and of units.

use super::Controller;
use crate::plugin::{Health, UnitState};
use crate::problem::Problem;
use crate::reporter::{About, EventReport, Report, UnitReport};
use crate::secret_names::unit_spec;
use crate::status::{AgentStatus, PluginReport, UnitSummary};
use crate::sync_status;
use k8s_openapi::jiff::Timestamp;
use reeve_api::{ConditionType, Reason, UnitStatus, condition, set_condition};
use reeve_cluster::WatchState;
use reeve_core::UnitKey;
use reeve_core::outcome::ConditionStatus;
use reeve_core::ownership::{plugin_label, unit_label};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A status is reported this long after it changed, so that a burst of changes
/// is one write; sooner, when nothing else is left to do.
const REPORT_DELAY: Duration = Duration::from_millis(250);

/// A status of the whole agent costs more than many of the events that could change
/// it.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(20);

impl Controller {
    pub(super) fn mark_stale(&mut self, plugin: &Arc<str>) {
        self.state.stale.insert(plugin.clone());
        if self.state.report_at.is_none() {
            self.state.report_at = Some(Instant::now() + REPORT_DELAY);
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.is_idle_when(self.synced())
    }

    /// Whether there is nothing to do. Whether all is known changes at any time, so that who
    /// says both looks once.
    fn is_idle_when(&self, synced: bool) -> bool {
        (self.state.queue.is_idle() || !self.leads())
            && self.state.runs == 0
            && self.state.loads == 0
            && self.state.releases.is_empty()
            && self.changes.is_empty()
            && !(synced && self.awaits_loads())
    }

    /// Whether a plugin is to be loaded as soon as all is known. Where all is, it is about to
    /// be: when this loop hears of that, which may be after it has heard that it leads.
    fn awaits_loads(&self) -> bool {
        let mut plugins = self.state.plugins.values();
        plugins.any(|plugin| plugin.wants_load)
    }

    pub(super) fn report_when_idle(&mut self) {
        if self.state.report_at.is_some() && self.is_idle() {
            self.report();
        }
    }

    pub(super) fn report(&mut self) {
        self.state.report_at = None;
        // Before all is known, a plugin would be reported without its policy.
        if !self.synced() || !self.leads() {
            return;
        }
        let (now, idle) = (self.clock.now(), self.is_idle());
        for name in std::mem::take(&mut self.state.stale) {
            let Some(plugin) = self.state.plugins.get_mut(&name) else {
                continue;
            };
            if !idle && plugin.is_quiet() {
                self.mark_stale(&name);
                continue;
            }
            plugin.quiet_until = None;
            plugin.unwritten = self.reports.refused(|unit| is_unit_object_of(&name, unit));
            let status = plugin.status(now);
            if plugin.reported.as_ref() != Some(&status) {
                plugin.reported = Some(status.clone());
                let about = About::Plugin(name.to_string());
                self.reports.put(about, Report::Plugin(Box::new(status)));
            }
        }
    }

    /// Says of which plugins units cannot be written, or can be again.
    pub(super) fn on_refused(&mut self) {
        let plugins = self.state.plugins.values();
        let other = plugins.filter(|plugin| {
            let now = self
                .reports
                .refused(|unit| is_unit_object_of(&plugin.name, unit));
            plugin.unwritten != now
        });
        let names: Vec<Arc<str>> = other.map(|plugin| plugin.name.clone()).collect();
        for name in names {
            self.mark_stale(&name);
        }
    }

    /// Reports what became stale while not everything was known.
    pub(super) fn resume_reports(&mut self) {
        if !self.state.stale.is_empty() && self.state.report_at.is_none() {
            self.state.report_at = Some(Instant::now());
        }
    }

    /// Publishes at rest, and while busy often enough to watch.
    pub(super) fn publish_now_and_then(&mut self) {
        let now = Instant::now();
        let recently = |at| now.duration_since(at) < PUBLISH_INTERVAL;
        if self.is_idle() || !self.state.published_at.is_some_and(recently) {
            self.state.published_at = Some(now);
            self.publish();
        }
    }

    fn publish(&mut self) {
        let synced = self.synced();
        let loaded = self.state.loads == 0 && self.changes.is_empty() && !self.awaits_loads();
        self.state.started |= synced && loaded;
        let mut plugins: Vec<PluginReport> = self
            .state
            .plugins
            .values()
            .map(|plugin| PluginReport {
                name: plugin.name.to_string(),
                digest: plugin.active.as_ref().map(|a| a.component.digest()),
                problem: plugin.problem.as_ref().map(ToString::to_string),
                units: plugin.counts(),
            })
            .collect();
        plugins.sort_by(|a, b| a.name.cmp(&b.name));
        self.count();
        let (mut syncing, mut own_watches) = (Vec::new(), Vec::new());
        for watch in self.own.all() {
            let resource = &watch.spec().resource;
            match watch.state() {
                WatchState::Synced => {}
                WatchState::Syncing => syncing.push(resource.to_string()),
                WatchState::Forbidden { message } | WatchState::Failing { message, .. } => {
                    own_watches.push(format!("{resource}: {message}"));
                }
                WatchState::NotServed => own_watches.push(format!(
                    "{resource}: not served; install the CRDs with `reeve crds | kubectl apply --server-side -f -`"
                )),
            }
        }
        // Several of the watches are of one kind.
        syncing.dedup();
        own_watches.dedup();
        let status = AgentStatus {
            synced,
            syncing,
            own_watches,
            idle: self.is_idle_when(synced) && self.state.stale.is_empty(),
            plugins,
            queued: self.state.queue.depth(),
            running: self.state.runs,
            runs: self.state.ended,
            role: self.role.borrow().clone(),
            leading: self.leads(),
            started: self.state.started,
        };
        self.status.send_if_modified(|old| {
            let changed = *old != status;
            *old = status;
            changed
        });
    }

    /// Notes what is installed and how its units are.
    fn count(&self) {
        let leads = self.leads();
        self.metrics.leads(leads);
        let installed = self.state.plugins.values();
        for plugin in installed.filter(|plugin| plugin.is_installed()) {
            let running = plugin.running();
            self.metrics
                .installed(&plugin.name, self.runs_at_once(), running.as_ref());
            let counts = leads.then(|| plugin.counts());
            self.metrics.units(&plugin.name, counts.as_ref());
        }
    }

    pub(super) fn units(&self) -> Vec<UnitSummary> {
        let mut units = Vec::new();
        for plugin in self.state.plugins.values() {
            for (primary, state) in plugin.units.iter().filter(|(_, state)| state.is_counted()) {
                units.push(UnitSummary {
                    plugin: plugin.name.to_string(),
                    primary: (**primary).clone(),
                    objects: state.desired.clone(),
                    ready: state.health() == Health::Ready,
                    problem: state.problem.as_ref().map(ToString::to_string),
                });
            }
        }
        units.sort_by(|a, b| (&a.plugin, &a.primary).cmp(&(&b.plugin, &b.primary)));
        units
    }
}

pub(super) const UNIT_LABEL_LENGTH: usize = 20;

pub(crate) fn unit_object_prefix(plugin: &str) -> String {
    format!("{}-", plugin_label(plugin).to_lowercase())
}

/// Whether a `Unit` object has a name as those of a plugin have it. Names of others may
/// begin alike.
pub(crate) fn is_unit_object_of(plugin: &str, object: &str) -> bool {
    let prefix = unit_object_prefix(plugin);
    object.starts_with(&prefix) && object.len() == prefix.len() + UNIT_LABEL_LENGTH
}

/// Name of a unit's `Unit` object.
pub(crate) fn unit_object_name(unit: &UnitKey) -> String {
    format!("{}{}", unit_object_prefix(&unit.plugin), unit_label(unit))
}

/// Types of conditions of a unit that a plugin cannot set.
const OWN_CONDITIONS: [ConditionType; 4] = [
    ConditionType::Contested,
    ConditionType::Ready,
    ConditionType::Reconciling,
    ConditionType::Stalled,
];

pub(super) fn set_unit_conditions(
    state: &mut UnitState,
    problems: &[Problem],
    reported: &[reeve_core::outcome::Condition],
    now: k8s_openapi::jiff::Timestamp,
) {
    let mut wanted: Vec<&str> = vec![ConditionType::Ready.as_str()];
    let ready = match problems {
        [] => condition(
            "Ready",
            "True",
            Reason::Running.to_string(),
            in_place(reported),
            None,
            now,
        ),
        [first, ..] => {
            let message = problems
                .iter()
                .map(|p| p.message.as_str())
                .collect::<Vec<_>>()
                .join("; ");
            condition(
                "Ready",
                "False",
                first.reason.to_string(),
                message,
                None,
                now,
            )
        }
    };
    set_condition(&mut state.conditions, ready);
    if let [first, ..] = problems {
        let goes_on = |problem: &Problem| problem.retries || problem.waits();
        let kind = if problems.iter().any(goes_on) {
            ConditionType::Reconciling
        } else {
            ConditionType::Stalled
        };
        wanted.push(kind.as_str());
        let (reason, message) = (first.reason.to_string(), first.message.clone());
        let progress = condition(kind.as_str(), "True", reason, message, None, now);
        set_condition(&mut state.conditions, progress);
    }
    if let Some(fight) = &state.fight {
        let kind = ConditionType::Contested.as_str();
        wanted.push(kind);
        let reason = Reason::FieldsContested.to_string();
        let contested = condition(kind, "True", reason, fight.clone(), None, now);
        set_condition(&mut state.conditions, contested);
    }
    for report in reported {
        // These are ours to say.
        if OWN_CONDITIONS.iter().any(|own| own.as_str() == report.kind) {
            continue;
        }
        wanted.push(&report.kind);
        let status = ConditionStatus::as_str(report.status);
        let new = condition(
            report.kind.clone(),
            status,
            report.reason.clone(),
            report.message.clone(),
            None,
            now,
        );
        set_condition(&mut state.conditions, new);
    }
    state
        .conditions
        .retain(|c| wanted.contains(&c.type_.as_str()));
}

/// What is recorded of a fight.
pub(super) fn fight_event(fight: &str) -> reeve_core::outcome::Event {
    reeve_core::outcome::Event {
        warning: true,
        reason: Reason::FieldsContested.to_string(),
        message: fight.to_owned(),
    }
}

/// That all is well, and what the plugin says nevertheless.
fn in_place(reported: &[reeve_core::outcome::Condition]) -> String {
    let mut text = "the desired state is in place".to_owned();
    for report in reported {
        text.push_str("; the plugin reports ");
        text.push_str(&report.kind);
        text.push(' ');
        text.push_str(ConditionStatus::as_str(report.status));
        text.push_str(": ");
        text.push_str(&report.message);
    }
    text
}

pub(super) fn unit_report(
    unit: &UnitKey,
    state: &UnitState,
    uid: Option<&str>,
    digest: Option<String>,
) -> UnitReport {
    UnitReport {
        spec: unit_spec(unit, uid),
        status: UnitStatus {
            digest,
            failures: state.failures,
            actions: state.effects.write(),
            // Those are the reporter's to say.
            secrets: Vec::new(),
            sync: sync_status::write(
                &state.sync,
                state.blocked_since.as_ref().map(|(_, since)| *since),
            ),
            plan: state.plan.clone(),
            conditions: state.conditions.clone(),
        },
    }
}

pub(super) fn event_report(
    unit: &UnitKey,
    uid: &str,
    event: &reeve_core::outcome::Event,
    at: Timestamp,
) -> Report {
    Report::Event(Box::new(EventReport {
        primary: (*unit.primary).clone(),
        uid: uid.to_owned(),
        event: event.clone(),
        at,
    }))
}
