//! Which cluster a command talks to, and which agent in it.

use clap::Args;
use reeve_cluster::{ConnectOptions, connect_now};
use std::path::PathBuf;

/// How a command finds the cluster and the agent.
#[derive(Args, Clone)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ConnectionArgs {
    /// Kubeconfig to use
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use
    #[arg(long)]
    context: Option<String>,
    /// Namespace of the agent: of the plugins' ConfigMaps and ServiceAccounts
    #[arg(long, env = "REEVE_NAMESPACE", default_value = "reeve-system")]
    pub(crate) namespace: String,
}

impl ConnectionArgs {
    /// A client of a cluster that answers.
    pub(crate) async fn client(&self) -> anyhow::Result<kube::Client> {
        let options = ConnectOptions {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
        };
        Ok(connect_now(&options).await?)
    }
}
