//! The loop that owns all state: what is installed, what is due, what runs.
//!
//! Everything that happens (a change in the store, a load or a run that ended, a
//! timer) comes in here, one after another, so nothing in here needs a lock.
//! Whatever takes time runs in tasks of its own and reports back.

mod canary;
mod changes;
pub(crate) mod contributions;
mod footprint;
mod happened;
mod leading;
pub(crate) mod load_job;
mod loading;
mod looking;
mod reading;
mod removing;
mod reporting;
mod running;
mod trouble;

pub(crate) use canary::Canary;
pub use footprint::Footprint;
pub(crate) use looking::Tag;
pub(crate) use removing::{Removing, parse_kind};
pub(crate) use reporting::{is_unit_object_of, unit_object_name, unit_object_prefix};

use crate::active::{Active, LoadKey};
use crate::artifacts::{Looked, Seen};
use crate::clock::Clock;
use crate::delivery::PART_OF_LABEL;
use crate::load::{Loader, Standing};
use crate::metrics::{Metrics, RunTimer};
use crate::plugin::PluginState;
use crate::problem::Problem;
use crate::queue::Queue;
use crate::reads::{Kept, ReadIndex};
use crate::removal::Removed;
use crate::reporter::Reports;
use crate::rights::Rights;
use crate::run::{Ran, Runner};
use crate::sources::SourceChange;
use crate::status::{AgentStatus, UnitSummary};
use canary::NewCanary;
use foldhash::{HashMap, HashSet};
use leading::Part;
use reeve_api::{GROUP, PLUGIN_CONFIG_MAP_LABEL, ShadowStatus, VERSION};
use reeve_cluster::{
    Change, Fence, Object, Resource, Role, Store, WatchHandle, WatchScope, WatchSpec,
};
use reeve_core::selector::Selector;
use reeve_core::{Digest, GroupVersionKind, UnitKey};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

/// The watches of the agent itself.
pub(crate) struct OwnWatches {
    pub(crate) config_maps: WatchHandle,
    pub(crate) plugins: WatchHandle,
    pub(crate) units: WatchHandle,
    /// ConfigMaps that hold parts of components.
    pub(crate) parts: WatchHandle,
}

impl OwnWatches {
    /// All of them.
    pub(crate) fn all(&self) -> [&WatchHandle; 4] {
        [&self.config_maps, &self.parts, &self.plugins, &self.units]
    }

    /// Watches what the agent's namespace holds for it. Components are as large as
    /// everything else together, and needed when they are loaded: whoever loads many
    /// keeps none of them, and reads each `without_payload`.
    pub(crate) fn new(store: &Store, namespace: &str, without_payload: bool) -> Self {
        let own = |group, version, kind, plural, selector: &Selector| {
            store.watch(WatchSpec {
                resource: own_resource(group, version, kind, plural),
                scope: WatchScope::Namespace(namespace.to_owned()),
                selector: selector.clone(),
                without_payload: without_payload && kind == "ConfigMap",
            })
        };
        let all = Selector::default();
        let labelled = Selector::label(PLUGIN_CONFIG_MAP_LABEL, "true");
        let parts = Selector::has(PART_OF_LABEL);
        Self {
            config_maps: own("", "v1", "ConfigMap", "configmaps", &labelled),
            plugins: own(GROUP, VERSION, "Plugin", "plugins", &all),
            units: own(GROUP, VERSION, "Unit", "units", &all),
            parts: own("", "v1", "ConfigMap", "configmaps", &parts),
        }
    }
}

/// What the loop is made of.
pub(crate) struct Controller {
    pub(crate) loader: Loader,
    /// Whether a new version has to pass the gates of an upgrade.
    pub(crate) gated: bool,
    pub(crate) runner: Runner,
    pub(crate) reports: Reports,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) own: OwnWatches,
    pub(crate) changes: mpsc::UnboundedReceiver<Change>,
    pub(crate) source_changes: mpsc::UnboundedReceiver<SourceChange>,
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) status: watch::Sender<AgentStatus>,
    /// What the election says.
    pub(crate) role: watch::Receiver<Role>,
    /// What writes have to pass.
    pub(crate) fence: Fence,
    pub(crate) metrics: Metrics,
    /// Runs at once.
    pub(crate) concurrency: usize,
    pub(crate) state: State,
}

