//! What a kind looks like, in the API server's own words.

use crate::cluster::Cluster;
use crate::resource::version_path;
use crate::transport::{Call, CallError, TransportError};
use reeve_core::GroupVersionKind;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The extension that says which kind a schema is of.
const KIND: &str = "x-kubernetes-group-version-kind";

/// Why it is not known what a kind looks like.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// No answer.
    #[error("no answer about the schema of {kind}")]
    Unreachable {
        /// The kind.
        kind: GroupVersionKind,
        /// What went wrong on the way.
        source: TransportError,
    },
    /// The API server does not tell.
    #[error("the api server does not give the schema of {kind} ({code}): {message}")]
    Refused {
        /// The kind.
        kind: GroupVersionKind,
        /// HTTP status.
        code: u16,
        /// In the API server's words.
        message: String,
    },
    /// The answer is no JSON.
    #[error("cannot understand the schema of {kind} as it came from the api server")]
    Malformed {
        /// The kind.
        kind: GroupVersionKind,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// The index of all published schemas.
const INDEX: &str = "/openapi/v3";

impl Cluster {
    /// What changes when the API server publishes another schema of one of these kinds:
    /// the addresses of the documents they are in, which contain a hash. One request,
    /// however many kinds; a kind that is not published adds nothing.
    pub async fn schema_versions(
        &self,
        kinds: &BTreeSet<GroupVersionKind>,
    ) -> Result<BTreeMap<String, String>, SchemaError> {
        let Some(first) = kinds.first() else {
            return Ok(BTreeMap::new());
        };
        let body = match self.call(Call::get(INDEX.to_owned())).await {
            Ok(body) => body,
            Err(CallError::Status(status)) => {
                return Err(SchemaError::Refused {
                    kind: first.clone(),
                    code: status.code,
                    message: status.message,
                });
            }
            Err(CallError::Transport(source)) => {
                let kind = first.clone();
                return Err(SchemaError::Unreachable { kind, source });
            }
        };
        let index: Value =
            serde_json::from_slice(&body).map_err(|source| SchemaError::Malformed {
                kind: first.clone(),
                source,
            })?;
        let documents = kinds.iter().filter_map(|kind| {
            let path = version_path(kind).trim_start_matches('/').to_owned();
            let url = index["paths"][&path]["serverRelativeURL"].as_str()?;
            Some((path, url.to_owned()))
        });
        Ok(documents.collect())
    }

    /// The schema of a kind (OpenAPI, version 3), if the API server publishes one.
    /// Everybody who is authenticated may read it.
    pub async fn schema(&self, kind: &GroupVersionKind) -> Result<Option<Value>, SchemaError> {
        let path = format!("/openapi/v3{}", version_path(kind));
        let body = match self.call(Call::get(path)).await {
            Ok(body) => body,
            Err(CallError::Status(status)) if status.code == 404 => return Ok(None),
            Err(CallError::Status(status)) => {
                return Err(SchemaError::Refused {
                    kind: kind.clone(),
                    code: status.code,
                    message: status.message,
                });
            }
            Err(CallError::Transport(source)) => {
                let kind = kind.clone();
                return Err(SchemaError::Unreachable { kind, source });
            }
        };
        let mut document: Value =
            serde_json::from_slice(&body).map_err(|source| SchemaError::Malformed {
                kind: kind.clone(),
                source,
            })?;
        let schemas = document.pointer_mut("/components/schemas");
        let schemas = schemas.and_then(Value::as_object_mut).map(std::mem::take);
        let is_of_kind = |schema: &Value| {
            let kinds = schema[KIND].as_array().into_iter().flatten();
            kinds.into_iter().any(|one| {
                one["group"] == kind.group.as_str()
                    && one["version"] == kind.version.as_str()
                    && one["kind"] == kind.kind.as_str()
            })
        };
        let mut schemas = schemas.into_iter().flatten().map(|(_, schema)| schema);
        Ok(schemas.find(is_of_kind))
    }
}
