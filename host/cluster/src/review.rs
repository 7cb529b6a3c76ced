//! What an account may do, asked of the API server.

use crate::cluster::Cluster;
use crate::identity::Identity;
use crate::resource::Resource;
use crate::transport::{Call, CallError, TransportError};
use foldhash::HashMap;
use parking_lot::Mutex;
use reeve_core::GroupVersionKind;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

/// How long an answer is used: the time within which a revoked right is noticed.
/// It spares the API server a review per read; a write is judged by the API
/// server itself each time.
pub const REVIEW_TTL: Duration = Duration::from_secs(10);

/// How long the agent's own name is believed to be the same: credentials of
/// another user come with another process, or nearly so.
const OWN_USER_TTL: Duration = Duration::from_secs(600);

/// Answers that are kept. Questions are per kind and namespace, not per object;
/// a thousand plugins with four questions each fit.
const MAX_REVIEWS: usize = 4096;

/// What the agent is called where it asks about itself.
const ITSELF: &str = "the agent itself";

/// A question of access: may this verb be used on that?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AccessCheck<'a> {
    /// A Kubernetes verb: `get`, `list`, `watch`, `patch`, …
    pub verb: &'a str,
    /// Kind.
    pub resource: &'a Resource,
    /// Subresource, such as `status`.
    pub subresource: Option<&'a str>,
    /// Namespace; none asks for all of them, or for a cluster-scoped kind.
    pub namespace: Option<&'a str>,
    /// Name; none asks for all of them.
    pub name: Option<&'a str>,
}

/// Why a question of access has no answer. Nothing may be concluded from it.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// The agent itself lacks the right to ask.
    #[error(
        "the agent may not create subjectaccessreviews.authorization.k8s.io, \
         so the rights of {identity} are unknown: {message}"
    )]
    Forbidden {
        /// Whose rights were asked for.
        identity: String,
        /// In the API server's words.
        message: String,
    },
    /// No answer.
    #[error("cannot ask for the rights of {identity}")]
    Unreachable {
        /// Whose rights were asked for.
        identity: String,
        /// What went wrong on the way.
        source: TransportError,
    },
    /// Any other refusal.
    #[error("the api server does not review the rights of {identity} ({code}): {message}")]
    Refused {
        /// Whose rights were asked for.
        identity: String,
        /// HTTP status.
        code: u16,
        /// In the API server's words.
        message: String,
    },
}

/// Recent answers.
#[derive(Default)]
pub(crate) struct ReviewCache {
    answers: Mutex<HashMap<Question, (Instant, bool)>>,
    /// Who the agent is, and when that was asked.
    own: Mutex<Option<(Instant, String)>>,
}

#[derive(PartialEq, Eq, Hash)]
struct Question {
    /// None: the agent itself.
    identity: Option<Identity>,
    verb: String,
    resource: Resource,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
}

impl Question {
    fn new(identity: Option<&Identity>, check: &AccessCheck<'_>) -> Self {
        Self {
            identity: identity.cloned(),
            verb: check.verb.to_owned(),
            resource: check.resource.clone(),
            subresource: check.subresource.map(str::to_owned),
            namespace: check.namespace.map(str::to_owned),
            name: check.name.map(str::to_owned),
        }
    }
}

impl ReviewCache {
    fn recent(&self, question: &Question, now: Instant) -> Option<bool> {
        let answers = self.answers.lock();
        let (asked, allowed) = answers.get(question)?;
        (now.duration_since(*asked) < REVIEW_TTL).then_some(*allowed)
    }

    fn keep(&self, question: Question, asked: Instant, allowed: bool) {
        let mut answers = self.answers.lock();
        if answers.len() >= MAX_REVIEWS {
            answers.retain(|_, (kept, _)| asked.duration_since(*kept) < REVIEW_TTL);
        }
        // Still full of fresh answers: asking again is cheaper than choosing.
        if answers.len() >= MAX_REVIEWS {
            answers.clear();
        }
        answers.insert(question, (asked, allowed));
    }
}

/// A review as it is sent. There are many of them, and they are written without becoming
/// values first.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Asked<'a> {
    api_version: &'a str,
    kind: &'a str,
    spec: Spec<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    resource_attributes: Attributes<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<&'a [String]>,
}

#[derive(Serialize)]
struct Attributes<'a> {
    verb: &'a str,
    group: &'a str,
    version: &'a str,
    resource: &'a str,
    subresource: &'a str,
    namespace: &'a str,
    name: &'a str,
}

#[derive(Deserialize)]
struct Review {
    status: ReviewStatus,
}

#[derive(Deserialize)]
struct ReviewStatus {
    #[serde(default)]
    allowed: bool,
}

impl Cluster {
    /// Whether an account may do something, its groups considered.
    ///
    /// An answer may be up to [`REVIEW_TTL`] old. An error is no answer: callers
    /// must treat it as neither yes nor no.
    pub async fn allowed(
        &self,
        identity: &Identity,
        check: AccessCheck<'_>,
    ) -> Result<bool, ReviewError> {
        self.may(Some(identity), check).await
    }

