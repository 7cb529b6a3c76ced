//! The person of a scenario: somebody with all rights who is not the agent.

use crate::kinds::{Kind, Kinds, UnknownKind};
use crate::reference::Reference;
use crate::scenario::Object;
use http::{Method, Request};
use serde_json::{Value, json};
use std::cell::Cell;

/// Field manager of what is given and applied.
const APPLIER: &str = "scenario";
/// Field manager of hand edits.
const EDITOR: &str = "kubectl-edit";

const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Sends requests as an administrator, and counts its own writes.
pub(crate) struct Tester {
    client: kube::Client,
    writes: Cell<u64>,
    pub(crate) kinds: Kinds,
}

/// Why a step could not be taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ActionError {
    /// The scenario names a kind that is not there.
    #[error(transparent)]
    UnknownKind(#[from] UnknownKind),
    /// The API server says no.
    #[error("cannot {verb} {object}: {message}")]
    Refused {
        verb: &'static str,
        object: String,
        message: String,
    },
    /// The object is not there.
    #[error("cannot {verb} {object}: it does not exist")]
    NotFound { verb: &'static str, object: String },
    /// Its owner is not there, so that garbage collection would take it.
    #[error(
        "cannot apply {object}: its owner {owner} is not there; give that before it, or leave it \
         out of metadata.ownerReferences"
    )]
    NoOwner { object: String, owner: String },
}

impl Tester {
    pub(crate) fn new(client: kube::Client, kinds: Kinds) -> Self {
        Self {
            client,
            writes: Cell::new(0),
            kinds,
        }
    }

    /// Writes sent so far.
    pub(crate) fn writes(&self) -> u64 {
        self.writes.get()
    }

    /// Applies an object server-side, and its status, if it has one.
    pub(crate) async fn apply(&self, object: &Object) -> Result<(), ActionError> {
        let reference = object.reference();
        let path = self.path(&reference)?;
        let query = format!("fieldManager={APPLIER}&force=true");
        let body = &self.with_owners(object).await?;
        self.write(
            "apply",
            &reference,
            Method::PATCH,
            &format!("{path}?{query}"),
            APPLY,
            Some(body),
        )
        .await?;
        if body.get("status").is_none() {
            return Ok(());
        }
        let path = format!("{path}/status?{query}");
        match self
            .write(
                "apply the status of",
                &reference,
                Method::PATCH,
                &path,
                APPLY,
                Some(body),
            )
            .await
        {
            // The kind has no such subresource: the first request took it all.
            Err(ActionError::NotFound { .. }) => Ok(()),
            other => other,
        }
    }

    /// The object, with the uids of those owners that it names without theirs: what
    /// was made in another cluster cannot know them.
    async fn with_owners(&self, object: &Object) -> Result<Value, ActionError> {
        let mut value = object.value().clone();
        let namespace = value
            .pointer("/metadata/namespace")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let owners = value.pointer_mut("/metadata/ownerReferences");
        for owner in owners.and_then(Value::as_array_mut).into_iter().flatten() {
            if owner.get("uid").is_some_and(|uid| *uid != "") || !owner.is_object() {
                continue;
            }
            let field = |name: &str| owner.get(name).and_then(Value::as_str).unwrap_or_default();
            let version = field("apiVersion");
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            let mut reference = Reference {
                kind: field("kind").to_owned(),
                version: Some((version.to_owned(), group.to_owned())),
                namespace: namespace.clone(),
                name: field("name").to_owned(),
            };
            // It may be served in another version than it is named in.
            if self.kinds.find(&reference).is_err() {
                reference.version = None;
            }
            let Some(found) = self.get(&reference).await? else {
                return Err(ActionError::NoOwner {
                    object: object.reference().to_string(),
                    owner: format!("{} {}", reference.kind, reference.name),
                });
            };
            owner["uid"] = found["metadata"]["uid"].clone();
        }
        Ok(value)
    }

    /// Creates an object.
    pub(crate) async fn create(&self, object: &Object) -> Result<(), ActionError> {
        let reference = object.reference();
        let kind = self.kinds.find(&reference)?;
        let path = kind.collection(reference.namespace.as_deref());
        let path = format!("{path}?fieldManager={APPLIER}");
        self.write(
            "create",
            &reference,
            Method::POST,
            &path,
            "application/json",
            Some(object.value()),
        )
        .await
    }

