//! Statements, one after another.

use super::bounded::Allowance;
use super::connect::{Connection, shortened};
use super::value::{Column, Parameter};
use super::{Database, SqlLimits, text};
use crate::secret::Secret;
use futures::TryStreamExt as _;
use reeve_core::chain;
use reeve_core::sql::{Rows, SqlError, Statement, Value};
use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::{Client, Row};

/// Statements, one after another, on one connection. It connects when the first is
/// run and goes back to the database when this is dropped; whatever a statement set
/// for its session is forgotten then. A statement that nobody waits for any more is
/// ended, and its connection with it.
#[derive(Debug)]
pub struct Session {
    database: Database,
    connection: Option<Connection>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection")
    }
}

/// What may still be returned.
struct Room {
    rows: usize,
    bytes: usize,
    /// Whether there is more of a result than was read.
    unread: bool,
}

/// What a value takes beside what is in it.
const VALUE: usize = 4;

/// `invalid_sql_statement_name`: there is no such prepared statement.
const FORGOTTEN: &str = "26000";

/// How much longer than the server the host waits: the server says what it did.
const GRACE: Duration = Duration::from_secs(2);

impl Session {
    pub(super) fn new(database: Database) -> Self {
        Self {
            database,
            connection: None,
        }
    }

    /// Runs one statement by itself, outside of a transaction: what makes a database
    /// works only so. `passwords` are the generated secrets that it may name.
    ///
    /// # Errors
    ///
    /// When the database cannot be reached or refuses, or a limit is reached. After
    /// an error of the connection it is not known whether the statement was carried
    /// out.
    pub async fn query(
        &mut self,
        statement: &Statement,
        passwords: &BTreeMap<String, Secret>,
    ) -> Result<Rows, SqlError> {
        let limits = self.database.inner.limits;
        let statement = Composed::of(statement, passwords, &limits)?;
        let mut room = Room::new(&limits);
        let connection = self.connection().await?;
        connection.begin();
        let work = statement.run(connection.client(), connection.allowance(), &mut room);
        let ran = within(limits.statement + GRACE, work).await;
        self.settle(ran, &room)
    }

    /// Runs statements in one transaction: all of them or none.
    ///
    /// # Errors
    ///
    /// As [`Session::query`]; then none of them was carried out, unless the connection
    /// was lost, or the time ran out, at the very end.
    pub async fn transaction(
        &mut self,
        statements: &[Statement],
        passwords: &BTreeMap<String, Secret>,
    ) -> Result<Vec<Rows>, SqlError> {
        let limits = self.database.inner.limits;
        if statements.len() > limits.statements {
            return Err(SqlError::Invalid(format!(
                "a transaction has {} statements, more than {}",
                statements.len(),
                limits.statements
            )));
        }
        let statements = statements
            .iter()
            .map(|statement| Composed::of(statement, passwords, &limits))
            .collect::<Result<Vec<_>, _>>()?;
        let mut room = Room::new(&limits);
        let limit = limits.statement + GRACE;
        let connection = self.connection().await?;
        connection.begin();
        let allowance = connection.allowance().clone();
        let work = async {
            // Rolled back when it is dropped.
            let begin = connection.client_mut().transaction();
            let begin = async { begin.await.map_err(|error| failed(&error)) };
            let transaction = within(limit, begin).await?;
            let mut all = Vec::with_capacity(statements.len());
            for statement in &statements {
                let ran = statement.run(transaction.client(), &allowance, &mut room);
                all.push(within(limit, ran).await?);
            }
            allowance.renew();
            let commit = transaction.commit();
            within(limit, async {
                commit.await.map_err(|error| failed(&error))
            })
            .await?;
            Ok(all)
        };
        let ran = work.await;
        self.settle(ran, &room)
    }

    async fn connection(&mut self) -> Result<&mut Connection, SqlError> {
        if self.connection.as_ref().is_some_and(Connection::is_closed) {
            self.connection = None;
        }
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        Ok(self.connection.insert(connection))
    }

    async fn connect(&self) -> Result<Connection, SqlError> {
        let inner = &self.database.inner;
        while let Some(idle) = self.database.take_idle() {
            if let Ok(connection) = idle.renew(&inner.limits).await {
                return Ok(connection);
            }
        }
        Connection::open(&inner.settings, &inner.limits).await
    }

    /// After a statement that was not waited for, the connection is not used again.
    fn settle<T>(&mut self, ran: Result<T, SqlError>, room: &Room) -> Result<T, SqlError> {
        let Some(mut connection) = self.connection.take() else {
            return ran;
        };
        // Of which the client only knows that nothing more comes.
        let ran = ran.map_err(|error| match connection.allowance().overrun() {
            Some(text) => SqlError::TooLarge(text),
            None => error,
        });
        let ended = match &ran {
            // A statement by which the client looks up types, forgotten when the connection
            // was made as good as new: of no use from here on.
            Err(SqlError::Refused { state, .. }) if state == FORGOTTEN => false,
            // The server says so last of all.
            Ok(_) | Err(SqlError::Refused { .. }) => true,
            Err(SqlError::Timeout(_) | SqlError::TooLarge(_) | SqlError::Connection(_)) => false,
            Err(_) => !room.unread,
        };
        if ended {
            connection.rest();
            self.connection = Some(connection);
        }
        ran
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.database.give_back(connection);
        }
    }
}

