//! PostgreSQL databases that were granted by name.
//!
//! Whoever asks for a statement names a connection and sees neither its address nor
//! its credentials. TLS is not an option: a connection without it, or to a server
//! that is not verified, is no connection.

mod bounded;
mod connect;
mod session;
mod settings;
mod text;
mod value;

pub use session::Session;
pub use settings::{Settings, SettingsError};

use connect::Connection;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How much and how slow SQL may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlLimits {
    /// Time to connect and log in.
    pub connect: Duration,
    /// Time of a statement. The server is told, and the host looks after it.
    pub statement: Duration,
    /// Rows that all statements of one transaction may return.
    pub rows: usize,
    /// Bytes that they may return, with four more for each value. A message of the
    /// server that could not fit is refused before it is read.
    pub bytes: usize,
    /// Statements of one transaction.
    pub statements: usize,
    /// Bytes of the text of a statement, and of each value in it.
    pub text_bytes: usize,
}

impl Default for SqlLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            // Making a database copies a template: seconds on a busy server.
            statement: Duration::from_secs(30),
            // A plugin looks things up; it does not export tables.
            rows: 1_000,
            bytes: 1 << 20,
            statements: 100,
            text_bytes: 64 << 10,
        }
    }
}

/// One database. Clones share the connections that wait for their next use.
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    limits: SqlLimits,
    idle: Mutex<Vec<(Instant, Connection)>>,
}

/// Connections that are kept for the next call: as many as the agent lets one plugin
/// have in use. Each is worth a handshake and a login, which cost more than most
/// statements.
const IDLE: usize = 4;

/// An idle connection is not used again after this time: servers and what stands in
/// between forget it not much later.
const IDLE_TIME: Duration = Duration::from_secs(60);

impl Database {
    /// A database; nothing is connected to yet.
    pub fn new(settings: Settings, limits: SqlLimits) -> Self {
        Self {
            inner: Arc::new(Inner {
                settings,
                limits,
                idle: Mutex::default(),
            }),
        }
    }

    /// A session in which statements are run one after another. It connects when the
    /// first one is.
    pub fn session(&self) -> Session {
        Session::new(self.clone())
    }

    /// Whether it is reached with these settings.
    pub fn has(&self, settings: &Settings) -> bool {
        self.inner.settings == *settings
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.inner.idle.lock();
        idle.retain(|(since, connection)| since.elapsed() < IDLE_TIME && !connection.is_closed());
        idle.pop().map(|(_, connection)| connection)
    }

    /// Keeps a connection for the next call. One that is still at something is given up.
    fn give_back(&self, connection: Connection) {
        if connection.is_busy() {
            return;
        }
        let mut idle = self.inner.idle.lock();
        if idle.len() < IDLE && !connection.is_closed() {
            idle.push((Instant::now(), connection));
        }
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database")
            .field("settings", &self.inner.settings)
            .finish_non_exhaustive()
    }
}