    /// Whether the agent itself may act as a ServiceAccount, in the sense in which every
    /// API server knows it, or in that of constrained impersonation (Kubernetes 1.36).
    ///
    /// Answers are as old as those of [`Cluster::allowed`] may be.
    pub async fn may_impersonate(
        &self,
        namespace: &str,
        account: &str,
    ) -> Result<bool, ReviewError> {
        for (group, verb) in [
            ("", "impersonate"),
            ("authentication.k8s.io", "impersonate:serviceaccount"),
        ] {
            let resource = Resource {
                kind: GroupVersionKind::new(group, "v1", "ServiceAccount"),
                plural: "serviceaccounts".into(),
                namespaced: true,
            };
            let check = AccessCheck {
                verb,
                resource: &resource,
                subresource: None,
                namespace: Some(namespace),
                name: Some(account),
            };
            if self.may(None, check).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Of whom it is asked: an account, or the agent itself.
    async fn may(
        &self,
        identity: Option<&Identity>,
        check: AccessCheck<'_>,
    ) -> Result<bool, ReviewError> {
        let asked = Instant::now();
        let question = Question::new(identity, &check);
        if let Some(allowed) = self.reviews.recent(&question, asked) {
            return Ok(allowed);
        }
        let allowed = self.review(identity, &check).await?;
        self.reviews.keep(question, asked, allowed);
        Ok(allowed)
    }

    /// As whom the cluster is reached, where [`Cluster::own_user`] was told that once.
    pub fn known_own_user(&self) -> Option<String> {
        self.reviews
            .own
            .lock()
            .as_ref()
            .map(|(_, user)| user.clone())
    }

    /// The name of the user as whom the cluster is reached.
    ///
    /// # Errors
    ///
    /// When the API server does not say; every authenticated user may ask.
    pub async fn own_user(&self) -> Result<String, ReviewError> {
        let asked = Instant::now();
        if let Some((at, user)) = &*self.reviews.own.lock()
            && asked.duration_since(*at) < OWN_USER_TTL
        {
            return Ok(user.clone());
        }
        let body = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "SelfSubjectReview",
        });
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let call = Call::new(http::Method::POST, path.to_owned())
            .json(&body)
            .unfenced();
        let identity = ITSELF.to_owned();
        let user = match self.call(call).await {
            Ok(body) => match serde_json::from_slice::<serde_json::Value>(&body) {
                Ok(review) => review.pointer("/status/userInfo/username").cloned(),
                Err(_) => None,
            },
            Err(CallError::Transport(source)) => {
                return Err(ReviewError::Unreachable { identity, source });
            }
            Err(CallError::Status(status)) => {
                return Err(ReviewError::Refused {
                    identity,
                    code: status.code,
                    message: status.message,
                });
            }
        };
        let Some(user) = user.as_ref().and_then(serde_json::Value::as_str) else {
            return Err(ReviewError::Refused {
                identity,
                code: 200,
                message: "not a review of oneself".to_owned(),
            });
        };
        *self.reviews.own.lock() = Some((asked, user.to_owned()));
        Ok(user.to_owned())
    }

    async fn review(
        &self,
        identity: Option<&Identity>,
        check: &AccessCheck<'_>,
    ) -> Result<bool, ReviewError> {
        let attributes = Attributes {
            verb: check.verb,
            group: &check.resource.kind.group,
            version: &check.resource.kind.version,
            resource: &check.resource.plural,
            subresource: check.subresource.unwrap_or_default(),
            namespace: check.namespace.unwrap_or_default(),
            name: check.name.unwrap_or_default(),
        };
        let (kind, path) = match identity {
            Some(_) => ("SubjectAccessReview", "subjectaccessreviews"),
            // Every authenticated user may ask this.
            None => ("SelfSubjectAccessReview", "selfsubjectaccessreviews"),
        };
        let body = Asked {
            api_version: "authorization.k8s.io/v1",
            kind,
            spec: Spec {
                resource_attributes: attributes,
                user: identity.map(|identity| &*identity.user),
                groups: identity.map(|identity| &*identity.groups),
            },
        };
        let path = format!("/apis/authorization.k8s.io/v1/{path}");
        // A question, in spite of its verb.
        let call = Call::new(http::Method::POST, path);
        let call = call.json(&body).unfenced();
        let identity = || identity.map_or_else(|| ITSELF.to_owned(), Identity::to_string);
        match self.call(call).await {
            Ok(body) => match serde_json::from_slice::<Review>(&body) {
                Ok(review) => Ok(review.status.allowed),
                Err(error) => Err(ReviewError::Refused {
                    identity: identity(),
                    code: 200,
                    message: format!("not a review: {error}"),
                }),
            },
            Err(CallError::Transport(source)) => Err(ReviewError::Unreachable {
                identity: identity(),
                source,
            }),
            Err(CallError::Status(status)) if status.code == 403 => Err(ReviewError::Forbidden {
                identity: identity(),
                message: status.message,
            }),
            Err(CallError::Status(status)) => Err(ReviewError::Refused {
                identity: identity(),
                code: status.code,
                message: status.message,
            }),
        }
    }
}
