//! Why a write did not happen.

use crate::lease::NotLeader;
use crate::object::ObjectError;
use crate::transport::TransportError;
use reeve_core::ObjectReference;
use std::time::Duration;

/// A write that did not happen, or whose end is unknown
/// ([`WriteError::Unreachable`]).
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The acting account lacks the right.
    #[error("{identity} may not {verb} {resource}{}; {reference} needs it", place(.reference))]
    Forbidden {
        /// The object.
        reference: ObjectReference,
        /// Who lacks the right: an account's user name, or `the agent`.
        identity: String,
        /// The verb that is lacking.
        verb: String,
        /// Kind in an RBAC rule's form, with the subresource: `profiles.kubeflow.org/status`.
        resource: String,
        /// In the API server's words.
        message: String,
    },
    /// The agent may not act as that account. Nothing is known of the account's
    /// own rights.
    #[error(
        "the agent may not impersonate {identity}, so {reference} was not written; \
         grant it the verb impersonate on that account by name"
    )]
    MayNotImpersonate {
        /// The object.
        reference: ObjectReference,
        /// The account that should have acted.
        identity: String,
        /// In the API server's words.
        message: String,
    },
    /// Admission refused: a quota, a policy, a webhook.
    #[error("admission refuses {reference}: {message}")]
    Denied {
        /// The object.
        reference: ObjectReference,
        /// In the API server's words.
        message: String,
    },
    /// Other managers own fields that were applied.
    #[error("{reference}: {}", conflict_text(.causes, .message))]
    Conflict {
        /// The object.
        reference: ObjectReference,
        /// Manager and field, in the API server's form: `("kubectl-edit", ".spec.hard.cpu")`.
        causes: Vec<(String, String)>,
        /// In the API server's words.
        message: String,
    },
    /// The object is not the one, or not in the state, that the write was for.
    #[error("{reference} has changed or was made anew meanwhile: {message}")]
    Precondition {
        /// The object.
        reference: ObjectReference,
        /// In the API server's words.
        message: String,
    },
    /// The object itself is refused: a field is unknown, wrong or immutable.
    #[error("{reference} is invalid: {message}")]
    Invalid {
        /// The object.
        reference: ObjectReference,
        /// Field and complaint, as far as the API server told them apart.
        causes: Vec<(String, String)>,
        /// In the API server's words.
        message: String,
    },
    /// The namespace does not exist yet.
    #[error("{reference} waits for its namespace {namespace}, which does not exist")]
    NamespaceAbsent {
        /// The object.
        reference: ObjectReference,
        /// The namespace.
        namespace: String,
    },
    /// The namespace is being deleted; nothing can be made in it.
    #[error("{reference} cannot be made: its namespace {namespace} is being deleted")]
    NamespaceTerminating {
        /// The object.
        reference: ObjectReference,
        /// The namespace.
        namespace: String,
    },
    /// The object whose subresource was written does not exist.
    #[error("{reference} does not exist")]
    Absent {
        /// The object.
        reference: ObjectReference,
    },
    /// The API server does not serve the kind. [`crate::Cluster::forget`] it.
    #[error("the api server does not serve the kind of {reference}")]
    NotServed {
        /// The object.
        reference: ObjectReference,
    },
    /// The API server has too much to do.
    #[error("the api server asks to come back later with {reference}")]
    Throttled {
        /// The object.
        reference: ObjectReference,
        /// How long it asks to wait.
        retry_after: Duration,
    },
    /// Another replica leads; nothing was sent.
    #[error("{reference} was not written: {source}")]
    NotLeader {
        /// The object.
        reference: ObjectReference,
        /// That it is so.
        source: NotLeader,
    },
    /// No answer: the write may or may not have happened.
    #[error("no answer about {reference}")]
    Unreachable {
        /// The object.
        reference: ObjectReference,
        /// What went wrong on the way.
        source: TransportError,
    },
    /// Any other refusal.
    #[error("the api server refuses {reference} ({code}): {message}")]
    Refused {
        /// The object.
        reference: ObjectReference,
        /// HTTP status.
        code: u16,
        /// In the API server's words.
        message: String,
    },
    /// The write happened, but the answer is no object.
    #[error("cannot understand {reference} as it came from the api server")]
    Malformed {
        /// The object.
        reference: ObjectReference,
        /// What is wrong with it.
        source: ObjectError,
    },
}