    /// Merges a patch into an object, as somebody with an editor does.
    pub(crate) async fn edit(
        &self,
        reference: &Reference,
        patch: &Value,
    ) -> Result<(), ActionError> {
        let path = format!("{}?fieldManager={EDITOR}", self.path(reference)?);
        self.write("edit", reference, Method::PATCH, &path, MERGE, Some(patch))
            .await
    }

    /// Sets labels, and removes those that are none.
    pub(crate) async fn label<'a>(
        &self,
        reference: &Reference,
        labels: impl IntoIterator<Item = (&'a String, &'a Option<String>)>,
    ) -> Result<(), ActionError> {
        let labels: serde_json::Map<String, Value> = labels
            .into_iter()
            .map(|(key, value)| (key.clone(), json!(value)))
            .collect();
        self.edit(reference, &json!({"metadata": {"labels": labels}}))
            .await
    }

    /// Deletes an object; its dependents follow.
    pub(crate) async fn delete(&self, reference: &Reference) -> Result<(), ActionError> {
        let path = self.path(reference)?;
        self.write(
            "delete",
            reference,
            Method::DELETE,
            &path,
            "application/json",
            None,
        )
        .await
    }

    /// An object as it is now.
    pub(crate) async fn get(&self, reference: &Reference) -> Result<Option<Value>, ActionError> {
        let request = self.request(
            Method::GET,
            &self.path(reference)?,
            "application/json",
            None,
        );
        match self.send("read", reference, request).await {
            Ok(object) => Self::parsed("read", reference, &object).map(Some),
            Err(ActionError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All objects of a kind, or those in one namespace of it.
    pub(crate) async fn list(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
    ) -> Result<Vec<Value>, ActionError> {
        let about = Reference {
            kind: kind.kind.clone(),
            version: None,
            namespace: namespace.map(str::to_owned),
            name: "*".to_owned(),
        };
        let request = self.request(
            Method::GET,
            &kind.collection(namespace),
            "application/json",
            None,
        );
        match self.send("list", &about, request).await {
            Ok(list) => {
                let mut list = Self::parsed("list", &about, &list)?;
                Ok(match list.get_mut("items").map(Value::take) {
                    Some(Value::Array(items)) => items,
                    _ => Vec::new(),
                })
            }
            Err(ActionError::NotFound { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn path(&self, reference: &Reference) -> Result<String, UnknownKind> {
        let kind = self.kinds.find(reference)?;
        Ok(kind.path(reference.namespace.as_deref(), &reference.name))
    }

    async fn write(
        &self,
        verb: &'static str,
        reference: &Reference,
        method: Method,
        path: &str,
        media_type: &str,
        body: Option<&Value>,
    ) -> Result<(), ActionError> {
        self.writes.set(self.writes.get() + 1);
        let request = self.request(method, path, media_type, body);
        // What comes back is of no use.
        self.send(verb, reference, request).await.map(drop)
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        media_type: &str,
        body: Option<&Value>,
    ) -> Result<Request<Vec<u8>>, http::Error> {
        let body = body.map(|body| body.to_string().into_bytes());
        Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media_type)
            .body(body.unwrap_or_default())
    }

    async fn send(
        &self,
        verb: &'static str,
        reference: &Reference,
        request: Result<Request<Vec<u8>>, http::Error>,
    ) -> Result<String, ActionError> {
        let object = || reference.to_string();
        let refused = |message: String| ActionError::Refused {
            verb,
            object: object(),
            message,
        };
        let request = request.map_err(|error| refused(error.to_string()))?;
        match self.client.request_text(request).await {
            Ok(text) => Ok(text),
            Err(kube::Error::Api(status)) if status.code == 404 => Err(ActionError::NotFound {
                verb,
                object: object(),
            }),
            Err(kube::Error::Api(status)) => Err(refused(status.message.clone())),
            Err(error) => Err(refused(error.to_string())),
        }
    }

    /// What an answer says.
    fn parsed(
        verb: &'static str,
        reference: &Reference,
        answer: &str,
    ) -> Result<Value, ActionError> {
        serde_json::from_str(answer).map_err(|error| ActionError::Refused {
            verb,
            object: reference.to_string(),
            message: error.to_string(),
        })
    }
}
