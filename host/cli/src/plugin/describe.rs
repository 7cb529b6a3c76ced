//! What a component says of itself, asked in the sandbox.

use super::source::Source;
use crate::compile::CacheArgs;
use anyhow::{Context as _, anyhow, bail};
use reeve_agent::{GuestThreads, SchemaError, check_config};
use reeve_cluster::{Cluster, ResolveError};
use reeve_core::chain::chain;
use reeve_core::grant::{self, Served};
use reeve_core::manifest::{ManifestError, RawManifest};
use reeve_core::printable::printable;
use reeve_core::{GroupVersionKind, Manifest, Metadata};
use reeve_engine::{Component, Limits};
use std::collections::HashMap;

/// A component that is one of our world.
pub(crate) struct Described {
    pub(crate) component: Component,
    pub(crate) metadata: Metadata,
}

/// Compiles a component and asks it who it is.
pub(crate) async fn describe(source: &Source, cache: &CacheArgs) -> anyhow::Result<Described> {
    let component = cache
        .engine()?
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
    /// What it declares for its configuration, with the kinds of a cluster in the place of
    /// wildcards, if they are allowed.
    pub(crate) async fn manifest(
        &self,
        source: &Source,
        wildcards: Option<&Cluster>,
    ) -> anyhow::Result<Manifest> {
        let mut raw = self.raw_manifest(source).await?;
        if let Some(cluster) = wildcards {
            cluster.expand(&mut raw).await?;
        }
        Manifest::try_from(raw).map_err(|error| unusable(&error))
    }

    /// What it declares for its configuration, wildcards included.
    pub(crate) async fn declared(&self, source: &Source) -> anyhow::Result<Manifest> {
        let raw = self.raw_manifest(source).await?;
        Manifest::as_declared(raw).map_err(|error| unusable(&error))
    }

    /// Asks as an agent does: once the configuration fits the component's own schema.
    async fn raw_manifest(&self, source: &Source) -> anyhow::Result<RawManifest> {
        let schema = self.metadata.config_schema.clone();
        let config = source.package.config.clone();
        match check_config(&GuestThreads::default(), schema, config).await {
            Ok(()) => {}
            Err(SchemaError::Config(what)) => bail!("its configuration is not valid: {what}"),
            Err(error) => return Err(error.into()),
        }
        self.component
            .describe(source.package.config.clone(), &Limits::default())
            .await?
            .value
            .map_err(|error| {
                anyhow!(
                    "the plugin refuses its configuration: {}: {}",
                    error.path,
                    error.message
                )
            })
    }
}

/// What is wrong with a manifest, which may be in the component's own words.
fn unusable(error: &ManifestError) -> anyhow::Error {
    anyhow!("its manifest cannot be used: {}", printable(chain(error)))
}

/// How a cluster serves the kinds of a manifest.
pub(crate) struct Kinds {
    served: HashMap<GroupVersionKind, Served>,
    /// Those that it does not serve yet, and that the plugin may bring.
    expected: Vec<GroupVersionKind>,
}

impl Kinds {
    pub(crate) async fn of(cluster: &Cluster, manifest: &Manifest) -> anyhow::Result<Self> {
        let mut kinds = Self {
            served: HashMap::new(),
            expected: Vec::new(),
        };
        for kind in manifest.kinds() {
            let served = match cluster.resolve(kind).await {
                Ok(resource) => Served {
                    plural: resource.plural.to_string(),
                    namespaced: resource.namespaced,
                },
                Err(ResolveError::NotServed { .. }) if manifest.may_bring(kind) => {
                    kinds.expected.push(kind.clone());
                    grant::expected(manifest, kind)
                }
                Err(error) => return Err(error.into()),
            };
            kinds.served.insert(kind.clone(), served);
        }
        Ok(kinds)
    }

    /// What of that is not known for certain.
    pub(crate) fn cautions(&self) -> Vec<String> {
        let expected = self.expected.iter();
        let lines = expected.map(|kind| {
            format!(
                "{kind} is not served yet, and taken to be the resource {}.{}; if its definition \
                 calls it otherwise, grant once more when that is there",
                self.served(kind).plural,
                kind.group
            )
        });
        lines.collect()
    }

    /// Whether a kind of it lives in namespaces, where that is certain.
    pub(crate) fn namespaced(&self, kind: &GroupVersionKind) -> Option<bool> {
        let expected = self.expected.contains(kind);
        let served = self.served.get(kind).filter(|_| !expected);
        served.map(|served| served.namespaced)
    }

    /// How a kind of that manifest is served.
    pub(crate) fn served(&self, kind: &GroupVersionKind) -> Served {
        self.served.get(kind).cloned().unwrap_or_default()
    }
}
