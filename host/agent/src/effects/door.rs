//! What one call of `actuate` reaches: what its action declares and the operator has
//! granted, both.

use crate::granted::{DatabaseProblem, Granted};
use crate::problem::chain;
use bytes::Bytes;
use http::{Request, Response};
use reeve_core::manifest::ActionRule;
use reeve_core::sql::{Rows, SqlError, Statement};
use reeve_engine::{Answering, Outside};
use reeve_outside::{Rule, Secret, Session};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tokio::sync::Mutex;

/// What one call of `actuate` reaches.
pub(crate) struct Door {
    inner: Arc<Inner>,
}

struct Inner {
    granted: Arc<Granted>,
    action: String,
    /// URLs that the action declares.
    http: Vec<Rule>,
    /// Connections that it declares.
    sql: Vec<String>,
    /// Values that were generated for it.
    passwords: BTreeMap<String, Secret>,
    /// Sessions of this call; one statement after another.
    sessions: Mutex<HashMap<String, Session>>,
}

impl Door {
    pub(crate) fn new(
        granted: Arc<Granted>,
        rule: &ActionRule,
        passwords: BTreeMap<String, Secret>,
    ) -> Self {
        // Those that are malformed were refused when the plugin was loaded.
        let http = rule.http.iter().filter_map(|url| Rule::new(url).ok());
        Self {
            inner: Arc::new(Inner {
                granted,
                action: rule.name.clone(),
                http: http.collect(),
                sql: rule.sql.clone(),
                passwords,
                sessions: Mutex::default(),
            }),
        }
    }
}

impl Inner {
    async fn http(&self, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        let (mut declared, mut unclear) = (false, None);
        for rule in &self.http {
            match rule.covers(request.method(), request.uri()) {
                Ok(covered) => declared |= covered,
                // To a wider rule the rest of the path does not matter.
                Err(error) => unclear = Some(error),
            }
        }
        if let (false, Some(error)) = (declared, unclear) {
            return Err(chain(&error));
        }
        if !declared {
            return Err(format!(
                "{} is not declared; declare it in `http` of action `{}`",
                reeve_outside::rule::without_query(request.uri()),
                self.action
            ));
        }
        let sent = self.granted.http.send(request).await;
        sent.map_err(|error| chain(&error))
    }

    async fn database(&self, connection: &str) -> Result<reeve_outside::Database, SqlError> {
        if !self.sql.iter().any(|declared| declared == connection) {
            return Err(SqlError::Forbidden(format!(
                "connection `{connection}` is not declared; declare it in `sql` of action `{}`",
                self.action
            )));
        }
        let database = self.granted.database(connection).await;
        database.map_err(|problem| match problem {
            DatabaseProblem::NotGranted(text) => SqlError::Forbidden(text),
            DatabaseProblem::Unusable(text) => SqlError::Connection(text),
        })
    }

    async fn transaction(
        &self,
        connection: String,
        statements: Vec<Statement>,
        alone: bool,
    ) -> Result<Vec<Rows>, SqlError> {
        let mut sessions = self.sessions.lock().await;
        let session = match sessions.remove(&connection) {
            Some(session) => session,
            None => self.database(&connection).await?.session(),
        };
        let session = sessions.entry(connection).or_insert(session);
        match &*statements {
            [statement] if alone => {
                let rows = session.query(statement, &self.passwords).await?;
                Ok(vec![rows])
            }
            statements => session.transaction(statements, &self.passwords).await,
        }
    }
}

impl Outside for Door {
    fn http(&self, request: Request<Bytes>) -> Answering<Result<Response<Bytes>, String>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move { inner.http(request).await })
    }

    fn query(&self, connection: String, statement: Statement) -> Answering<Result<Rows, SqlError>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let all = inner.transaction(connection, vec![statement], true).await?;
            Ok(all.into_iter().next().unwrap_or_default())
        })
    }

    fn transaction(
        &self,
        connection: String,
        statements: Vec<Statement>,
    ) -> Answering<Result<Vec<Rows>, SqlError>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move { inner.transaction(connection, statements, false).await })
    }
}
