//! SQL sessions against a real PostgreSQL: what is all or nothing, what is ended and
//! when, how much comes back, and whose server is trusted.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rcgen::{CertificateParams, KeyPair};
use reeve_core::sql::{Part, Rows, SqlError, Statement, Value};
use reeve_outside::{Database, Networks, Session, Settings, SqlLimits};
use reeve_real::{Postgres, eventually};
use tokio::runtime::Runtime;
use tokio::time::timeout;

const PASSWORD: &str = "of-the-superuser";

/// Statements of ours that the server is at.
const AT_WORK: &str = "SELECT count(*) FROM pg_stat_activity \
    WHERE application_name = 'reeve' AND state <> 'idle'";

struct Stage {
    runtime: Runtime,
    server: Postgres,
    /// The only authority that is trusted, PEM.
    roots: String,
}

impl Stage {
    fn new() -> Result<Self> {
        let (roots, private) = certificate()?;
        Ok(Self {
            runtime: Runtime::new()?,
            server: Postgres::start(&roots, &private, PASSWORD)?,
            roots,
        })
    }

    fn database(&self, limits: SqlLimits) -> Result<Database> {
        let settings = settings("localhost", self.server.port(), &self.roots, true)?;
        Ok(Database::new(settings, limits))
    }

    fn query(&self, session: &mut Session, text: &str) -> Result<Rows, SqlError> {
        let statement = statement(text, &[]);
        let none = BTreeMap::new();
        self.runtime.block_on(session.query(&statement, &none))
    }

    fn transaction(&self, session: &mut Session, texts: &[&str]) -> Result<Vec<Rows>, SqlError> {
        let statements = texts.iter().map(|text| statement(text, &[]));
        let statements: Vec<Statement> = statements.collect();
        let none = BTreeMap::new();
        let transaction = session.transaction(&statements, &none);
        self.runtime.block_on(transaction)
    }

    fn is_at_nothing(&self) -> Result<()> {
        eventually("the server is at nothing of ours", || {
            let at_work = self.server.admin(AT_WORK)?;
            ensure!(at_work.trim() == "0", "{at_work}");
            Ok(())
        })
    }
}

/// A certificate for `localhost` and its key, both PEM.
fn certificate() -> Result<(String, String)> {
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec!["localhost".to_owned()])?;
    let certificate = certificate.self_signed(&key)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn settings(host: &str, port: u16, roots: &str, loopback: bool) -> Result<Settings> {
    let port = port.to_string();
    let entries = [
        ("host", host),
        ("port", &port),
        ("username", Postgres::ADMIN),
        ("password", PASSWORD),
        ("ca.crt", roots),
    ];
    let entries = entries
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
    let networks = match loopback {
        true => Networks::new(vec!["127.0.0.0/8".parse()?]),
        false => Networks::default(),
    };
    Ok(Settings::read(&entries.collect(), networks)?)
}

fn statement(text: &str, parameters: &[Value]) -> Statement {
    Statement {
        parts: vec![Part::Text(text.to_owned())],
        parameters: parameters.to_vec(),
    }
}

fn text(rows: &Rows) -> Result<&str> {
    match rows.rows.first().and_then(|row| row.first()) {
        Some(Value::Text(text)) => Ok(text),
        other => bail!("no text: {other:?}"),
    }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, SqlError>, kind: &str, part: &str) -> Result<()> {
    let error = match result {
        Err(error) => error,
        Ok(rows) => bail!("not refused, though {part}: {rows:?}"),
    };
    let shown = format!("{error:?}");
    ensure!(shown.starts_with(kind), "no {kind}: {shown:.400}");
    ensure!(shown.contains(part), "no {part}: {shown:.400}");
    ensure!(shown.len() < 20_000, "{} bytes", shown.len());
    Ok(())
}

