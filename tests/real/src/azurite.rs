//! Azure's blob storage, as Microsoft gives it to developers.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use crate::parts::{AZURITE, HELPERS};
use crate::ports::free_port;
use crate::server::{Server, listens};

/// It loads some thousand files first; tests run beside builds.
const READY_TIMEOUT: Duration = Duration::from_secs(90);

/// A running Azurite with one account, over TLS on a loopback port. What is stored is
/// gone when it ends.
#[derive(Debug)]
pub struct Azurite {
    // Ends before the folder with its log goes.
    server: Option<Server>,
    port: u16,
    key: String,
    folder: TempDir,
}

impl Azurite {
    /// The name of the account.
    pub const ACCOUNT: &str = "reevetests";

    /// Starts one with a certificate and its key, both PEM, and the key of the account
    /// in base64.
    ///
    /// # Errors
    ///
    /// When it cannot be installed, or does not become ready; the message has the end
    /// of its log.
    pub fn start(certificate: &str, private_key: &str, key: &str) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("reeve-azurite-")
            .tempdir()?;
        fs::write(folder.path().join(CERTIFICATE), certificate)?;
        fs::write(folder.path().join(PRIVATE_KEY), private_key)?;
        let mut this = Self {
            server: None,
            port: free_port()?,
            key: key.to_owned(),
            folder,
        };
        this.resume()?;
        Ok(this)
    }

    /// Starts it again after [`Azurite::stop`], on its port and empty.
    ///
    /// # Errors
    ///
    /// As [`Azurite::start`].
    pub fn resume(&mut self) -> Result<()> {
        let program = AZURITE.get()?.join(PROGRAM);
        let supervise = HELPERS.get()?.join("supervise");
        let folder = self.folder.path();
        let path = |name: &str| folder.join(name).display().to_string();
        let arguments = [
            format!("AZURITE_ACCOUNTS={}:{}", Self::ACCOUNT, self.key),
            "node".to_owned(),
            program.display().to_string(),
            "--inMemoryPersistence".to_owned(),
            "--disableTelemetry".to_owned(),
            "--blobHost".to_owned(),
            "127.0.0.1".to_owned(),
            "--blobPort".to_owned(),
            self.port.to_string(),
            "--cert".to_owned(),
            path(CERTIFICATE),
            "--key".to_owned(),
            path(PRIVATE_KEY),
        ];
        // `env` becomes the program that it is given.
        let server = Server::start("azurite", &supervise, Path::new("env"), &arguments, folder)?;
        let port = self.port;
        let server = self.server.insert(server);
        server.wait_until(READY_TIMEOUT, || listens(port))
    }

    /// Ends it, with all that was stored.
    pub fn stop(&mut self) {
        self.server = None;
    }

    /// The URL of the account, with a slash at its end.
    pub fn url(&self) -> String {
        format!("https://localhost:{}/{}/", self.port, Self::ACCOUNT)
    }

    /// The requests that it has answered, and all else that it has printed.
    ///
    /// # Errors
    ///
    /// When it does not run.
    pub fn log(&self) -> Result<String> {
        self.server.as_ref().context("it does not run")?.log()
    }
}

/// Where the package has it.
const PROGRAM: &str = "node_modules/azurite/dist/src/blob/main.js";
const CERTIFICATE: &str = "certificate.pem";
const PRIVATE_KEY: &str = "key.pem";
