//! `reeve dev`.

mod install;
mod progress;
mod reload;
mod sample;
mod table;

use crate::signal;
use anyhow::{Context as _, bail};
use clap::Args;
use install::Installer;
use progress::Progress;
use reeve_agent::{Agent, AgentConfig, AgentStatus};
use reeve_build::PluginCrate;
use reeve_core::Digest;
use reeve_engine::{Engine, EngineConfig};
use reeve_sim::{Config, Server};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Run the agent and your plugins on an embedded cluster
///
/// Builds every plugin crate below --plugins, starts the embedded API server with
/// a few sample Profiles, installs each plugin with the rights that its manifest
/// asks for, and runs the agent on it. It then stays: save a plugin's source, and
/// it is rebuilt and swapped; use the kubeconfig that it prints with kubectl.
#[derive(Args)]
pub(crate) struct DevArgs {
    /// Exit when everything has converged
    #[arg(long)]
    once: bool,
    /// Folder whose subfolders are plugin crates
    #[arg(long, value_name = "FOLDER", default_value = "plugins")]
    plugins: PathBuf,
    /// Where to write the kubeconfig
    #[arg(long, value_name = "FILE", default_value = "target/dev/kubeconfig")]
    kubeconfig: PathBuf,
    /// Port of the embedded API server; 0 takes any free one
    #[arg(long, default_value_t = 0)]
    port: u16,
}

/// Namespace of the agent in the embedded cluster.
const NAMESPACE: &str = "reeve-system";
/// The agent's user in the embedded cluster. It is no administrator.
const AGENT_USER: &str = "reeve:agent";
/// By then a handful of units has converged a thousand times over; what has not
/// will not.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn run(args: DevArgs) -> anyhow::Result<ExitCode> {
    let crates = find_crates(&args.plugins)?;
    let progress = Progress::default();
    let mut components = BTreeMap::new();
    for plugin in &crates {
        let step = progress.step(format!("building {}", plugin.name));
        let component = reload::build(plugin.source.clone(), false).await?;
        step.done(format!("{} KB", component.len() / 1000));
        components.insert(plugin.name.clone(), component);
    }

    let step = progress.step("starting the embedded cluster");
    let server = Server::new(Config::default());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let serving = server.serve(address).await?;
    if let Some(folder) = args.kubeconfig.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make folder {}", folder.display()))?;
    }
    serving.write_kubeconfig(&args.kubeconfig, NAMESPACE)?;
    let engine = Engine::new(EngineConfig::default())?;
    let installer = Installer::new(server.client(), engine.clone());
    installer.prepare().await?;
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
    let agent = Agent::start(AgentConfig::new(client, engine, NAMESPACE));
    let wanted = components
        .iter()
        .map(|(name, component)| (name.clone(), Digest::of(component)))
        .collect();
    let converged = converge(&agent, &wanted).await;
    println!();
    print!("{}", table::of(&agent.units().await));
    if let Err(problems) = converged {
        agent.stop().await;
        bail!("not converged within {} s:\n{problems}", PATIENCE.as_secs());
    }
    let objects: usize = agent
        .units()
        .await
        .iter()
        .map(|unit| unit.objects.len())
        .sum();
    println!(
        "\nconverged: {objects} objects from {} plugins in {:.2} s",
        components.len(),
        started.elapsed().as_secs_f64()
    );
    if !args.once {
        println!(
            "\nexport KUBECONFIG={}",
            absolute(&args.kubeconfig).display()
        );
        println!("Try: kubectl get profiles,resourcequotas -A   or: kubectl get plugins");
        println!(
            "Save a source file below {} to swap its plugin; Ctrl-C stops.\n",
            args.plugins.display()
        );
        tokio::select! {
            ended = reload::watch(&args.plugins, crates, &installer, &agent) => ended?,
            () = report_problems(&agent) => {}
            stopped = signal::stop() => stopped.context("cannot listen for signals")?,
        }
    }
    agent.stop().await;
    serving.shutdown().await;
    Ok(ExitCode::SUCCESS)
}

/// A plugin crate and the name under which it is installed.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) source: PluginCrate,
}

fn find_crates(folder: &Path) -> anyhow::Result<Vec<Source>> {
    let entries = std::fs::read_dir(folder).with_context(|| {
        format!(
            "cannot read {}; run this in the root of the repository, or name the folder with --plugins",
            folder.display()
        )
    })?;
    let mut crates = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if !path.join("Cargo.toml").is_file() {
            continue;
        }
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        crates.push(Source {
            name: name.to_owned(),
            source: PluginCrate::open(&path)?,
        });
    }
    crates.sort_by(|a, b| a.name.cmp(&b.name));
    if crates.is_empty() {
        bail!("{} holds no plugin crates", folder.display());
    }
    Ok(crates)
}

/// Waits until these components run and all of their units are ready.
async fn converge(agent: &Agent, wanted: &BTreeMap<String, Digest>) -> Result<(), String> {
    let mut status = agent.status();
    let converged = async {
        loop {
            let done = has_converged(&status.borrow_and_update(), wanted);
            if done && agent.is_settled() {
                return;
            }
            // Reports are written outside of the agent's status.
            let pause = Duration::from_millis(5);
            let _ = tokio::time::timeout(pause, status.changed()).await;
        }
    };
    if tokio::time::timeout(PATIENCE, converged).await.is_ok() {
        return Ok(());
    }
    let mut problems: Vec<String> = agent.status().borrow().own_watches.clone();
    for plugin in &agent.status().borrow().plugins {
        problems.extend(
            plugin
                .problem
                .iter()
                .map(|text| format!("{}: {text}", plugin.name)),
        );
    }
    for unit in agent.units().await {
        let text = unit.problem.unwrap_or_else(|| "not run yet".to_owned());
        if !unit.ready {
            problems.push(format!("{} for {}: {text}", unit.plugin, unit.primary));
        }
    }
    Err(problems.join("\n"))
}

fn has_converged(status: &AgentStatus, wanted: &BTreeMap<String, Digest>) -> bool {
    status.synced
        && status.idle
        && wanted.iter().all(|(name, digest)| {
            status.plugins.iter().any(|plugin| {
                plugin.name == *name
                    && plugin.digest == Some(*digest)
                    && plugin.problem.is_none()
                    && plugin.units.ready == plugin.units.total
            })
        })
}

/// Prints problems of plugins as they come and go.
async fn report_problems(agent: &Agent) {
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    let mut status = agent.status();
    loop {
        let now: BTreeMap<String, String> = status
            .borrow_and_update()
            .plugins
            .iter()
            .filter_map(|plugin| Some((plugin.name.clone(), plugin.problem.clone()?)))
            .collect();
        for (name, problem) in &now {
            if known.get(name) != Some(problem) {
                println!("{name}: {problem}");
            }
        }
        known = now;
        if status.changed().await.is_err() {
            return;
        }
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
