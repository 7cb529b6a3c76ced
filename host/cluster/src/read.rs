//! Reading one object live, past the store.

use crate::cluster::Cluster;
use crate::object::{Object, ObjectError};
use crate::resource::Resource;
use crate::transport::{Call, CallError, TransportError};
use reeve_core::ObjectReference;
use serde::Deserialize;

/// Why an object could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The agent's own account may not read it.
    #[error("the agent may not get {reference}: {message}")]
    Forbidden {
        /// The object.
        reference: ObjectReference,
        /// In the API server's words.
        message: String,
    },
    /// The API server does not serve the kind any more.
    #[error("the api server no longer serves the kind of {reference}")]
    NotServed {
        /// The object.
        reference: ObjectReference,
    },
    /// No answer.
    #[error("cannot get {reference}")]
    Unreachable {
        /// The object.
        reference: ObjectReference,
        /// What went wrong on the way.
        source: TransportError,
    },
    /// Any other refusal.
    #[error("the api server refuses to get {reference} ({code}): {message}")]
    Refused {
        /// The object.
        reference: ObjectReference,
        /// HTTP status.
        code: u16,
        /// In the API server's words.
        message: String,
    },
    /// The answer is no object.
    #[error("cannot understand {reference} as it came from the api server")]
    Malformed {
        /// The object.
        reference: ObjectReference,
        /// What is wrong with it.
        source: ObjectError,
    },
}

impl Cluster {
    /// Reads an object as it is now, with the agent's own rights. None when there
    /// is no such object.
    pub async fn get(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Object>, ReadError> {
        let reference = || resource.reference(namespace, name);
        let answer = self.call(Call::get(resource.object_path(namespace, name)));
        let status = match answer.await {
            Ok(body) => {
                let object = Object::parse(resource, &body);
                return object.map(Some).map_err(|source| ReadError::Malformed {
                    reference: reference(),
                    source,
                });
            }
            Err(CallError::Transport(source)) => {
                return Err(ReadError::Unreachable {
                    reference: reference(),
                    source,
                });
            }
            Err(CallError::Status(status)) => status,
        };
        match status.code {
            // Only an answer about an object names one; a path that is not
            // served does not.
            404 if !status.details.name.is_empty() => Ok(None),
            404 => Err(ReadError::NotServed {
                reference: reference(),
            }),
            403 => Err(ReadError::Forbidden {
                reference: reference(),
                message: status.message,
            }),
            code => Err(ReadError::Refused {
                reference: reference(),
                code,
                message: status.message,
            }),
        }
    }

    /// Names of all objects of a kind in a namespace, with the agent's own rights,
    /// in the order of the API server. Nothing but metadata is transferred.
    pub async fn names(
        &self,
        resource: &Resource,
        namespace: &str,
    ) -> Result<Vec<String>, ReadError> {
        let reference = || resource.reference(Some(namespace), "");
        let mut names = Vec::new();
        let mut token = String::new();
        loop {
            let mut call = Call::get(resource.collection_path(Some(namespace)))
                .accept(ONLY_METADATA)
                .query("limit", NAMES_AT_ONCE);
            if !token.is_empty() {
                call = call.query("continue", &token);
            }
            let body = match self.call(call).await {
                Ok(body) => body,
                Err(CallError::Transport(source)) => {
                    return Err(ReadError::Unreachable {
                        reference: reference(),
                        source,
                    });
                }
                Err(CallError::Status(status)) if status.code == 403 => {
                    return Err(ReadError::Forbidden {
                        reference: reference(),
                        message: status.message,
                    });
                }
                Err(CallError::Status(status)) if status.code == 404 => {
                    return Err(ReadError::NotServed {
                        reference: reference(),
                    });
                }
                Err(CallError::Status(status)) => {
                    return Err(ReadError::Refused {
                        reference: reference(),
                        code: status.code,
                        message: status.message,
                    });
                }
            };
            let page: Names =
                serde_json::from_slice(&body).map_err(|source| ReadError::Malformed {
                    reference: reference(),
                    source: ObjectError::of_list(resource, source),
                })?;
            names.extend(page.items.into_iter().map(|item| item.metadata.name));
            token = page.metadata.next;
            if token.is_empty() {
                return Ok(names);
            }
        }
    }
}

/// Asks for metadata alone, and for ordinary objects from servers that do not know
/// how.
const ONLY_METADATA: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json";

/// Names asked for at once: as many as client-go's pager asks for.
const NAMES_AT_ONCE: &str = "500";

#[derive(Deserialize)]
struct Names {
    metadata: NamesMetadata,
    #[serde(default)]
    items: Vec<Named>,
}

#[derive(Deserialize)]
struct NamesMetadata {
    #[serde(default, rename = "continue")]
    next: String,
}

#[derive(Deserialize)]
struct Named {
    metadata: NamedMetadata,
}

#[derive(Deserialize)]
struct NamedMetadata {
    name: String,
}
