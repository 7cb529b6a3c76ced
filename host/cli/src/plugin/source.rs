//! Where a plugin comes from: a component, packed or not, ConfigMaps in a file, or
//! those in a cluster.

use super::{outside, registry};
use anyhow::{Context as _, bail};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams};
use kube::core::ObjectMeta;
use reeve_agent::delivery::{
    self, DeliveryError, LABEL_BYTES, MAX_COMPONENT_BYTES, PART_OF_LABEL, Package,
};
use reeve_api::PLUGIN_CONFIG_MAP_LABEL;
use reeve_engine::{CompileLimits, check_component};
use serde_json::Value;
use std::path::Path;

/// A plugin as it is delivered.
pub(crate) struct Source {
    /// Name of the plugin.
    pub(crate) name: String,
    /// Its component and configuration.
    pub(crate) package: Package,
    /// Where it was found, for people.
    pub(crate) origin: String,
}

impl Source {
    /// Checks that it holds a component as an agent would take it, as far as that is told
    /// without compiling it.
    ///
    /// # Errors
    ///
    /// When it does not, with what an agent would say of it.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let limits = CompileLimits::default();
        check_component(&self.package.component, &limits)
            .with_context(|| format!("no agent would run {}", self.origin))
    }
}

/// Reads a plugin from a file: a component, one compressed with zstd or gzip, or
/// the ConfigMaps that deliver it, as YAML or JSON.
///
/// `config` replaces the configuration, `name` the name. Of several plugins in a
/// file `name` chooses one.
pub(crate) fn from_file(
    path: &Path,
    name: Option<&str>,
    config: Option<&Path>,
) -> anyhow::Result<Source> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let key = match &bytes[..] {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("plugin.wasm.zst"),
        [0x1f, 0x8b, ..] => Some("plugin.wasm.gz"),
        [0, b'a', b's', b'm', ..] => Some("plugin.wasm"),
        _ => None,
    };
    let (name, maps) = if let Some(key) = key {
        let name = name.map_or_else(|| file_name(path), str::to_owned);
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                ..ObjectMeta::default()
            },
            binary_data: Some([(key.to_owned(), ByteString(bytes))].into()),
            ..ConfigMap::default()
        };
        (name, vec![map])
    } else if let Ok(text) = std::str::from_utf8(&bytes) {
        let maps = config_maps(text).with_context(|| {
            format!(
                "{} is neither a component nor the ConfigMaps of one",
                path.display()
            )
        })?;
        (chosen(&maps, name, path)?, maps)
    } else {
        bail!(
            "{} is no component: it does not start as WebAssembly, zstd or gzip does",
            path.display()
        );
    };
    let mut package = match delivery::unpack(&name, &maps) {
        Ok(package) => package,
        // There is no ConfigMap yet that this could be about.
        Err(error) if key.is_some() => bail!("{}: {}", path.display(), of_file(&error)),
        Err(error) => return Err(error.into()),
    };
    if let Some(config) = config {
        package.config = read_config(config)?.into();
    }
    Ok(Source {
        name,
        package,
        origin: path.display().to_string(),
    })
}

/// Why a file holds no component, without the ConfigMap in which it would be.
fn of_file(error: &DeliveryError) -> String {
    match error {
        DeliveryError::Corrupt { problem, .. } => {
            format!("it does not decompress: {problem}; compress the component again")
        }
        DeliveryError::TooLarge { .. } => format!(
            "it holds more than {MAX_COMPONENT_BYTES} bytes after decompression; build it smaller"
        ),
        DeliveryError::Empty { .. } => "it is empty; name the built component".to_owned(),
        other => other.to_string(),
    }
}

/// Reads a plugin that is installed in a cluster.
pub(crate) async fn from_cluster(
    client: &kube::Client,
    namespace: &str,
    name: &str,
) -> anyhow::Result<Source> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let own = api
        .get_opt(name)
        .await
        .with_context(|| format!("cannot read ConfigMap {namespace}/{name}"))?;
    let policy = outside::policy(client, namespace, name).await?;
    if let Some(artifact) = policy.and_then(|policy| policy.artifact) {
        let config = delivery::unpack_config(name, own.as_slice())?;
        return registry::pull(name, &artifact, config).await;
    }
    let own = own.with_context(|| {
            format!(
                "there is no ConfigMap {namespace}/{name}, and no file of that name; `kubectl get configmaps -n {namespace} -l {PLUGIN_CONFIG_MAP_LABEL}=true` lists the plugins"
            )
        })?;
    let other = delivery::component_of(&own).map(str::to_owned);
    let mut maps = vec![own];
    if let Some(other) = other.as_deref().filter(|other| *other != name) {
        maps.extend(api.get_opt(other).await?);
    }
    let owners = [Some(name), other.as_deref()].into_iter().flatten();
    // No part can have the label of one whose name is longer, and to ask would be an error.
    for of in owners.filter(|of| of.len() <= LABEL_BYTES) {
        let labelled = ListParams::default().labels(&format!("{PART_OF_LABEL}={of}"));
        maps.extend(api.list(&labelled).await?.items);
    }
    Ok(Source {
        name: name.to_owned(),
        package: delivery::unpack(name, &maps)?,
        origin: format!("ConfigMap {namespace}/{name}"),
    })
}