async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, SqlError>>,
) -> Result<T, SqlError> {
    timeout(limit, work).await.unwrap_or_else(|_| {
        Err(SqlError::Timeout(format!(
            "the statement took longer than {} s and was ended",
            (limit - GRACE).as_secs()
        )))
    })
}

/// A statement whose text is ready.
struct Composed<'a> {
    text: String,
    parameters: &'a [Value],
}

impl<'a> Composed<'a> {
    fn of(
        statement: &'a Statement,
        passwords: &BTreeMap<String, Secret>,
        limits: &SqlLimits,
    ) -> Result<Self, SqlError> {
        let text = text::compose(&statement.parts, passwords, limits.text_bytes)?;
        let long = |value: &Value| value.size() > limits.text_bytes;
        if let Some(index) = statement.parameters.iter().position(long) {
            return Err(SqlError::Invalid(format!(
                "parameter ${} has more than {} bytes",
                index + 1,
                limits.text_bytes
            )));
        }
        Ok(Self {
            text,
            parameters: &statement.parameters,
        })
    }

    async fn run(
        &self,
        client: &Client,
        allowance: &Allowance,
        room: &mut Room,
    ) -> Result<Rows, SqlError> {
        allowance.renew();
        let prepared = client.prepare(&self.text).await;
        let prepared = prepared.map_err(|error| failed(&error))?;
        let wanted = prepared.params().len();
        if wanted != self.parameters.len() {
            return Err(SqlError::Invalid(format!(
                "the statement has {wanted} parameters and was given {}",
                self.parameters.len()
            )));
        }
        let columns = prepared.columns().iter();
        let columns: Vec<String> = columns.map(|column| column.name().to_owned()).collect();
        room.take_bytes(columns.iter().map(String::len).sum())?;
        let parameters: Vec<Parameter<'_>> = self.parameters.iter().map(Parameter).collect();
        let stream = client.query_raw(&prepared, parameters.iter()).await;
        let mut stream = pin!(stream.map_err(|error| failed(&error))?);
        let mut rows = Vec::new();
        room.unread = true;
        while let Some(row) = stream.try_next().await.map_err(|error| failed(&error))? {
            let row = values(&row)?;
            room.take(&row)?;
            rows.push(row);
        }
        room.unread = false;
        Ok(Rows {
            affected: stream.rows_affected().unwrap_or(rows.len() as u64),
            columns,
            rows,
        })
    }
}

fn values(row: &Row) -> Result<Vec<Value>, SqlError> {
    let columns = row.columns().iter().enumerate();
    columns
        .map(|(index, column)| match row.try_get::<_, Column>(index) {
            Ok(Column(value)) => Ok(value),
            Err(error) => Err(SqlError::Invalid(format!(
                "column {}: {}",
                column.name(),
                chain(&error)
            ))),
        })
        .collect()
}

impl Room {
    fn new(limits: &SqlLimits) -> Self {
        Self {
            rows: limits.rows,
            bytes: limits.bytes,
            unread: false,
        }
    }

    fn take(&mut self, row: &[Value]) -> Result<(), SqlError> {
        self.rows = self.rows.checked_sub(1).ok_or_else(|| {
            SqlError::TooLarge(
                "the statements return more rows than are let through; select fewer".to_owned(),
            )
        })?;
        self.take_bytes(row.iter().map(|value| value.size() + VALUE).sum())
    }

    fn take_bytes(&mut self, size: usize) -> Result<(), SqlError> {
        self.bytes = self.bytes.checked_sub(size).ok_or_else(|| {
            SqlError::TooLarge(
                "the statements return more bytes than are let through; select less".to_owned(),
            )
        })?;
        Ok(())
    }
}

/// SQLSTATE of a statement that was ended, mostly since its time was over.
const QUERY_CANCELED: &str = "57014";

fn failed(error: &tokio_postgres::Error) -> SqlError {
    match error.as_db_error() {
        Some(error) if error.code().code() == QUERY_CANCELED => {
            SqlError::Timeout(shortened(error.message()).to_owned())
        }
        Some(error) => SqlError::Refused {
            state: error.code().code().to_owned(),
            message: match error.detail() {
                Some(detail) => {
                    let (message, detail) = (shortened(error.message()), shortened(detail));
                    format!("{message}: {detail}")
                }
                None => shortened(error.message()).to_owned(),
            },
        },
        None if error.is_closed() => {
            SqlError::Connection("the database has closed the connection".to_owned())
        }
        // A value that does not fit, or an exchange that broke off.
        None => SqlError::Connection(chain(error)),
    }
}
