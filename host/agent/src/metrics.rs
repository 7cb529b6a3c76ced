//! What the agent counts, for Prometheus.
//!
//! Names are controller-runtime's and client-go's where they have one, so that
//! existing dashboards and alerts work; the rest begins with `reeve_`. Labels are
//! bounded: plugins by the name under which they are installed, outcomes by the
//! values of an enum, kinds as far as they are watched. There is no label per
//! unit. What is labelled with a plugin goes when the plugin goes.

mod calls;
mod families;
mod labels;
mod meters;
mod outside;

pub(crate) use labels::{RunResult, Verb, WriteResult};
pub(crate) use outside::{EffectResult, LookResult};

use families::Families;
use http::Method;
use labels::{Controller, Exceeded, Info, Plugin, Queue, Request, UNIT_STATES, Units, Watched};
use meters::Meters;
use parking_lot::{Mutex, RwLock};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use reeve_api::UnitCounts;
use reeve_cluster::{Observer, Resource};
use reeve_core::outcome;
use reeve_engine::Usage;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// The metrics of an agent. Clones count together.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

/// A method, and the status of an answer, if there was one.
type Answer = (Method, Option<u16>);

struct Inner {
    families: Families,
    /// Plugins that are installed. What is counted of another one is not kept: a
    /// run may end after its plugin went.
    plugins: RwLock<HashMap<Arc<str>, (Info, Meters)>>,
    /// When each run began that has not ended.
    running: Mutex<Running>,
    /// Requests at hand: few methods are answered with few statuses.
    requests: RwLock<Vec<(Answer, Counter)>>,
    /// Tells watchers of sources apart.
    watchers: AtomicU64,
}

/// Who looks at a source, as far as metrics know. They forget the source with it.
#[derive(Debug)]
pub(crate) struct SourceMeter {
    metrics: Metrics,
    plugin: Arc<str>,
    source: Arc<str>,
    number: u64,
}

impl SourceMeter {
    /// A look ended like this, and took this long.
    pub(crate) fn looked(&self, result: LookResult, time: Duration) {
        self.metrics.of(&self.plugin, |families| {
            let outside = &families.outside;
            outside.looked(&self.plugin, &self.source, result, time);
        });
    }

    /// The document was last known to be current then.
    pub(crate) fn confirmed(&self, at: Option<Instant>) {
        self.metrics.of(&self.plugin, |families| {
            let outside = &families.outside;
            outside.confirmed(&self.plugin, &self.source, self.number, at);
        });
    }
}

impl Drop for SourceMeter {
    fn drop(&mut self) {
        let outside = &self.metrics.0.families.outside;
        outside.unwatched(&self.plugin, &self.source, self.number);
    }
}

#[derive(Default)]
struct Running {
    number: u64,
    runs: HashMap<u64, (Arc<str>, Instant)>,
}

