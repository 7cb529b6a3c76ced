//! Writing the finalizers of an object, and nothing else of it.

use super::error::WriteError;
use super::refusal::Attempt;
use crate::cluster::Cluster;
use crate::identity::Identity;
use crate::object::Object;
use crate::transport::Call;
use http::Method;
use serde_json::json;

const JSON_PATCH: &str = "application/json-patch+json";

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
            {"op": "add", "path": "/metadata/finalizers", "value": request.finalizers},
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
