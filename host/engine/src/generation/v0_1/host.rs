//! The imports of the world, handed on to the capabilities.

use super::bindings::reeve::plugin::{clock, cluster, log, sources, sql, types};
use crate::called::Level;
use crate::capabilities;
use crate::state::State;
use crate::view::{ListQuery, ReadError, SourceError};
use bytes::Bytes;
use wasmtime::Result;

/// Only types, no functions.
impl types::Host for State {}

impl cluster::Host for State {
    fn get(
        &mut self,
        object: types::ObjectReference,
    ) -> Result<Result<Option<Vec<u8>>, cluster::ReadError>> {
        self.get_parts(object, Vec::new())
    }

    fn get_parts(
        &mut self,
        object: types::ObjectReference,
        projection: Vec<String>,
    ) -> Result<Result<Option<Vec<u8>>, cluster::ReadError>> {
        let answer = capabilities::cluster::get(self, &object.into(), &projection)?;
        Ok(answer
            .map(|object| object.map(Vec::from))
            .map_err(Into::into))
    }

    fn list(
        &mut self,
        query: cluster::ListQuery,
    ) -> Result<Result<Vec<Vec<u8>>, cluster::ReadError>> {
        let answer = capabilities::cluster::list(self, &query.into())?;
        Ok(answer
            .map(|objects| objects.into_iter().map(Bytes::into).collect())
            .map_err(Into::into))
    }

    fn list_keys(
        &mut self,
        query: cluster::ListQuery,
    ) -> Result<Result<Vec<types::ObjectReference>, cluster::ReadError>> {
        let answer = capabilities::cluster::list_keys(self, &query.into())?;
        Ok(answer
            .map(|keys| keys.into_iter().map(Into::into).collect())
            .map_err(Into::into))
    }
}

impl sources::Host for State {
    fn read(&mut self, name: String) -> Result<Result<sources::Document, sources::SourceError>> {
        let answer = capabilities::sources::read(self, &name)?;
        Ok(answer
            .map(|document| sources::Document {
                body: document.body.into(),
                media_type: document.media_type,
            })
            .map_err(Into::into))
    }

    fn age(&mut self, name: String) -> Result<Result<u64, sources::SourceError>> {
        Ok(capabilities::sources::age(self, &name).map_err(Into::into))
    }
}

impl sql::Host for State {
    async fn query(
        &mut self,
        connection: String,
        statement: sql::Statement,
    ) -> Result<Result<sql::Rows, sql::SqlError>> {
        let answer = capabilities::sql::query(self, connection, statement.into()).await?;
        Ok(answer.map(Into::into).map_err(Into::into))
    }

    async fn transaction(
        &mut self,
        connection: String,
        statements: Vec<sql::Statement>,
    ) -> Result<Result<Vec<sql::Rows>, sql::SqlError>> {
        let statements = statements.into_iter().map(Into::into).collect();
        let answer = capabilities::sql::transaction(self, connection, statements).await?;
        Ok(answer
            .map(|all| all.into_iter().map(Into::into).collect())
            .map_err(Into::into))
    }
}

impl clock::Host for State {
    fn now(&mut self) -> Result<u64> {
        Ok(capabilities::clock::now(self)?)
    }
}

impl log::Host for State {
    fn write(&mut self, level: log::Level, message: String) -> Result<()> {
        let level = match level {
            log::Level::Debug => Level::Debug,
            log::Level::Info => Level::Info,
            log::Level::Warn => Level::Warn,
            log::Level::Error => Level::Error,
        };
        capabilities::log::write(self, level, message);
        Ok(())
    }

    fn fault(&mut self, message: String) -> Result<()> {
        capabilities::log::fault(self, message);
        Ok(())
    }
}

impl From<cluster::ListQuery> for ListQuery {
    fn from(query: cluster::ListQuery) -> Self {
        Self {
            kind: query.kind.into(),
            namespace: query.namespace,
            selector: query.selector,
            projection: query.projection,
        }
    }
}

impl From<ReadError> for cluster::ReadError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Forbidden(text) => Self::Forbidden(text),
            ReadError::Undeclared(text) => Self::Undeclared(text),
            ReadError::NotSynced(text) => Self::NotSynced(text),
            ReadError::Invalid(text) => Self::Invalid(text),
        }
    }
}

impl From<SourceError> for sources::SourceError {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Undeclared(text) => Self::Undeclared(text),
            SourceError::Forbidden(text) => Self::Forbidden(text),
            SourceError::NotSynced(text) => Self::NotSynced(text),
        }
    }
}
