//! `reeve run`.

use crate::signal;
use anyhow::Context as _;
use clap::{Args, ValueEnum};
use reeve_agent::{Agent, AgentConfig, AgentStatus, HealthServer};
use reeve_cluster::{ConnectOptions, connect};
use reeve_engine::{Engine, EngineConfig};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::sync::watch;

/// Run the agent against a cluster
///
/// The cluster is found as kubectl finds it: --kubeconfig, then KUBECONFIG, then
/// ~/.kube/config, then the ServiceAccount of the pod. The CRDs must be installed
/// (`reeve crds`). The agent itself only reads what plugins read and manage; it
/// writes as each plugin's ServiceAccount, by impersonation.
#[derive(Args)]
pub(crate) struct RunArgs {
    /// Kubeconfig to use
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use
    #[arg(long)]
    context: Option<String>,
    /// Namespace of the plugins' ConfigMaps and ServiceAccounts
    #[arg(long, env = "REEVE_NAMESPACE", default_value = "reeve-system")]
    namespace: String,
    /// Address of /livez and /readyz
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
    /// Units that run at once
    #[arg(long, env = "REEVE_CONCURRENCY", default_value_t = AgentConfig::CONCURRENCY)]
    concurrency: usize,
    /// Form of the logs
    #[arg(long, env = "REEVE_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
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
}

pub(crate) async fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    let (client, _) = connect(&ConnectOptions {
        kubeconfig: args.kubeconfig,
        context: args.context,
    })
    .await?;
    let engine = Engine::new(EngineConfig {
        cache: args.cache,
        ..EngineConfig::default()
    })?;
    let mut config = AgentConfig::new(client, engine, args.namespace.clone());
    config.concurrency = args.concurrency;
    let agent = Agent::start(config);
    let health = HealthServer::bind(args.health_address, agent.status())
        .await
        .with_context(|| format!("cannot serve health on {}", args.health_address))?;
    tracing::info!(namespace = args.namespace, health = %health.address(), "agent started");
    let log = tokio::spawn(log_status(agent.status()));
    tokio::select! {
        served = health.serve() => served.context("the health endpoint failed")?,
        stopped = signal::stop() => stopped.context("cannot listen for signals")?,
    }
    tracing::info!("stopping");
    log.abort();
    agent.stop().await;
    Ok(ExitCode::SUCCESS)
}

/// Logs what keeps the agent from being ready, and that it is.
async fn log_status(mut status: watch::Receiver<AgentStatus>) {
    let mut last: Option<(bool, Vec<String>)> = None;
    loop {
        let now = {
            let status = status.borrow_and_update();
            (status.synced, status.own_watches.clone())
        };
        if last.as_ref() != Some(&now) {
            for problem in &now.1 {
                tracing::warn!(problem, "not ready");
            }
            if now.0 && now.1.is_empty() {
                tracing::info!("ready");
            }
            last = Some(now);
        }
        if status.changed().await.is_err() {
            return;
        }
    }
}
