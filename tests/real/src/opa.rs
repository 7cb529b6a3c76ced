//! Open Policy Agent, of which plugins ask who may do what.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;
use tempfile::TempDir;

use crate::parts::{HELPERS, OPA};
use crate::ports::free_port;
use crate::server::{Server, listens};

/// Less than a second on an idle machine; tests run beside builds.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// It answers within milliseconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A running OPA on a loopback port, which has data and no policies.
#[derive(Debug)]
pub struct Opa {
    // Ends before the folder with its data goes.
    server: Option<Server>,
    port: u16,
    folder: TempDir,
}

impl Opa {
    /// Starts one with all of its data, which is an object.
    ///
    /// # Errors
    ///
    /// When it cannot be built, or does not become ready; the message has the end of its
    /// log.
    pub fn start(data: &Value) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("reeve-opa-").tempdir()?;
        let mut this = Self {
            server: None,
            port: free_port()?,
            folder,
        };
        this.keep(data)?;
        this.resume()?;
        Ok(this)
    }

    /// Starts it again after [`Opa::stop`], on its port and with its data.
    ///
    /// # Errors
    ///
    /// As [`Opa::start`].
    pub fn resume(&mut self) -> Result<()> {
        let program = OPA.get()?.join("opa");
        let supervise = HELPERS.get()?.join("supervise");
        let arguments = [
            "run".to_owned(),
            "--server".to_owned(),
            format!("--addr=127.0.0.1:{}", self.port),
            // It tells nobody that it runs.
            "--skip-version-check".to_owned(),
            "--log-level=error".to_owned(),
            self.file().display().to_string(),
        ];
        let server = Server::start("opa", &supervise, &program, &arguments, self.folder.path())?;
        let port = self.port;
        let server = self.server.insert(server);
        server.wait_until(READY_TIMEOUT, || listens(port))
    }

    /// Ends it.
    pub fn stop(&mut self) {
        self.server = None;
    }

    /// Where it answers with all of its data.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1/data", self.port)
    }

    /// Gives it other data in the place of all that it has: by its API if it runs, and for
    /// the next start.
    ///
    /// # Errors
    ///
    /// When it refuses them.
    pub fn set(&self, data: &Value) -> Result<()> {
        self.keep(data)?;
        if self.server.is_none() {
            return Ok(());
        }
        let config = ureq::Agent::config_builder().timeout_global(Some(ANSWER_TIMEOUT));
        let agent: ureq::Agent = config.build().new_agent();
        agent
            .put(self.url())
            .header("content-type", "application/json")
            .send(data.to_string().as_str())
            .context("OPA refuses its data")?;
        Ok(())
    }

    fn keep(&self, data: &Value) -> Result<()> {
        Ok(fs::write(self.file(), data.to_string())?)
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("data.json")
    }
}
