//! Deleting, with proof that it is the object that was meant.

use crate::cluster::Cluster;
use crate::identity::Identity;
use crate::resource::Resource;
use crate::transport::{Call, CallError};
use crate::write::WriteError;
use crate::write::refusal::Attempt;
use http::Method;
use reeve_core::waves::Propagation;
use serde_json::{Map, Value, json};

/// One deletion.
#[derive(Clone, Copy, Debug)]
pub struct Delete<'a> {
    /// Kind of the object.
    pub resource: &'a Resource,
    /// Namespace; none for a cluster-scoped kind.
    pub namespace: Option<&'a str>,
    /// Name of the object.
    pub name: &'a str,
    /// Deletes only the object with this uid, not a later one of the same name.
    pub uid: Option<&'a str>,
    /// Deletes only this version of the object.
    pub resource_version: Option<&'a str>,
    /// What becomes of the objects that it owns.
    pub propagation: Propagation,
    /// Asks whether it could be deleted; nothing is.
    pub dry_run: bool,
    /// On whose behalf; none for the agent itself.
    pub identity: Option<&'a Identity>,
}

/// What came of a deletion that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// The object is gone.
    Gone,
    /// The object is marked, and goes when its finalizers or its grace period
    /// let it.
    Pending,
    /// There was no such object.
    Absent,
}

impl Cluster {
    /// Deletes an object.
    ///
    /// An object that is not there counts as deleted. One whose uid or version is
    /// another than demanded is left, with [`WriteError::Precondition`].
    pub async fn delete(&self, request: Delete<'_>) -> Result<Deletion, WriteError> {
        let attempt = Attempt {
            resource: request.resource,
            subresource: None,
            namespace: request.namespace,
            name: request.name,
            identity: request.identity,
        };
        let path = request
            .resource
            .object_path(request.namespace, request.name);
        let mut call = Call::new(Method::DELETE, path)
            .json(&options(&request))
            .impersonate(request.identity);
        if request.dry_run {
            call = call.unfenced();
        }
        match self.call(call).await {
            Ok(body) => Ok(outcome(&body)),
            Err(CallError::Status(status)) if status.code == 404 => Ok(Deletion::Absent),
            Err(error) => Err(attempt.failed(error)),
        }
    }
}

fn options(request: &Delete<'_>) -> Value {
    let mut options = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": request.propagation.to_string(),
    });
    let mut preconditions = Map::new();
    if let Some(uid) = request.uid {
        preconditions.insert("uid".into(), json!(uid));
    }
    if let Some(version) = request.resource_version {
        preconditions.insert("resourceVersion".into(), json!(version));
    }
    if !preconditions.is_empty() {
        options["preconditions"] = Value::Object(preconditions);
    }
    if request.dry_run {
        options["dryRun"] = json!(["All"]);
    }
    options
}

/// The answer is a `Status` when the object is gone, or the object as it was: of
/// Services, ServiceAccounts and ResourceQuotas, for example. One that is still there
/// is marked.
fn outcome(body: &[u8]) -> Deletion {
    #[derive(serde::Deserialize)]
    struct Answer {
        metadata: Option<Metadata>,
    }
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        deletion_timestamp: Option<serde::de::IgnoredAny>,
    }
    let answer = serde_json::from_slice::<Answer>(body).ok();
    let metadata = answer.and_then(|answer| answer.metadata);
    match metadata.and_then(|metadata| metadata.deletion_timestamp) {
        Some(_) => Deletion::Pending,
        None => Deletion::Gone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_is_not_marked_is_gone() {
        for (answer, expected) in [
            (
                json!({"kind": "Status", "metadata": {}, "status": "Success"}),
                Deletion::Gone,
            ),
            (
                json!({"kind": "Service", "metadata": {"name": "a"}}),
                Deletion::Gone,
            ),
            (
                json!({"kind": "Service", "metadata": {"deletionTimestamp": null}}),
                Deletion::Gone,
            ),
            (
                json!({"kind": "Pod", "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
                Deletion::Pending,
            ),
        ] {
            assert_eq!(outcome(answer.to_string().as_bytes()), expected, "{answer}");
        }
    }
}
