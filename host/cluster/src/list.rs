//! Listing live, page by page, past the store: nothing but metadata is sent.

use crate::cluster::Cluster;
use crate::object::{Object, ObjectError};
use crate::resource::Resource;
use crate::transport::{Call, CallError, TransportError};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;

/// Asks for metadata alone, and for ordinary objects from servers that do not know
/// how.
const ONLY_METADATA: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json";

/// Objects asked for at once where all are wanted: as many as client-go's pager
/// asks for.
const ALL_AT_ONCE: u32 = 500;

/// Objects that are asked for.
#[derive(Clone, Debug)]
pub struct List<'a> {
    /// Their kind.
    pub resource: &'a Resource,
    /// Their namespace; all of them if none.
    pub namespace: Option<&'a str>,
    /// A label selector, as the API server reads it; empty for all.
    pub selector: &'a str,
    /// How many to answer with at most.
    pub limit: u32,
    /// Where an earlier page ended; empty for the first.
    pub after: &'a str,
}

/// Some of the objects that were asked for.
#[derive(Debug)]
pub struct Page {
    /// The objects, with their metadata and nothing else that counts.
    pub objects: Vec<Object>,
    /// Where the next page starts, if there is one.
    pub next: Option<String>,
}

/// Why objects could not be listed.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The agent's own account may not list them.
    #[error("the agent may not list {resource}: {message}")]
    Forbidden {
        /// Their kind.
        resource: String,
        /// In the API server's words.
        message: String,
    },
    /// The API server does not serve the kind any more.
    #[error("the api server no longer serves {resource}")]
    NotServed {
        /// Their kind.
        resource: String,
    },
    /// No answer.
    #[error("cannot list {resource}")]
    Unreachable {
        /// Their kind.
        resource: String,
        /// What went wrong on the way.
        source: TransportError,
    },
    /// Any other refusal.
    #[error("the api server refuses to list {resource} ({code}): {message}")]
    Refused {
        /// Their kind.
        resource: String,
        /// HTTP status.
        code: u16,
        /// In the API server's words.
        message: String,
    },
    /// The answer is no list of objects.
    #[error("cannot understand the list of {resource} as it came from the api server")]
    Malformed {
        /// Their kind.
        resource: String,
        /// What is wrong with it.
        source: ObjectError,
    },
}

impl Cluster {
    /// Lists metadata of objects, with the agent's own rights, in the order of the
    /// API server: one page, which may be shorter than the limit although more
    /// follow.
    pub async fn list_metadata(&self, list: List<'_>) -> Result<Page, ListError> {
        let resource = list.resource;
        let mut call = Call::get(resource.collection_path(list.namespace))
            .accept(ONLY_METADATA)
            .query("limit", &list.limit.to_string());
        for (key, value) in [("labelSelector", list.selector), ("continue", list.after)] {
            if !value.is_empty() {
                call = call.query(key, value);
            }
        }
        let body = self
            .call(call)
            .await
            .map_err(|error| list_error(resource, error))?;
        let malformed = |source| ListError::Malformed {
            resource: resource.to_string(),
            source,
        };
        let page: Wire<'_> = serde_json::from_slice(&body)
            .map_err(|source| malformed(ObjectError::of_list(resource, source)))?;
        let shared = Arc::new(resource.clone());
        let objects = page.items.unwrap_or_default();
        let objects = objects
            .into_iter()
            .map(|item| Object::parse_shared(&shared, item.get()))
            .collect::<Result<_, _>>()
            .map_err(malformed)?;
        let next = Some(page.metadata.next).filter(|token| !token.is_empty());
        Ok(Page { objects, next })
    }

    /// Names of all objects of a kind in a namespace, as
    /// [`list_metadata`](Self::list_metadata) has them.
    pub async fn names(
        &self,
        resource: &Resource,
        namespace: &str,
    ) -> Result<Vec<String>, ListError> {
        let mut names = Vec::new();
        let mut after = String::new();
        loop {
            let list = List {
                resource,
                namespace: Some(namespace),
                selector: "",
                limit: ALL_AT_ONCE,
                after: &after,
            };
            let page = self.list_metadata(list).await?;
            names.extend(page.objects.iter().map(|object| object.name().to_owned()));
            match page.next {
                Some(token) => after = token,
                None => return Ok(names),
            }
        }
    }
}

fn list_error(resource: &Resource, error: CallError) -> ListError {
    let resource = resource.to_string();
    match error {
        CallError::Transport(source) => ListError::Unreachable { resource, source },
        CallError::Status(status) => match status.code {
            403 => ListError::Forbidden {
                resource,
                message: status.message,
            },
            404 => ListError::NotServed { resource },
            code => ListError::Refused {
                resource,
                code,
                message: status.message,
            },
        },
    }
}

/// A page of a list, its items as they came.
#[derive(Deserialize)]
struct Wire<'a> {
    metadata: WireMetadata,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct WireMetadata {
    #[serde(default, rename = "continue")]
    next: String,
}
