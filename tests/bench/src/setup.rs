//! Components and requests that several benchmarks use.

use crate::world::AGENT;
use anyhow::{Context as _, Result};
use bytes::Bytes;
use reeve_agent::AgentConfig;
use reeve_core::ObjectReference;
use reeve_engine::{Document, ListQuery, ReadError, Request, SourceError, View};
use reeve_real::{ControlPlane, User};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::task::JoinSet;

/// The bytes of a plugin of this repository.
pub(crate) fn plugin(name: &str) -> Result<Bytes> {
    let path = reeve_test_support::component(name);
    let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
    Ok(bytes.into())
}

/// The bytes of a guest of the tests.
pub(crate) fn guest(name: &str) -> Result<Bytes> {
    let path = reeve_test_support::guest(name);
    let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
    Ok(bytes.into())
}

/// A control plane that knows the agent's user and has no controllers, which would
/// take part of the machine.
pub(crate) async fn control_plane(audited: bool) -> Result<ControlPlane> {
    let mut builder = ControlPlane::builder()
        .user(User::new(AGENT))
        .controllers([]);
    if audited {
        builder = builder.audited();
    }
    tokio::task::spawn_blocking(|| builder.start()).await?
}

/// Does something with each number, from as many tasks as the agent has runs.
pub(crate) async fn spread<C, F, D>(count: usize, cluster: C, work: F) -> Result<()>
where
    C: Clone + Send + 'static,
    F: Fn(C, usize) -> D + Clone + Send + 'static,
    D: Future<Output = Result<()>> + Send + 'static,
{
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..AgentConfig::CONCURRENCY {
        let (work, next, cluster) = (work.clone(), next.clone(), cluster.clone());
        tasks.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return anyhow::Ok(());
                }
                work(cluster.clone(), number).await?;
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

/// A view of a cluster in which every list has the same in it, and there is nothing else.
#[derive(Default)]
pub(crate) struct Fixed {
    pub(crate) listed: Vec<Bytes>,
}

impl View for Fixed {
    fn get(&self, _: &ObjectReference, _: &[String]) -> Result<Option<Bytes>, ReadError> {
        Ok(None)
    }

    fn list(&self, _: &ListQuery) -> Result<Vec<Bytes>, ReadError> {
        Ok(self.listed.clone())
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
        ..Request::default()
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
