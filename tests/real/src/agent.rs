//! The agent as its users run it: a process of its own.

use std::env;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use reeve_test_cache::Compiled;

use crate::ControlPlane;
use crate::clocks::{Ahead, Clocks};
use crate::container::Container;
use crate::names::Names;
use crate::pod::{Account, Pod};
use crate::ports::free_port;
use crate::server::Server;

/// Longer than any endpoint takes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Longer than the default grace period.
const EXIT_TIMEOUT: Duration = Duration::from_secs(30);

/// A running `reeve run`. Ends when it is dropped.
#[derive(Debug)]
pub struct Agent {
    process: Server,
    health_port: u16,
    /// Where what it has compiled goes when it ends, and where that is.
    shared: Option<(Compiled, PathBuf)>,
}

impl Agent {
    /// Starts `reeve run` as `user` of the cluster, who was named to its builder
    /// and has the rights that RBAC grants. Returns at once. Unless it is told of a
    /// cache, it has one that no agent before it had, as all of these do.
    ///
    /// # Errors
    ///
    /// When there is no such user, or no `reeve` binary beside the test.
    pub fn start(cluster: &ControlPlane, user: &str, namespace: &str) -> Result<Self> {
        let namespace = format!("--namespace={namespace}");
        Self::start_with(cluster, &cluster.kubeconfig_of(user)?, &[namespace])
    }

    /// Starts `reeve run` with a kubeconfig and further arguments. Returns at once.
    ///
    /// # Errors
    ///
    /// When there is no `reeve` binary beside the test.
    pub fn start_with(
        cluster: &ControlPlane,
        kubeconfig: &Path,
        arguments: &[String],
    ) -> Result<Self> {
        Self::start_named(cluster, "reeve", kubeconfig, arguments)
    }

    /// As [`Agent::start_with`], with all that it can log, and with name servers of its own
    /// if there are any.
    ///
    /// # Errors
    ///
    /// As [`Agent::start_with`].
    pub fn start_talkative(
        cluster: &ControlPlane,
        kubeconfig: &Path,
        names: Option<&Names>,
        further: &[String],
    ) -> Result<Self> {
        let mut before = vec!["RUST_LOG=debug".to_owned()];
        before.extend(names.into_iter().flat_map(Names::before));
        let started = Started {
            before: &before,
            ..Started::with(kubeconfig)
        };
        Self::start_as(cluster, "reeve", &started, further)
    }

    /// Starts `reeve run` in the surroundings of a pod of this account: where the cluster
    /// is, it has to find out for itself. Returns at once.
    ///
    /// # Errors
    ///
    /// When what pods are given cannot be written, or there is no `reeve` binary beside
    /// the test.
    pub fn start_in_pod(
        cluster: &ControlPlane,
        pod: Pod,
        account: &Account<'_>,
        further: &[String],
    ) -> Result<Self> {
        let before = pod.surroundings(cluster, account)?;
        let started = Started {
            before: &before,
            kubeconfig: None,
        };
        Self::start_as(cluster, "reeve", &started, further)
    }

    /// Starts the agent of an image as a container of a pod: with the files of the image
    /// and of the pod's volumes, and this system's devices and processes. It has compiled
    /// nothing. Returns at once.
    ///
    /// # Errors
    ///
    /// When what pods are given cannot be written, or the image says that something else
    /// is to be run.
    pub fn start_in_container(cluster: &ControlPlane, container: &Container) -> Result<Self> {
        let health_port = free_port()?;
        let address = format!("127.0.0.1:{health_port}");
        let arguments = container.command(cluster, &[("REEVE_HEALTH_ADDRESS", &address)])?;
        Ok(Self {
            process: Self::spawn(cluster, "reeve", &arguments)?,
            health_port,
            shared: None,
        })
    }

    /// As [`Agent::start_with`], with a name for its log: each of several agents has
    /// its own.
    ///
    /// # Errors
    ///
    /// As [`Agent::start_with`].
    pub fn start_named(
        cluster: &ControlPlane,
        name: &'static str,
        kubeconfig: &Path,
        further: &[String],
    ) -> Result<Self> {
        Self::start_as(cluster, name, &Started::with(kubeconfig), further)
    }

    fn start_as(
        cluster: &ControlPlane,
        name: &'static str,
        started: &Started<'_>,
        further: &[String],
    ) -> Result<Self> {
        static CACHES: AtomicUsize = AtomicUsize::new(0);
        let health_port = free_port()?;
        let binary = binary()?;
        let told = further.iter().find_map(|one| one.strip_prefix("--cache="));
        let cache = told.map_or_else(
            || {
                let number = CACHES.fetch_add(1, Ordering::Relaxed);
                cluster.folder().join(format!("cache-{number}"))
            },
            PathBuf::from,
        );
        let compiled = Compiled::beside(&binary)?;
        compiled.give(&cache)?;
        let mut arguments = started.before.to_vec();
        arguments.extend([
            binary.display().to_string(),
            "run".to_owned(),
            format!("--health-address=127.0.0.1:{health_port}"),
        ]);
        if let Some(kubeconfig) = started.kubeconfig {
            arguments.push(format!("--kubeconfig={}", kubeconfig.display()));
        }
        if told.is_none() {
            arguments.push(format!("--cache={}", cache.display()));
        }
        arguments.extend_from_slice(further);
        Ok(Self {
            process: Self::spawn(cluster, name, &arguments)?,
            health_port,
            shared: Some((compiled, cache)),
        })
    }