/// What the loop knows.
#[derive(Default)]
pub(crate) struct State {
    plugins: HashMap<Arc<str>, PluginState>,
    /// Parts of components, by the plugin whose they are, and by their names.
    parts: HashMap<Arc<str>, BTreeMap<String, Arc<Object>>>,
    /// Watches that could not be answered from, and have not been told to be back.
    doubted: HashSet<Arc<WatchSpec>>,
    /// Who wants the changes of a watch.
    routes: HashMap<Arc<WatchSpec>, Arc<Routes>>,
    queue: Queue,
    reads: ReadIndex,
    jobs: JoinSet<Done>,
    /// Which unit or plugin a job is for, should it panic.
    job_ids: HashMap<tokio::task::Id, JobFor>,
    /// Contributions being given up.
    releases: JoinSet<()>,
    runs: usize,
    /// Runs that have ended.
    ended: u64,
    loads: usize,
    /// Plugins whose status may have changed, and when it is reported.
    stale: BTreeSet<Arc<str>>,
    report_at: Option<Instant>,
    published_at: Option<Instant>,
    /// Whether everything that is installed has been seen and loaded once.
    started: bool,
    /// `Unit` objects that exist.
    unit_objects: BTreeSet<String>,
    part: Part,
    /// Reads everything anew for a term.
    takeover: JoinSet<u64>,
    /// By which runs can be ended, and since when they run.
    run_handles: HashMap<tokio::task::Id, (AbortHandle, RunTimer)>,
    /// Whether no unit is to be taken any more, and who wants to know when the
    /// last one has ended.
    draining: bool,
    drained: Option<oneshot::Sender<()>>,
}

impl State {
    /// Knows nothing yet.
    pub(crate) fn new(metrics: &Metrics) -> Self {
        Self {
            queue: Queue::new(metrics.clone()),
            ..Self::default()
        }
    }

    /// How much of what units read is kept.
    pub(crate) fn kept(&self) -> Kept {
        self.reads.kept()
    }
}

/// The plugins to which the changes that a watch tells of matter.
type Routes = Vec<(Arc<str>, Route)>;

/// Why a plugin wants the changes of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Primary,
    Owned,
    Contributed,
    Read,
    Class,
}

/// What can be asked of the loop.
pub(crate) enum Command {
    /// What every unit is like.
    Units(oneshot::Sender<Vec<UnitSummary>>),
    /// How much is kept.
    Footprint(oneshot::Sender<Footprint>),
    /// To answer, which shows that it makes progress.
    Ping(oneshot::Sender<()>),
    /// To take no more units, and to say when those that run have ended.
    Drain(oneshot::Sender<()>),
}

enum JobFor {
    Load(Arc<str>),
    Look(Arc<str>),
    Recheck(Arc<str>),
    Removal(Arc<str>),
    Run(UnitKey),
}

/// A job that ended.
enum Done {
    Load {
        plugin: Arc<str>,
        newest: Option<Digest>,
        seen: Option<Box<Seen>>,
        shadow: Option<Box<ShadowStatus>>,
        result: Result<Loaded, Problem>,
    },
    Look {
        plugin: Arc<str>,
        looked: Looked,
    },
    Recheck {
        plugin: Arc<str>,
        key: LoadKey,
        result: Result<Standing, Problem>,
    },
    Removal {
        plugin: Arc<str>,
        result: Result<Removed, Problem>,
    },
    Run {
        unit: UnitKey,
        key: LoadKey,
        ran: Box<Ran>,
    },
}

enum Loaded {
    /// What runs is what is wanted.
    Unchanged,
    /// The newest version.
    New(Arc<Active>, Standing),
    /// The version from before a restart, since the newest is another and has to be held
    /// against it.
    First(Arc<Active>, Standing),
    /// The newest version, for some units first.
    Canary(Arc<Active>, Standing, Box<NewCanary>),
    /// An earlier version, since the newest is not to run, for this reason.
    InPlaceOfNewest(Arc<Active>, Standing, Problem),
}

