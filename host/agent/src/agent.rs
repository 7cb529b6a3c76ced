//! Starting and stopping an agent.

use crate::artifacts::Artifacts;
use crate::bounds::LimitBounds;
use crate::calls::GuestThreads;
use crate::clock::{Clock, SystemClock};
use crate::controller::{Command, Controller, Footprint, OwnWatches, State};
use crate::effects::{CALLS_AT_ONCE, EffectFeed, OUTSIDE_AT_ONCE, Room};
use crate::execute::{Claims, Executor, Recent, Shared};
use crate::findings::Findings;
use crate::health::Health;
use crate::journal::Journal;
use crate::load::{Loader, Turns};
use crate::memo::Memo;
use crate::metrics::Metrics;
use crate::reporter::{Reporter, Reports};
use crate::run::{Means, Runner};
use crate::secrets::Secrets;
use crate::signed::Signers;
use crate::sources::{SourceFeed, Sources};
use crate::status::{AgentStatus, UnitSummary};
use reeve_cluster::{Cluster, Elector, ElectorSettings, Fence, Recorder, Role, Store};
use reeve_engine::Engine;
use reeve_outside::signature::VerifyingKey;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;

/// Settings of an agent.
#[derive(Clone)]
pub struct AgentConfig {
    /// The way to the cluster.
    pub client: kube::Client,
    /// What runs the plugins. May be shared with other agents.
    pub engine: Engine,
    /// Namespace of the plugins' ConfigMaps and ServiceAccounts, and of the
    /// `Plugin` and `Unit` objects.
    pub namespace: String,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// From what the delays between attempts to reach the cluster are drawn, so that they
    /// are the same in each run; none draws them anew in each process.
    pub seed: Option<u64>,
    /// Units that are written at once. Half as many more may run meanwhile, of which the
    /// plugins are asked and plans are made.
    pub concurrency: usize,
    /// The most that a plugin may be given by its `Plugin`.
    pub limits: LimitBounds,
    /// Where plugins run.
    pub threads: GuestThreads,
    /// What it shares with other agents of this process; none where there are no others.
    pub findings: Option<Findings>,
    /// How replicas agree on who of them leads; none for an agent that is the only
    /// one.
    pub election: Option<ElectorSettings>,
    /// Where outside documents come from.
    pub sources: SourceFeed,
    /// Who makes outside effects.
    pub effects: EffectFeed,
    /// Whether a new version of a plugin has to pass the gates of an upgrade, as
    /// `spec.upgrade` of its `Plugin` says, or takes over as soon as it loads.
    pub gated: bool,
    /// How long after a `Unit` object was written it is at least until it is written again,
    /// where only the words would be others: messages, and which object is waited for.
    pub word_interval: Duration,
    /// Keys of which one must have signed every component, whatever its `Plugin` says;
    /// none lets components run that nobody has signed.
    pub signature_keys: Vec<VerifyingKey>,
}

impl AgentConfig {
    /// Units that are written at once: enough to hide the latency of the API server, few
    /// enough to leave it to others.
    pub const CONCURRENCY: usize = 16;

    /// The `word_interval` for a cluster that has others to serve. Whoever reads words is content
    /// with every few seconds; a unit whose objects become healthy one after another would have
    /// others many times in one.
    pub const WORD_INTERVAL: Duration = Duration::from_secs(5);

    /// Settings for a cluster, with the defaults for everything else. All words are written at
    /// once.
    pub fn new(client: kube::Client, engine: Engine, namespace: impl Into<String>) -> Self {
        Self {
            client,
            engine,
            namespace: namespace.into(),
            clock: Arc::new(SystemClock),
            seed: None,
            concurrency: Self::CONCURRENCY,
            limits: LimitBounds::default(),
            threads: GuestThreads::default(),
            findings: None,
            election: None,
            sources: SourceFeed::default(),
            effects: EffectFeed::default(),
            gated: true,
            word_interval: Duration::ZERO,
            signature_keys: Vec::new(),
        }
    }
}

/// A running agent. Dropping it stops it at once; what it has sent stays sent.
pub struct Agent {
    status: watch::Receiver<AgentStatus>,
    commands: mpsc::Sender<Command>,
    reports: Reports,
    metrics: Metrics,
    tasks: JoinSet<()>,
    /// The election, which outlives the rest.
    elector: JoinSet<()>,
    leave: oneshot::Sender<()>,
}

