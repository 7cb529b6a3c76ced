//! `reeve model`.

mod change;
mod fleet;
mod look;
mod result;
mod trouble;

use clap::{Args, Subcommand};
use reeve_cluster::{ConnectOptions, connect_now};
use std::path::PathBuf;
use std::process::ExitCode;

/// Start, stop, replace and look at deployments of models
///
/// What DataRobot's management agent is asked to do, with its states and numbers, for
/// people and for supervisors: each command sets fields of a ModelDeployment, which the
/// plugin models carries out, and answers with its status. See docs/models.md.
#[derive(Args)]
pub(crate) struct ModelArgs {
    #[command(subcommand)]
    command: ModelCommand,
}

#[derive(Subcommand)]
enum ModelCommand {
    Start(change::StartArgs),
    Stop(change::StopArgs),
    Replace(change::ReplaceArgs),
    Relaunch(change::RelaunchArgs),
    List(look::ListArgs),
    Status(look::StatusArgs),
}

/// Where models are deployed.
#[derive(Args)]
struct PlaceArgs {
    /// Kubeconfig file; without it the usual places, then the pod's ServiceAccount
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Namespace of the models
    #[arg(
        long,
        short,
        env = "REEVE_MODELS_NAMESPACE",
        default_value = "datarobot-mlops"
    )]
    namespace: String,
}

impl PlaceArgs {
    async fn client(&self) -> anyhow::Result<kube::Client> {
        let options = ConnectOptions {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
        };
        Ok(connect_now(&options).await?)
    }
}

pub(crate) async fn run(args: ModelArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        ModelCommand::Start(args) => change::start(args).await,
        ModelCommand::Stop(args) => change::stop(args).await,
        ModelCommand::Replace(args) => change::replace(args).await,
        ModelCommand::Relaunch(args) => change::relaunch(args).await,
        ModelCommand::List(args) => look::list(args).await,
        ModelCommand::Status(args) => look::status(args).await,
    }
}
