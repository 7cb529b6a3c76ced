//! What calls of plugins used.
//!
//! Time and memory have distributions, since a limit is set by their tails; of the
//! rest there are sums, from which means follow. So a plugin adds some thirty
//! series, whatever it does.

use super::families::{Times, times};
use super::labels::Plugin;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use reeve_engine::Usage;
use std::sync::atomic::AtomicU64;

/// From 256 KiB, which is next to nothing, to 1 GiB, beyond which no memory goes,
/// each bound four times the one before.
fn sizes() -> Histogram {
    Histogram::new(exponential_buckets(262_144.0, 4.0, 7))
}

/// The metrics of calls.
pub(super) struct Calls {
    wall_time: Times<Plugin>,
    run_time: Times<Plugin>,
    processor: Family<Plugin, Counter<f64, AtomicU64>>,
    memory: Times<Plugin>,
    output_bytes: Family<Plugin, Counter>,
    output_objects: Family<Plugin, Counter>,
    host_calls: Family<Plugin, Counter>,
    host_call_bytes: Family<Plugin, Counter>,
    log_bytes: Family<Plugin, Counter>,
}

/// The metrics of calls of one plugin.
pub(super) struct OfPlugin {
    wall_time: Histogram,
    run_time: Histogram,
    processor: Counter<f64, AtomicU64>,
    memory: Histogram,
    output_bytes: Counter,
    output_objects: Counter,
    host_calls: Counter,
    host_call_bytes: Counter,
    log_bytes: Counter,
}

impl OfPlugin {
    /// Counts a call.
    pub(super) fn add(&self, usage: &Usage) {
        self.wall_time.observe(usage.wall.as_secs_f64());
        self.run_time.observe(usage.run_time.as_secs_f64());
        self.memory.observe(bytes(usage.memory_bytes));
        self.processor.inc_by(usage.processor.as_secs_f64());
        for (counter, number) in [
            (&self.output_bytes, usage.output_bytes),
            (&self.output_objects, usage.output_objects),
            (&self.host_calls, usage.host_calls),
            (&self.host_call_bytes, usage.host_call_bytes),
            (&self.log_bytes, usage.log_bytes),
        ] {
            counter.inc_by(number);
        }
    }
}

impl Calls {
    pub(super) fn new() -> Self {
        let histogram = |make: fn() -> Histogram| Times::new_with_constructor(make);
        Self {
            wall_time: histogram(times),
            run_time: histogram(times),
            processor: Family::default(),
            memory: histogram(sizes),
            output_bytes: Family::default(),
            output_objects: Family::default(),
            host_calls: Family::default(),
            host_call_bytes: Family::default(),
            log_bytes: Family::default(),
        }
    }

    /// Makes them known.
    pub(super) fn register(&self, registry: &mut Registry) {
        macro_rules! register {
            ($($field:ident: $name:literal, $help:literal;)*) => {
                $(registry.register($name, $help, self.$field.clone());)*
            };
        }
        register! {
            wall_time: "reeve_call_seconds", "How long calls of a plugin's reconcile took";
            run_time: "reeve_call_run_seconds", "Processor time that calls of a plugin used";
            processor: "reeve_call_processor_seconds", "Processor time that calls of a plugin took, with the agent's answers to them";
            memory: "reeve_call_memory_bytes", "Memory that calls of a plugin used at most";
            output_bytes: "reeve_call_output_bytes", "Bytes that calls of a plugin returned";
            output_objects: "reeve_call_output_objects", "Objects that calls of a plugin returned";
            host_calls: "reeve_call_host_calls", "Host functions that a plugin called";
            host_call_bytes: "reeve_call_host_bytes", "Bytes that host functions returned to a plugin";
            log_bytes: "reeve_call_log_bytes", "Bytes that a plugin logged and that were kept";
        }
    }

    /// Those of one plugin.
    pub(super) fn of(&self, plugin: &Plugin) -> OfPlugin {
        let histogram = |family: &Times<Plugin>| family.get_or_create(plugin).clone();
        let counter = |family: &Family<Plugin, Counter>| family.get_or_create(plugin).clone();
        OfPlugin {
            wall_time: histogram(&self.wall_time),
            run_time: histogram(&self.run_time),
            processor: self.processor.get_or_create(plugin).clone(),
            memory: histogram(&self.memory),
            output_bytes: counter(&self.output_bytes),
            output_objects: counter(&self.output_objects),
            host_calls: counter(&self.host_calls),
            host_call_bytes: counter(&self.host_call_bytes),
            log_bytes: counter(&self.log_bytes),
        }
    }

    /// Drops what is labelled with a plugin.
    pub(super) fn forget(&self, plugin: &Plugin) {
        for family in [&self.wall_time, &self.run_time, &self.memory] {
            family.remove(plugin);
        }
        self.processor.remove(plugin);
        for family in [
            &self.output_bytes,
            &self.output_objects,
            &self.host_calls,
            &self.host_call_bytes,
            &self.log_bytes,
        ] {
            family.remove(plugin);
        }
    }
}

/// For a histogram, which has floating point numbers.
fn bytes(number: u64) -> f64 {
    // No memory has as much as a float cannot count.
    u32::try_from(number).map_or(f64::from(u32::MAX), f64::from)
}
