//! What `actuate` reaches, as the caller provides it.

use bytes::Bytes;
use http::{Request, Response};
use reeve_core::UnitKey;
use reeve_core::outcome::{Action, Verb};
use reeve_core::sql::{Rows, SqlError, Statement};
use std::pin::Pin;

/// An answer that takes its time.
pub type Answering<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What one call of `actuate` reaches outside of the cluster. Implemented by the
/// caller, which decides what is granted and bounds how long anything takes.
///
/// No answer may hold a credential: the guest sees all of it.
pub trait Outside: Send + Sync + 'static {
    /// Sends a request whose body is complete, and waits for the whole response.
    /// Redirects are responses. An error is text for the plugin's author.
    fn http(&self, request: Request<Bytes>) -> Answering<Result<Response<Bytes>, String>>;

    /// Runs one statement by itself.
    fn query(&self, connection: String, statement: Statement) -> Answering<Result<Rows, SqlError>>;

    /// Runs statements in one transaction.
    fn transaction(
        &self,
        connection: String,
        statements: Vec<Statement>,
    ) -> Answering<Result<Vec<Rows>, SqlError>>;
}

/// One call of `actuate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actuation {
    /// The effect.
    pub action: Action,
    /// What to do about it.
    pub verb: Verb,
    /// The configuration, checked against the schema: one JSON text.
    pub config: Bytes,
    /// What was reported when it was last put in place: one JSON text.
    pub fact: Option<Bytes>,
    /// For whom the call is made; see [`crate::Request::unit`].
    pub unit: Option<UnitKey>,
}
