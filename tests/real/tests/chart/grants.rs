//! What charts grant, held against what `reeve plugin grant` prints for the plugins that
//! they configure.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use reeve_real::{EmbeddedCluster, binary};
use reeve_test_support::component;
use serde_json::{Value, json};

use crate::stage::NAMESPACE;

/// Kind, namespace and name.
type Key = (String, String, String);

/// A cluster that serves the kinds of plugins, and is asked what they need.
pub(crate) struct Asked {
    cluster: EmbeddedCluster,
}

impl Asked {
    /// One with Reeve's kinds and those in these folders of `plugins`.
    pub(crate) fn new(definitions: &[&str]) -> Result<Self> {
        let cluster = EmbeddedCluster::start()?;
        let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins");
        for folder in definitions {
            apply(&cluster, &plugins.join(folder))?;
        }
        let kinds = Command::new(binary()?).arg("crds").output()?;
        let file = cluster.folder().join("kinds.yaml");
        fs::write(&file, kinds.stdout)?;
        apply(&cluster, &file)?;
        Ok(Self { cluster })
    }

    /// A folder for files, which goes with the cluster.
    pub(crate) fn home(&self) -> &Path {
        self.cluster.folder()
    }

    /// Makes an object.
    pub(crate) fn apply(&self, object: &Value) -> Result<()> {
        let file = self.home().join("object.json");
        fs::write(&file, object.to_string())?;
        apply(&self.cluster, &file)
    }

    /// That each plugin among the objects of a chart is granted just what it asks for.
    pub(crate) fn check(
        &self,
        objects: &[Value],
        component_of: impl Fn(&str) -> &str,
        selector: &str,
    ) -> Result<()> {
        let home = self.home();
        // What the Plugins may reach outside has a part in it.
        let plugins = objects.iter().filter(|one| one["kind"] == "Plugin");
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE},
        });
        let items: Vec<&Value> = std::iter::once(&namespace).chain(plugins).collect();
        self.apply(&json!({"apiVersion": "v1", "kind": "List", "items": items}))?;
        let configured = configured(objects);
        ensure!(!configured.is_empty(), "no plugin is configured");
        for (plugin, config) in configured {
            let file = home.join(format!("{plugin}.yaml"));
            fs::write(&file, config)?;
            let printed = Command::new(binary()?)
                .args(["plugin", "grant", &plugin, "-o", "json"])
                .args(["--namespace", NAMESPACE])
                .args(["--namespace-selector", selector])
                .arg("--component")
                .arg(component(component_of(&plugin)))
                .arg("--config")
                .arg(&file)
                .env("KUBECONFIG", self.cluster.kubeconfig())
                .output()?;
            ensure!(
                printed.status.success(),
                "{plugin}: {}",
                String::from_utf8_lossy(&printed.stderr)
            );
            let printed: Value = serde_json::from_slice(&printed.stdout)?;
            let asked = printed["items"].as_array().context("no objects")?;
            let asked: BTreeMap<Key, Value> = asked.iter().cloned().map(normal).collect();
            let granted = objects.iter().filter(|object| {
                let label = &object["metadata"]["labels"]["reeve.dev/granted-to"];
                *label == plugin.as_str() || asked.contains_key(&key(object))
            });
            let granted: BTreeMap<Key, Value> = granted.cloned().map(normal).collect();
            for key in asked.keys().chain(granted.keys()) {
                ensure!(
                    asked.get(key) == granted.get(key),
                    "{plugin}: {key:?} is {:?} in the chart, and {:?} is asked for",
                    granted.get(key),
                    asked.get(key)
                );
            }
        }
        Ok(())
    }
}

/// Name and configuration of each plugin among the objects.
pub(crate) fn configured(objects: &[Value]) -> Vec<(String, String)> {
    let text = |object: &Value, pointer: &str| {
        let found = object.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let maps = objects
        .iter()
        .filter(|object| object["kind"] == "ConfigMap");
    maps.map(|map| (text(map, "/metadata/name"), text(map, "/data/config.yaml")))
        .collect()
}

fn key(object: &Value) -> Key {
    let text = |pointer: &str| {
        let found = object.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    (
        text("/kind"),
        text("/metadata/namespace"),
        text("/metadata/name"),
    )
}

/// What means the same, written the same.
fn normal(mut object: Value) -> (Key, Value) {
    let labels = object["metadata"]["labels"].as_object();
    let granted: serde_json::Map<String, Value> = labels
        .into_iter()
        .flatten()
        .filter(|(label, _)| label.starts_with("reeve.dev/"))
        .map(|(label, value)| (label.clone(), value.clone()))
        .collect();
    object["metadata"]["labels"] = json!(granted);
    if let Some(rules) = object.get_mut("rules").and_then(Value::as_array_mut) {
        rules.sort_by_key(Value::to_string);
    }
    (key(&object), object)
}

/// Applies a file, or those of a folder.
fn apply(cluster: &EmbeddedCluster, path: &Path) -> Result<()> {
    let path = path.to_str().context("a path in UTF-8")?;
    cluster.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", path])?;
    Ok(())
}
