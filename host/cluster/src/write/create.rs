//! Creating an object that is not there yet.

use super::error::WriteError;
use super::refusal::Attempt;
use crate::cluster::Cluster;
use crate::identity::Identity;
use crate::object::Object;
use crate::resource::Resource;
use crate::transport::Call;
use http::Method;
use serde_json::Value;

/// One creation.
#[derive(Clone, Copy, Debug)]
pub struct Create<'a> {
    /// Kind of the object.
    pub resource: &'a Resource,
    /// Namespace; none for a cluster-scoped kind.
    pub namespace: Option<&'a str>,
    /// Name of the object, which its body has too.
    pub name: &'a str,
    /// The object.
    pub body: &'a Value,
    /// Field manager.
    pub manager: &'a str,
    /// On whose behalf; none for the agent itself.
    pub identity: Option<&'a Identity>,
}

impl Cluster {
    /// Creates an object, and returns it as it is stored. One of this name that is
    /// there already is a [`WriteError::Precondition`].
    pub async fn create(&self, request: Create<'_>) -> Result<Object, WriteError> {
        let attempt = Attempt {
            resource: request.resource,
            subresource: None,
            namespace: request.namespace,
            name: request.name,
            identity: request.identity,
        };
        let path = request.resource.collection_path(request.namespace);
        let call = Call::new(Method::POST, path)
            .query("fieldManager", request.manager)
            .query("fieldValidation", "Strict")
            .json(request.body)
            .impersonate(request.identity);
        let body = self.call(call).await.map_err(|e| attempt.failed(e))?;
        Object::parse(request.resource, &body).map_err(|source| WriteError::Malformed {
            reference: attempt.reference(),
            source,
        })
    }
}
