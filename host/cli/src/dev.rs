//! `reeve dev`.

mod crates;
mod grants;
mod install;
mod problems;
mod progress;
mod reload;
mod sample;
mod table;

use crate::actors::ActorArgs;
use crate::compile::CacheArgs;
use crate::kubeconfig::{self, Kubeconfig};
use crate::state::StateArgs;
use crate::{output, signal};
use anyhow::{Context as _, anyhow};
use bytes::Bytes;
use clap::Args;
use install::Installer;
use progress::Progress;
use reeve_agent::{Agent, AgentConfig, AgentStatus};
use reeve_sim::Config;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Run the agent and your plugins on an embedded cluster
///
/// Builds every plugin crate in --plugins, starts the embedded API server with
/// a few sample Profiles, installs each plugin with the rights that its manifest
/// asks for, and runs the agent on it. It then stays: save a plugin's source, and
/// it is rebuilt and swapped; use the kubeconfig that it prints with kubectl.
#[derive(Args)]
pub(crate) struct DevArgs {
    /// Exit when everything has converged
    #[arg(long)]
    once: bool,
    /// Folder of a plugin crate, or one whose subfolders are plugin crates
    #[arg(long, value_name = "FOLDER", default_value = "plugins")]
    plugins: PathBuf,
    /// Where to write the kubeconfig
    #[arg(long, value_name = "FILE", default_value = "target/dev/kubeconfig")]
    kubeconfig: PathBuf,
    /// Port of the embedded API server; 0 takes that of the last time with --state, or any
    /// free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    actors: ActorArgs,
    #[command(flatten)]
    cache: CacheArgs,
}

/// What is logged. Problems of plugins and units are told as the command's own
/// output, so the agent's loop need not log them too.
pub(crate) const LOGS: &str = "warn,reeve_agent::controller=error";

/// Namespace of the agent in the embedded cluster.
const NAMESPACE: &str = "reeve-system";
/// The agent's user in the embedded cluster. It is no administrator.
const AGENT_USER: &str = "reeve:agent";
/// By then a handful of units has converged a thousand times over; what has not
/// will not.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn run(args: DevArgs) -> anyhow::Result<ExitCode> {
    let crates = crates::find(&args.plugins)?;
    // Before minutes of building.
    kubeconfig::check(&args.kubeconfig).await?;
    let progress = Progress::default();
    let step = progress.step(format!("building {} plugins", crates.len()));
    let sources = crates.iter().map(|plugin| plugin.source.clone()).collect();
    let built = reload::build_all(sources).await?;
    let names = crates.iter().map(|plugin| plugin.name.clone());
    let components: BTreeMap<String, Bytes> = names.zip(built).collect();
    let bytes: usize = components.values().map(Bytes::len).sum();
    step.done(format!("{} KB", bytes / 1000));

    let step = progress.step("starting the embedded cluster");
    let server = args.state.server(Config {
        actors: args.actors.actors(),
        warns_of_no_effect: true,
        asks_webhooks: true,
        ..Config::default()
    })?;
    reeve_sim::allow_many_connections();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let serving = server.serve(address).await?;
    if let Some(folder) = args.kubeconfig.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make folder {}", folder.display()))?;
    }
    let _held = Kubeconfig::write(&serving, &args.kubeconfig, NAMESPACE).await?;
    let engine = args.cache.engine()?;
    let installer = Installer::new(server.client(), engine.clone());
    installer.prepare(!server.has_resumed()).await?;
    step.done(serving.url());

    for (name, component) in &components {
        let step = progress.step(format!("installing {name}"));
        let granted = installer.install(name, component).await?;
        step.done("");
        for rule in granted {
            progress.detail(&rule);
        }
    }

    let started = Instant::now();
    let client = server.client_as(AGENT_USER, ["system:authenticated"]);
    let agent = Agent::start(AgentConfig {
        // Whoever saves a file wants to see what it does, not to approve of it.
        gated: false,
        ..AgentConfig::new(client, engine, NAMESPACE)
    });
    let names: Vec<&str> = components.keys().map(String::as_str).collect();
    let problems = async {
        problems::tell(&agent).await;
        Err(anyhow!(
            "the agent has ended by itself; this is a bug of reeve"
        ))
    };
    let begin = begin(&agent, &names, started);
    let code: anyhow::Result<ExitCode> = if args.once {
        tokio::select! {
            converged = begin => Ok(ExitCode::from(u8::from(!converged))),
            ended = problems => ended,
        }
    } else {
        let guide = async {
            begin.await;
            output::tell(guide(&args));
            std::future::pending().await
        };
        tokio::select! {
            () = guide => Ok(ExitCode::SUCCESS),
            ended = problems => ended,
            ended = reload::watch(&args.plugins, crates, &installer, &agent) => {
                ended.map(|()| ExitCode::SUCCESS)
            }
            ended = installer.follow() => ended.map(|()| ExitCode::SUCCESS),
            stopped = signal::stop() => {
                stopped.context("cannot listen for signals").map(|()| ExitCode::SUCCESS)
            }
        }
    };
    agent.stop().await;
    serving.shutdown().await;
    server.sync();
    code
}

