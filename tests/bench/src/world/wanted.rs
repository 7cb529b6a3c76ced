//! Objects that are applied: by whoever installs, and by the agent.

use super::NAMESPACE;
use anyhow::{Context as _, Result};
use reeve_cluster::{Apply, Cluster, Identity, Preconditions};
use reeve_core::ownership::field_manager;
use reeve_core::{GroupVersionKind, ObjectReference};
use serde_json::Value;
use std::time::Duration;

/// An object as the agent sends it, and the plugin for which it does.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) plugin: String,
    /// The account as which it is sent, in the agent's namespace.
    pub(crate) account: String,
    pub(crate) reference: ObjectReference,
    pub(crate) body: Value,
}

impl Wanted {
    /// From a body that names its object in full.
    pub(crate) fn new(plugin: &str, body: Value) -> Result<Self> {
        Ok(Self {
            plugin: plugin.to_owned(),
            account: plugin.to_owned(),
            reference: reference(&body)?,
            body,
        })
    }

    /// The same, sent as another account than the one of the plugin's name.
    pub(crate) fn sent_as(self, account: &str) -> Self {
        Self {
            account: account.to_owned(),
            ..self
        }
    }

    /// Applies it as the agent does: as the plugin's account and manager.
    pub(crate) async fn send(&self, cluster: &Cluster) -> Result<()> {
        let resource = cluster.resolve(&self.reference.kind).await?;
        cluster
            .apply(Apply {
                resource: &resource,
                namespace: self.reference.namespace.as_deref(),
                name: &self.reference.name,
                body: (&self.body).into(),
                onto: Preconditions::default(),
                manager: &field_manager(&self.plugin),
                force: false,
                strict: true,
                dry_run: false,
                identity: Some(&Identity::service_account(NAMESPACE, &self.account)),
            })
            .await?;
        Ok(())
    }
}

/// The object that a body names.
fn reference(object: &Value) -> Result<ObjectReference> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let kind = GroupVersionKind::from_fields(
        text("/apiVersion").context("apiVersion")?,
        text("/kind").context("kind")?,
    );
    Ok(ObjectReference::new(
        kind.context("kind")?,
        text("/metadata/namespace").map(str::to_owned),
        text("/metadata/name").context("name")?,
    ))
}

/// Applies an object that somebody installs.
pub(crate) async fn apply(admin: &Cluster, object: &Value) -> Result<()> {
    let reference = reference(object)?;
    let mut attempts = 0;
    let resource = loop {
        match admin.resolve(&reference.kind).await {
            // The kind may have been defined a moment ago.
            Err(_) if attempts < 100 => {
                attempts += 1;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            resolved => break resolved?,
        }
    };
    admin
        .apply(Apply {
            resource: &resource,
            namespace: reference.namespace.as_deref(),
            name: &reference.name,
            body: object.into(),
            onto: Preconditions::default(),
            manager: "bench",
            force: true,
            strict: true,
            dry_run: false,
            identity: None,
        })
        .await?;
    Ok(())
}
