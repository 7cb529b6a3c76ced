//! What a definition says about a version of a custom kind.

use reeve_cluster::{Cluster, Resource};
use reeve_core::GroupVersionKind;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Versions of definitions that were looked up.
#[derive(Default)]
pub(super) struct Schemas(Mutex<HashMap<GroupVersionKind, Option<Arc<Value>>>>);

impl Schemas {
    /// The entry of `spec.versions` of a kind's definition. None for built-in kinds,
    /// and where the definition cannot be read: the change can then still be told,
    /// though less exactly for lists.
    pub(super) async fn version(
        &self,
        cluster: &Cluster,
        resource: &Resource,
    ) -> Option<Arc<Value>> {
        let kind = &resource.kind;
        if kind.group.is_empty() {
            return None;
        }
        let mut known = self.0.lock().await;
        if let Some(version) = known.get(kind) {
            return version.clone();
        }
        let definitions = Resource {
            kind: GroupVersionKind::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
            plural: "customresourcedefinitions".into(),
            namespaced: false,
        };
        let name = resource.to_string();
        let found = match cluster.get(&definitions, None, &name).await {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(%kind, %error, "definition not read");
                None
            }
        };
        let version = found.and_then(|definition| {
            let definition = definition.value();
            let versions = definition.pointer("/spec/versions")?.as_array()?;
            let version = versions.iter().find(|one| one["name"] == kind.version)?;
            Some(Arc::new(version.clone()))
        });
        known.insert(kind.clone(), version.clone());
        version
    }
}
