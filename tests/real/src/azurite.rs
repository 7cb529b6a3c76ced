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

/// A running Azurite with two accounts, over TLS on a loopback port. What is stored is
/// gone when it ends, unless it [keeps](Azurite::keeping) it.
#[derive(Debug)]
pub struct Azurite {
    // Ends before the folder with its log goes.
    server: Option<Server>,
    port: u16,
    key: String,
    keeps: bool,
    folder: TempDir,
}

impl Azurite {
    /// The name of the account.
    pub const ACCOUNT: &str = "reevetests";

    /// The name of the other account.
    pub const OTHER_ACCOUNT: &str = "reevetestsother";

    /// Starts one with a certificate and its key, both PEM, and the key of both accounts
    /// in base64.
    ///
    /// # Errors
    ///
    /// When it cannot be installed, or does not become ready; the message has the end
    /// of its log.
    pub fn start(certificate: &str, private_key: &str, key: &str) -> Result<Self> {
        Self::begin(certificate, private_key, key, false)
    }

    /// As [`Azurite::start`]; what is stored stays while it is stopped.
    ///
    /// # Errors
    ///
    /// As [`Azurite::start`].
    pub fn keeping(certificate: &str, private_key: &str, key: &str) -> Result<Self> {
        Self::begin(certificate, private_key, key, true)
    }

    fn begin(certificate: &str, private_key: &str, key: &str, keeps: bool) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("reeve-azurite-")
            .tempdir()?;
        fs::write(folder.path().join(CERTIFICATE), certificate)?;
        fs::write(folder.path().join(PRIVATE_KEY), private_key)?;
        let mut this = Self {
            server: None,
            port: free_port()?,
            key: key.to_owned(),
            keeps,
            folder,
        };
        this.resume()?;
        Ok(this)
    }

    /// Starts it again after [`Azurite::stop`], on its port, and empty unless it keeps what
    /// is stored.
    ///
    /// # Errors
    ///
    /// As [`Azurite::start`].
    pub fn resume(&mut self) -> Result<()> {
        let program = AZURITE.get()?.join(PROGRAM);
        let supervise = HELPERS.get()?.join("supervise");
        let folder = self.folder.path();
        let path = |name: &str| folder.join(name).display().to_string();
        let accounts = [Self::ACCOUNT, Self::OTHER_ACCOUNT];
        let accounts = accounts.map(|account| format!("{account}:{}", self.key));
        let mut arguments = vec![
            format!("AZURITE_ACCOUNTS={}", accounts.join(";")),
            "node".to_owned(),
            program.display().to_string(),
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
        match self.keeps {
            true => arguments.extend(["--location".to_owned(), path(DATA)]),
            false => arguments.push("--inMemoryPersistence".to_owned()),
        }
        // `env` becomes the program that it is given.
        let server = Server::start("azurite", &supervise, Path::new("env"), &arguments, folder)?;
        let port = self.port;
        let server = self.server.insert(server);
        server.wait_until(READY_TIMEOUT, || listens(port))
    }

    /// Ends it, with all that was stored unless it keeps that.
    pub fn stop(&mut self) {
        self.server = None;
    }

    /// Has the accounts know another key, and the one before no more, from when it is next
    /// started.
    pub fn rotate(&mut self, key: &str) {
        key.clone_into(&mut self.key);
    }

    /// The URL of the account, with a slash at its end.
    pub fn url(&self) -> String {
        self.url_of(Self::ACCOUNT)
    }

    /// The URL of an account, with a slash at its end.
    pub fn url_of(&self, account: &str) -> String {
        format!("https://localhost:{}/{account}/", self.port)
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
const DATA: &str = "data";
