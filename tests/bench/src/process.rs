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
        cpu_of(self.0.id())
    }
}

/// Seconds of CPU that a process has used so far, in its own name and in the kernel's;
/// those of processes that it has started are not among them.
pub(crate) fn cpu_of(process: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The second field is the program's name, which may hold anything.
    let (_, rest) = stat.rsplit_once(") ").context("no name")?;
    // `utime` and `stime` are the fields 14 and 15.
    ticks(rest.split(' ').skip(11).take(2))
}

/// Seconds of CPU that all of this machine has used so far, and what its host has kept
/// from it.
pub(crate) fn cpu_of_all() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().context("no line")?;
    // Behind the name: `user`, `nice`, `system`, `idle`, `iowait`, `irq`, `softirq` and
    // `steal`. What follows is part of the first two.
    let fields = line.split_whitespace().skip(1).take(8).enumerate();
    let busy = fields.filter(|(index, _)| !matches!(index, 3 | 4));
    ticks(busy.map(|(_, field)| field))
}

/// The sum of some times of the kernel's, in seconds.
fn ticks<'a>(fields: impl Iterator<Item = &'a str>) -> Result<f64> {
    let mut sum = 0.0;
    for field in fields {
        sum += field.parse::<f64>()?;
    }
    Ok(sum / TICKS)
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
        Self::start_with([])
    }

    /// As [`ClusterProcess::start`], with these variables in its environment.
    pub(crate) fn start_with<const N: usize>(variables: [(&str, &str); N]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut command = reeve()?;
        command
            .args(["cluster", "--kubeconfig"])
            .arg(folder.path().join(KUBECONFIG))
            .envs(variables)
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
