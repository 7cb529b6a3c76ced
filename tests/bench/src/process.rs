//! The `reeve` binary as a process of its own, so that a figure is its alone.

use anyhow::{Context as _, Result};
use reeve_cluster::{ConnectOptions, connect};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A process that ends with this value.
pub(crate) struct Process(Child);

/// The embedded API server in a process of its own.
pub(crate) struct ClusterProcess {
    process: Process,
    folder: TempDir,
}

/// The `reeve` binary of the same build.
pub(crate) fn reeve() -> Result<Command> {
    let own = std::env::current_exe()?;
    Ok(Command::new(own.with_file_name("reeve")))
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let child = command.spawn();
        Ok(Self(child.with_context(|| format!("{command:?}"))?))
    }

    /// Resident memory in bytes.
    pub(crate) fn resident(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        let kilobytes: f64 = kilobytes.context("no VmRSS")?.trim().parse()?;
        Ok(kilobytes * 1024.0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl ClusterProcess {
    /// Starts it. Returns when it says that it is ready.
    pub(crate) fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut command = reeve()?;
        command
            .args(["cluster", "--kubeconfig"])
            .arg(folder.path().join(KUBECONFIG))
            .stdout(Stdio::piped());
        let mut process = Process::start(&mut command)?;
        let stdout = process.0.stdout.take().context("no standard output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        anyhow::ensure!(line.starts_with("ready"), "reeve cluster says: {line}");
        Ok(Self { process, folder })
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join(KUBECONFIG)
    }

    /// A client with all rights.
    pub(crate) async fn client(&self) -> Result<kube::Client> {
        client(&self.kubeconfig()).await
    }

    /// The process.
    pub(crate) fn process(&self) -> &Process {
        &self.process
    }
}

const KUBECONFIG: &str = "kubeconfig";

/// A client of the cluster in a kubeconfig.
pub(crate) async fn client(kubeconfig: &Path) -> Result<kube::Client> {
    let options = ConnectOptions {
        kubeconfig: Some(kubeconfig.to_owned()),
        context: None,
    };
    Ok(connect(&options).await?.0)
}
