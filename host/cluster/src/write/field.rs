//! Writing one field of an object, and nothing else of it.

use super::error::WriteError;
use super::refusal::Attempt;
use crate::cluster::Cluster;
use crate::identity::Identity;
use crate::object::Object;
use crate::transport::Call;
use http::Method;
use serde_json::{Value, json};

const JSON_PATCH: &str = "application/json-patch+json";

/// One write of a field.
#[derive(Debug)]
pub(super) struct SetField<'a> {
    /// The object as it was read; a later version of it is a
    /// [`WriteError::Precondition`].
    pub(super) live: &'a Object,
    /// JSON Pointer of the field; what it is in has to be there.
    pub(super) path: &'static str,
    /// What it shall hold, all of it.
    pub(super) value: Value,
    /// Field manager of the request.
    pub(super) manager: &'a str,
    /// On whose behalf; none for the agent itself.
    pub(super) identity: Option<&'a Identity>,
}

impl Cluster {
    /// Writes the field, and returns the object as it was then stored.
    pub(super) async fn set_field(&self, request: SetField<'_>) -> Result<Object, WriteError> {
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
            {"op": "add", "path": request.path, "value": request.value},
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
