//! What an agent would do, and why: the agent's own path from a ConfigMap to a
//! plan, stopped before the first write.
//!
//! A [`Planner`] loads plugins as the agent does, watches what they read and own,
//! calls them, checks their answers and decides with the same function. What the
//! agent would then send is described instead. It reads with the rights of its
//! client and sends nothing that changes the cluster: its way there has a fence
//! that never opens. It may stand beside a running agent, which does not notice.

mod call;
mod contributions;
mod explain;
mod open;
mod plan;
mod record;
mod schemas;

pub use call::{Call, Question, ReadReport};
pub use explain::{Explanation, Writer};
pub use open::{Given, Opened};
pub use plan::{Action, EffectAct, EffectPlan, ObjectPlan, ProblemReport, Standing, UnitPlan};
pub use record::RecordError;
pub use reeve_core::fields::{FieldChange, FieldOwner, OwnedField, Shown, is_bookkeeping};

use crate::artifacts::Artifacts;
use crate::bounds::LimitBounds;
use crate::calls::GuestThreads;
use crate::clock::{Clock, SystemClock};
use crate::controller::OwnWatches;
use crate::effects::{EffectFeed, Room};
use crate::execute::{Claims, Executor, Recent, Shared};
use crate::journal::Journal;
use crate::load::{Loader, Turns};
use crate::memo::Memo;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::reads::Kept;
use crate::reporter::Reports;
use crate::run::{Means, Runner};
use crate::secrets::Secrets;
use crate::signed::Signers;
use crate::sources::{SourceFeed, Sources};
use reeve_cluster::{Cluster, Fence, Store, WatchHandle};
use reeve_core::selector::Selector;
use reeve_engine::Engine;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Settings of a planner.
#[derive(Clone)]
pub struct PlannerConfig {
    /// The way to the cluster; it is only read from.
    pub client: kube::Client,
    /// What runs the plugins.
    pub engine: Engine,
    /// Namespace of the agent.
    pub namespace: String,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// The most that a plugin may be given by its `Plugin`, as the agent has it.
    pub limits: LimitBounds,
}

impl PlannerConfig {
    /// Settings for a cluster, by the machine's clock.
    pub fn new(client: kube::Client, engine: Engine, namespace: impl Into<String>) -> Self {
        Self {
            client,
            engine,
            namespace: namespace.into(),
            clock: Arc::new(SystemClock),
            limits: LimitBounds::default(),
        }
    }
}

/// Says what an agent would do. See the [module](self).
pub struct Planner {
    loader: Loader,
    runner: Runner,
    own: OwnWatches,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// What is installed cannot be seen.
    #[error("what is installed in namespace {namespace} cannot be seen: {problem}")]
    Unseen {
        /// The agent's namespace.
        namespace: String,
        /// Why.
        problem: ProblemReport,
    },
    /// No such plugin is installed.
    #[error("no plugin {plugin} is installed in namespace {namespace}; {there}")]
    NotInstalled {
        /// Name of the plugin.
        plugin: String,
        /// The agent's namespace.
        namespace: String,
        /// What is installed.
        there: String,
    },
    /// The plugin cannot be loaded.
    #[error("plugin {plugin} cannot be loaded: {problem}")]
    NotLoaded {
        /// Name of the plugin.
        plugin: String,
        /// Why.
        problem: ProblemReport,
    },
    /// An object that is to be explained cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// Its kind is not served.
    #[error(transparent)]
    Kind(#[from] reeve_cluster::ResolveError),
    /// There is no such object.
    #[error("there is no {0}")]
    Absent(String),
    /// Who owns its fields cannot be told.
    #[error("who owns the fields of {object} cannot be told: {problem}")]
    Owners {
        /// The object.
        object: String,
        /// Why.
        problem: String,
    },
}

impl Planner {
    /// A planner. Nothing is read yet. Must be called within a tokio runtime.
    pub fn new(config: PlannerConfig) -> Self {
        let PlannerConfig {
            client,
            engine,
            namespace,
            clock,
            limits,
        } = config;
        let metrics = Metrics::default();
        let cluster = Cluster::new(client).with_fence(Fence::shut());
        // Nobody needs to hear of changes: all is looked at once.
        let (store, _) = Store::new(cluster.clone());
        let own = OwnWatches::new(&store, &namespace, false);
        let secrets = Secrets::new(cluster.clone(), namespace.as_str().into());
        let (sources, _) = Sources::new(SourceFeed::Outside, metrics.clone());
        Self {
            loader: Loader {
                turns: Turns::new(),
                artifacts: Artifacts::new(&engine, &secrets, &namespace.as_str().into()),
                // Whoever plans may look at what does not run yet.
                signers: Signers::new(Vec::new()),
                engine,
                cluster: cluster.clone(),
                store: store.clone(),
                namespace: namespace.as_str().into(),
                bounds: limits,
                threads: GuestThreads::default(),
                findings: None,
                // A plan makes no effects.
                effect_threads: GuestThreads::new(1, 1),
                outside: Room::new(0),
                secrets,
                sources,
                impersonates: false,
            },
            runner: Runner {
                executor: Executor::new(Shared {
                    journal: Journal::new(cluster.clone(), &namespace, clock.clone()),
                    cluster,
                    store: store.clone(),
                    metrics: metrics.clone(),
                    claims: Claims::default(),
                    recent: Recent::default(),
                    room: Arc::new(Semaphore::new(1)),
                }),
                memo: Arc::new(Memo::new()),
                rehearsal: None,
                means: Arc::new(Means {
                    store,
                    metrics,
                    clock,
                    namespace: namespace.as_str().into(),
                    effects: EffectFeed::Outside,
                    reports: Reports::default(),
                    kept: Kept::default(),
                }),
            },
            own,
        }
    }

    /// Names of the plugins that are installed, in order.
    ///
    /// # Errors
    ///
    /// When their ConfigMaps cannot be listed and watched.
    pub async fn plugins(&self) -> Result<Vec<String>, PlanError> {
        self.seen(&self.own.config_maps).await.map_err(|problem| {
            let namespace = self.loader.namespace.to_string();
            let problem = problem.into();
            PlanError::Unseen { namespace, problem }
        })?;
        let snapshot = self.runner.store.snapshot();
        let spec = self.own.config_maps.spec();
        let maps = snapshot.list_in(spec, None, &Selector::default()).found();
        let maps = maps.unwrap_or_default();
        Ok(maps.iter().map(|map| map.name().to_owned()).collect())
    }

    /// Waits until all objects of one of the agent's own kinds have been seen.
    async fn seen(&self, watch: &WatchHandle) -> Result<(), Problem> {
        self.loader.synced(watch, &watch.spec().resource).await
    }
}
