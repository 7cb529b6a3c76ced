//! The agent as its users run it: a process of its own.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::ControlPlane;
use crate::server::Server;

/// A running `reeve run`. Ends when it is dropped.
#[derive(Debug)]
pub struct Agent(Server);

impl Agent {
    /// Starts `reeve run` as `user` of the cluster, who was named to its builder
    /// and has the rights that RBAC grants. Returns at once.
    ///
    /// # Errors
    ///
    /// When there is no such user, or no `reeve` binary beside the test.
    pub fn start(cluster: &ControlPlane, user: &str, namespace: &str) -> Result<Self> {
        let arguments = [
            "run".to_owned(),
            format!("--kubeconfig={}", cluster.kubeconfig_of(user)?.display()),
            format!("--namespace={namespace}"),
        ];
        let supervise = cluster.supervise();
        Server::start("reeve", supervise, &binary()?, &arguments, cluster.folder()).map(Self)
    }

    /// The last lines that the agent printed.
    pub fn log_tail(&self) -> String {
        self.0.log_tail()
    }

    /// Whether it still runs.
    ///
    /// # Errors
    ///
    /// When the system does not tell.
    pub fn is_running(&mut self) -> Result<bool> {
        self.0.is_running()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log_tail());
        }
    }
}

/// The `reeve` binary that was built with the test that runs.
///
/// # Errors
///
/// When there is none, with the command that builds it.
pub fn binary() -> Result<PathBuf> {
    // Tests are in target/<profile>/deps.
    let test = env::current_exe()?;
    let folder = test.ancestors().nth(2).context("no target folder")?;
    let binary = folder.join(format!("reeve{}", env::consts::EXE_SUFFIX));
    if !Path::new(&binary).is_file() {
        bail!(
            "there is no {}; run `cargo build --package reeve-cli`",
            binary.display()
        );
    }
    Ok(binary)
}
