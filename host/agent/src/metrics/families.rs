//! Every metric, with its name and what it means.

use super::calls::Calls;
use super::labels::{
    Controller, Exceeded, Info, Plugin, Queue, Reconcile, Request, RunResult, UNIT_STATES, Units,
    Verb, Watched, Write, WriteResult,
};
use super::outside::Outside;
use crate::bounds::limit_names;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Times from the tenth of a millisecond that a plugin takes to the half minute
/// after which a request is given up, each bound four times the one before.
pub(super) fn times() -> Histogram {
    Histogram::new(exponential_buckets(0.000_1, 4.0, 10))
}

pub(super) type Times<L> = Family<L, Histogram, fn() -> Histogram>;
type Seconds = Gauge<f64, AtomicU64>;

/// The metrics themselves.
pub(super) struct Families {
    pub(super) runs: Family<Reconcile, Counter>,
    pub(super) errors: Family<Controller, Counter>,
    pub(super) panics: Family<Controller, Counter>,
    pub(super) run_time: Times<Controller>,
    pub(super) workers: Family<Controller, Gauge>,
    pub(super) max_workers: Family<Controller, Gauge>,
    pub(super) queue_depth: Family<Queue, Gauge>,
    pub(super) queue_adds: Family<Queue, Counter>,
    pub(super) queue_time: Times<Queue>,
    pub(super) work_time: Times<Queue>,
    pub(super) longest: Family<Queue, Seconds>,
    pub(super) unfinished: Family<Queue, Seconds>,
    pub(super) retries: Family<Queue, Counter>,
    pub(super) requests: Family<Request, Counter>,
    pub(super) info: Family<Info, Gauge>,
    pub(super) units: Family<Units, Gauge>,
    pub(super) writes: Family<Write, Counter>,
    pub(super) noops: Family<Plugin, Counter>,
    pub(super) calls: Calls,
    pub(super) outside: Outside,
    pub(super) exceeded: Family<Exceeded, Counter>,
    pub(super) memo_hits: Family<Plugin, Counter>,
    pub(super) apply_time: Times<Plugin>,
    pub(super) backoffs: Family<Plugin, Counter>,
    pub(super) watch_restarts: Family<Watched, Counter>,
    pub(super) leader: Gauge,
}

impl Families {
    /// Makes them all. Nobody knows of them before [`Families::register`].
    pub(super) fn new() -> Self {
        let times_of = || Times::new_with_constructor(times as fn() -> Histogram);
        let times_of_queue = || Times::new_with_constructor(times as fn() -> Histogram);
        let times_of_plugin = || Times::new_with_constructor(times as fn() -> Histogram);
        Self {
            runs: Family::default(),
            errors: Family::default(),
            panics: Family::default(),
            run_time: times_of(),
            workers: Family::default(),
            max_workers: Family::default(),
            queue_depth: Family::default(),
            queue_adds: Family::default(),
            queue_time: times_of_queue(),
            work_time: times_of_queue(),
            longest: Family::default(),
            unfinished: Family::default(),
            retries: Family::default(),
            requests: Family::default(),
            info: Family::default(),
            units: Family::default(),
            writes: Family::default(),
            noops: Family::default(),
            calls: Calls::new(),
            outside: Outside::new(),
            exceeded: Family::default(),
            memo_hits: Family::default(),
            apply_time: times_of_plugin(),
            backoffs: Family::default(),
            watch_restarts: Family::default(),
            leader: Gauge::default(),
        }
    }

    /// Makes them all known. Counters get `_total` when they are written down.
    pub(super) fn register(&self, registry: &mut Registry) {
        self.calls.register(registry);
        self.outside.register(registry);
        macro_rules! register {
            ($($field:ident: $name:literal, $help:literal;)*) => {
                // The registry ends each text with a full stop.
                $(registry.register($name, $help, self.$field.clone());)*
            };
        }
        register! {
            runs: "controller_runtime_reconcile", "Runs of units by plugin and result";
            errors: "controller_runtime_reconcile_errors", "Runs that left a unit not ready";
            panics: "controller_runtime_reconcile_panics", "Runs in which the agent itself failed";
            run_time: "controller_runtime_reconcile_time_seconds", "How long runs took";
            workers: "controller_runtime_active_workers", "Units that run now";
            max_workers: "controller_runtime_max_concurrent_reconciles", "Units that may run at once, of all plugins together";
            queue_depth: "workqueue_depth", "Units that are ready to run";
            queue_adds: "workqueue_adds", "Units that were queued";
            queue_time: "workqueue_queue_duration_seconds", "How long units were queued before they ran";
            work_time: "workqueue_work_duration_seconds", "How long runs took, those that were given up included";
            longest: "workqueue_longest_running_processor_seconds", "How long the longest run has taken so far";
            unfinished: "workqueue_unfinished_work_seconds", "How long all runs that have not ended have taken so far, together";
            retries: "workqueue_retries", "Units that were queued again after a failure";
            requests: "rest_client_requests", "Requests to the API server by method and status, or <error> without an answer";
            info: "reeve_plugin_info", "Plugins that are installed, with the version that runs";
            units: "reeve_units", "Units by plugin and state, on the replica that leads";
            writes: "reeve_writes", "Writes for a plugin by verb and result";
            noops: "reeve_noops", "Objects of plugins that needed no write";
            exceeded: "reeve_calls_over_limit", "Calls of a plugin that were ended by a limit";
            memo_hits: "reeve_memo_hits", "Calls of a plugin that were spared, since its answer to the same was remembered";
            apply_time: "reeve_apply_seconds", "How long applies for a plugin took";
            backoffs: "reeve_backoffs", "Delays that units of a plugin were given after a failure";
            watch_restarts: "reeve_watch_restarts", "Watches that had to list anew or to connect again, by kind";
            leader: "reeve_leader", "Whether this replica runs units: 1 if it leads or is the only one";
        }
    }

    /// Drops what is labelled with a plugin, but for its info.
    pub(super) fn forget(&self, name: &Arc<str>) {
        for result in RunResult::ALL {
            self.runs.remove(&Reconcile {
                controller: name.clone(),
                result: result.as_str(),
            });
        }
        let controller = Controller {
            controller: name.clone(),
        };
        self.errors.remove(&controller);
        self.panics.remove(&controller);
        self.run_time.remove(&controller);
        self.workers.remove(&controller);
        self.max_workers.remove(&controller);
        let queue = Queue {
            name: name.clone(),
            controller: name.clone(),
        };
        self.queue_depth.remove(&queue);
        self.queue_adds.remove(&queue);
        self.queue_time.remove(&queue);
        self.work_time.remove(&queue);
        self.longest.remove(&queue);
        self.unfinished.remove(&queue);
        self.retries.remove(&queue);
        let plugin = name;
        for state in UNIT_STATES {
            self.units.remove(&Units {
                plugin: plugin.clone(),
                state,
            });
        }
        for (verb, result) in Verb::ALL
            .into_iter()
            .flat_map(|verb| WriteResult::ALL.map(|result| (verb, result)))
        {
            self.writes.remove(&Write {
                plugin: plugin.clone(),
                verb: verb.as_str(),
                result: result.as_str(),
            });
        }
        let plugin = Plugin {
            plugin: plugin.clone(),
        };
        self.noops.remove(&plugin);
        self.calls.forget(&plugin);
        self.outside.forget(&plugin);
        for limit in limit_names() {
            self.exceeded.remove(&Exceeded {
                plugin: plugin.plugin.clone(),
                limit,
            });
        }
        self.memo_hits.remove(&plugin);
        self.apply_time.remove(&plugin);
        self.backoffs.remove(&plugin);
    }
}
