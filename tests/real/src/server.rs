//! A server process that lives no longer than the test that started it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// How much of a log is shown when something failed.
const LOG_TAIL: usize = 25;

/// Go's garbage collector runs when the heap has grown by so many percent. At its
/// default of 100 an API server spends an eighth of a short life on it.
const COLLECT_SELDOM: &str = "400";

/// Spares a program written in Go that ends within moments from collecting garbage, which
/// is half of what kubectl does. One that comes to hold 1 GiB collects all the same.
pub fn without_collecting(command: &mut Command) -> &mut Command {
    command.env("GOGC", "off").env("GOMEMLIMIT", "1GiB")
}

/// Longer than the supervisor gives its server.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// A running server. It ends when this is dropped, and also when the test
/// process is killed: see the `supervise` program among the parts.
#[derive(Debug)]
pub(crate) struct Server {
    name: &'static str,
    log: PathBuf,
    supervisor: Child,
}

impl Server {
    /// Starts `program`; what it prints is appended to `<folder>/<name>.log`.
    pub(crate) fn start(
        name: &'static str,
        supervise: &Path,
        program: &Path,
        arguments: &[impl AsRef<OsStr>],
        folder: &Path,
    ) -> Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let output = File::options().create(true).append(true).open(&log)?;
        let supervisor = Command::new(supervise)
            .arg(program)
            .args(arguments)
            .env("GOGC", COLLECT_SELDOM)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Self {
            name,
            log,
            supervisor,
        })
    }

    /// Tries `ready` until it answers yes, as long as the server runs.
    pub(crate) fn wait_until(
        &mut self,
        timeout: Duration,
        mut ready: impl FnMut() -> bool,
    ) -> Result<()> {
        let started = Instant::now();
        while !ready() {
            if let Some(status) = self.supervisor.try_wait()? {
                bail!("{} ended with {status}\n{}", self.name, self.log_tail());
            }
            if started.elapsed() > timeout {
                bail!(
                    "{} is not ready after {} s\n{}",
                    self.name,
                    timeout.as_secs(),
                    self.log_tail()
                );
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// All that it has printed.
    pub(crate) fn log(&self) -> Result<String> {
        let bytes = fs::read(&self.log);
        let bytes = bytes.with_context(|| format!("cannot read the log of {}", self.name))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The last lines that the server printed, under a heading.
    pub(crate) fn log_tail(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let tail = &lines[lines.len().saturating_sub(LOG_TAIL)..];
        format!("--- the end of {}'s log\n{}\n", self.name, tail.join("\n"))
    }

    /// Whether it still runs.
    pub(crate) fn is_running(&mut self) -> Result<bool> {
        Ok(self.supervisor.try_wait()?.is_none())
    }

    /// The process id of the program itself, which the supervisor has started.
    pub(crate) fn program(&self) -> Result<u32> {
        let parent = self.supervisor.id().to_string();
        let listing = Command::new("ps")
            .args(["-o", "pid=", "--ppid", &parent])
            .output()?;
        let listing = String::from_utf8_lossy(&listing.stdout).into_owned();
        let pid = listing.trim().parse();
        pid.with_context(|| format!("{} does not run: {listing:?}", self.name))
    }

    /// Sends a signal to the program itself: `STOP`, `CONT`, `TERM`, `KILL`.
    pub(crate) fn signal(&self, signal: &str) -> Result<()> {
        let pid = self.program()?.to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status()?;
        ensure!(sent.success(), "cannot signal {pid}: {sent}");
        Ok(())
    }

    /// Ends the program as `kill -9` does, and waits until it is gone.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.signal("KILL")?;
        self.wait_for_exit(STOP_TIMEOUT).map(drop)
    }

    /// Waits until the program has ended by itself, and returns its exit code.
    pub(crate) fn wait_for_exit(&mut self, timeout: Duration) -> Result<i32> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.supervisor.try_wait()? {
                return status.code().context("its supervisor was killed");
            }
            if started.elapsed() > timeout {
                bail!(
                    "{} still runs after {} s\n{}",
                    self.name,
                    timeout.as_secs(),
                    self.log_tail()
                );
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether a port of ours was taken by somebody between choosing and using it.
    pub(crate) fn lost_its_port(&self) -> bool {
        fs::read_to_string(&self.log).is_ok_and(|log| log.contains("address already in use"))
    }
}

impl Drop for Server {
    /// Closes the pipe that keeps the server alive and waits for its end, for a
    /// bounded time.
    fn drop(&mut self) {
        drop(self.supervisor.stdin.take());
        let started = Instant::now();
        while started.elapsed() < STOP_TIMEOUT {
            match self.supervisor.try_wait() {
                Ok(None) => thread::sleep(Duration::from_millis(10)),
                _ => return,
            }
        }
        let _ = self.supervisor.kill();
        let _ = self.supervisor.wait();
    }
}

/// Whether somebody accepts connections on a loopback port.
pub(crate) fn listens(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}