impl WriteError {
    /// Whether the very same write may succeed later, without a change in it.
    ///
    /// Rights, namespaces and kinds arrive without being watched by whoever waits
    /// for them, so their absence counts. What is wrong with the object itself,
    /// and another manager's claim, stay until something else changes.
    pub fn retries(&self) -> bool {
        match self {
            Self::Conflict { .. } | Self::Invalid { .. } => false,
            // Timeouts and overload pass, and what is not there may come; what another 4xx
            // says of a request stays true.
            Self::Refused { code, .. } => *code >= 500 || *code == 404,
            _ => true,
        }
    }

    /// Whether the write may have happened, or may happen yet, all the same: its answer
    /// was lost, or somebody on the way gave up waiting for it.
    pub fn end_is_unknown(&self) -> bool {
        match self {
            Self::Unreachable { source, .. } => source.may_have_arrived(),
            // A gateway, or the API server's own limit on a request.
            Self::Refused {
                code: 502 | 504, ..
            } => true,
            // What etcd says of a transaction that it did not end in time.
            Self::Refused { code, message, .. } => {
                *code >= 500 && message.contains("etcdserver: request timed out")
            }
            Self::Malformed { .. } => true,
            _ => false,
        }
    }

    /// Whether it is this replica's part that is over, not the write that failed:
    /// no failure of anybody, and nothing to try again before it leads anew.
    pub fn is_not_leader(&self) -> bool {
        matches!(
            self,
            Self::NotLeader { .. }
                | Self::Unreachable {
                    source: TransportError::Abandoned,
                    ..
                }
        )
    }

    /// The object that was to be written.
    pub fn reference(&self) -> &ObjectReference {
        match self {
            Self::Forbidden { reference, .. }
            | Self::MayNotImpersonate { reference, .. }
            | Self::Denied { reference, .. }
            | Self::Conflict { reference, .. }
            | Self::Precondition { reference, .. }
            | Self::Invalid { reference, .. }
            | Self::NamespaceAbsent { reference, .. }
            | Self::NamespaceTerminating { reference, .. }
            | Self::Absent { reference }
            | Self::NotServed { reference }
            | Self::Throttled { reference, .. }
            | Self::NotLeader { reference, .. }
            | Self::Unreachable { reference, .. }
            | Self::Refused { reference, .. }
            | Self::Malformed { reference, .. } => reference,
        }
    }
}

fn place(reference: &ObjectReference) -> String {
    match &reference.namespace {
        Some(namespace) => format!(" in namespace {namespace}"),
        None => " at the cluster scope".to_owned(),
    }
}

fn conflict_text(causes: &[(String, String)], message: &str) -> String {
    if causes.is_empty() {
        return message.to_owned();
    }
    let claims: Vec<_> = causes
        .iter()
        .map(|(manager, field)| format!("{field} is owned by {manager}"))
        .collect();
    claims.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::GroupVersionKind;
    use std::io::{Error, ErrorKind};

    #[test]
    fn what_was_refused_did_not_happen_and_what_was_not_answered_may_have() {
        let kind = GroupVersionKind::new("", "v1", "ConfigMap");
        let reference = ObjectReference::new(kind, Some("a".into()), "b");
        let refused = |code, message: &str| WriteError::Refused {
            reference: reference.clone(),
            code,
            message: message.to_owned(),
        };
        let lost = |source| WriteError::Unreachable {
            reference: reference.clone(),
            source,
        };
        let sent = |kind: ErrorKind| {
            let error = kube::Error::Service(Box::new(Error::from(kind)));
            lost(TransportError::Send(Box::new(error)))
        };
        for (error, unknown) in [
            (refused(500, "no"), false),
            (refused(503, "not now"), false),
            (refused(500, "etcdserver: request timed out"), true),
            (refused(502, ""), true),
            (refused(504, "did not complete in time"), true),
            (sent(ErrorKind::ConnectionRefused), false),
            (sent(ErrorKind::ConnectionReset), true),
            (
                lost(TransportError::TimedOut(Duration::from_secs(30))),
                true,
            ),
            // Whoever leads next looks at everything anew.
            (lost(TransportError::Abandoned), false),
        ] {
            assert_eq!(error.end_is_unknown(), unknown, "{error:?}");
        }
    }
}
