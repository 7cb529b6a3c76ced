//! Looking at one source once: over the network, in a file, or in what a scenario
//! gives.

use super::plain;
use crate::granted::Granted;
use crate::problem::chain;
use bytes::Bytes;
use reeve_core::manifest::{Origin, SourceRule, without_query};
use reeve_engine::Document;
use reeve_outside::{FetchError, Fetched, FileError, HttpError, Validators, document, file};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;

/// Where documents come from.
#[derive(Clone, Debug, Default)]
pub enum SourceFeed {
    /// From where the manifest says, as far as it is granted.
    #[default]
    Outside,
    /// From whoever runs the agent, as in a scenario: nothing outside is looked at.
    Given(watch::Receiver<GivenSources>),
}

/// Documents by the names of sources.
pub type GivenSources = Arc<BTreeMap<String, GivenSource>>;

/// What is given of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenSource {
    /// A document.
    Document {
        /// Its body.
        body: Bytes,
        /// Its media type.
        media_type: String,
    },
    /// It cannot be fetched, for this reason.
    Failing(String),
}

/// What a look gave.
#[derive(Debug)]
pub(super) enum Looked {
    /// Nothing new.
    Unchanged,
    /// A document.
    Document(Document, Validators),
    /// Nothing, and nothing will as long as the grants are as they are.
    Forbidden(String),
    /// Nothing this time.
    Failed(String),
}

/// The largest file that is a document, as large as a response may be.
const FILE_BYTES: u64 = 4 << 20;

pub(super) async fn look(rule: &SourceRule, granted: &Granted, known: Validators) -> Looked {
    match &rule.origin {
        Origin::Url(url) => match document::fetch(&granted.http, url, &known).await {
            Ok(Fetched::Unchanged) => Looked::Unchanged,
            Ok(Fetched::Document(found, validators)) => {
                let found = Document {
                    body: found.body,
                    media_type: found.media_type,
                };
                Looked::Document(found, validators)
            }
            Err(error) if is_forbidden(url, &error) => Looked::Forbidden(chain(&error)),
            Err(error) => Looked::Failed(chain(&error)),
        },
        Origin::File(path) => {
            let (path, folders) = (path.clone(), granted.files.clone());
            let read = move || file::read(Path::new(&path), &folders, FILE_BYTES);
            match tokio::task::spawn_blocking(read).await {
                Ok(Ok(body)) => Looked::Document(plain(body), Validators::default()),
                Ok(Err(error @ FileError::NotGranted { .. })) => {
                    Looked::Forbidden(error.to_string())
                }
                Ok(Err(error)) => Looked::Failed(error.to_string()),
                Err(error) => Looked::Failed(error.to_string()),
            }
        }
        // It is watched.
        Origin::ConfigMap(_) => Looked::Unchanged,
    }
}

/// Whether the URL itself is not granted. One that it redirects to may be another the
/// next time.
fn is_forbidden(url: &str, error: &FetchError) -> bool {
    match error {
        FetchError::Http(HttpError::NotGranted { url: refused, .. }) => {
            without_query(url).trim_end_matches('/') == refused.trim_end_matches('/')
        }
        FetchError::Http(HttpError::Url(_)) | FetchError::Url { .. } => true,
        _ => false,
    }
}
