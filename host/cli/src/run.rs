//! `reeve run`.

use crate::bounds::BoundArgs;
use crate::signal;
use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use k8s_openapi::jiff::SignedDuration;
use reeve_agent::{Agent, AgentConfig, AgentStatus, HealthServer};
use reeve_cluster::{ConnectOptions, ElectorSettings, LeaseName, LeaseTiming, connect, lease};
use reeve_core::grant::LEASE;
use reeve_core::manifest::{is_dns_label, is_dns_subdomain};
use reeve_engine::Engine;
use reeve_outside::signature::VerifyingKey;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// Run the agent against a cluster
///
/// The cluster is found as kubectl finds it: --kubeconfig, then KUBECONFIG, then
/// ~/.kube/config, then the ServiceAccount of the pod. The CRDs must be installed
/// (`reeve crds`). For a plugin the agent writes as that plugin's ServiceAccount, by
/// impersonation; as itself it writes only objects of `reeve.dev`, Events and its Lease.
///
/// Each setting is a flag, a variable of the environment, or a line of the file
/// given with --config, `name: value`, under the same name: --lease-name,
/// REEVE_LEASE_NAME, lease-name. The first of these that says something holds.
#[derive(Args)]
pub(crate) struct RunArgs {
    /// File with settings, YAML
    #[arg(long, env = "REEVE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print all settings, and where each comes from, and exit
    #[arg(long)]
    pub(crate) print_config: bool,
    /// Kubeconfig to use
    #[arg(long, env = "REEVE_KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use
    #[arg(long, env = "REEVE_CONTEXT")]
    context: Option<String>,
    /// Namespace of the plugins' ConfigMaps and ServiceAccounts
    #[arg(long, env = "REEVE_NAMESPACE", default_value = "reeve-system")]
    namespace: String,
    /// Address of /livez, /startupz, /readyz and /metrics
    #[arg(
        long,
        env = "REEVE_HEALTH_ADDRESS",
        default_value = "127.0.0.1:8081",
        value_name = "ADDRESS"
    )]
    health_address: SocketAddr,
    /// Folder for compiled components; without it each start compiles anew. It
    /// must be writable by nobody else
    #[arg(long, env = "REEVE_CACHE", value_name = "FOLDER")]
    cache: Option<PathBuf>,
    /// File with public keys, PEM: only components that are signed with one of them
    /// are loaded, whatever their Plugins say
    #[arg(long, env = "REEVE_SIGNATURE_KEYS", value_name = "FILE")]
    signature_keys: Option<PathBuf>,
    /// Units that are written at once; half as many more run meanwhile
    #[arg(long, env = "REEVE_CONCURRENCY", default_value_t = AgentConfig::CONCURRENCY)]
    concurrency: usize,
    /// Form of the logs
    #[arg(long, env = "REEVE_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// Time to finish what is under way after SIGTERM. Less than the pod's
    /// terminationGracePeriodSeconds by some seconds
    #[arg(long, env = "REEVE_SHUTDOWN_GRACE", default_value = "20s", value_name = "DURATION", value_parser = duration)]
    shutdown_grace: Duration,
    #[command(flatten)]
    election: ElectionArgs,
    #[command(flatten)]
    bounds: BoundArgs,
}

/// How several replicas agree on the one that writes.
#[derive(Args)]
#[command(next_help_heading = "Leader election")]
struct ElectionArgs {
    /// Lead only while holding a Lease, so that several replicas can run; by
    /// default in a pod, and not elsewhere
    #[arg(
        long,
        env = "REEVE_LEADER_ELECT",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    leader_elect: Option<bool>,
    /// Name of the Lease. The agent needs get and update on it, and create
    #[arg(long, env = "REEVE_LEASE_NAME", value_name = "NAME", default_value = LEASE)]
    lease_name: String,
    /// Namespace of the Lease; by default that of the plugins
    #[arg(long, env = "REEVE_LEASE_NAMESPACE", value_name = "NAMESPACE")]
    lease_namespace: Option<String>,
    /// Others take over when the Lease has not changed for this long
    #[arg(long, env = "REEVE_LEASE_DURATION", default_value = "15s", value_name = "DURATION", value_parser = duration)]
    lease_duration: Duration,
    /// The leader begins nothing when it could not renew for this long
    #[arg(long, env = "REEVE_LEASE_RENEW_DEADLINE", default_value = "10s", value_name = "DURATION", value_parser = duration)]
    lease_renew_deadline: Duration,
    /// The leader renews, and the others look, this often
    #[arg(long, env = "REEVE_LEASE_RETRY_PERIOD", default_value = "2s", value_name = "DURATION", value_parser = duration)]
    lease_retry_period: Duration,
}