#[test]
fn a_transaction_is_all_or_nothing_and_a_statement_is_one() -> Result<()> {
    let stage = Stage::new()?;
    let database = stage.database(SqlLimits::default())?;
    let mut session = database.session();
    let count = "SELECT count(*) FROM kept";
    stage.query(&mut session, "CREATE TABLE kept (number int PRIMARY KEY)")?;

    let insert = "INSERT INTO kept VALUES (1)";
    let twice = stage.transaction(&mut session, &[insert, insert]);
    refused(twice, "Refused", "23505")?;
    ensure!(stage.server.admin(count)?.trim() == "0");
    let rows = stage.transaction(&mut session, &[insert, count])?;
    ensure!(rows.last().context("no rows")?.rows == [[Value::Integer(1)]]);
    ensure!(stage.server.admin(count)?.trim() == "1");

    // What is smuggled in does not run, nor does what it came with.
    let smuggled = "DELETE FROM kept; DROP TABLE kept";
    refused(stage.query(&mut session, smuggled), "Refused", "42601")?;
    refused(
        stage.transaction(&mut session, &[smuggled]),
        "Refused",
        "42601",
    )?;
    ensure!(stage.server.admin(count)?.trim() == "1");

    let none = BTreeMap::new();
    for given in [0, 2] {
        let one = statement("SELECT $1::int", &vec![Value::Integer(1); given]);
        let query = session.query(&one, &none);
        let part = format!("has 1 parameters and was given {given}");
        refused(stage.runtime.block_on(query), "Invalid", &part)?;
    }
    let one = statement("SELECT $1::text", &[Value::Text("'; --".into())]);
    let rows = stage.runtime.block_on(session.query(&one, &none))?;
    ensure!(text(&rows)? == "'; --");
    Ok(())
}

/// What one call leaves in its session, the next one on that connection does not find.
#[test]
fn a_connection_is_used_again_as_good_as_new() -> Result<()> {
    let stage = Stage::new()?;
    let database = stage.database(SqlLimits::default())?;
    let process = "SELECT pg_backend_pid()";
    let mut session = database.session();
    let first = stage.query(&mut session, process)?.rows;
    for left in [
        "CREATE TEMP TABLE left_over (number int)",
        "SET statement_timeout = 0",
        "SET search_path = elsewhere",
        "PREPARE theirs AS SELECT 1",
        "SELECT pg_advisory_lock(7)",
    ] {
        stage.query(&mut session, left)?;
    }
    ensure!(
        stage.query(&mut session, process)?.rows == first,
        "it is one session"
    );
    drop(session);

    let mut session = database.session();
    ensure!(
        stage.query(&mut session, process)?.rows == first,
        "it is one connection"
    );
    let left = stage.query(&mut session, "SELECT count(*) FROM left_over");
    refused(left, "Refused", "42P01")?;
    let found = stage.query(&mut session, "SHOW statement_timeout")?;
    ensure!(text(&found)? == "30s");
    let found = stage.query(&mut session, "SHOW search_path")?;
    ensure!(!text(&found)?.contains("elsewhere"));
    let found = stage.query(
        &mut session,
        "SELECT (SELECT count(*) FROM pg_prepared_statements WHERE name = 'theirs') \
         + (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')",
    )?;
    ensure!(found.rows == [[Value::Integer(0)]], "{found:?}");
    Ok(())
}

/// Each of these is more than is let through, whatever form it has; what is let through
/// is what was promised.
#[test]
fn no_more_comes_than_is_let_through() -> Result<()> {
    let stage = Stage::new()?;
    let database = stage.database(SqlLimits::default())?;
    let mut session = database.session();
    let whole = "SELECT repeat('x', 1048000)";
    ensure!(text(&stage.query(&mut session, whole)?)?.len() == 1_048_000);
    let nulls = vec!["NULL"; 1_600].join(", ");
    let nulls = format!("SELECT {nulls} FROM generate_series(1, 1000)");
    for (statement, part) in [
        // Refused by its length, before it is read.
        (
            "SELECT repeat('x', 100000000)",
            "with a message of 100000011 bytes",
        ),
        (
            "DO $$ BEGIN RAISE EXCEPTION '%', repeat('x', 20000000); END $$",
            "with a message of 20000",
        ),
        (
            "DO $$ BEGIN RAISE NOTICE '%', repeat('x', 20000000); END $$",
            "with a message of 20000",
        ),
        // Each of them is short.
        (
            "DO $$ BEGIN FOR i IN 1..1000 LOOP RAISE NOTICE '%', repeat('x', 100000); END LOOP; END $$",
            "let through for one statement",
        ),
        (
            "SELECT repeat('x', 10000) FROM generate_series(1, 1000)",
            "let through",
        ),
        (&*nulls, "let through"),
        (
            "SELECT 1 FROM generate_series(1, 1001)",
            "more rows than are let through",
        ),
    ] {
        let what = format!("{statement:.60}");
        let ran = stage.query(&mut session, statement);
        refused(ran, "TooLarge", part).context(what)?;
        // The session goes on, with another connection.
        let rows = stage.query(&mut session, "SELECT 1")?;
        ensure!(rows.rows == [[Value::Integer(1)]]);
    }
    // Of all statements of a transaction.
    let most = "SELECT repeat('x', 600000)";
    let ran = stage.transaction(&mut session, &[most, most]);
    refused(ran, "TooLarge", "more bytes than are let through")?;
    // Words are shown as far as somebody reads them.
    let long = "DO $$ BEGIN RAISE EXCEPTION 'here: %', repeat('x', 100000); END $$";
    refused(stage.query(&mut session, long), "Refused", "here: xxx")?;
    stage.is_at_nothing()
}

