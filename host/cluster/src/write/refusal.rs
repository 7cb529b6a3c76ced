//! Reading the API server's refusals of writes.

use super::error::WriteError;
use super::unsaid;
use crate::identity::Identity;
use crate::resource::Resource;
use crate::status::{Cause, Details, Status};
use crate::transport::{CallError, TransportError};
use reeve_core::ObjectReference;
use std::time::Duration;

/// A write under way: what an error has to tell about it.
pub(crate) struct Attempt<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) subresource: Option<&'static str>,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
    pub(crate) identity: Option<&'a Identity>,
}

impl Attempt<'_> {
    pub(crate) fn reference(&self) -> ObjectReference {
        self.resource.reference(self.namespace, self.name)
    }

    pub(crate) fn failed(&self, error: CallError) -> WriteError {
        match error {
            CallError::Transport(TransportError::NotLeader(source)) => WriteError::NotLeader {
                reference: self.reference(),
                source,
            },
            CallError::Transport(source) => WriteError::Unreachable {
                reference: self.reference(),
                source,
            },
            CallError::Status(status) => {
                self.refused(unsaid::without_values(self.resource, *status))
            }
        }
    }

    /// Reads a refusal. The API server gives codes and reasons to programs, but
    /// some cases differ only in their words; those words are old and stable.
    fn refused(&self, status: Status) -> WriteError {
        let reference = self.reference();
        let field_conflict = status.has_cause("FieldManagerConflict");
        let another_uid = status.is_only_about("metadata.uid");
        if status.code == 403 {
            return self.forbidden(reference, status);
        }
        let Status {
            message, details, ..
        } = status;
        match status.code {
            404 => self.not_found(reference, &details, message),
            409 if field_conflict => WriteError::Conflict {
                reference,
                causes: details.causes.iter().map(conflict).collect(),
                message,
            },
            409 | 412 => WriteError::Precondition { reference, message },
            // A uid in the body of an apply counts as an immutable field.
            422 if another_uid => WriteError::Precondition { reference, message },
            422 => WriteError::Invalid {
                reference,
                causes: details.causes.into_iter().map(complaint).collect(),
                message,
            },
            // A body that does not fit the kind's schema: strict decoding says 400,
            // the merge of typed fields 500, of which no repetition cures it.
            400 | 500 if is_schema_complaint(&message) => WriteError::Invalid {
                reference,
                causes: details.causes.into_iter().map(complaint).collect(),
                message,
            },
            429 => WriteError::Throttled {
                reference,
                retry_after: Duration::from_secs(details.retry_after_seconds.max(1).into()),
            },
            code => WriteError::Refused {
                reference,
                code,
                message,
            },
        }
    }

    fn forbidden(&self, reference: ObjectReference, status: Status) -> WriteError {
        let terminating = status.has_cause("NamespaceTerminating");
        let message = status.message;
        let verb = lacking_verb(&message);
        // `impersonate`, or since 1.36 also `impersonate-on:serviceaccount:patch`.
        if let (Some(identity), Some(verb)) = (self.identity, verb)
            && verb.starts_with("impersonate")
        {
            return WriteError::MayNotImpersonate {
                reference,
                identity: identity.to_string(),
                message,
            };
        }
        if terminating {
            return WriteError::NamespaceTerminating {
                namespace: self.namespace.unwrap_or_default().to_owned(),
                reference,
            };
        }
        let Some(verb) = verb.map(str::to_owned) else {
            return WriteError::Denied { reference, message };
        };
        let subresource = self.subresource.map(|s| format!("/{s}"));
        WriteError::Forbidden {
            reference,
            identity: self
                .identity
                .map_or_else(|| "the agent".to_owned(), ToString::to_string),
            verb,
            resource: format!("{}{}", self.resource, subresource.unwrap_or_default()),
            message,
        }
    }

    fn not_found(
        &self,
        reference: ObjectReference,
        details: &Details,
        message: String,
    ) -> WriteError {
        let of_namespace = details.kind == "namespaces" && details.group.is_empty();
        match self.namespace {
            Some(namespace) if of_namespace && details.name == namespace => {
                WriteError::NamespaceAbsent {
                    reference,
                    namespace: namespace.to_owned(),
                }
            }
            _ if details.name.is_empty() => WriteError::NotServed { reference },
            // Such as the ClusterRole that a RoleBinding is to bind to.
            _ if details.name != reference.name || *details.kind != *self.resource.plural => {
                WriteError::Refused {
                    reference,
                    code: 404,
                    message,
                }
            }
            _ => WriteError::Absent { reference },
        }
    }
}

