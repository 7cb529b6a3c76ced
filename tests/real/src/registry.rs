//! An OCI registry, mostly over TLS, which wants to know who asks.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use crate::parts::{HELPERS, REGISTRY};
use crate::ports::free_port;
use crate::server::{Server, listens};

/// It starts within a second; tests run beside builds.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// A running registry with one login, on a loopback port. What is stored
/// outlives [`Registry::stop`], and is gone when it is dropped.
#[derive(Debug)]
pub struct Registry {
    // Ends before its folder goes.
    server: Option<Server>,
    port: u16,
    folder: TempDir,
}

impl Registry {
    /// The name of the login.
    pub const USER: &str = "robot";
    /// Its password.
    pub const PASSWORD: &str = "registry-c4n4ry";

    /// Starts one with a certificate and its key, both PEM.
    ///
    /// # Errors
    ///
    /// When it cannot be built, or does not become ready; the message has the end of its
    /// log.
    pub fn start(certificate: &str, private_key: &str) -> Result<Self> {
        Self::start_with(Some((certificate, private_key)))
    }

    /// Starts one that speaks plain HTTP.
    ///
    /// # Errors
    ///
    /// As [`Registry::start`].
    pub fn start_plain() -> Result<Self> {
        Self::start_with(None)
    }

    fn start_with(tls: Option<(&str, &str)>) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("reeve-registry-")
            .tempdir()?;
        let port = free_port()?;
        let path = |name: &str| folder.path().join(name).display().to_string();
        let tls = match tls {
            Some((certificate, private_key)) => {
                fs::write(folder.path().join("certificate.pem"), certificate)?;
                fs::write(folder.path().join("key.pem"), private_key)?;
                format!(
                    "  tls: {{certificate: {}, key: {}}}\n",
                    path("certificate.pem"),
                    path("key.pem")
                )
            }
            None => String::new(),
        };
        fs::write(
            folder.path().join("users"),
            format!("{}:{PASSWORD_HASH}\n", Self::USER),
        )?;
        let settings = format!(
            "version: 0.1\n\
             storage: {{filesystem: {{rootdirectory: {}}}}}\n\
             http:\n  addr: 127.0.0.1:{port}\n{tls}\
             auth: {{htpasswd: {{realm: reeve, path: {}}}}}\n",
            path("data"),
            path("users"),
        );
        fs::write(folder.path().join("settings.yaml"), settings)?;
        let mut this = Self {
            server: None,
            port,
            folder,
        };
        this.resume()?;
        Ok(this)
    }

    /// Starts it again after [`Registry::stop`], on its port and with what it had.
    ///
    /// # Errors
    ///
    /// As [`Registry::start`].
    pub fn resume(&mut self) -> Result<()> {
        let program = REGISTRY.get()?.join("registry");
        let supervise = HELPERS.get()?.join("supervise");
        let folder = self.folder.path();
        let settings = folder.join("settings.yaml").display().to_string();
        let arguments = [
            // It would send traces to a collector on this machine otherwise.
            "OTEL_TRACES_EXPORTER=none".to_owned(),
            program.display().to_string(),
            "serve".to_owned(),
            settings,
        ];
        // `env` becomes the program that it is given.
        let server = Server::start("registry", &supervise, Path::new("env"), &arguments, folder)?;
        let port = self.port;
        let server = self.server.insert(server);
        server.wait_until(READY_TIMEOUT, || listens(port))
    }

    /// Ends it.
    pub fn stop(&mut self) {
        self.server = None;
    }

    /// The name of an artifact in it.
    pub fn image(&self, name: &str) -> String {
        format!("localhost:{}/{name}", self.port)
    }

    /// The port on which it is.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What `docker login` would write for it.
    pub fn docker_config(&self, password: &str) -> String {
        let host = format!("localhost:{}", self.port);
        serde_json::json!({
            "auths": {host: {"username": Self::USER, "password": password}},
        })
        .to_string()
    }

    /// All that it has printed.
    ///
    /// # Errors
    ///
    /// When it does not run.
    pub fn log(&self) -> Result<String> {
        self.server.as_ref().context("it does not run")?.log()
    }
}

/// The password as the registry wants it: bcrypt, of the least cost.
const PASSWORD_HASH: &str = "$2a$04$tv2bJRjzghP/rVV0vGTnn.hfq9tE7DLpVEt5K0VuB3JCTpq68XTUu";
