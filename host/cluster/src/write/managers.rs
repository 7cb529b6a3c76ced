//! Writing who owns which fields of an object, and nothing else of it.

use super::error::WriteError;
use super::field::SetField;
use crate::cluster::Cluster;
use crate::identity::Identity;
use crate::object::Object;
use serde_json::Value;

/// One write of `managedFields`.
#[derive(Clone, Copy, Debug)]
pub struct SetManagers<'a> {
    /// The object as it was read; a later version of it is a
    /// [`WriteError::Precondition`].
    pub live: &'a Object,
    /// The entries that it shall have, all of them.
    pub entries: &'a Value,
    /// Field manager of the request. It owns nothing by it.
    pub manager: &'a str,
    /// On whose behalf; none for the agent itself.
    pub identity: Option<&'a Identity>,
}

impl Cluster {
    /// Writes the `managedFields` of an object, and returns it as it is now stored.
    ///
    /// Values stay as they are: this moves or gives up ownership alone.
    pub async fn set_managers(&self, request: SetManagers<'_>) -> Result<Object, WriteError> {
        let field = SetField {
            live: request.live,
            path: "/metadata/managedFields",
            value: request.entries.clone(),
            manager: request.manager,
            identity: request.identity,
        };
        self.set_field(field).await
    }
}
