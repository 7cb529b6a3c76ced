//! Puts things into the embedded cluster, as its administrator.

use super::grants::{Grants, nothing_granted};
use super::{NAMESPACE, sample};
use anyhow::{Context as _, bail};
use bytes::Bytes;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use reeve_agent::delivery;
use reeve_api::PLUGIN_CONFIG_MAP_LABEL;
use reeve_cluster::{Apply, Cluster, Preconditions, ResolveError};
use reeve_core::GroupVersionKind;
use reeve_engine::Engine;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::Mutex;

/// Installs plugins with the rights that they ask for.
pub(crate) struct Installer {
    pub(super) admin: kube::Client,
    pub(super) cluster: Cluster,
    pub(super) engine: Engine,
    pub(super) grants: Mutex<Grants>,
}

impl Installer {
    pub(crate) fn new(admin: kube::Client, engine: Engine) -> Self {
        Self {
            cluster: Cluster::new(admin.clone()),
            admin,
            engine,
            grants: Mutex::default(),
        }
    }

    /// Fills the cluster with what is there before any plugin. One that is not `fresh`
    /// has the Profiles that somebody left in it.
    pub(crate) async fn prepare(&self, fresh: bool) -> anyhow::Result<()> {
        let mut objects = sample::definitions()?;
        objects.extend(sample::base()?);
        if fresh {
            objects.extend(sample::profiles());
        }
        for object in objects {
            self.apply(&object).await?;
        }
        Ok(())
    }

    /// Installs a component, or a new version of it, beside the configuration that
    /// somebody may have given it. Returns what was granted that was not before, a line
    /// for each rule.
    pub(crate) async fn install(
        &self,
        name: &str,
        component: &Bytes,
    ) -> anyhow::Result<Vec<String>> {
        // Nobody else grants in the meantime: the new version would run without its rights.
        let mut grants = self.grants.lock().await;
        let granted = grants.entry(name.to_owned()).or_default();
        let maps: Api<ConfigMap> = Api::namespaced(self.admin.clone(), NAMESPACE);
        let installed = maps.get_opt(name).await?.unwrap_or_default();
        let lines = match delivery::config_of(&installed) {
            Ok(config) => self.authorize(name, granted, component, config).await,
            // It is followed from now on.
            Err(error) => vec![nothing_granted(&error)],
        };
        self.apply(&json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "labels": {PLUGIN_CONFIG_MAP_LABEL: "true"},
            },
            "binaryData": entry_of(component)?,
        }))
        .await?;
        Ok(lines)
    }

    pub(super) async fn apply(&self, object: &Value) -> anyhow::Result<()> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let (Some(api_version), Some(kind), Some(name)) =
            (text("/apiVersion"), text("/kind"), text("/metadata/name"))
        else {
            bail!("an object of the sample lacks apiVersion, kind or name");
        };
        let kind = GroupVersionKind::from_fields(api_version, kind)
            .with_context(|| format!("{api_version} is no API version"))?;
        let resource = self.resolve(&kind).await?;
        self.cluster
            .apply(Apply {
                resource: &resource,
                namespace: text("/metadata/namespace"),
                name,
                body: object.into(),
                onto: Preconditions::default(),
                manager: "reeve-dev",
                force: true,
                strict: true,
                dry_run: false,
                identity: None,
            })
            .await
            .with_context(|| format!("cannot apply {} {name}", kind.kind))?;
        Ok(())
    }

    /// A kind whose CRD was just applied may take a moment to be served.
    pub(super) async fn resolve(
        &self,
        kind: &GroupVersionKind,
    ) -> anyhow::Result<reeve_cluster::Resource> {
        let mut attempts = 0;
        loop {
            match self.cluster.resolve(kind).await {
                Err(ResolveError::NotServed { .. }) if attempts < 100 => {
                    attempts += 1;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                resolved => return Ok(resolved?),
            }
        }
    }
}

/// The entry of a ConfigMap with a component: as it is while that has room, since to compress
/// it takes time after each change.
fn entry_of(component: &[u8]) -> anyhow::Result<Value> {
    // The API server lets a ConfigMap have 1 MiB of data.
    const ROOM: usize = 1_000_000;
    let (name, bytes) = match component.len() {
        0..=ROOM => ("plugin.wasm", component.to_vec()),
        _ => ("plugin.wasm.zst", zstd::encode_all(component, 0)?),
    };
    if bytes.len() > ROOM {
        anyhow::bail!(
            "the component has {} bytes, {} when compressed, and a ConfigMap has room for {ROOM}; \
             build it for release (`reeve plugin build` and `reeve plugin package`, which \
             makes parts where that is needed), or make it smaller",
            component.len(),
            bytes.len()
        );
    }
    Ok(json!({name: k8s_openapi::ByteString(bytes)}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_has_room_in_a_config_map() {
        for (bytes, name) in [
            (1_000_000, "plugin.wasm"),
            (1_000_001, "plugin.wasm.zst"),
            (3_000_000, "plugin.wasm.zst"),
        ] {
            let entry = entry_of(&vec![7; bytes]).unwrap();
            let entry = entry.as_object().unwrap();
            assert_eq!(entry.keys().collect::<Vec<_>>(), [name]);
            assert!(entry[name].as_str().unwrap().len() < 1_400_000);
        }
        // What cannot be compressed: each byte from the one before, never the same for long.
        let mut state = 1_u64;
        let mut noise = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state.to_be_bytes()[0]
        };
        let dense: Vec<u8> = (0..1_100_000).map(|_| noise()).collect();
        let error = entry_of(&dense).unwrap_err().to_string();
        assert!(
            error.starts_with("the component has 1100000 bytes, "),
            "{error}"
        );
    }
}