#[test]
fn what_takes_too_long_is_ended_at_the_server() -> Result<()> {
    let stage = Stage::new()?;
    let limits = SqlLimits {
        statement: Duration::from_secs(1),
        ..SqlLimits::default()
    };
    let database = stage.database(limits)?;
    let mut session = database.session();
    let slow = stage.query(&mut session, "SELECT pg_sleep(60)");
    refused(slow, "Timeout", "statement timeout")?;
    stage.is_at_nothing()?;
    // One that has put the server's own time off.
    stage.query(&mut session, "SET statement_timeout = 0")?;
    let slow = stage.query(&mut session, "SELECT pg_sleep(60)");
    refused(slow, "Timeout", "longer than 1 s and was ended")?;
    stage.is_at_nothing()?;
    let slow = stage.transaction(
        &mut session,
        &["SET LOCAL statement_timeout = 0", "SELECT pg_sleep(60)"],
    );
    refused(slow, "Timeout", "longer than 1 s and was ended")?;
    stage.is_at_nothing()
}

/// A call that is ended from outside waits for nothing: what it was at is ended at the
/// server, and nobody is given the connection that it was on.
#[test]
fn a_call_that_ends_leaves_no_statement_behind() -> Result<()> {
    let stage = Stage::new()?;
    let database = stage.database(SqlLimits::default())?;
    let none = BTreeMap::new();
    let alone = statement("SELECT pg_sleep(25)", &[]);
    let several = [
        statement("SELECT 1", &[]),
        statement("SELECT pg_sleep(25)", &[]),
    ];
    for transaction in [false, true] {
        stage.runtime.block_on(async {
            let mut session = database.session();
            // A connection that was good before.
            session.query(&statement("SELECT 1", &[]), &none).await?;
            let limit = Duration::from_secs(1);
            let ended = match transaction {
                false => timeout(limit, session.query(&alone, &none)).await.is_err(),
                true => timeout(limit, session.transaction(&several, &none))
                    .await
                    .is_err(),
            };
            ensure!(ended, "it did not take its time");
            anyhow::Ok(())
        })?;
        let started = Instant::now();
        let mut session = database.session();
        stage.query(&mut session, "SELECT 1")?;
        let waited = started.elapsed();
        ensure!(waited < Duration::from_secs(5), "{waited:?}");
        stage.is_at_nothing()?;
        let waited = started.elapsed();
        ensure!(waited < Duration::from_secs(15), "{waited:?}");
    }
    Ok(())
}

#[test]
fn only_the_server_that_is_meant_is_spoken_to() -> Result<()> {
    let stage = Stage::new()?;
    let port = stage.server.port();
    let (others, _) = certificate()?;
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let plain = silent.local_addr()?.port();
    // What a server says that has no TLS.
    let without_tls = std::thread::spawn(move || -> Result<Vec<u8>> {
        let (mut stream, _) = silent.accept()?;
        let mut request = [0; 8];
        stream.read_exact(&mut request)?;
        stream.write_all(b"N")?;
        let mut rest = Vec::new();
        // It goes away, in whatever way.
        let _ = stream.read_to_end(&mut rest);
        Ok(rest)
    });
    let roots = &stage.roots;
    for (settings, kind, part) in [
        (
            settings("localhost", port, &others, true)?,
            "Connection",
            "certificate",
        ),
        (
            settings("127.0.0.1", port, roots, true)?,
            "Connection",
            "not valid for name",
        ),
        (
            settings("localhost", plain, roots, true)?,
            "Connection",
            "does not support TLS",
        ),
        (
            settings("localhost", port, roots, false)?,
            "Forbidden",
            "if it is meant, name its network",
        ),
    ] {
        let database = Database::new(settings, SqlLimits::default());
        let ran = stage.query(&mut database.session(), "SELECT 1");
        refused(ran, kind, part)?;
    }
    let rest = without_tls.join().map_err(|_| anyhow::anyhow!("ended"))??;
    ensure!(rest.is_empty(), "it was told {rest:?}");
    let mut wrong = settings("localhost", port, roots, true)?;
    wrong.password = reeve_outside::Secret::new("another");
    let database = Database::new(wrong, SqlLimits::default());
    let ran = stage.query(&mut database.session(), "SELECT 1");
    refused(ran, "Connection", "28P01")?;
    let database = stage.database(SqlLimits::default())?;
    stage.query(&mut database.session(), "SELECT 1")?;
    Ok(())
}
