//! An outside that answers as a test says.

use std::fmt;

use crate::outside::{HttpError, Outside, Request, Response, Rows, Sql, SqlError};

type Send = dyn Fn(&Request) -> Result<Response, HttpError>;
type Query = dyn Fn(&str, &Sql) -> Result<Rows, SqlError>;

/// The answers that a test prepared.
pub(crate) struct OutsideBackend {
    send: Box<Send>,
    query: Box<Query>,
}

/// For native tests: an outside that answers as the test says. None of it exists in a
/// component.
impl Outside {
    /// An outside in which nothing is granted.
    ///
    /// ```
    /// use reeve_sdk::prelude::*;
    ///
    /// let outside = Outside::test().with_sql(|_, statement| {
    ///     assert_eq!(statement.to_string(), "DROP ROLE <alice>");
    ///     Ok(Rows::default())
    /// });
    /// outside.query("main", &Sql::text("DROP ROLE ").identifier("alice")).unwrap();
    /// ```
    pub fn test() -> Self {
        let send = |request: &Request| Err(HttpError(format!("{} is not granted", request.url)));
        let query = |connection: &str, _: &Sql| {
            Err(SqlError::Forbidden(format!(
                "connection `{connection}` is not granted"
            )))
        };
        Self {
            backend: OutsideBackend {
                send: Box::new(send),
                query: Box::new(query),
            },
        }
    }

    /// Requests are answered by this function.
    #[must_use]
    pub fn with_http(
        mut self,
        send: impl Fn(&Request) -> Result<Response, HttpError> + 'static,
    ) -> Self {
        self.backend.send = Box::new(send);
        self
    }

    /// Statements, also those of transactions, are answered by this function.
    #[must_use]
    pub fn with_sql(
        mut self,
        query: impl Fn(&str, &Sql) -> Result<Rows, SqlError> + 'static,
    ) -> Self {
        self.backend.query = Box::new(query);
        self
    }
}

impl OutsideBackend {
    pub(crate) fn send(&self, request: &Request) -> Result<Response, HttpError> {
        (self.send)(request)
    }

    pub(crate) fn query(&self, connection: &str, statement: &Sql) -> Result<Rows, SqlError> {
        (self.query)(connection, statement)
    }

    pub(crate) fn transaction(&self, connection: &str, all: &[Sql]) -> Result<Vec<Rows>, SqlError> {
        let answers = all
            .iter()
            .map(|statement| self.query(connection, statement));
        answers.collect()
    }
}

impl fmt::Debug for OutsideBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutsideBackend")
    }
}
