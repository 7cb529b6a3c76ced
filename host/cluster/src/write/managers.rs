//! Writing who owns which fields of an object, and nothing else of it.

use super::error::WriteError;
use super::refusal::Attempt;
use crate::cluster::Cluster;
use crate::identity::Identity;
use crate::object::Object;
use crate::transport::Call;
use http::Method;
use serde_json::{Value, json};

const JSON_PATCH: &str = "application/json-patch+json";

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
        let live = request.live;
        let (resource, namespace, name) = (live.resource(), live.namespace(), live.name());
        let attempt = Attempt {
            resource,
            subresource: None,
            namespace,
            name,
            identity: request.identity,
        };
        let patch = json!([
            {"op": "replace", "path": "/metadata/uid", "value": live.uid()},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": live.resource_version()},
            {"op": "add", "path": "/metadata/managedFields", "value": request.entries},
        ]);
        let call = Call::new(Method::PATCH, resource.object_path(namespace, name))
            .query("fieldManager", request.manager)
            .body(JSON_PATCH, patch.to_string().into_bytes())
            .impersonate(request.identity);
        let body = self
            .call(call)
            .await
            .map_err(|error| attempt.failed(error))?;
        Object::parse(resource, &body).map_err(|source| WriteError::Malformed {
            reference: attempt.reference(),
            source,
        })
    }
}
