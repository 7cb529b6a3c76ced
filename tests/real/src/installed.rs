//! The agent as its chart installs it.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::helm::{chart_of, helm};
use crate::{Account, Agent, ControlPlane, Pod};

/// Chart and release, and so what all that is installed is called.
const RELEASE: &str = "reeve";

/// What the chart's pod is given: the token of its ServiceAccount, and its settings. With
/// these an agent can be started, also while the API server is away.
#[derive(Debug)]
pub struct Installed {
    namespace: String,
    token: String,
    settings: PathBuf,
}

impl ControlPlane {
    /// Installs the chart of the agent in a namespace that Helm makes, with further
    /// arguments for Helm.
    ///
    /// # Errors
    ///
    /// When Helm fails, or as [`Self::kubectl`].
    pub fn install_chart(&self, namespace: &str, further: &[&str]) -> Result<Installed> {
        let chart = chart_of(RELEASE);
        let chart = chart.to_string_lossy();
        let install = ["install", RELEASE, &chart, "--namespace", namespace];
        let arguments = [&install[..], &["--create-namespace"], further].concat();
        helm(self.folder(), Some(&self.kubeconfig()), &arguments)?;
        let token = self.kubectl(&["create", "token", RELEASE, "-n", namespace])?;
        let config = self.get("configmap", namespace, &format!("{RELEASE}-config"))?;
        let config = config.context("the chart has made no configuration")?;
        let text = config.pointer("/data/reeve.yaml").and_then(Value::as_str);
        let settings = self.folder().join("reeve.yaml");
        fs::write(&settings, text.context("the configuration is empty")?)?;
        Ok(Installed {
            namespace: namespace.to_owned(),
            token: token.trim().to_owned(),
            settings,
        })
    }
}

impl Installed {
    /// What an agent outside of a pod is started with: a kubeconfig of the chart's
    /// ServiceAccount, and the arguments of `reeve run` that say where its settings and its
    /// namespace are. It does not ask for a lease.
    ///
    /// # Errors
    ///
    /// When the kubeconfig cannot be written.
    pub fn outside_of_pod(&self, cluster: &ControlPlane) -> Result<(PathBuf, Vec<String>)> {
        let kubeconfig = cluster.kubeconfig_with_token(RELEASE, &self.token)?;
        Ok((kubeconfig, self.arguments()))
    }

    fn arguments(&self) -> Vec<String> {
        vec![
            format!("--config={}", self.settings.display()),
            format!("--namespace={}", self.namespace),
        ]
    }
}

impl Agent {
    /// Starts `reeve run` as the chart's ServiceAccount and with the chart's settings, in
    /// the surroundings of a pod where the system allows it. Returns at once.
    ///
    /// # Errors
    ///
    /// As [`Agent::start_in_pod`].
    pub fn start_installed(cluster: &ControlPlane, installed: &Installed) -> Result<Self> {
        if let Some(pod) = Pod::possible() {
            let account = Account {
                namespace: &installed.namespace,
                token: &installed.token,
            };
            return Self::start_in_pod(cluster, pod, &account, &installed.arguments());
        }
        let (kubeconfig, mut arguments) = installed.outside_of_pod(cluster)?;
        // Which it does by itself in a pod.
        arguments.push("--leader-elect".to_owned());
        Self::start_with(cluster, &kubeconfig, &arguments)
    }
}
