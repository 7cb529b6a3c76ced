//! Sessions with a PostgreSQL on this machine, as a bare loop has them.

use anyhow::{Context as _, Result};
use reeve_outside::Roots;
use reeve_real::Postgres;
use tokio_postgres::Client;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Connections of a bare loop: as many as calls of one plugin may be outside at once.
pub(crate) const CONNECTIONS: usize = 4;

/// A session of the administrator over TLS, with a server whose certificate these roots
/// vouch for.
pub(crate) async fn connect(port: u16, roots: &str, password: &str) -> Result<Client> {
    let tls = MakeRustlsConnect::new(Roots::Only(roots.to_owned()).client()?);
    let mut config = tokio_postgres::Config::new();
    config
        .host("localhost")
        .port(port)
        .user(Postgres::ADMIN)
        .password(password)
        .dbname("postgres")
        .ssl_mode(tokio_postgres::config::SslMode::Require);
    let (client, connection) = config.connect(tls).await.context("connecting")?;
    // It ends when the client does, and who uses that is told why.
    tokio::spawn(connection);
    Ok(client)
}