/// Waits until these plugins have done what is to be done, and shows it. Returns
/// whether they have.
async fn begin(agent: &Agent, plugins: &[&str], started: Instant) -> bool {
    let converged = converge(agent, plugins).await;
    let units = agent.units().await;
    output::tell(format_args!("\n{}", table::of(&units)));
    if converged {
        let objects: usize = units.iter().map(|unit| unit.objects.len()).sum();
        output::tell(format_args!(
            "converged: {objects} objects from {} plugins in {:.2} s",
            plugins.len(),
            started.elapsed().as_secs_f64()
        ));
    } else {
        output::tell(format_args!(
            "not converged within {} s; what keeps it is said above",
            PATIENCE.as_secs()
        ));
    }
    converged
}

/// What can be done from here.
fn guide(args: &DevArgs) -> String {
    let kubeconfig = std::path::absolute(&args.kubeconfig);
    format!(
        "\nexport KUBECONFIG={}\n\
        Try: kubectl get profiles,resourcequotas -A   or: kubectl get plugins\n\
        Save a source file below {} to swap its plugin; Ctrl-C stops.\n",
        kubeconfig.as_ref().unwrap_or(&args.kubeconfig).display(),
        args.plugins.display()
    )
}

/// Waits until these plugins run and all of their units are ready. Returns whether
/// that came to be.
async fn converge(agent: &Agent, plugins: &[&str]) -> bool {
    let mut status = agent.status();
    let converged = async {
        loop {
            let done = has_converged(&status.borrow_and_update(), plugins);
            if done && agent.is_settled() {
                return;
            }
            // Reports are written outside of the agent's status.
            let pause = Duration::from_millis(5);
            let _ = tokio::time::timeout(pause, status.changed()).await;
        }
    };
    tokio::time::timeout(PATIENCE, converged).await.is_ok()
}

fn has_converged(status: &AgentStatus, plugins: &[&str]) -> bool {
    let runs = |name: &&str| {
        status.plugins.iter().any(|plugin| {
            plugin.name == *name
                && plugin.digest.is_some()
                && plugin.problem.is_none()
                && plugin.units.ready == plugin.units.total
        })
    };
    status.synced && status.idle && plugins.iter().all(runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_agent::PluginReport;
    use reeve_core::Digest;
    use reeve_engine::{Compiler, Engine, EngineConfig};
    use reeve_sim::Server;

    #[test]
    fn all_that_was_installed_has_to_run_and_be_ready() {
        let report = |problem: Option<&str>, is_loaded: bool, ready: u32| {
            let mut report = PluginReport {
                name: "quotas".into(),
                digest: is_loaded.then(|| Digest::of(b"quotas")),
                problem: problem.map(Into::into),
                units: Default::default(),
            };
            (report.units.total, report.units.ready) = (2, ready);
            report
        };
        for (plugins, idle, expected) in [
            (vec![], true, false),
            (vec![report(None, false, 2)], true, false),
            (vec![report(Some("Forbidden: a"), true, 2)], true, false),
            (vec![report(None, true, 1)], true, false),
            (vec![report(None, true, 2)], false, false),
            (vec![report(None, true, 2)], true, true),
        ] {
            let status = AgentStatus {
                synced: true,
                idle,
                plugins,
                ..AgentStatus::default()
            };
            assert_eq!(has_converged(&status, &["quotas"]), expected, "{status:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_never_runs_is_not_waited_for_without_end() {
        let engine = Engine::new(EngineConfig::new(Compiler::InThisProcess)).unwrap();
        let client = Server::default().client();
        let agent = Agent::start(AgentConfig::new(client, engine, NAMESPACE));
        let begun = tokio::time::Instant::now();
        assert!(!begin(&agent, &["absent"], Instant::now()).await);
        assert!(begun.elapsed() >= PATIENCE);
        agent.stop().await;
    }
}