impl Agent {
    /// Starts an agent. It returns at once; [`Agent::status`] tells when it has
    /// seen the cluster. Must be called within a tokio runtime.
    pub fn start(config: AgentConfig) -> Self {
        let AgentConfig {
            client,
            engine,
            namespace,
            clock,
            seed,
            concurrency,
            limits,
            threads,
            findings,
            election,
            sources,
            effects,
            gated,
            word_interval,
            signature_keys,
        } = config;
        let namespace: Arc<str> = namespace.into();
        let (leave, left) = oneshot::channel();
        let of_seed = |cluster: Cluster| match seed {
            Some(seed) => cluster.with_seed(seed),
            None => cluster,
        };
        let mut elector = JoinSet::new();
        let (fence, role) = match election {
            None => (Fence::open(), watch::Sender::new(Role::Sole).subscribe()),
            Some(settings) => {
                let candidate = Elector::new(of_seed(Cluster::new(client.clone())), settings);
                let parts = (candidate.fence(), candidate.role());
                elector.spawn(candidate.run(async {
                    // Whoever drops the agent drops the election with it.
                    let _ = left.await;
                }));
                parts
            }
        };
        let metrics = Metrics::default();
        let cluster = of_seed(Cluster::new(client))
            .with_fence(fence.clone())
            .with_observer(Arc::new(metrics.clone()));
        let (store, changes) = Store::new(cluster.clone());
        let (sources, source_changes) = Sources::new(sources, metrics.clone());
        let secrets = Secrets::new(cluster.clone(), namespace.clone());
        let asked = cluster.clone();
        let own = OwnWatches::new(&store, &namespace, true);
        let reports = Reports::with_interval(word_interval);
        let (command_sender, commands) = mpsc::channel(16);
        let (status_sender, status) = watch::channel(AgentStatus::default());
        let journal = Journal::new(cluster.clone(), &namespace, clock.clone());
        let recorder = Recorder::new(cluster.clone(), "reeve");
        let reporter = Reporter {
            reports: reports.clone(),
            cluster: cluster.clone(),
            plugins: own.plugins.spec().resource.clone(),
            units: own.units.spec().clone(),
            store: store.clone(),
            recorder,
            namespace: namespace.clone(),
        };
        let state = State::new(&metrics);
        let controller = Controller {
            gated,
            loader: Loader {
                turns: Turns::new(),
                artifacts: Artifacts::new(&engine, &secrets, &namespace),
                signers: Signers::new(signature_keys),
                engine,
                cluster: cluster.clone(),
                store: store.clone(),
                namespace: namespace.clone(),
                bounds: limits,
                effect_threads: threads.others(OUTSIDE_AT_ONCE, CALLS_AT_ONCE),
                threads,
                findings,
                outside: Room::new(OUTSIDE_AT_ONCE),
                secrets,
                sources,
                impersonates: true,
            },
            runner: Runner {
                executor: Executor::new(Shared {
                    cluster,
                    store: store.clone(),
                    journal,
                    metrics: metrics.clone(),
                    claims: Claims::default(),
                    recent: Recent::default(),
                    room: Arc::new(Semaphore::new(concurrency.clamp(1, Semaphore::MAX_PERMITS))),
                }),
                memo: Arc::new(Memo::new()),
                rehearsal: None,
                means: Arc::new(Means {
                    store,
                    metrics: metrics.clone(),
                    clock: clock.clone(),
                    namespace: namespace.clone(),
                    effects,
                    reports: reports.clone(),
                    kept: state.kept(),
                }),
            },
            reports: reports.clone(),
            clock,
            own,
            changes,
            source_changes,
            commands,
            status: status_sender,
            role,
            fence,
            metrics: metrics.clone(),
            concurrency: concurrency.max(1),
            state,
        };
        let mut tasks = JoinSet::new();
        // Who the agent is, its loads ask, and commands in messages name it. Not to be
        // told now is no reason to wait: whoever needs it asks again.
        tasks.spawn(async move {
            let _ = asked.own_user().await;
        });
        tasks.spawn(controller.run());
        tasks.spawn(reporter.run());
        Self {
            status,
            commands: command_sender,
            reports,
            metrics,
            tasks,
            elector,
            leave,
        }
    }

    /// How the agent is, now and whenever it changes.
    pub fn status(&self) -> watch::Receiver<AgentStatus> {
        self.status.clone()
    }

    /// What its endpoints tell.
    pub fn health(&self) -> Health {
        Health {
            status: self.status.clone(),
            commands: self.commands.clone(),
            metrics: self.metrics.clone(),
        }
    }

    /// Every unit, by plugin and primary. Empty when the agent has stopped.
    pub async fn units(&self) -> Vec<UnitSummary> {
        let (sender, answer) = oneshot::channel();
        if self.commands.send(Command::Units(sender)).await.is_err() {
            return Vec::new();
        }
        answer.await.unwrap_or_default()
    }

    /// How much the agent keeps in memory, by what it is. None when it has stopped.
    pub async fn footprint(&self) -> Option<Footprint> {
        let (sender, answer) = oneshot::channel();
        let asked = self.commands.send(Command::Footprint(sender)).await;
        asked.ok()?;
        answer.await.ok()
    }

    /// Whether nothing is left to do or to say until something changes.
    pub fn is_settled(&self) -> bool {
        let status = self.status.borrow();
        status.synced && status.idle && self.reports.is_idle()
    }

    /// Stops the agent at once and waits until all of it has ended. What it was
    /// about to do is not done; a lease that it holds runs out.
    pub async fn stop(mut self) {
        self.elector.shutdown().await;
        self.tasks.shutdown().await;
    }

    /// Stops the agent in an orderly way: it takes no more units, what runs may
    /// finish and be reported within `grace`, and a lease is given back, so that
    /// another replica leads at once. Nobody knows whether a write still arrives that has
    /// no answer by then, so the lease runs out instead. It may take some seconds longer
    /// than `grace` if the API server does not answer.
    pub async fn shutdown(mut self, grace: Duration) {
        let drained = async {
            let (ended, end) = oneshot::channel();
            if self.commands.send(Command::Drain(ended)).await.is_ok() {
                let _ = end.await;
            }
            self.reports.idle().await;
        };
        if tokio::time::timeout(grace, drained).await.is_err() {
            tracing::warn!(grace = grace.as_secs(), "stopping in the midst of work");
        }
        // Without an election nobody listens. With one, no write begins from here on, and
        // those under way have to end before the lease is given back; so what sends them
        // goes last.
        let _ = self.leave.send(());
        while self.elector.join_next().await.is_some() {}
        self.tasks.shutdown().await;
    }
}
