//! Processes of their own, so that a figure is theirs alone.

use anyhow::{Context as _, Result};
use reeve_cluster::{ConnectOptions, connect};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use tempfile::TempDir;

/// How often the kernel's clock for processes ticks in a second: `USER_HZ`, which is
/// this on all machines that we build for, whatever the kernel itself does.
const TICKS: f64 = 100.0;

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

    /// Its standard output, which the command must have asked for.
    pub(crate) fn output(&mut self) -> Result<ChildStdout> {
        self.0.stdout.take().context("no standard output")
    }

    /// Its standard input and output, which the command must have asked for.
    pub(crate) fn pipes(&mut self) -> Result<(ChildStdin, ChildStdout)> {
        let input = self.0.stdin.take().context("no standard input")?;
        Ok((input, self.output()?))
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.0.try_wait()?)
    }

    /// Resident memory in bytes.
    pub(crate) fn resident(&self) -> Result<f64> {
        self.memory("VmRSS:")
    }

    /// Memory in bytes that is no copy of a file: what it has allocated.
    pub(crate) fn anonymous(&self) -> Result<f64> {
        self.memory("RssAnon:")
    }

    fn memory(&self, field: &'static str) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        let kilobytes: f64 = kilobytes.context(field)?.trim().parse()?;
        Ok(kilobytes * 1024.0)
    }

    /// Seconds of CPU that it has used so far, in its own name and in the kernel's.
    pub(crate) fn cpu(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        // The second field is the program's name, which may hold anything.
        let (_, rest) = stat.rsplit_once(") ").context("no name")?;
        // `utime` and `stime` are the fields 14 and 15.
        let fields = rest.split(' ').skip(11).take(2);
        let mut ticks = 0.0;
        for field in fields {
            ticks += field.parse::<f64>()?;
        }
        Ok(ticks / TICKS)
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
        let stdout = process.output()?;
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