    /// `env` becomes the program that it is given.
    fn spawn(cluster: &ControlPlane, name: &'static str, arguments: &[String]) -> Result<Server> {
        let supervise = cluster.supervise();
        Server::start(
            name,
            supervise,
            Path::new("env"),
            arguments,
            cluster.folder(),
        )
    }

    /// All that agents of its name have printed.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn log(&self) -> Result<String> {
        self.process.log()
    }

    /// The last lines that the agent printed.
    pub fn log_tail(&self) -> String {
        self.process.log_tail()
    }

    /// Whether it still runs.
    ///
    /// # Errors
    ///
    /// When the system does not tell.
    pub fn is_running(&mut self) -> Result<bool> {
        self.process.is_running()
    }

    /// Whether it says that it is ready to work.
    ///
    /// # Errors
    ///
    /// When it does not answer.
    pub fn is_ready(&self) -> Result<bool> {
        self.readiness().map(|(ready, _)| ready)
    }

    /// Whether it says that it is ready to work, and what it says.
    ///
    /// # Errors
    ///
    /// When it does not answer.
    pub fn readiness(&self) -> Result<(bool, String)> {
        match self.ask("/readyz")? {
            (200, said) => Ok((true, said)),
            (503, said) => Ok((false, said)),
            (status, said) => bail!("it answered {status}: {said}"),
        }
    }

    /// Asks one of its endpoints, and returns status and body of the answer.
    ///
    /// # Errors
    ///
    /// When it does not answer, within ten seconds.
    pub fn ask(&self, path: &str) -> Result<(u16, String)> {
        let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, self.health_port))?;
        connection.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        connection.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
        let status = head.split(' ').nth(1).context("no status")?;
        Ok((status.parse()?, body.to_owned()))
    }

    /// Sends the agent itself a signal, by its name for `kill`.
    ///
    /// # Errors
    ///
    /// When it does not run.
    pub fn signal(&self, signal: &str) -> Result<()> {
        self.process.signal(signal)
    }

    /// Has the clocks of the agent itself jump, to so far ahead of the machine's. One that
    /// was stopped stays so.
    ///
    /// # Errors
    ///
    /// When it does not run.
    pub fn set_clocks(&self, clocks: Clocks, ahead: Ahead) -> Result<()> {
        clocks.set(self.process.program()?, ahead)
    }

    /// The process id of the agent itself.
    ///
    /// # Errors
    ///
    /// When it does not run.
    pub fn process_id(&self) -> Result<u32> {
        self.process.program()
    }

    /// Bytes of memory that are no copy of a file: what the agent itself has allocated.
    ///
    /// # Errors
    ///
    /// When it does not run.
    pub fn memory(&self) -> Result<u64> {
        let status = format!("/proc/{}/status", self.process.program()?);
        let status = std::fs::read_to_string(status)?;
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix("RssAnon:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        let kilobytes: u64 = kilobytes.context("no RssAnon")?.parse()?;
        Ok(kilobytes * 1024)
    }

    /// Waits for the agent to end by itself, and returns its exit code.
    ///
    /// # Errors
    ///
    /// When it does not.
    pub fn wait_for_exit(&mut self) -> Result<i32> {
        self.process.wait_for_exit(EXIT_TIMEOUT)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log_tail());
        }
        if let Some((compiled, cache)) = &self.shared
            && let Err(error) = compiled.take(cache)
        {
            eprintln!("what the agent compiled is not shared: {error:#}");
        }
    }
}

/// How an agent is started, beyond its arguments.
struct Started<'a> {
    /// For `env`: variables, and a program that becomes the agent.
    before: &'a [String],
    kubeconfig: Option<&'a Path>,
}

impl<'a> Started<'a> {
    fn with(kubeconfig: &'a Path) -> Self {
        Self {
            before: &[],
            kubeconfig: Some(kubeconfig),
        }
    }
}

/// The `reeve` binary that was built with the test or program that runs.
///
/// # Errors
///
/// When there is none, with the command that builds it.
pub fn binary() -> Result<PathBuf> {
    let name = format!("reeve{}", env::consts::EXE_SUFFIX);
    let runs = env::current_exe()?;
    let folder = runs.parent().context("no folder")?;
    // Tests are one folder further down.
    let folder = match folder.ends_with("deps") {
        true => folder.parent().context("no target folder")?,
        false => folder,
    };
    let binary = folder.join(name);
    if !binary.is_file() {
        bail!(
            "there is no {}; run `cargo build --package reeve-cli`",
            binary.display()
        );
    }
    Ok(binary)
}
