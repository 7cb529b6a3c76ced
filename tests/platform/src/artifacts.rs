//! Components in a registry.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use reeve_real::{Registry, binary};
use reeve_test_support::component;
use serde_json::{Value, json};

use crate::platform::{NAMESPACE, PLUGINS, Platform};

/// The Secret with the login.
const LOGIN: &str = "registry-login";

/// Where components are in the registry.
const REPOSITORY: &str = "team/plugins";

impl Platform {
    /// Pushes the components to a registry of the platform's own, and tells the cluster the
    /// login. Returns the registry, and what the chart is told of it.
    ///
    /// # Errors
    ///
    /// When the registry does not start, or takes no component.
    pub fn push_components(&self) -> Result<(Registry, Value)> {
        let registry = Registry::start(&self.certificate.pem, &self.certificate.key_pem)?;
        let folder = self.cluster.folder().join("registry");
        fs::create_dir_all(&folder)?;
        let roots = folder.join("roots.pem");
        fs::write(&roots, self.roots())?;
        let login = registry.docker_config(Registry::PASSWORD);
        fs::write(folder.join("config.json"), &login)?;
        let repository = registry.image(REPOSITORY);
        let mut digests = json!({});
        let components: BTreeSet<&str> = PLUGINS.iter().map(|(_, component)| *component).collect();
        for name in components {
            let output = Command::new(binary()?)
                .args([
                    "plugin",
                    "push",
                    &format!("{repository}/{name}:1"),
                    "-o",
                    "json",
                ])
                .arg(component(name))
                .arg("--ca-bundle")
                .arg(&roots)
                .env("DOCKER_CONFIG", &folder)
                .output()?;
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "{name} is not pushed: {said}");
            let mut said: Value = serde_json::from_slice(&output.stdout)?;
            digests[name] = said["digest"].take();
            digests[name].as_str().context("no digest")?;
        }
        self.cluster.apply_objects(&[json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": LOGIN, "namespace": NAMESPACE},
            "type": "kubernetes.io/dockerconfigjson",
            "stringData": {".dockerconfigjson": login},
        })])?;
        let artifacts = json!({
            "repository": repository, "digests": digests, "pullSecretName": LOGIN,
            "caBundle": self.roots(),
        });
        Ok((registry, artifacts))
    }
}
