//! Server-side apply, on an account's behalf.

mod body;
mod create;
mod error;
mod field;
mod finalizers;
mod managers;
mod preconditions;
pub(crate) mod refusal;
mod resume;
mod unsaid;

pub use body::Body;
pub use create::Create;
pub use error::WriteError;
pub use finalizers::SetFinalizers;
pub use managers::SetManagers;
pub use preconditions::Preconditions;
pub use resume::Resume;

use crate::cluster::Cluster;
use crate::identity::Identity;
use crate::object::Object;
use crate::resource::Resource;
use crate::transport::{Call, TransportError};
use http::Method;
use refusal::Attempt;

/// The media type of a server-side apply; JSON is YAML.
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// One server-side apply.
#[derive(Clone, Copy, Debug)]
pub struct Apply<'a> {
    /// Kind of the object.
    pub resource: &'a Resource,
    /// Namespace; none for a cluster-scoped kind.
    pub namespace: Option<&'a str>,
    /// Name of the object.
    pub name: &'a str,
    /// What is applied: all fields that the manager shall own, with `apiVersion`
    /// and `kind`. A `metadata.uid` or `metadata.resourceVersion` in it is a
    /// precondition, too.
    pub body: Body<'a>,
    /// Which object is meant; any other is left as it is
    /// ([`WriteError::Precondition`]).
    pub onto: Preconditions<'a>,
    /// Field manager.
    pub manager: &'a str,
    /// Takes fields from other managers. Without it their fields are a
    /// [`WriteError::Conflict`].
    pub force: bool,
    /// Refuses fields that the kind's schema does not have, or twice, instead of leaving
    /// them out without a word.
    pub strict: bool,
    /// Asks what would come of it; nothing is stored. The object that comes back
    /// must then not be given to [`crate::Store::observe`].
    pub dry_run: bool,
    /// On whose behalf; none for the agent itself.
    pub identity: Option<&'a Identity>,
}

impl Cluster {
    /// Creates or changes an object by server-side apply, and returns it as it is
    /// now stored.
    ///
    /// Fields that the kind does not have are refused, not dropped: a misspelt
    /// field would otherwise be lost without a word.
    pub async fn apply(&self, request: Apply<'_>) -> Result<Object, WriteError> {
        self.send_apply(request, None).await
    }

    /// Applies to the `status` subresource. Only `status` of the body counts, and
    /// the object must exist: otherwise [`WriteError::Absent`].
    pub async fn apply_status(&self, request: Apply<'_>) -> Result<Object, WriteError> {
        self.send_apply(request, Some("status")).await
    }

    async fn send_apply(
        &self,
        request: Apply<'_>,
        subresource: Option<&'static str>,
    ) -> Result<Object, WriteError> {
        let attempt = Attempt {
            resource: request.resource,
            subresource,
            namespace: request.namespace,
            name: request.name,
            identity: request.identity,
        };
        let mut path = request
            .resource
            .object_path(request.namespace, request.name);
        if let Some(subresource) = subresource {
            path.push('/');
            path.push_str(subresource);
        }
        let mut call = Call::new(Method::PATCH, path)
            .query("fieldManager", request.manager)
            .query("force", if request.force { "true" } else { "false" })
            .query(
                "fieldValidation",
                if request.strict { "Strict" } else { "Ignore" },
            );
        if request.dry_run {
            call = call.query("dryRun", "All").unfenced();
        }
        let sent = request.body.sent(request.onto);
        let bytes = sent.map_err(|error| attempt.failed(TransportError::Body(error).into()))?;
        let call = call.body(APPLY_PATCH, bytes).impersonate(request.identity);
        let body = self.call(call).await.map_err(|e| attempt.failed(e))?;
        Object::parse(request.resource, &body).map_err(|source| WriteError::Malformed {
            reference: attempt.reference(),
            source,
        })
    }
}
