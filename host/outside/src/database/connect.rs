//! One connection to one database.

use super::SqlLimits;
use super::bounded::{Allowance, BoundedConnect};
use super::settings::Settings;
use crate::address::literal;
use crate::http::check_all;
use crate::resolve::{Resolver as _, SystemResolver, with_port};
use futures::TryFutureExt as _;
use futures::future::try_join;
use reeve_core::chain;
use reeve_core::sql::SqlError;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{CancelToken, Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

/// What the server shows in `pg_stat_activity`.
const APPLICATION: &str = "reeve";

/// Characters of what a server says that are passed on.
const MESSAGE: usize = 4 << 10;

/// One connection. It ends when this is dropped, and what it is at with it.
pub(super) struct Connection {
    client: Client,
    /// Moves bytes for as long as the client lives.
    driver: JoinHandle<()>,
    canceller: Canceller,
    /// What the server may still send.
    allowance: Allowance,
    /// Whether something was asked of the server that may not have ended.
    busy: bool,
}

/// The way to end a statement.
#[derive(Clone)]
struct Canceller {
    token: CancelToken,
    settings: Settings,
    tls: MakeRustlsConnect,
    /// How long it may take.
    limit: Duration,
}

impl Connection {
    /// Connects, verifies the server and logs in.
    pub(super) async fn open(settings: &Settings, limits: &SqlLimits) -> Result<Self, SqlError> {
        let opened = timeout(limits.connect, Self::connect(settings, limits));
        opened.await.unwrap_or_else(|_| {
            Err(SqlError::Connection(format!(
                "{}: no connection within {} s",
                place(settings),
                limits.connect.as_secs()
            )))
        })
    }

    async fn connect(settings: &Settings, limits: &SqlLimits) -> Result<Self, SqlError> {
        let problem = |text: String| SqlError::Connection(format!("{}: {text}", place(settings)));
        let roots = settings.roots.client();
        let roots = roots.map_err(|error| problem(error.to_string()))?;
        let tls = MakeRustlsConnect::new(roots);
        let stream = stream(settings).await?;
        let mut config = Config::new();
        config
            .user(&settings.user)
            .password(settings.password.expose())
            .dbname(&settings.database)
            .application_name(APPLICATION)
            .ssl_mode(SslMode::Require);
        let allowance = Allowance::new(limits.bytes);
        let connector = BoundedConnect {
            inner: connector(&tls, settings)?,
            allowance: allowance.clone(),
        };
        let (client, connection) = config
            .connect_raw(stream, connector)
            .await
            .map_err(|error| problem(refusal(&error)))?;
        let driver = tokio::spawn(async move {
            // Whoever uses the client is told of an error there.
            let _ = connection.await;
        });
        let mut connection = Self {
            canceller: Canceller {
                token: client.cancel_token(),
                settings: settings.clone(),
                tls,
                limit: limits.connect,
            },
            client,
            driver,
            allowance,
            busy: true,
        };
        connection.prepare(limits).await?;
        connection.busy = false;
        Ok(connection)
    }

    /// Makes a connection that somebody has used as good as new.
    pub(super) async fn renew(mut self, limits: &SqlLimits) -> Result<Self, SqlError> {
        self.begin();
        // The server does one after the other; neither is waited for before both are sent.
        let renewed = timeout(limits.connect, async {
            let discarded = self.client.batch_execute("DISCARD ALL");
            let discarded = discarded.map_err(|error| SqlError::Connection(refusal(&error)));
            try_join(discarded, self.prepare(limits)).await
        });
        match renewed.await {
            Ok(renewed) => drop(renewed?),
            Err(_) => return Err(SqlError::Connection("the connection was lost".to_owned())),
        }
        self.rest();
        Ok(self)
    }

    async fn prepare(&self, limits: &SqlLimits) -> Result<(), SqlError> {
        // The server's own time is the first to run out, so that it says so itself.
        let milliseconds = limits.statement.as_millis();
        let text = format!(
            "SET statement_timeout = {milliseconds}; SET lock_timeout = {milliseconds}; \
             SET idle_in_transaction_session_timeout = {milliseconds}"
        );
        let prepared = self.client.batch_execute(&text).await;
        prepared.map_err(|error| SqlError::Connection(refusal(&error)))
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn client_mut(&mut self) -> &mut Client {
        &mut self.client
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Notes that something is about to be asked of the server.
    pub(super) fn begin(&mut self) {
        self.busy = true;
        self.allowance.renew();
    }

    /// Notes that the server has ended it.
    pub(super) fn rest(&mut self) {
        self.busy = false;
    }

    /// Whether something was begun that may not have ended.
    pub(super) fn is_busy(&self) -> bool {
        self.busy
    }

    /// What the server may still send.
    pub(super) fn allowance(&self) -> &Allowance {
        &self.allowance
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A server does not notice that nobody listens before it has something to say.
        if self.busy
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(self.canceller.clone().cancel());
        }
        self.driver.abort();
    }
}

impl Canceller {
    /// Asks the server to end what the connection is at.
    async fn cancel(self) {
        let asked = async {
            let Ok(stream) = stream(&self.settings).await else {
                return;
            };
            let Ok(connector) = connector(&self.tls, &self.settings) else {
                return;
            };
            // It is asked as a favour; the connection is given up anyway.
            let _ = self.token.cancel_query_raw(stream, connector).await;
        };
        let _ = timeout(self.limit, asked).await;
    }
}

type Connector = <MakeRustlsConnect as MakeTlsConnect<TcpStream>>::TlsConnect;

fn connector(tls: &MakeRustlsConnect, settings: &Settings) -> Result<Connector, SqlError> {
    let mut tls = tls.clone();
    let made = MakeTlsConnect::<TcpStream>::make_tls_connect(&mut tls, &settings.host);
    made.map_err(|error| SqlError::Connection(format!("{}: {error}", place(settings))))
}

/// A connection to an address that may be connected to.
async fn stream(settings: &Settings) -> Result<TcpStream, SqlError> {
    let problem = |text: String| SqlError::Connection(format!("{}: {text}", place(settings)));
    let host = &settings.host;
    let found = match literal(host) {
        Some(address) => vec![address],
        None => {
            let found = SystemResolver.resolve(host.clone()).await;
            found.map_err(|error| problem(error.to_string()))?
        }
    };
    let allowed = check_all(&settings.networks, host, &found);
    let allowed = allowed.map_err(|refused| SqlError::Forbidden(refused.to_string()))?;
    let stream = TcpStream::connect(&*with_port(allowed, settings.port)).await;
    let stream = stream.map_err(|error| problem(error.to_string()))?;
    // Statements are small, and each is waited for.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

fn place(settings: &Settings) -> String {
    format!("PostgreSQL at {}:{}", settings.host, settings.port)
}

/// What the server or the way to it says. It knows the role, never the password.
fn refusal(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(error) => format!(
            "{} (SQLSTATE {})",
            shortened(error.message()),
            error.code().code()
        ),
        None => chain(error),
    }
}

/// As much as a person reads of what a server says.
pub(super) fn shortened(text: &str) -> &str {
    let end = text.char_indices().nth(MESSAGE).map(|(end, _)| end);
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}
