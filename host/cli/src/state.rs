//! The option that keeps an embedded cluster.

use clap::Args;
use reeve_sim::{Config, Server, StateError};
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct StateArgs {
    /// Keep everything in this folder, and go on from what is in it
    ///
    /// Without it, everything is gone when the command ends. With it, objects, their
    /// versions and tokens are there the next time, and so are certificate and port, so
    /// that a kubeconfig goes on working. A write is answered when it is kept: killing
    /// the command loses nothing. The folder holds Secrets as they are; only its owner
    /// can read it.
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
}

impl StateArgs {
    /// The server that goes on from the state, or a new one.
    pub(crate) fn server(&self, config: Config) -> Result<Server, StateError> {
        match &self.state {
            Some(folder) => Server::open(config, folder),
            None => Ok(Server::new(config)),
        }
    }
}