/// The verb in `User "x" cannot patch resource "configmaps" in API group …`, the
/// form in which the API server reports a missing right. None for refusals of
/// another kind, such as a quota's.
fn lacking_verb(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once(" cannot ")?;
    let (verb, rest) = rest.split_once(' ')?;
    rest.starts_with("resource \"").then_some(verb)
}

fn is_schema_complaint(message: &str) -> bool {
    message.contains("strict decoding error") || message.starts_with("failed to create typed patch")
}

fn complaint(cause: Cause) -> (String, String) {
    (cause.field, cause.message)
}

/// Manager and field of `conflict with "kubectl-edit" using v1: .spec.hard`. What
/// follows the name (subresource, version, time) depends on the server's version.
fn conflict(cause: &Cause) -> (String, String) {
    let manager = cause
        .message
        .split_once('"')
        .and_then(|(_, rest)| rest.split_once('"'))
        .map_or(cause.message.as_str(), |(manager, _)| manager);
    (manager.to_owned(), cause.field.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::GroupVersionKind;
    use serde_json::{Value, json};

    fn classify(code: u16, body: &Value) -> WriteError {
        let resource = Resource {
            kind: GroupVersionKind::new("", "v1", "ConfigMap"),
            plural: "configmaps".into(),
            namespaced: true,
        };
        let attempt = Attempt {
            resource: &resource,
            subresource: None,
            namespace: Some("alice"),
            name: "one",
            identity: Some(&Identity::service_account("tools", "plugin")),
        };
        attempt.refused(Status::parse(code, body.to_string().as_bytes()))
    }

    /// The messages are those of kube-apiserver 1.36.
    #[test]
    fn refusals_are_told_apart() {
        let of = |kind: &str, name: &str| json!({"kind": kind, "name": name});
        let cause = |reason: &str, message: &str, field: &str| {
            json!({"name": "one", "kind": "configmaps", "causes":
                [{"reason": reason, "message": message, "field": field}]})
        };
        let account = "system:serviceaccount:tools:plugin";
        for (code, message, details, retries, expected) in [
            (
                403,
                r#"configmaps "one" is forbidden: User "system:serviceaccount:tools:plugin" cannot create resource "configmaps" in API group "" in the namespace "alice""#,
                of("configmaps", "one"),
                true,
                format!(
                    "{account} may not create configmaps in namespace alice; ConfigMap alice/one needs it"
                ),
            ),
            (
                403,
                r#"serviceaccounts "plugin" is forbidden: User "agent" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "tools""#,
                of("serviceaccounts", "plugin"),
                true,
                format!(
                    "the agent may not impersonate {account}, so ConfigMap alice/one was not written; \
                     grant it the verb impersonate on that account by name"
                ),
            ),
            (
                403,
                r#"configmaps "one" is forbidden: User "agent" cannot impersonate-on:serviceaccount:patch resource "configmaps" in API group "" in the namespace "alice""#,
                of("configmaps", "one"),
                true,
                format!(
                    "the agent may not impersonate {account}, so ConfigMap alice/one was not written; \
                     grant it the verb impersonate on that account by name"
                ),
            ),
            (
                403,
                r#"configmaps "one" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=1, limited: configmaps=1"#,
                of("configmaps", "one"),
                true,
                "admission refuses ConfigMap alice/one: configmaps \"one\" is forbidden: exceeded quota: q, \
                 requested: configmaps=1, used: configmaps=1, limited: configmaps=1"
                    .into(),
            ),
            (
                403,
                r#"configmaps "one" is forbidden: unable to create new content in namespace alice because it is being terminated"#,
                cause("NamespaceTerminating", "namespace alice is being terminated", "metadata.namespace"),
                true,
                "ConfigMap alice/one cannot be made: its namespace alice is being deleted".into(),
            ),
            (
                404,
                r#"namespaces "alice" not found"#,
                of("namespaces", "alice"),
                true,
                "ConfigMap alice/one waits for its namespace alice, which does not exist".into(),
            ),
            (
                404,
                r#"configmaps "one" not found"#,
                of("configmaps", "one"),
                true,
                "ConfigMap alice/one does not exist".into(),
            ),
            (
                404,
                r#"clusterroles.rbac.authorization.k8s.io "one" not found"#,
                of("clusterroles", "one"),
                true,
                "the api server refuses ConfigMap alice/one (404): \
                 clusterroles.rbac.authorization.k8s.io \"one\" not found"
                    .into(),
            ),
            (
                404,
                "the server could not find the requested resource",
                json!({}),
                true,
                "the api server does not serve the kind of ConfigMap alice/one".into(),
            ),
            (
                409,
                r#"Apply failed with 1 conflict: conflict with "kubectl-edit" using v1: .data.k"#,
                cause("FieldManagerConflict", r#"conflict with "kubectl-edit" using v1"#, ".data.k"),
                false,
                "ConfigMap alice/one: .data.k is owned by kubectl-edit".into(),
            ),
            (
                409,
                "the object has been modified",
                of("configmaps", "one"),
                true,
                "ConfigMap alice/one has changed or was made anew meanwhile: the object has been modified"
                    .into(),
            ),
            (
                422,
                "field is immutable",
                cause("FieldValueInvalid", "field is immutable", "metadata.uid"),
                true,
                "ConfigMap alice/one has changed or was made anew meanwhile: field is immutable".into(),
            ),
            (
                422,
                "field is immutable",
                cause("FieldValueInvalid", "field is immutable", "data"),
                false,
                "ConfigMap alice/one is invalid: field is immutable".into(),
            ),
            (
                500,
                "failed to create typed patch object (alice/one; /v1, Kind=ConfigMap): .dat: field not declared in schema",
                json!({}),
                false,
                "ConfigMap alice/one is invalid: failed to create typed patch object \
                 (alice/one; /v1, Kind=ConfigMap): .dat: field not declared in schema"
                    .into(),
            ),
            (
                500,
                "etcdserver: request timed out",
                json!({}),
                true,
                "the api server refuses ConfigMap alice/one (500): etcdserver: request timed out".into(),
            ),
            (
                413,
                "request is too large",
                json!({}),
                false,
                "the api server refuses ConfigMap alice/one (413): request is too large".into(),
            ),
            (
                429,
                "too many requests",
                json!({"retryAfterSeconds": 7}),
                true,
                "the api server asks to come back later with ConfigMap alice/one".into(),
            ),
        ] {
            let error = classify(code, &json!({"message": message, "details": details}));
            assert_eq!(error.to_string(), expected);
            assert_eq!(error.retries(), retries, "{expected}");
        }
    }

    #[test]
    fn details_are_kept_for_programs() {
        let throttled = classify(
            429,
            &json!({"message": "m", "details": {"retryAfterSeconds": 7}}),
        );
        assert!(matches!(
            throttled,
            WriteError::Throttled { retry_after, .. } if retry_after == Duration::from_secs(7)
        ));
        let conflict = classify(
            409,
            &json!({"message": "m", "details": {"causes": [
                {"reason": "FieldManagerConflict", "message": "conflict with \"a b\" with subresource \"status\"", "field": ".x"},
            ]}}),
        );
        let WriteError::Conflict { causes, .. } = conflict else {
            panic!("{conflict:?}");
        };
        assert_eq!(causes, [("a b".to_owned(), ".x".to_owned())]);
    }
}