/// Reads a configuration file, which is YAML, as the JSON that plugins are given.
pub(crate) fn read_config(path: &Path) -> anyhow::Result<Vec<u8>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    match delivery::parse_config(&text) {
        Ok(json) => Ok(json.to_vec()),
        Err(problem) => bail!("{} is no YAML: {problem}", path.display()),
    }
}

/// `quotas` for `target/plugins/quotas.wasm.zst`.
pub(crate) fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

fn config_maps(text: &str) -> anyhow::Result<Vec<ConfigMap>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)?;
    let mut maps = Vec::new();
    for document in documents {
        let items = match document.get("items") {
            Some(Value::Array(items)) => items.clone(),
            _ => vec![document],
        };
        for item in items {
            if item["kind"] == "ConfigMap" {
                maps.push(serde_json::from_value(item).context("a ConfigMap in it is malformed")?);
            }
        }
    }
    if maps.is_empty() {
        bail!("it holds no ConfigMap");
    }
    Ok(maps)
}

/// The plugin that is meant.
fn chosen(maps: &[ConfigMap], name: Option<&str>, path: &Path) -> anyhow::Result<String> {
    let is_plugin = |map: &&ConfigMap| {
        let labels = map.metadata.labels.as_ref();
        labels
            .and_then(|labels| labels.get(PLUGIN_CONFIG_MAP_LABEL))
            .map(String::as_str)
            == Some("true")
    };
    let plugins: Vec<&str> = maps
        .iter()
        .filter(is_plugin)
        .filter_map(|map| map.metadata.name.as_deref())
        .collect();
    let file = path.display();
    match (name, &plugins[..]) {
        (Some(name), _) => Ok(name.to_owned()),
        (None, [plugin]) => Ok((*plugin).to_owned()),
        (None, []) => {
            bail!("no ConfigMap in {file} has the label {PLUGIN_CONFIG_MAP_LABEL}=true")
        }
        (None, several) => bail!(
            "{file} holds several plugins: {}; choose one with --name",
            several.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_agent::delivery::{PackOptions, pack};
    use std::fs;

    #[test]
    fn what_no_agent_would_run_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("module.wasm");
        // A core module, and one that breaks off.
        for (bytes, part) in [
            (&b"\0asm\x01\0\0\0"[..], "core WebAssembly module"),
            (b"\0asm\x0d\0\x01\0\x07", "the component is not valid"),
        ] {
            fs::write(&path, bytes).unwrap();
            let source = from_file(&path, None, None).unwrap();
            let error = format!("{:#}", source.check().unwrap_err());
            let whole = format!("no agent would run {}: ", path.display());
            assert!(error.starts_with(&whole) && error.contains(part), "{error}");
        }
        let good = reeve_test_support::component("quotas");
        from_file(&good, None, None).unwrap().check().unwrap();
    }

    #[test]
    fn every_form_holds_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let component: Vec<u8> = (0..40_u32)
            .flat_map(|n| *reeve_core::Digest::of(&n.to_le_bytes()).bytes())
            .collect();
        let component = [b"\0asm".to_vec(), component].concat();
        let options = PackOptions {
            part_bytes: 400,
            config: Some("a: 1"),
            ..PackOptions::new("quotas")
        };
        let maps = pack(&component, &options).unwrap();
        assert!(maps.len() > 2);
        let documents: Vec<String> = maps
            .iter()
            .map(|map| serde_saphyr::to_string(map).unwrap())
            .collect();
        let list = serde_json::json!({"kind": "List", "items": maps}).to_string();
        for (file, bytes) in [
            ("quotas.wasm", component.clone()),
            (
                "quotas.wasm.zst",
                zstd::encode_all(&component[..], 1).unwrap(),
            ),
            ("any.yaml", documents.join("---\n").into_bytes()),
            ("any.json", list.into_bytes()),
        ] {
            let path = folder.path().join(file);
            fs::write(&path, bytes).unwrap();
            let found = from_file(&path, None, None).unwrap();
            assert_eq!(found.name, "quotas", "{file}");
            assert_eq!(found.package.component, component, "{file}");
        }
    }

    #[test]
    fn what_is_none_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let two = "kind: ConfigMap\nmetadata: {name: a, labels: {reeve.dev/plugin: 'true'}}\n---\n\
            kind: ConfigMap\nmetadata: {name: b, labels: {reeve.dev/plugin: 'true'}}\n";
        for (bytes, expected) in [
            (&b"\xff\xfe"[..], "is no component"),
            (b"text", "neither a component nor the ConfigMaps of one"),
            (b"kind: ConfigMap\n", "has the label reeve.dev/plugin=true"),
            (
                two.as_bytes(),
                "holds several plugins: a, b; choose one with --name",
            ),
        ] {
            let path = folder.path().join("x");
            fs::write(&path, bytes).unwrap();
            let Err(error) = from_file(&path, None, None) else {
                panic!("{expected}");
            };
            assert!(format!("{error:#}").contains(expected), "{error:#}");
        }
    }
}