impl RunTimer {
    /// Tells the run from all others of this process.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

/// A run that is under way; hand it back to [`Metrics::run_ended`].
#[derive(Debug)]
pub(crate) struct RunTimer {
    number: u64,
    plugin: Arc<str>,
    began: Instant,
}

impl Default for Metrics {
    fn default() -> Self {
        Self(Arc::new(Inner {
            families: Families::new(),
            plugins: RwLock::default(),
            running: Mutex::default(),
            requests: RwLock::default(),
            watchers: AtomicU64::default(),
        }))
    }
}

impl Metrics {
    /// The media type of [`Metrics::encode`].
    pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    /// All of them in OpenMetrics text.
    ///
    /// # Errors
    ///
    /// When a metric cannot be written down.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        self.note_running();
        self.0.families.outside.note_ages();
        // Names and words are for who reads, which is seldom, and nobody where agents are
        // started by the hundred.
        let mut registry = Registry::default();
        self.0.families.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry)?;
        Ok(text)
    }

    /// A plugin is installed, and runs this version, or none.
    pub(crate) fn installed(
        &self,
        plugin: &Arc<str>,
        workers: usize,
        running: Option<&(String, String)>,
    ) {
        let (digest, version) = running.cloned().unwrap_or_default();
        let info = Info {
            plugin: plugin.clone(),
            digest,
            version,
        };
        let families = &self.0.families;
        let mut plugins = self.0.plugins.write();
        let known = plugins.get_mut(plugin);
        let old = known.map(|(known, _)| std::mem::replace(known, info.clone()));
        if old.as_ref() == Some(&info) {
            return;
        }
        match old {
            Some(old) => {
                families.info.remove(&old);
            }
            None => {
                let meters = Meters::new(plugin);
                plugins.insert(plugin.clone(), (info.clone(), meters));
            }
        }
        families.info.get_or_create(&info).set(1);
        let workers = i64::try_from(workers).unwrap_or(i64::MAX);
        let label = controller(plugin);
        families.max_workers.get_or_create(&label).set(workers);
    }

    /// A plugin is gone, and with it what was counted of it.
    pub(crate) fn removed(&self, plugin: &str) {
        let mut plugins = self.0.plugins.write();
        if let Some((name, (info, _))) = plugins.remove_entry(plugin) {
            self.0.families.info.remove(&info);
            self.0.families.forget(&name);
        }
    }

    /// Units of a plugin, or none if another replica looks after them.
    pub(crate) fn units(&self, plugin: &Arc<str>, counts: Option<&UnitCounts>) {
        let counts = counts.map(|counts| {
            let UnitCounts {
                total,
                ready,
                failing,
                waiting,
                untold: _,
            } = *counts;
            let known = ready.saturating_add(failing).saturating_add(waiting);
            [ready, waiting, failing, total.saturating_sub(known)]
        });
        self.of(plugin, |families| {
            for (index, state) in UNIT_STATES.into_iter().enumerate() {
                let plugin = plugin.clone();
                let label = Units { plugin, state };
                match counts {
                    Some(counts) => {
                        let count = i64::from(counts[index]);
                        families.units.get_or_create(&label).set(count);
                    }
                    None => {
                        families.units.remove(&label);
                    }
                }
            }
        });
    }

    /// A unit was queued that was not.
    pub(crate) fn queued(&self, plugin: &Arc<str>) {
        self.of_run(plugin, |meters, families| meters.queued(families));
    }

    /// So many units of a plugin are ready to run.
    pub(crate) fn depth(&self, plugin: &Arc<str>, depth: usize) {
        let depth = i64::try_from(depth).unwrap_or(i64::MAX);
        self.of_run(plugin, |meters, families| meters.depth(families, depth));
    }

    /// A unit was taken from the queue after this time, and runs.
    pub(crate) fn run_started(&self, plugin: &Arc<str>, waited: Duration) -> RunTimer {
        self.of_run(plugin, |meters, families| {
            meters.run_started(families, waited);
        });
        let began = Instant::now();
        let mut running = self.0.running.lock();
        running.number += 1;
        let number = running.number;
        running.runs.insert(number, (plugin.clone(), began));
        RunTimer {
            number,
            plugin: plugin.clone(),
            began,
        }
    }

    /// A run has ended like this; none if nobody is to hear of it, because another
    /// replica leads by now.
    pub(crate) fn run_ended(&self, timer: &RunTimer, result: Option<RunResult>) {
        self.0.running.lock().runs.remove(&timer.number);
        let plugin = &timer.plugin;
        let time = timer.began.elapsed().as_secs_f64();
        self.of_run(plugin, |meters, families| {
            meters.run_ended(families, time);
            if let Some(result) = result {
                meters.ran(families, result, time);
            }
        });
    }

    /// The agent itself failed in a run.
    pub(crate) fn panicked(&self, plugin: &Arc<str>) {
        self.of(plugin, |families| {
            families.panics.get_or_create(&controller(plugin)).inc();
        });
    }

    /// A unit that failed is to run again after a delay.
    pub(crate) fn backed_off(&self, plugin: &Arc<str>) {
        self.of(plugin, |families| {
            families.backoffs.get_or_create(&of_plugin(plugin)).inc();
            families.retries.get_or_create(&queue(plugin)).inc();
        });
    }

    /// A plugin was called, used this, and may have been ended by a limit.
    pub(crate) fn called(&self, plugin: &Arc<str>, usage: &Usage, limit: Option<&'static str>) {
        self.of_run(plugin, |meters, families| {
            meters.called(families, usage);
            if let Some(limit) = limit {
                let exceeded = Exceeded {
                    plugin: plugin.clone(),
                    limit,
                };
                families.exceeded.get_or_create(&exceeded).inc();
            }
        });
    }

    /// A plugin was not called, since its answer was remembered.
    pub(crate) fn remembered(&self, plugin: &Arc<str>) {
        self.of(plugin, |families| {
            families.memo_hits.get_or_create(&of_plugin(plugin)).inc();
        });
    }

    /// Something was written for a plugin, or was to be, which took this long.
    pub(crate) fn wrote(&self, plugin: &Arc<str>, verb: Verb, result: WriteResult, time: Duration) {
        self.of_run(plugin, |meters, families| {
            meters.wrote(families, verb, result, time.as_secs_f64());
        });
    }

    /// So many objects of a unit were as they should be.
    pub(crate) fn unchanged(&self, plugin: &Arc<str>, objects: u64) {
        self.of_run(plugin, |meters, families| {
            meters.unchanged(families, objects);
        });
    }

    /// Whoever begins to look at a source of a plugin.
    pub(crate) fn source(&self, plugin: &Arc<str>, source: &str) -> SourceMeter {
        SourceMeter {
            metrics: self.clone(),
            plugin: plugin.clone(),
            source: source.into(),
            number: self.0.watchers.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// A plugin was called about an outside effect, which took this long.
    pub(crate) fn actuated(
        &self,
        plugin: &Arc<str>,
        action: &str,
        verb: outcome::Verb,
        result: EffectResult,
        time: Duration,
    ) {
        self.of(plugin, |families| {
            let outside = &families.outside;
            outside.actuated(plugin, action, verb, result, time);
        });
    }

    /// Whether this replica leads.
    pub(crate) fn leads(&self, leads: bool) {
        self.0.families.leader.set(i64::from(leads));
    }

    /// Counts something of a plugin, if it is installed.
    fn of(&self, plugin: &str, count: impl FnOnce(&Families)) {
        // Held meanwhile, so that what is counted cannot outlive the plugin.
        let plugins = self.0.plugins.read();
        if plugins.contains_key(plugin) {
            count(&self.0.families);
        }
    }

    /// As [`Metrics::of`], for what is counted in each run.
    fn of_run(&self, plugin: &str, count: impl FnOnce(&Meters, &Families)) {
        let plugins = self.0.plugins.read();
        if let Some((_, meters)) = plugins.get(plugin) {
            count(meters, &self.0.families);
        }
    }

    /// How long the runs of each plugin that have not ended have taken so far: the
    /// longest, and all together.
    fn note_running(&self) {
        let plugins: Vec<Arc<str>> = self.0.plugins.read().keys().cloned().collect();
        let mut times: HashMap<Arc<str>, (f64, f64)> = plugins
            .into_iter()
            .map(|plugin| (plugin, (0.0, 0.0)))
            .collect();
        for (plugin, began) in self.0.running.lock().runs.values() {
            if let Some((longest, all)) = times.get_mut(plugin) {
                let seconds = began.elapsed().as_secs_f64();
                *longest = longest.max(seconds);
                *all += seconds;
            }
        }
        for (plugin, (longest, all)) in times {
            self.of(&plugin, |families| {
                let label = queue(&plugin);
                families.longest.get_or_create(&label).set(longest);
                families.unfinished.get_or_create(&label).set(all);
            });
        }
    }
}

fn controller(plugin: &Arc<str>) -> Controller {
    Controller {
        controller: plugin.clone(),
    }
}

fn queue(plugin: &Arc<str>) -> Queue {
    Queue {
        name: plugin.clone(),
        controller: plugin.clone(),
    }
}

fn of_plugin(plugin: &Arc<str>) -> Plugin {
    Plugin {
        plugin: plugin.clone(),
    }
}

impl Observer for Metrics {
    fn request(&self, method: &Method, code: Option<u16>) {
        let known = |requests: &[(Answer, Counter)]| {
            let mut requests = requests.iter();
            let found = requests.find(|((of, answer), _)| of == method && *answer == code);
            found.map(|(_, counter)| counter.inc()).is_some()
        };
        if known(&self.0.requests.read()) {
            return;
        }
        let request = Request {
            method: method.to_string(),
            // In client-go's words, if there was no answer.
            code: code.map_or_else(|| "<error>".to_owned(), |code| code.to_string()),
        };
        let counter = self.0.families.requests.get_or_create(&request).clone();
        let mut requests = self.0.requests.write();
        if !known(&requests) {
            counter.inc();
            requests.push(((method.clone(), code), counter));
        }
    }

    fn watch_restarted(&self, resource: &Resource) {
        let watched = Watched {
            resource: resource.to_string(),
        };
        self.0.families.watch_restarts.get_or_create(&watched).inc();
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
