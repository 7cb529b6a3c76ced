//! `reeve run` as a process of its own, and what it says of itself.

use crate::process::{Process, reeve};
use anyhow::{Context as _, Result, bail, ensure};
use std::iter::Sum;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Longer than anything takes here.
const PATIENCE: Duration = Duration::from_secs(900);
/// Between two looks: short beside what is waited for. Each has the agent tell its metrics: ten
/// a second were 1.5 % of all that it did.
const INTERVAL: Duration = Duration::from_millis(200);

/// A running agent. It is killed when this is dropped.
pub(super) struct AgentProcess {
    process: Process,
    port: u16,
    begun: Instant,
}

impl AgentProcess {
    /// Starts one with a folder for compiled components.
    pub(super) fn start(kubeconfig: &Path, cache: &Path) -> Result<Self> {
        Self::start_with(kubeconfig, cache, &[])
    }

    /// As [`AgentProcess::start`], with further arguments of `reeve run`.
    pub(super) fn start_with(kubeconfig: &Path, cache: &Path, further: &[String]) -> Result<Self> {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = free.local_addr()?.port();
        drop(free);
        // What it logs takes time, so that little is unless somebody asks.
        let log = std::env::var("RUST_LOG").unwrap_or_else(|_| "error".to_owned());
        let begun = Instant::now();
        let process = Process::start(
            reeve()?
                .arg("run")
                .arg(format!("--health-address=127.0.0.1:{port}"))
                .arg("--kubeconfig")
                .arg(kubeconfig)
                .arg("--cache")
                .arg(cache)
                .args(further)
                .env("RUST_LOG", log),
        )?;
        Ok(Self {
            process,
            port,
            begun,
        })
    }

    /// Fills a folder with the compiled components of all plugins that are installed.
    pub(super) async fn compile(kubeconfig: &Path, cache: &Path) -> Result<()> {
        let mut agent = Self::start(kubeconfig, cache)?;
        agent.started().await
    }

    /// Waits until all plugins are loaded.
    pub(super) async fn started(&mut self) -> Result<()> {
        let started = self.until("the plugins are loaded", "/startupz", |_| true);
        started.await.map(drop)
    }

    /// Units that are ready, of all plugins.
    pub(super) async fn ready(&self) -> Result<usize> {
        Ok(ready(&self.metrics().await?))
    }

    /// Waits until so many units are ready, and returns how long that took from its
    /// start.
    pub(super) async fn converged(&mut self, units: usize) -> Result<Duration> {
        let what = format!("{units} units are ready");
        self.until(&what, "/metrics", |metrics| ready(metrics) >= units)
            .await
    }

    /// Waits until it has written so often for plugins, and returns how long that took from
    /// its start.
    pub(super) async fn written(&mut self, times: usize) -> Result<Duration> {
        let what = format!("{times} writes have succeeded");
        self.until(&what, "/metrics", |metrics| good_writes(metrics) >= times)
            .await
    }

    /// Runs of units that have ended since its start.
    pub(super) async fn runs(&self) -> Result<usize> {
        Ok(runs(&self.metrics().await?))
    }

    /// Units that are ready to run.
    pub(super) async fn queued(&self) -> Result<usize> {
        Ok(sum(&self.metrics().await?, "workqueue_depth", ""))
    }

    /// Waits until so many runs have ended since its start.
    pub(super) async fn ran(&mut self, times: usize) -> Result<()> {
        let what = format!("{times} runs have ended");
        let ran = self.until(&what, "/metrics", |metrics| runs(metrics) >= times);
        ran.await.map(drop)
    }

    async fn until(
        &mut self,
        what: &str,
        path: &str,
        enough: impl Fn(&str) -> bool,
    ) -> Result<Duration> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.process.ended()? {
                bail!("the agent has ended with {status}");
            }
            // At first nobody listens.
            let said = self.ask(path).await;
            let elapsed = self.begun.elapsed();
            match said {
                Ok((200, text)) if enough(&text) => return Ok(elapsed),
                _ if begun.elapsed() < PATIENCE => tokio::time::sleep(INTERVAL).await,
                said => bail!("waited until {what}; {path} says {said:?}"),
            }
        }
    }

    async fn metrics(&self) -> Result<String> {
        let (status, metrics) = self.ask("/metrics").await?;
        ensure!(status == 200, "/metrics answers {status}");
        Ok(metrics)
    }

    /// Asks one of its endpoints for status and body.
    async fn ask(&self, path: &str) -> Result<(u16, String)> {
        let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await?;
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        connection.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await?;
        let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
        let status = head.split(' ').nth(1).context("no status")?;
        Ok((status.parse()?, body.to_owned()))
    }

    /// Writes that it has sent for plugins since its start, and how many of them
    /// failed.
    pub(super) async fn writes(&self) -> Result<(usize, usize)> {
        let metrics = self.metrics().await?;
        let all: usize = sum(&metrics, "reeve_writes_total", "");
        Ok((all, all - good_writes(&metrics)))
    }

    /// Seconds that a processor worked for calls of a plugin since its start, for the plugin
    /// and for the agent's answers to it, and how many calls there were.
    pub(super) async fn calls(&self, plugin: &str) -> Result<(f64, f64)> {
        let metrics = self.metrics().await?;
        let label = format!("plugin=\"{plugin}\"");
        let value = |name: &str| sum::<f64>(&metrics, name, &label);
        Ok((
            value("reeve_call_processor_seconds_total"),
            value("reeve_call_seconds_count"),
        ))
    }

    /// The process, which lives for as long as this.
    pub(super) fn process(&self) -> &Process {
        &self.process
    }
}

/// Units that are ready, of all plugins.
fn ready(metrics: &str) -> usize {
    sum(metrics, "reeve_units", "state=\"ready\"")
}

fn good_writes(metrics: &str) -> usize {
    sum(metrics, "reeve_writes_total", "result=\"success\"")
}

fn runs(metrics: &str) -> usize {
    sum(metrics, "controller_runtime_reconcile_total", "")
}

/// The values of a metric with this label, together.
fn sum<N: FromStr + Sum>(metrics: &str, name: &str, label: &str) -> N {
    let samples = metrics.lines().filter_map(|line| {
        let labels = line.strip_prefix(name)?.strip_prefix('{')?;
        let (labels, value) = labels.rsplit_once("} ")?;
        let counted = labels.contains(label);
        counted.then(|| value.parse().ok())?
    });
    samples.sum()
}
