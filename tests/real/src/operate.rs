//! What operators do to a cluster, with kubectl and `reeve`.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::looks::Look;
use crate::{ControlPlane, binary};

impl ControlPlane {
    /// Applies objects as the administrator.
    ///
    /// # Errors
    ///
    /// As [`Self::kubectl`].
    pub fn apply_objects(&self, objects: &[Value]) -> Result<()> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        self.apply(&list.to_string()).map(drop)
    }

    /// Applies a CustomResourceDefinition, and waits until it is established.
    ///
    /// # Errors
    ///
    /// As [`Self::kubectl`].
    pub fn establish(&self, definition: &Value) -> Result<()> {
        self.apply_objects(std::slice::from_ref(definition))?;
        let name = definition["metadata"]["name"].as_str();
        let name = format!("crd/{}", name.context("a definition has a name")?);
        let wait = [
            "wait",
            "--for=condition=Established",
            &name,
            "--timeout=60s",
        ];
        self.kubectl(&wait).map(drop)
    }

    /// Runs `reeve` as the administrator, and returns what it printed.
    ///
    /// # Errors
    ///
    /// When it fails; the message has its own.
    pub fn reeve(&self, arguments: &[&str]) -> Result<String> {
        let output = self.run_reeve(arguments)?;
        ensure!(
            output.status.success(),
            "`reeve {}` failed: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// As [`Self::reeve`], for what tells by its exit code. Returns that, and all that it
    /// printed, errors last.
    ///
    /// # Errors
    ///
    /// When it cannot be run.
    pub fn reeve_ended(&self, arguments: &[&str]) -> Result<(Option<i32>, String)> {
        let output = self.run_reeve(arguments)?;
        let said = [output.stdout, output.stderr].concat();
        Ok((output.status.code(), String::from_utf8(said)?))
    }

    fn run_reeve(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new(binary()?);
        command.args(arguments).env("KUBECONFIG", self.kubeconfig());
        Ok(command.output()?)
    }

    /// Installs the kinds of Reeve.
    ///
    /// # Errors
    ///
    /// As [`Self::kubectl`].
    pub fn install_kinds(&self) -> Result<()> {
        self.apply(&self.reeve(&["crds"])?).map(drop)
    }

    /// Delivers a plugin as the documentation says: a ConfigMap from a file, with the
    /// configuration if there is one, and the label.
    ///
    /// # Errors
    ///
    /// As [`Self::kubectl`].
    pub fn deliver(
        &self,
        namespace: &str,
        name: &str,
        component: &Path,
        config: Option<&Value>,
    ) -> Result<()> {
        let file = format!("--from-file=plugin.wasm={}", component.display());
        let config = config.map(|config| format!("--from-literal=config.yaml={config}"));
        let mut create = vec!["create", "configmap", name, "-n", namespace, &file];
        create.extend(config.as_deref());
        self.kubectl(&create)?;
        let label = "reeve.dev/plugin=true";
        self.kubectl(&["label", "configmap", name, "-n", namespace, label])
            .map(drop)
    }

    /// One object with its managed fields, or none.
    ///
    /// # Errors
    ///
    /// As [`Self::kubectl`].
    pub fn get(&self, kind: &str, namespace: &str, name: &str) -> Result<Option<Value>> {
        if let Look::Seen(object) = self.looks()?.get(kind, namespace, name) {
            return Ok(object);
        }
        let text = self.kubectl(&[
            "get",
            kind,
            name,
            "--namespace",
            namespace,
            "--ignore-not-found",
            "--show-managed-fields",
            "--output=json",
        ])?;
        if text.trim().is_empty() {
            return Ok(None);
        }
        Ok(Some(serde_json::from_str(&text)?))
    }

    /// All objects of a kind in a namespace, with their managed fields; in all namespaces
    /// if the name is empty.
    ///
    /// # Errors
    ///
    /// As [`Self::kubectl`].
    pub fn list(&self, kind: &str, namespace: &str) -> Result<Vec<Value>> {
        if let Look::Seen(objects) = self.looks()?.list(kind, namespace) {
            return Ok(objects);
        }
        let namespaces = match namespace {
            "" => "--all-namespaces".to_owned(),
            one => format!("--namespace={one}"),
        };
        let output = ["--show-managed-fields", "--output=json"];
        let text = self.kubectl(&[&["get", kind, &namespaces], &output[..]].concat())?;
        let list: Value = serde_json::from_str(&text)?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }
}
