//! `reeve cluster`.

use crate::actors::ActorArgs;
use crate::signal;
use anyhow::Context as _;
use clap::Args;
use reeve_sim::{Config, Server};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

/// Run the embedded API server alone, for any other tool
///
/// It listens on a loopback port with TLS, writes a kubeconfig with an
/// administrator's token, prints one line when it is ready, and stops on SIGTERM
/// or Ctrl-C. Everything in it is gone then.
#[derive(Args)]
pub(crate) struct ClusterArgs {
    /// Where to write the kubeconfig
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
    /// Port to listen on; 0 takes any free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    #[command(flatten)]
    actors: ActorArgs,
}

pub(crate) async fn run(args: ClusterArgs) -> anyhow::Result<ExitCode> {
    let server = Server::new(Config {
        actors: args.actors.actors(),
        ..Config::default()
    });
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let serving = server.serve(address).await?;
    serving.write_kubeconfig(&args.kubeconfig, "default")?;
    println!(
        "ready: {} (export KUBECONFIG={})",
        serving.url(),
        args.kubeconfig.display()
    );
    signal::stop().await.context("cannot listen for signals")?;
    serving.shutdown().await;
    Ok(ExitCode::SUCCESS)
}