impl Controller {
    /// Runs until the last sender of commands is gone.
    pub(crate) async fn run(mut self) {
        let mut own_states = self.own.all().map(WatchHandle::states);
        let reports = self.reports.clone();
        let outside = self.loader.outside.clone();
        self.on_role();
        loop {
            self.lead_when_ready();
            self.release_orphans();
            self.start_runs();
            self.finish_draining();
            self.report_when_idle();
            self.publish_now_and_then();
            let due = self.next_due();
            let [config_maps, parts, plugins, units] = &mut own_states;
            tokio::select! {
                change = self.changes.recv() => match change {
                    Some(change) => {
                        self.on_change(change);
                        self.take_in_changes();
                    }
                    None => return,
                },
                Some(change) = self.source_changes.recv() => self.on_source(&change),
                Some(done) = self.state.jobs.join_next_with_id() => {
                    // What a run has made is known before anything follows from its end:
                    // the next run of its unit has to find it.
                    self.take_in_changes();
                    self.on_done(done);
                }
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    self.on_timer();
                }
                command = self.commands.recv() => match command {
                    Some(Command::Units(answer)) => {
                        // Who asked may be gone.
                        let _ = answer.send(self.units());
                    }
                    Some(Command::Footprint(answer)) => {
                        let _ = answer.send(self.footprint());
                    }
                    Some(Command::Ping(answer)) => {
                        let _ = answer.send(());
                    }
                    Some(Command::Drain(ended)) => self.drain(ended),
                    None => return,
                },
                Some(_) = self.state.releases.join_next() => {}
                // Its room among those that compute is free.
                () = outside.one_more() => {}
                () = reports.refused_changed() => self.on_refused(),
                Ok(()) = self.role.changed() => self.on_role(),
                Some(Ok(term)) = self.state.takeover.join_next() => self.on_read_anew(term),
                Ok(()) = config_maps.changed() => self.load_all(),
                Ok(()) = parts.changed() => self.load_all(),
                Ok(()) = plugins.changed() => self.load_all(),
                Ok(()) = units.changed() => self.load_all(),
            }
        }
    }

    /// Takes in the rest of a burst, before anything is started on it.
    fn take_in_changes(&mut self) {
        while let Ok(change) = self.changes.try_recv() {
            self.on_change(change);
        }
    }

    fn next_due(&self) -> Option<Instant> {
        let mut due = self.state.report_at;
        if self.has_room() && self.may_run() {
            due = earliest(due, self.state.queue.next_due());
        }
        for plugin in self.state.plugins.values() {
            let recheck_at = plugin.rights.as_ref().and_then(Rights::due);
            due = earliest(due, earliest(plugin.retry_at, recheck_at));
            due = earliest(due, plugin.tag.due());
            if self.leads() {
                due = earliest(due, plugin.canary_due());
            }
            if self.may_run() {
                due = earliest(due, plugin.removing.as_ref().and_then(|one| one.at));
            }
        }
        due
    }

    fn on_timer(&mut self) {
        let now = Instant::now();
        self.start_removals();
        if self.state.report_at.is_some_and(|at| at <= now) {
            self.report();
        }
        let due: Vec<Arc<str>> = self
            .state
            .plugins
            .values()
            .filter(|plugin| plugin.retry_at.is_some_and(|at| at <= now))
            .map(|plugin| plugin.name.clone())
            .collect();
        for plugin in due {
            self.start_load(&plugin);
        }
        self.start_looks(now);
        self.end_canaries(now);
        let due: Vec<Arc<str>> = self
            .state
            .plugins
            .values()
            .filter(|plugin| {
                plugin
                    .rights
                    .as_ref()
                    .and_then(Rights::due)
                    .is_some_and(|at| at <= now)
            })
            .map(|plugin| plugin.name.clone())
            .collect();
        for plugin in due {
            self.start_recheck(&plugin);
        }
    }
}

fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// A fraction that differs from unit to unit and from attempt to attempt, and is
/// the same in every run of a scenario.
pub(crate) fn jitter(name: &str, failures: u32) -> f64 {
    let digest = Digest::of_parts([name.as_bytes(), &failures.to_le_bytes()]);
    let digits = u32::from_str_radix(&digest.hex()[..6], 16).unwrap_or(0);
    f64::from(digits) / f64::from(0x00ff_ffff)
}

/// The agent's own kinds, which need no discovery.
pub(crate) fn own_resource(group: &str, version: &str, kind: &str, plural: &str) -> Resource {
    Resource {
        kind: GroupVersionKind::new(group, version, kind),
        plural: plural.into(),
        namespaced: true,
    }
}
