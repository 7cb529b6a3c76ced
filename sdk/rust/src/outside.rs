//! What `actuate` reaches outside of the cluster: HTTP and SQL.

use std::fmt;

use serde::de::DeserializeOwned;

use crate::Failure;
use crate::backend::OutsideBackend;
use crate::json::{self, JsonError};

/// What one call of `actuate` reaches: the URLs and databases that its action
/// declares and the operator has granted.
///
/// In a plugin there is nothing to make one from; it comes as an argument. In native
/// tests, [`Outside::test`] makes one.
#[derive(Debug)]
pub struct Outside {
    pub(crate) backend: OutsideBackend,
}

impl Outside {
    /// Sends a request and waits for the whole response. Redirects are responses, and
    /// so are those with the status of an error.
    ///
    /// # Errors
    ///
    /// When there is no response: it was not granted, or the host cannot be reached.
    pub fn send(&self, request: &Request) -> Result<Response, HttpError> {
        self.backend.send(request)
    }

    /// Runs one statement by itself, outside of a transaction.
    ///
    /// # Errors
    ///
    /// When the connection is not granted, or the database cannot be reached or
    /// refuses.
    pub fn query(&self, connection: &str, statement: &Sql) -> Result<Rows, SqlError> {
        self.backend.query(connection, statement)
    }

    /// Runs statements in one transaction: all of them or none.
    ///
    /// # Errors
    ///
    /// As [`Outside::query`].
    pub fn transaction(&self, connection: &str, all: &[Sql]) -> Result<Vec<Rows>, SqlError> {
        self.backend.transaction(connection, all)
    }
}

/// A statement whose text is fixed when the plugin is compiled. Whatever is known
/// later is a name, a value or a parameter, which the host quotes.
///
/// ```
/// use reeve_sdk::prelude::*;
///
/// let make = Sql::text("CREATE ROLE ")
///     .identifier("alice")
///     .then(" WITH LOGIN PASSWORD ")
///     .password("password");
/// let look = Sql::text("SELECT 1 FROM pg_roles WHERE rolname = $1").bind("alice");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Sql {
    pub(crate) parts: Vec<SqlPart>,
    pub(crate) parameters: Vec<SqlValue>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SqlPart {
    Text(&'static str),
    Identifier(String),
    Literal(String),
    Password(String),
}

impl Sql {
    /// A statement that begins with this text.
    pub fn text(text: &'static str) -> Self {
        Self {
            parts: vec![SqlPart::Text(text)],
            parameters: Vec::new(),
        }
    }

    /// More text.
    pub fn then(self, text: &'static str) -> Self {
        self.part(SqlPart::Text(text))
    }

    /// The name of a table, role or other thing.
    pub fn identifier(self, name: impl Into<String>) -> Self {
        self.part(SqlPart::Identifier(name.into()))
    }

    /// A text value, where SQL takes no parameter.
    pub fn literal(self, value: impl Into<String>) -> Self {
        self.part(SqlPart::Literal(value.into()))
    }

    /// The password of a role: a generated secret, by its name in the action.
    pub fn password(self, name: impl Into<String>) -> Self {
        self.part(SqlPart::Password(name.into()))
    }

    /// The value of the next parameter: the first is `$1`.
    pub fn bind(mut self, value: impl Into<SqlValue>) -> Self {
        self.parameters.push(value.into());
        self
    }

    fn part(mut self, part: SqlPart) -> Self {
        self.parts.push(part);
        self
    }
}

/// The statement with its names and values in angle brackets, for tests and logs.
impl fmt::Display for Sql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                SqlPart::Text(text) => f.write_str(text)?,
                SqlPart::Identifier(text) | SqlPart::Literal(text) | SqlPart::Password(text) => {
                    write!(f, "<{text}>")?;
                }
            }
        }
        Ok(())
    }
}

/// A value of SQL.
#[derive(Clone, Debug, PartialEq)]
pub enum SqlValue {
    /// Null.
    Null,
    /// A truth value.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
    /// Text. As a parameter, it may stand for a value of any type.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl From<&str> for SqlValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for SqlValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for SqlValue {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<bool> for SqlValue {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

/// What a statement returned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows, each with a value for each column.
    pub rows: Vec<Vec<SqlValue>>,
    /// Rows that were changed, or returned.
    pub affected: u64,
}

/// Why a statement gave no rows.
///
/// `?` turns it into the [`Failure`] that suits it: what a person or a new version
/// must mend is terminal, all else is tried again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    /// The connection is not declared, not granted or may not be used here.
    #[error("{0}")]
    Forbidden(String),
    /// The database cannot be reached, or the connection was lost.
    #[error("{0}")]
    Connection(String),
    /// The database refuses the statement.
    #[error("{message} (SQLSTATE {state})")]
    Refused {
        /// SQLSTATE, such as `42710`.
        state: String,
        /// In the database's own words.
        message: String,
    },
    /// It took too long and was ended.
    #[error("{0}")]
    Timeout(String),
    /// It returned more than the host lets through.
    #[error("{0}")]
    TooLarge(String),
    /// The statement is malformed.
    #[error("{0}")]
    Invalid(String),
}

impl SqlError {
    /// Whether the database refused with this SQLSTATE.
    pub fn is_state(&self, expected: &str) -> bool {
        matches!(self, Self::Refused { state, .. } if state == expected)
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        let text = error.to_string();
        match error {
            SqlError::Invalid(_) | SqlError::TooLarge(_) => Self::Terminal(text),
            _ => Self::Retry(text),
        }
    }
}

/// A request.
///
/// ```
/// use reeve_sdk::prelude::*;
///
/// let request = Request::new("PUT", "https://account.blob.example/container?restype=container")
///     .header("content-type", "text/plain");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Request {
    /// Method.
    pub method: String,
    /// Absolute URL.
    pub url: String,
    /// Headers. Those that sign the request are the host's.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

impl Request {
    /// A request without headers and body.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            method: method.into(),
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// A header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// A body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }
}

/// A response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// Status, such as 200.
    pub status: u16,
    /// Headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

impl Response {
    /// Whether the status says that all went well.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body as JSON of this type.
    ///
    /// # Errors
    ///
    /// When it does not fit.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, JsonError> {
        json::from_slice(&self.body)
    }
}

/// Why there was no response. `?` turns it into [`Failure::Retry`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HttpError(pub String);

impl From<HttpError> for Failure {
    fn from(error: HttpError) -> Self {
        Self::Retry(error.0)
    }
}

/// Scheme, authority, and path with query of a URL.
#[cfg_attr(
    not(any(test, target_arch = "wasm32")),
    expect(dead_code, reason = "components split URLs for WASI")
)]
pub(crate) fn split_url(url: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let rest = rest.split('#').next()?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    (!authority.is_empty()).then_some((scheme, authority, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_split() {
        for (url, expected) in [
            ("https://a.example", Some(("https", "a.example", ""))),
            ("http://a:81/x?y#z", Some(("http", "a:81", "/x?y"))),
            ("https://a?y", Some(("https", "a", "?y"))),
            ("https:///x", None),
            ("/x", None),
        ] {
            assert_eq!(split_url(url), expected, "{url}");
        }
    }

    #[test]
    fn errors_of_databases_become_the_failure_that_suits_them() {
        let refused = SqlError::Refused {
            state: "42710".into(),
            message: "role exists".into(),
        };
        assert!(refused.is_state("42710"));
        assert_eq!(
            Failure::from(refused),
            Failure::retry("role exists (SQLSTATE 42710)")
        );
        assert_eq!(
            Failure::from(SqlError::Invalid("x".into())),
            Failure::terminal("x")
        );
    }
}
