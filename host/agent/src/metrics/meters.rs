//! What is counted of a plugin in each of its runs, at hand.
//!
//! A family finds a metric by its labels, which takes a lock and a hash each time. There is
//! a run for each of thousands of units, and twenty metrics are counted in it. As anywhere
//! else, a metric is not told of before something was counted.

use super::calls::OfPlugin;
use super::families::Families;
use super::labels::{Plugin, Queue, Reconcile, RunResult, Verb, Write, WriteResult};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use reeve_engine::Usage;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The metrics of one plugin. They are those of the families, and forgotten with them.
pub(super) struct Meters {
    plugin: Arc<str>,
    queue_adds: OnceLock<Counter>,
    queue_depth: OnceLock<Gauge>,
    queue_time: OnceLock<Histogram>,
    workers: OnceLock<Gauge>,
    work_time: OnceLock<Histogram>,
    run_time: OnceLock<Histogram>,
    successes: OnceLock<Counter>,
    applies: OnceLock<Counter>,
    apply_time: OnceLock<Histogram>,
    noops: OnceLock<Counter>,
    calls: OnceLock<OfPlugin>,
}

impl Meters {
    pub(super) fn new(plugin: &Arc<str>) -> Self {
        Self {
            plugin: plugin.clone(),
            queue_adds: OnceLock::new(),
            queue_depth: OnceLock::new(),
            queue_time: OnceLock::new(),
            workers: OnceLock::new(),
            work_time: OnceLock::new(),
            run_time: OnceLock::new(),
            successes: OnceLock::new(),
            applies: OnceLock::new(),
            apply_time: OnceLock::new(),
            noops: OnceLock::new(),
            calls: OnceLock::new(),
        }
    }

    pub(super) fn queued(&self, families: &Families) {
        let adds = &families.queue_adds;
        let adds = || adds.get_or_create(&self.queue()).clone();
        self.queue_adds.get_or_init(adds).inc();
    }

    pub(super) fn depth(&self, families: &Families, depth: i64) {
        let depths = &families.queue_depth;
        let depths = || depths.get_or_create(&self.queue()).clone();
        self.queue_depth.get_or_init(depths).set(depth);
    }

    pub(super) fn run_started(&self, families: &Families, waited: Duration) {
        let times = &families.queue_time;
        let times = || times.get_or_create(&self.queue()).clone();
        let times = self.queue_time.get_or_init(times);
        times.observe(waited.as_secs_f64());
        self.workers(families).inc();
    }

    /// A run has ended, after this many seconds.
    pub(super) fn run_ended(&self, families: &Families, seconds: f64) {
        self.workers(families).dec();
        let times = &families.work_time;
        let times = || times.get_or_create(&self.queue()).clone();
        self.work_time.get_or_init(times).observe(seconds);
    }

    /// It ended like this, and somebody is to hear of it.
    pub(super) fn ran(&self, families: &Families, result: RunResult, seconds: f64) {
        let label = super::controller(&self.plugin);
        let times = || families.run_time.get_or_create(&label).clone();
        self.run_time.get_or_init(times).observe(seconds);
        let runs = || {
            let reconcile = Reconcile {
                controller: self.plugin.clone(),
                result: result.as_str(),
            };
            families.runs.get_or_create(&reconcile).clone()
        };
        match result {
            RunResult::Success => self.successes.get_or_init(runs).inc(),
            RunResult::RequeueAfter | RunResult::Error => runs().inc(),
        };
        if result == RunResult::Error {
            families.errors.get_or_create(&label).inc();
        }
    }

    pub(super) fn called(&self, families: &Families, usage: &Usage) {
        let calls = || families.calls.of(&self.label());
        self.calls.get_or_init(calls).add(usage);
    }

    pub(super) fn wrote(&self, families: &Families, verb: Verb, result: WriteResult, time: f64) {
        let writes = || {
            let write = Write {
                plugin: self.plugin.clone(),
                verb: verb.as_str(),
                result: result.as_str(),
            };
            families.writes.get_or_create(&write).clone()
        };
        match (verb, result) {
            (Verb::Apply, WriteResult::Success) => self.applies.get_or_init(writes).inc(),
            _ => writes().inc(),
        };
        if verb == Verb::Apply {
            let times = || families.apply_time.get_or_create(&self.label()).clone();
            self.apply_time.get_or_init(times).observe(time);
        }
    }

    pub(super) fn unchanged(&self, families: &Families, objects: u64) {
        let noops = || families.noops.get_or_create(&self.label()).clone();
        self.noops.get_or_init(noops).inc_by(objects);
    }

    fn workers(&self, families: &Families) -> &Gauge {
        let label = super::controller(&self.plugin);
        let workers = || families.workers.get_or_create(&label).clone();
        self.workers.get_or_init(workers)
    }

    fn label(&self) -> Plugin {
        super::of_plugin(&self.plugin)
    }

    fn queue(&self) -> Queue {
        super::queue(&self.plugin)
    }
}
