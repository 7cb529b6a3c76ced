//! What a component says of itself, asked in the sandbox.

use super::source::Source;
use crate::compile;
use anyhow::{Context as _, anyhow};
use reeve_cluster::Cluster;
use reeve_core::grant::Served;
use reeve_core::{GroupVersionKind, Manifest, Metadata};
use reeve_engine::{Component, Engine, EngineConfig, Limits};
use std::collections::HashMap;

/// A component that is one of our world.
pub(crate) struct Described {
    pub(crate) component: Component,
    pub(crate) metadata: Metadata,
}

/// Compiles a component and asks it who it is.
pub(crate) async fn describe(source: &Source) -> anyhow::Result<Described> {
    let engine = Engine::new(EngineConfig::new(compile::compiler()?))?;
    let component = engine
        .load(source.package.component.clone())
        .await
        .with_context(|| format!("{} does not load", source.origin))?;
    let metadata = component.metadata(&Limits::default()).await?.value;
    Ok(Described {
        component,
        metadata,
    })
}

impl Described {
    /// What it declares for its configuration.
    pub(crate) async fn manifest(&self, source: &Source) -> anyhow::Result<Manifest> {
        let described = self
            .component
            .describe(source.package.config.clone(), &Limits::default())
            .await?
            .value
            .map_err(|error| {
                anyhow!(
                    "the plugin refuses its configuration: {}: {}",
                    error.path,
                    error.message
                )
            })?;
        Manifest::try_from(described).context("its manifest cannot be used")
    }
}

/// How a cluster serves the kinds of a manifest.
pub(crate) struct Kinds(HashMap<GroupVersionKind, Served>);

impl Kinds {
    pub(crate) async fn of(cluster: &Cluster, manifest: &Manifest) -> anyhow::Result<Self> {
        let mut kinds = HashMap::new();
        for kind in manifest.kinds() {
            let resource = cluster.resolve(kind).await?;
            let (plural, namespaced) = (resource.plural, resource.namespaced);
            kinds.insert(kind.clone(), Served { plural, namespaced });
        }
        Ok(Self(kinds))
    }

    /// How a kind of that manifest is served.
    pub(crate) fn served(&self, kind: &GroupVersionKind) -> Served {
        self.0.get(kind).cloned().unwrap_or_default()
    }
}
