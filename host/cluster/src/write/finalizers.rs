//! Writing the finalizers of an object, and nothing else of it.

use super::error::WriteError;
use super::field::SetField;
use crate::cluster::Cluster;
use crate::identity::Identity;
use crate::object::Object;

/// One write of `metadata.finalizers`.
#[derive(Clone, Copy, Debug)]
pub struct SetFinalizers<'a> {
    /// The object as it was read; a later version of it is a
    /// [`WriteError::Precondition`].
    pub live: &'a Object,
    /// The finalizers that it shall have, all of them.
    pub finalizers: &'a [String],
    /// Field manager of the request.
    pub manager: &'a str,
    /// On whose behalf; none for the agent itself.
    pub identity: Option<&'a Identity>,
}

impl Cluster {
    /// Writes the finalizers of an object, and returns it as it was then stored. Of an
    /// object that is being deleted the last one to go ends it.
    pub async fn set_finalizers(&self, request: SetFinalizers<'_>) -> Result<Object, WriteError> {
        let field = SetField {
            live: request.live,
            path: "/metadata/finalizers",
            value: request.finalizers.into(),
            manager: request.manager,
            identity: request.identity,
        };
        self.set_field(field).await
    }
}