impl ElectionArgs {
    /// What the agent goes by; none when it is to be the only one.
    fn settings(&self, namespace: &str) -> anyhow::Result<Option<ElectorSettings>> {
        // Also where nobody is elected: elsewhere somebody will be.
        let timing = LeaseTiming::new(
            self.lease_duration,
            self.lease_renew_deadline,
            self.lease_retry_period,
        );
        let timing = timing.context("cannot elect a leader with these durations")?;
        // As client-go finds out whether it runs in a pod.
        let in_pod = || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
        if !self.leader_elect.unwrap_or_else(in_pod) {
            return Ok(None);
        }
        Ok(Some(ElectorSettings {
            lease: LeaseName {
                namespace: match &self.lease_namespace {
                    Some(namespace) => namespace.clone(),
                    None => namespace.to_owned(),
                },
                name: self.lease_name.clone(),
            },
            identity: lease::identity(),
            timing,
            clock: Arc::new(lease::SystemBootClock),
        }))
    }
}

/// `15s`, `1m 30s`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let duration: SignedDuration = text
        .parse()
        .map_err(|_| "write it like 15s or 1m30s".to_owned())?;
    Duration::try_from(duration).map_err(|_| "it must not be negative".to_owned())
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

impl RunArgs {
    pub(crate) fn json_logs(&self) -> bool {
        self.log_format == LogFormat::Json
    }

    /// Checks what the form of one setting alone cannot tell, without a cluster.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        for (setting, namespace) in [
            ("namespace", Some(&self.namespace)),
            ("lease-namespace", self.election.lease_namespace.as_ref()),
        ] {
            if let Some(namespace) = namespace.filter(|namespace| !is_dns_label(namespace)) {
                bail!(
                    "{setting}: `{namespace}` is no name of a namespace: use lower-case letters, digits and `-`, 63 at most"
                );
            }
        }
        if self.concurrency == 0 {
            bail!("concurrency: no unit would ever run; use 1 or more");
        }
        if self.concurrency > MOST_RUNS {
            bail!(
                "concurrency: {} units at once are more than an API server answers; use {MOST_RUNS} \
                 at most",
                self.concurrency
            );
        }
        let lease = &self.election.lease_name;
        if !is_dns_subdomain(lease) {
            bail!(
                "lease-name: `{lease}` is no name of an object: use lower-case letters, digits, `-` and `.`, 253 at most"
            );
        }
        if let Some(cache) = self.cache.as_ref().filter(|path| path.is_file()) {
            bail!("cache: {} is a file; name a folder", cache.display());
        }
        self.bounds.limits()?;
        signature_keys(self.signature_keys.as_deref())?;
        self.election.settings(&self.namespace).map(drop)
    }
}

/// Far beyond what is of use to anybody.
const MOST_RUNS: usize = 10_000;

/// A list of the agent's own objects that takes longer than this is worth a word:
/// there are few of them.
const SYNC_PATIENCE: Duration = Duration::from_secs(10);

/// The threads of an agent: half as many as there are processors for what never blocks, since
/// guests have threads of their own. An agent mostly waits for the API server, and what wakes
/// it finds a thread that is awake the less often the more there are: with two on two
/// processors it computed a fifth more.
pub(crate) fn threads() -> Builder {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut builder = Builder::new_multi_thread();
    // Tokio takes it itself.
    if std::env::var_os("TOKIO_WORKER_THREADS").is_none() {
        builder.worker_threads(processors.div_ceil(2));
    }
    builder
}

