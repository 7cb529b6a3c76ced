//! The embedded API server as its users run it: `reeve cluster`, and `reeve dev`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use tempfile::TempDir;

use crate::agent::binary;
use crate::kubectl;
use crate::parts::{HELPERS, KUBERNETES};
use crate::server::Server;

/// It starts in milliseconds; tests run beside builds.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

/// Plugins are built first, beside other builds.
const BUILT_TIMEOUT: Duration = Duration::from_secs(300);

/// A running `reeve cluster`, empty at first, or `reeve dev`. Ends when it is dropped,
/// and when the test process is killed.
#[derive(Debug)]
pub struct EmbeddedCluster {
    // Ends before the folder with its log goes.
    process: Server,
    folder: TempDir,
}

impl EmbeddedCluster {
    /// Starts one on a free port and waits until it is ready.
    ///
    /// # Errors
    ///
    /// When there is no `reeve` binary beside the test, or it does not become
    /// ready; the message has the end of its log.
    pub fn start() -> Result<Self> {
        Self::start_with(&[])
    }

    /// As [`EmbeddedCluster::start`], with more arguments for `reeve cluster`.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn start_with(more: &[&str]) -> Result<Self> {
        Self::start_command("cluster", more, "ready: ", READY_TIMEOUT)
    }

    /// Starts `reeve dev` with the plugins in this folder, and waits until it says what can
    /// be done with it.
    ///
    /// # Errors
    ///
    /// When there is no `reeve` binary beside the test, or it does not come so far; the
    /// message has the end of its log.
    pub fn dev(plugins: &Path) -> Result<Self> {
        let plugins = format!("--plugins={}", plugins.display());
        Self::start_command("dev", &[&plugins], "Ctrl-C stops", BUILT_TIMEOUT)
    }

    fn start_command(command: &str, more: &[&str], said: &str, timeout: Duration) -> Result<Self> {
        let supervise = HELPERS.get()?.join("supervise");
        let folder = tempfile::Builder::new()
            .prefix("reeve-embedded-")
            .tempdir()?;
        let kubeconfig = folder.path().join(KUBECONFIG);
        let mut arguments = vec![
            command.to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
        ];
        arguments.extend(more.iter().copied().map(str::to_owned));
        let mut process = Server::start(NAME, &supervise, &binary()?, &arguments, folder.path())?;
        let log = folder.path().join(format!("{NAME}.log"));
        process.wait_until(timeout, || {
            fs::read_to_string(&log).is_ok_and(|log| log.contains(said))
        })?;
        Ok(Self { process, folder })
    }

    /// All that it has printed.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn log(&self) -> Result<String> {
        self.process.log()
    }

    /// The kubeconfig file of the administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join(KUBECONFIG)
    }

    /// Runs kubectl as the administrator and returns what it printed.
    ///
    /// # Errors
    ///
    /// When kubectl cannot be built or fails; the message has its own.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let program = KUBERNETES.get()?.join("kubectl");
        kubectl::run(&program, &self.kubeconfig(), arguments, "")
    }

    /// The folder for its files, removed with it.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for EmbeddedCluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.process.log_tail());
        }
    }
}

const NAME: &str = "reeve-cluster";
const KUBECONFIG: &str = "kubeconfig";
