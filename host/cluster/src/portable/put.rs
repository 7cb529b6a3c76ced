//! Making objects that came from another cluster.

use crate::cluster::Cluster;
use crate::resource::Resource;
use crate::transport::{Call, CallError};
use http::Method;
use reeve_core::GroupVersionKind;
use serde_json::Value;
use std::collections::HashMap;

/// Who owns the fields of what is made.
const MANAGER: &str = "reeve-load";
const APPLY: &str = "application/apply-patch+yaml";

/// What was made of given objects.
#[derive(Debug, Default)]
pub struct Given {
    /// How many objects there are now as they were given.
    pub made: usize,
    /// The others, and why.
    pub refused: Vec<(String, PutError)>,
}

/// Why an object could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PutError {
    /// It does not say what it is.
    #[error("it lacks apiVersion, kind or metadata.name")]
    Nameless,
    /// Its kind is not served.
    #[error(transparent)]
    Kind(#[from] crate::discovery::ResolveError),
    /// Its owner is not there, so that garbage collection would take it.
    #[error(
        "its owner {kind} {name} is not there; give that first, or leave it out of metadata.ownerReferences"
    )]
    NoOwner {
        /// The owner's kind.
        kind: String,
        /// The owner's name.
        name: String,
    },
    /// The server does not take it.
    #[error("{0}")]
    Refused(String),
    /// No answer.
    #[error("no answer")]
    Unreachable(#[source] crate::transport::TransportError),
}

/// The uids of what was made: by group, kind, namespace and name.
type Made = HashMap<(String, String, String, String), String>;

impl Cluster {
    /// Applies objects in their order, and their `status`. Owners that are named
    /// without a uid get that of the object of their name, which has to be there by
    /// then. An object that is refused keeps none of the others from being made.
    pub async fn give(&self, objects: &[Value], progress: &mut dyn FnMut(usize)) -> Given {
        let mut given = Given::default();
        let mut made = Made::new();
        for (at, object) in objects.iter().enumerate() {
            match self.give_one(object, &mut made).await {
                Ok(()) => given.made += 1,
                Err(error) => given.refused.push((title(object), error)),
            }
            progress(at + 1);
        }
        given
    }

    async fn give_one(&self, object: &Value, made: &mut Made) -> Result<(), PutError> {
        let text = |pointer: &str| {
            let text = object.pointer(pointer).and_then(Value::as_str);
            text.filter(|text| !text.is_empty())
        };
        let (Some(api_version), Some(kind), Some(name)) =
            (text("/apiVersion"), text("/kind"), text("/metadata/name"))
        else {
            return Err(PutError::Nameless);
        };
        let kind = GroupVersionKind::from_fields(api_version, kind).ok_or(PutError::Nameless)?;
        let resource = self.resolve(&kind).await?;
        let namespace = text("/metadata/namespace").unwrap_or("default");
        let namespace = resource.namespaced.then_some(namespace);
        let mut object = object.clone();
        self.find_owners(&mut object, namespace, made).await?;
        let path = resource.object_path(namespace, name);
        let answer = self.put(&path, &object).await?;
        let uid = answer.pointer("/metadata/uid").and_then(Value::as_str);
        if let Some(uid) = uid {
            made.insert(key(&kind, namespace, name), uid.to_owned());
        }
        if object.get("status").is_some_and(|status| !status.is_null()) {
            let written = self.put(&format!("{path}/status"), &object).await;
            let refused = matches!(written, Err(PutError::Refused(_)));
            // A kind without this path has taken the status with the rest.
            if !refused || self.has_status(&path).await {
                written?;
            }
        }
        Ok(())
    }

    /// Whether an object has a path for its status.
    async fn has_status(&self, path: &str) -> bool {
        let answer = self.call(Call::get(format!("{path}/status"))).await;
        !matches!(answer, Err(CallError::Status(status)) if status.code == 404)
    }

    async fn put(&self, path: &str, object: &Value) -> Result<Value, PutError> {
        let call = Call::new(Method::PATCH, path.to_owned())
            .query("fieldManager", MANAGER)
            .query("force", "true")
            .body(APPLY, object.to_string().into_bytes());
        let body = self.call(call).await.map_err(|error| match error {
            CallError::Transport(source) => PutError::Unreachable(source),
            CallError::Status(status) => PutError::Refused(status.message.clone()),
        })?;
        serde_json::from_slice(&body).map_err(|error| PutError::Refused(error.to_string()))
    }

    /// Fills in the uids of owners that lack theirs.
    async fn find_owners(
        &self,
        object: &mut Value,
        namespace: Option<&str>,
        made: &Made,
    ) -> Result<(), PutError> {
        let owners = object.pointer_mut("/metadata/ownerReferences");
        let owners = owners.and_then(Value::as_array_mut).into_iter().flatten();
        for owner in owners.filter(|owner| owner["uid"].as_str().is_none_or(str::is_empty)) {
            let field = |name: &str| owner[name].as_str().unwrap_or_default();
            let (kind, name) = (field("kind"), field("name"));
            let missing = || PutError::NoOwner {
                kind: kind.to_owned(),
                name: name.to_owned(),
            };
            let kind =
                GroupVersionKind::from_fields(field("apiVersion"), kind).ok_or_else(missing)?;
            let known = made
                .get(&self::key(&kind, namespace, name))
                .or_else(|| made.get(&self::key(&kind, None, name)));
            let uid = match known {
                Some(uid) => uid.clone(),
                None => {
                    let resource = self.resolve_in_any_version(&kind).await?;
                    self.uid(&resource, namespace, name)
                        .await?
                        .ok_or_else(missing)?
                }
            };
            owner["uid"] = uid.into();
        }
        Ok(())
    }

    async fn uid(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<String>, PutError> {
        let path = resource.object_path(namespace, name);
        let body = match self.call(Call::get(path)).await {
            Ok(body) => body,
            Err(CallError::Transport(source)) => return Err(PutError::Unreachable(source)),
            Err(CallError::Status(_)) => return Ok(None),
        };
        let object: Value = serde_json::from_slice(&body).unwrap_or_default();
        let uid = object.pointer("/metadata/uid").and_then(Value::as_str);
        Ok(uid.map(str::to_owned))
    }
}

fn key(
    kind: &GroupVersionKind,
    namespace: Option<&str>,
    name: &str,
) -> (String, String, String, String) {
    (
        kind.group.to_string(),
        kind.kind.to_string(),
        namespace.unwrap_or_default().to_owned(),
        name.to_owned(),
    )
}

/// How an object is named to people.
fn title(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let kind = text("/kind").unwrap_or("an object");
    let name = text("/metadata/name").unwrap_or("without a name");
    match text("/metadata/namespace") {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}
