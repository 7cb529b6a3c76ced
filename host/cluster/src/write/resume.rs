//! Resuming an object, and nothing else of it.

use super::error::WriteError;
use super::field::SetField;
use crate::cluster::Cluster;
use crate::identity::Identity;
use crate::object::Object;

/// One write of `spec.suspend`.
#[derive(Clone, Copy, Debug)]
pub struct Resume<'a> {
    /// The object as it was read; a later version of it is a
    /// [`WriteError::Precondition`].
    pub live: &'a Object,
    /// Field manager of the request.
    pub manager: &'a str,
    /// On whose behalf; none for the agent itself.
    pub identity: Option<&'a Identity>,
}

impl Cluster {
    /// Takes back that an object is suspended, and returns it as it was then stored.
    pub async fn resume(&self, request: Resume<'_>) -> Result<Object, WriteError> {
        let field = SetField {
            live: request.live,
            path: "/spec/suspend",
            value: false.into(),
            manager: request.manager,
            identity: request.identity,
        };
        self.set_field(field).await
    }
}
