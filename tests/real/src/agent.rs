//! The agent as its users run it: a process of its own.

use std::env;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::ControlPlane;
use crate::server::{Server, free_port};

/// A running `reeve run`. Ends when it is dropped.
#[derive(Debug)]
pub struct Agent {
    process: Server,
    health_port: u16,
}

impl Agent {
    /// Starts `reeve run` as `user` of the cluster, who was named to its builder
    /// and has the rights that RBAC grants. Returns at once.
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
        let health_port = free_port()?;
        let mut all = vec![
            "run".to_owned(),
            format!("--health-address=127.0.0.1:{health_port}"),
            format!("--kubeconfig={}", kubeconfig.display()),
        ];
        all.extend_from_slice(arguments);
        let arguments = all;
        let supervise = cluster.supervise();
        let process = Server::start("reeve", supervise, &binary()?, &arguments, cluster.folder())?;
        Ok(Self {
            process,
            health_port,
        })
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
        let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, self.health_port))?;
        connection.write_all(b"GET /readyz HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        match answer.split(' ').nth(1) {
            Some("200") => Ok((true, answer)),
            Some("503") => Ok((false, answer)),
            _ => bail!("it answered {answer:?}"),
        }
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
