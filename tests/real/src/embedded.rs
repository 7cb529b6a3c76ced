//! The embedded API server as its users run it: `reeve cluster`, and `reeve dev`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
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
    // Ends before the folder with its log goes. None while it is killed.
    process: Option<Server>,
    arguments: Vec<String>,
    /// What it says when it is ready, and how long that may take.
    said: &'static str,
    timeout: Duration,
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
        Self::dev_with(plugins, &[])
    }

    /// As [`EmbeddedCluster::dev`], with more arguments for `reeve dev`.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn dev_with(plugins: &Path, more: &[&str]) -> Result<Self> {
        let plugins = format!("--plugins={}", plugins.display());
        let arguments: Vec<_> = [&*plugins]
            .into_iter()
            .chain(more.iter().copied())
            .collect();
        Self::start_command("dev", &arguments, "Ctrl-C stops", BUILT_TIMEOUT)
    }

    fn start_command(
        command: &str,
        more: &[&str],
        said: &'static str,
        timeout: Duration,
    ) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("reeve-embedded-")
            .tempdir()?;
        let kubeconfig = folder.path().join(KUBECONFIG);
        let mut arguments = vec![
            command.to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
        ];
        arguments.extend(more.iter().copied().map(str::to_owned));
        let mut this = Self {
            process: None,
            arguments,
            said,
            timeout,
            folder,
        };
        this.start_again()?;
        Ok(this)
    }

    /// Starts it with the arguments that it had before, after [`EmbeddedCluster::kill`]. What
    /// it knows then is what it has kept: `--state=state` keeps all in a folder of its own.
    ///
    /// # Errors
    ///
    /// When it runs, or does not become ready.
    pub fn start_again(&mut self) -> Result<()> {
        ensure!(self.process.is_none(), "it runs");
        let supervise = HELPERS.get()?.join("supervise");
        let folder = self.folder.path();
        let log = folder.join(format!("{NAME}.log"));
        let before = fs::metadata(&log).map_or(0, |log| log.len());
        let process = Server::start(NAME, &supervise, &binary()?, &self.arguments, folder)?;
        // Kept before it is ready, so that a failure can be looked into.
        let process = self.process.insert(process);
        process.wait_until(self.timeout, || {
            let log = fs::read_to_string(&log).unwrap_or_default();
            let new = usize::try_from(before).ok().and_then(|at| log.get(at..));
            new.is_some_and(|new| new.contains(self.said))
        })
    }

    /// Ends it as `kill -9` does, and waits until it is gone.
    ///
    /// # Errors
    ///
    /// When it does not run.
    pub fn kill(&mut self) -> Result<()> {
        let process = self.process.take().context("it does not run")?;
        process.kill()
    }

    /// All that it has printed.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn log(&self) -> Result<String> {
        let process = self.process.as_ref().context("it does not run")?;
        process.log()
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
        if std::thread::panicking()
            && let Some(process) = &self.process
        {
            eprintln!("{}", process.log_tail());
        }
    }
}

const NAME: &str = "reeve-cluster";
const KUBECONFIG: &str = "kubeconfig";