pub(crate) async fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    args.check()?;
    let election = args.election.settings(&args.namespace)?;
    let limits = args.bounds.limits()?;
    let (client, _) = connect(&ConnectOptions {
        kubeconfig: args.kubeconfig,
        context: args.context,
    })
    .await?;
    let engine = Engine::new(args.bounds.engine(args.cache)?)?;
    let mut config = AgentConfig::new(client, engine, args.namespace.clone());
    config.concurrency = args.concurrency;
    config.election = election;
    config.limits = limits;
    config.word_interval = AgentConfig::WORD_INTERVAL;
    config.threads = args.bounds.threads();
    config.signature_keys = signature_keys(args.signature_keys.as_deref())?;
    let agent = Agent::start(config);
    let health = HealthServer::bind(args.health_address, agent.health())
        .await
        .with_context(|| format!("cannot serve health on {}", args.health_address))?;
    tracing::info!(namespace = args.namespace, config = ?args.config, health = %health.address(), "agent started");
    let mut log = tokio::spawn(log_status(agent.status()));
    // It goes on while the agent stops.
    let mut health = tokio::spawn(health.serve());
    tokio::select! {
        served = &mut health => served?.context("the health endpoint failed")?,
        stopped = signal::stop() => stopped.context("cannot listen for signals")?,
        // Whoever runs the process starts it again.
        _ = &mut log => bail!("the agent has ended by itself, which it never should; what it logged before says why"),
    }
    let grace = args.shutdown_grace.as_secs();
    tracing::info!(grace, "stopping; another signal stops at once");
    log.abort();
    tokio::select! {
        () = agent.shutdown(args.shutdown_grace) => {}
        again = signal::stop() => again.context("cannot listen for signals")?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The keys of which one must have signed what is loaded.
fn signature_keys(path: Option<&Path>) -> anyhow::Result<Vec<VerifyingKey>> {
    let Some(path) = path else {
        return Ok(Vec::new());
    };
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("signature-keys: cannot read {}", path.display()))?;
    let keys = VerifyingKey::read_all(&text);
    keys.with_context(|| format!("signature-keys: {}", path.display()))
}

/// Logs what keeps the agent from being ready, and that it is. Returns when there is no agent
/// any more.
async fn log_status(mut status: watch::Receiver<AgentStatus>) {
    let mut readiness = Readiness::default();
    loop {
        let seen = status.borrow_and_update().clone();
        for event in readiness.look(&seen, Instant::now()) {
            match event {
                Event::Ready => tracing::info!("ready"),
                Event::NotReady(problem) => tracing::warn!(problem, "not ready"),
            }
        }
        // A wait that becomes a problem changes nothing in the status.
        if let Ok(Err(_)) = timeout(SYNC_PATIENCE, status.changed()).await {
            return;
        }
    }
}

/// What has been logged of the agent's readiness.
#[derive(Default)]
struct Readiness {
    /// Since when objects are waited for.
    syncing_since: Option<Instant>,
    told: Option<Vec<Event>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Ready,
    NotReady(String),
}

impl Readiness {
    /// What is to be logged now.
    fn look(&mut self, status: &AgentStatus, now: Instant) -> Vec<Event> {
        let mut problems = status.own_watches.clone();
        if status.syncing.is_empty() {
            self.syncing_since = None;
        } else if now.duration_since(*self.syncing_since.get_or_insert(now)) >= SYNC_PATIENCE {
            let unseen = |resource| format!("{resource}: not all objects have been seen yet");
            problems.extend(status.syncing.iter().map(unseen));
        }
        let events: Vec<Event> = match (problems.is_empty(), status.synced) {
            (true, true) => vec![Event::Ready],
            (true, false) => return Vec::new(),
            (false, _) => problems.into_iter().map(Event::NotReady).collect(),
        };
        if self.told.as_ref() == Some(&events) {
            return Vec::new();
        }
        self.told = Some(events.clone());
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_an_agent_is_seen() {
        let (agent, status) = watch::channel(AgentStatus::default());
        let looks = tokio::spawn(log_status(status));
        drop(agent);
        timeout(Duration::from_secs(10), looks)
            .await
            .unwrap()
            .unwrap();
    }

    #[test]
    fn only_a_wait_that_lasts_is_a_problem() {
        let start = Instant::now();
        let mut readiness = Readiness::default();
        let unseen = "plugins: not all objects have been seen yet";
        for (second, syncing, problem, expected) in [
            (0, false, None, vec![]),
            (0, true, None, vec![]),
            (9, true, None, vec![]),
            (10, true, None, vec![Event::NotReady(unseen.into())]),
            (11, true, None, vec![]),
            (12, false, None, vec![Event::Ready]),
            (13, false, None, vec![]),
            (
                14,
                false,
                Some("units: no"),
                vec![Event::NotReady("units: no".into())],
            ),
            (15, true, None, vec![]),
            (16, false, None, vec![Event::Ready]),
        ] {
            let strings = |text: Option<&str>| text.map(str::to_owned).into_iter().collect();
            let status = AgentStatus {
                synced: second > 0 && !syncing && problem.is_none(),
                syncing: strings(syncing.then_some("plugins")),
                own_watches: strings(problem),
                ..AgentStatus::default()
            };
            let now = start + Duration::from_secs(second);
            assert_eq!(readiness.look(&status, now), expected, "after {second} s");
        }
    }
}
