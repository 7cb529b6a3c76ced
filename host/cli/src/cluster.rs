//! `reeve cluster`.

mod import;
mod load;
mod save;

use crate::actors::ActorArgs;
use crate::kubeconfig::Kubeconfig;
use crate::output::tell;
use crate::signal::Stop;
use crate::state::StateArgs;
use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use reeve_sim::{Config, Fault};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Run the embedded API server alone, for any other tool
///
/// It listens on a loopback port with TLS, writes a kubeconfig with an
/// administrator's token, prints one line when it is ready, and stops on SIGTERM
/// or Ctrl-C. Everything in it is gone then, unless --state keeps it.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  \
    reeve cluster --kubeconfig cluster.yaml                        gone when it ends\n  \
    reeve cluster --kubeconfig cluster.yaml --state cluster.state  goes on from there\n  \
    reeve cluster save before.snapshot --kubeconfig cluster.yaml   a copy of it, while it runs\n  \
    reeve cluster load before.snapshot --state other.state         another one from the copy\n  \
    reeve cluster import prod.yaml --context prod                  objects of a real cluster\n  \
    reeve cluster load prod.yaml --kubeconfig cluster.yaml         and into this one with them"
)]
pub(crate) struct ClusterArgs {
    #[command(subcommand)]
    command: Option<ClusterCommand>,
    #[command(flatten)]
    serve: ServeArgs,
}

#[derive(Subcommand)]
enum ClusterCommand {
    Save(save::SaveArgs),
    Load(load::LoadArgs),
    Import(import::ImportArgs),
}

#[derive(Args)]
struct ServeArgs {
    /// Where to write the kubeconfig
    #[arg(long, value_name = "FILE", required = true)]
    kubeconfig: Option<PathBuf>,
    /// Port to listen on; 0 takes that of the last time with --state, or any free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    actors: ActorArgs,
    /// Let something go wrong, such as 'latency: delay=200ms, verb=list'; may be
    /// repeated
    ///
    /// The faults are clock-jump, conflict, expired, internal-error, latency,
    /// lost-answer, reset, silent-watch, slow-admission, too-many-requests,
    /// truncated-watch and unavailable; see docs/embedded-cluster.md for their fields,
    /// and for how to change them while the server runs.
    #[arg(long = "fault", value_name = "FAULT")]
    faults: Vec<Fault>,
}

pub(crate) async fn run(args: ClusterArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        Some(ClusterCommand::Save(args)) => save::run(args).await,
        Some(ClusterCommand::Load(args)) => load::run(args).await,
        Some(ClusterCommand::Import(args)) => import::run(args).await,
        None => serve(args.serve).await,
    }
}

async fn serve(args: ServeArgs) -> anyhow::Result<ExitCode> {
    let Some(kubeconfig) = args.kubeconfig else {
        bail!("--kubeconfig is missing: it says where to write how the server is reached");
    };
    let server = args.state.server(Config {
        actors: args.actors.actors(),
        warns_of_no_effect: true,
        asks_webhooks: true,
        ..Config::default()
    })?;
    reeve_sim::allow_many_connections();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    // Before anybody is told that the server is there, and can end it.
    let stop = Stop::listen().context("cannot listen for signals")?;
    let serving = server.serve(address).await?;
    let _held = Kubeconfig::write(&serving, &kubeconfig, "default").await?;
    server.set_faults(args.faults);
    tell(format_args!(
        "ready: {} (export KUBECONFIG={})",
        serving.url(),
        kubeconfig.display()
    ));
    stop.wait().await;
    serving.shutdown().await;
    server.sync();
    Ok(ExitCode::SUCCESS)
}

/// A client of an embedded cluster. Another one is refused: commands of this name are
/// not meant to touch it.
async fn embedded(kubeconfig: &Path) -> anyhow::Result<kube::Client> {
    let (client, _) = reeve_cluster::connect(&reeve_cluster::ConnectOptions {
        kubeconfig: Some(kubeconfig.to_owned()),
        context: None,
    })
    .await?;
    let asked = kube::client::Body::empty();
    let request = http::Request::get("/debug/faults").body(asked)?;
    let answer = client.send(request).await;
    let answer = answer
        .with_context(|| format!("the cluster of {} does not answer", kubeconfig.display()))?;
    if !answer.status().is_success() {
        bail!(
            "the cluster of {} is not one of reeve cluster or reeve dev, or you are not its administrator ({}); nothing was sent to it",
            kubeconfig.display(),
            answer.status()
        );
    }
    Ok(client)
}
