//! `reeve cluster`.

use crate::actors::ActorArgs;
use crate::output::tell;
use crate::signal::Stop;
use anyhow::Context as _;
use clap::Args;
use reeve_sim::{Config, Fault, Server};
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
    let server = Server::new(Config {
        actors: args.actors.actors(),
        warns_of_no_effect: true,
        ..Config::default()
    });
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    // Before anybody is told that the server is there, and can end it.
    let stop = Stop::listen().context("cannot listen for signals")?;
    let serving = server.serve(address).await?;
    serving.write_kubeconfig(&args.kubeconfig, "default")?;
    server.set_faults(args.faults);
    tell(format_args!(
        "ready: {} (export KUBECONFIG={})",
        serving.url(),
        args.kubeconfig.display()
    ));
    stop.wait().await;
    serving.shutdown().await;
    Ok(ExitCode::SUCCESS)
}
