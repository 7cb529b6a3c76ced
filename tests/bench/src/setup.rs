//! Components and requests that several benchmarks use.

use anyhow::{Context as _, Result};
use bytes::Bytes;
use reeve_core::ObjectReference;
use reeve_engine::{Document, ListQuery, ReadError, Request, SourceError, View};
use serde_json::{Value, json};

/// The bytes of a plugin of this repository.
pub(crate) fn plugin(name: &str) -> Result<Bytes> {
    let path = reeve_test_support::component(name);
    let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
    Ok(bytes.into())
}

/// A view of an empty cluster.
pub(crate) struct Empty;

impl View for Empty {
    fn get(&self, _: &ObjectReference, _: &[String]) -> Result<Option<Bytes>, ReadError> {
        Ok(None)
    }

    fn list(&self, _: &ListQuery) -> Result<Vec<Bytes>, ReadError> {
        Ok(Vec::new())
    }

    fn list_keys(&self, _: &ListQuery) -> Result<Vec<ObjectReference>, ReadError> {
        Ok(Vec::new())
    }

    fn now(&self) -> u64 {
        0
    }

    fn source_age(&self, name: &str) -> Result<u64, SourceError> {
        self.source(name).map(|_| 0)
    }

    fn source(&self, name: &str) -> Result<Document, SourceError> {
        Err(SourceError::Undeclared(name.to_owned()))
    }
}

/// A request for a Profile of this name.
pub(crate) fn request(profile: &Value) -> Request {
    Request {
        primary: Bytes::from(profile.to_string()),
        config: Bytes::from_static(b"{}"),
        facts: Vec::new(),
    }
}

/// A Profile of 1.5 KB: two limits and a number of labels that mean nothing.
pub(crate) fn large_profile() -> Value {
    let mut labels = serde_json::Map::new();
    labels.insert("quotas.statcan.gc.ca/gpu".to_owned(), json!("4"));
    labels.insert("quotas.statcan.gc.ca/requests.cpu".to_owned(), json!("96"));
    let mut number = 0;
    loop {
        let profile = json!({
            "apiVersion": "kubeflow.org/v1", "kind": "Profile",
            "metadata": {"name": "alice", "uid": "3f8e", "labels": labels},
        });
        if profile.to_string().len() >= 1500 {
            return profile;
        }
        number += 1;
        labels.insert(
            format!("example.com/label-{number}"),
            json!(format!("value-{number}")),
        );
    }
}
