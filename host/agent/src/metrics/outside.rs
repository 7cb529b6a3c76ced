//! What plugins do outside of the cluster: documents that are looked at, effects that
//! are made.
//!
//! Labels are bounded by manifests: a plugin has at most 32 sources and 32 actions.

use super::families::{Times, times};
use super::labels::Plugin;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use reeve_core::outcome::Verb;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::time::Instant;

/// How a look at a source ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookResult {
    /// There is another document.
    Changed,
    /// The document is the same.
    Unchanged,
    /// There was none to be had.
    Failed,
    /// It is not granted.
    Forbidden,
}

impl LookResult {
    const ALL: [Self; 4] = [
        Self::Changed,
        Self::Unchanged,
        Self::Failed,
        Self::Forbidden,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::Failed => "failed",
            Self::Forbidden => "forbidden",
        }
    }
}

/// How a call about an effect ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EffectResult {
    /// It was made, taken away, or found to be there.
    Success,
    /// It was found to be gone.
    Gone,
    /// It failed.
    Error,
}

impl EffectResult {
    const ALL: [Self; 3] = [Self::Success, Self::Gone, Self::Error];

    fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Gone => "gone",
            Self::Error => "error",
        }
    }
}

const VERBS: [Verb; 3] = [Verb::Apply, Verb::Verify, Verb::Retire];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Source {
    plugin: Arc<str>,
    source: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Look {
    plugin: Arc<str>,
    source: Arc<str>,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Actuation {
    plugin: Arc<str>,
    action: Arc<str>,
    verb: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Verbs {
    plugin: Arc<str>,
    verb: &'static str,
}

/// The metrics of the outside.
pub(super) struct Outside {
    looks: Family<Look, Counter>,
    look_time: Times<Plugin>,
    age: Family<Source, Gauge<f64, AtomicU64>>,
    actuations: Family<Actuation, Counter>,
    actuation_time: Times<Verbs>,
    /// What is labelled, so that it can be dropped: families do not tell.
    known: Mutex<HashMap<Arc<str>, Known>>,
}

#[derive(Default)]
struct Known {
    /// Sources that are looked at, and when each was last found to be current.
    sources: HashMap<Arc<str>, (u64, Option<Instant>)>,
    /// Sources that were ever looked at.
    looked_at: BTreeSet<Arc<str>>,
    actions: BTreeSet<Arc<str>>,
}

impl Outside {
    pub(super) fn new() -> Self {
        Self {
            looks: Family::default(),
            look_time: Times::new_with_constructor(times as fn() -> Histogram),
            age: Family::default(),
            actuations: Family::default(),
            actuation_time: Times::new_with_constructor(times as fn() -> Histogram),
            known: Mutex::default(),
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
            looks: "reeve_source_looks", "Looks at outside documents by result";
            look_time: "reeve_source_look_seconds", "How long looks at outside documents took";
            age: "reeve_source_age_seconds", "Time since an outside document was last known to be current; none before there is one";
            actuations: "reeve_action_calls", "Calls about outside effects by verb and result";
            actuation_time: "reeve_action_seconds", "How long calls about outside effects took";
        }
    }

    pub(super) fn looked(
        &self,
        plugin: &Arc<str>,
        source: &Arc<str>,
        result: LookResult,
        time: Duration,
    ) {
        let mut known = self.known.lock();
        let known = known.entry(plugin.clone()).or_default();
        known.looked_at.insert(source.clone());
        let look = Look {
            plugin: plugin.clone(),
            source: source.clone(),
            result: result.as_str(),
        };
        self.looks.get_or_create(&look).inc();
        let label = Plugin {
            plugin: plugin.clone(),
        };
        self.look_time
            .get_or_create(&label)
            .observe(time.as_secs_f64());
    }

    /// Notes when a source was last found to be current. A later watcher, by its
    /// number, takes the place of an earlier one.
    pub(super) fn confirmed(
        &self,
        plugin: &Arc<str>,
        source: &Arc<str>,
        number: u64,
        at: Option<Instant>,
    ) {
        let mut known = self.known.lock();
        let sources = &mut known.entry(plugin.clone()).or_default().sources;
        let entry = sources.entry(source.clone()).or_insert((number, at));
        if entry.0 <= number {
            *entry = (number, at);
        }
    }

    /// Nobody looks at a source any more, unless a later watcher does.
    pub(super) fn unwatched(&self, plugin: &Arc<str>, source: &Arc<str>, number: u64) {
        let mut known = self.known.lock();
        let Some(of_plugin) = known.get_mut(plugin) else {
            return;
        };
        let sources = &mut of_plugin.sources;
        if sources.get(source).is_some_and(|(own, _)| *own == number) {
            sources.remove(source);
            of_plugin.looked_at.remove(source);
            self.age.remove(&Source {
                plugin: plugin.clone(),
                source: source.clone(),
            });
            for result in LookResult::ALL {
                self.looks.remove(&Look {
                    plugin: plugin.clone(),
                    source: source.clone(),
                    result: result.as_str(),
                });
            }
        }
    }

    pub(super) fn actuated(
        &self,
        plugin: &Arc<str>,
        action: &str,
        verb: Verb,
        result: EffectResult,
        time: Duration,
    ) {
        let action: Arc<str> = action.into();
        let mut known = self.known.lock();
        let known = known.entry(plugin.clone()).or_default();
        known.actions.insert(action.clone());
        let label = Actuation {
            plugin: plugin.clone(),
            action,
            verb: verb.as_str(),
            result: result.as_str(),
        };
        self.actuations.get_or_create(&label).inc();
        let label = Verbs {
            plugin: plugin.clone(),
            verb: verb.as_str(),
        };
        self.actuation_time
            .get_or_create(&label)
            .observe(time.as_secs_f64());
    }

    /// Brings the ages up to now.
    pub(super) fn note_ages(&self) {
        let known = self.known.lock();
        for (plugin, known) in &*known {
            for (source, (_, confirmed)) in &known.sources {
                if let Some(at) = confirmed {
                    let label = Source {
                        plugin: plugin.clone(),
                        source: source.clone(),
                    };
                    self.age
                        .get_or_create(&label)
                        .set(at.elapsed().as_secs_f64());
                }
            }
        }
    }

    /// Drops what is labelled with a plugin.
    pub(super) fn forget(&self, plugin: &Plugin) {
        let name = &plugin.plugin;
        self.look_time.remove(plugin);
        for verb in VERBS {
            self.actuation_time.remove(&Verbs {
                plugin: name.clone(),
                verb: verb.as_str(),
            });
        }
        let Some(known) = self.known.lock().remove(name) else {
            return;
        };
        for source in known.looked_at.iter().chain(known.sources.keys()) {
            self.age.remove(&Source {
                plugin: name.clone(),
                source: source.clone(),
            });
            for result in LookResult::ALL {
                self.looks.remove(&Look {
                    plugin: name.clone(),
                    source: source.clone(),
                    result: result.as_str(),
                });
            }
        }
        for action in &known.actions {
            for (verb, result) in VERBS
                .into_iter()
                .flat_map(|verb| EffectResult::ALL.map(|result| (verb, result)))
            {
                self.actuations.remove(&Actuation {
                    plugin: name.clone(),
                    action: action.clone(),
                    verb: verb.as_str(),
                    result: result.as_str(),
                });
            }
        }
    }
}
