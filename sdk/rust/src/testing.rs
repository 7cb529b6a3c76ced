//! Outside of a component: a cluster in memory, for unit tests.

use crate::log::Level;
use crate::{Context, ObjectReference, Query, ReadError};

#[derive(Debug, Default)]
pub(crate) struct Backend {
    now: u64,
}

impl Backend {
    pub(crate) fn get(&self, _: &ObjectReference, _: Vec<String>) -> Result<Option<Vec<u8>>, ReadError> { Ok(None) }
    pub(crate) fn list(&self, _: &Query) -> Result<Vec<Vec<u8>>, ReadError> { Ok(Vec::new()) }
    pub(crate) fn list_references(&self, _: &Query) -> Result<Vec<ObjectReference>, ReadError> { Ok(Vec::new()) }
    pub(crate) fn now(&self) -> u64 { self.now }
}

pub(crate) fn log(level: Level, message: &str) {
    eprintln!("{level:?}: {message}");
}

impl Context {
    /// A context for tests: an empty cluster at time zero.
    pub fn test() -> Self {
        Self { backend: Backend::default() }
    }
}
