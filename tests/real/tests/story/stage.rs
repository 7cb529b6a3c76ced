//! A cluster with the agent in it, and what an operator does to the two.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use reeve_real::{ADMIN, Agent, ControlPlane, Installed, eventually};
use reeve_test_support::samples;
use serde_json::Value;

/// The user that the chart's ServiceAccount is: nothing but what RBAC grants it.
pub(crate) const AGENT: &str = "system:serviceaccount:reeve-system:reeve";

/// Where the chart is installed.
pub(crate) const NAMESPACE: &str = "reeve-system";

/// A short lease: whoever begins waits for the end of one that might be there.
const SETTINGS: [&str; 2] = [
    "--set",
    "config.lease-duration=4s,config.lease-renew-deadline=2s,config.lease-retry-period=500ms",
];

/// A cluster in which Reeve is installed.
pub(crate) struct Stage {
    // Ends before the cluster that it talks to.
    agent: Option<Agent>,
    installed: Installed,
    pub(crate) cluster: ControlPlane,
}

impl Stage {
    /// Starts a cluster and installs Reeve, as its chart does. The agent does not run yet.
    pub(crate) fn new() -> Result<Self> {
        let cluster = ControlPlane::builder().audited().start()?;
        let installed = cluster.install_chart(NAMESPACE, &SETTINGS)?;
        Ok(Self {
            agent: None,
            installed,
            cluster,
        })
    }

    pub(crate) fn with_profile_crd(self) -> Result<Self> {
        self.install_profile_crd()?;
        Ok(self)
    }

    pub(crate) fn install_profile_crd(&self) -> Result<()> {
        self.cluster.establish(&samples::profile_crd())
    }

    /// Creates Profiles, each with its Namespace.
    pub(crate) fn with_profiles(self, names: &[&str]) -> Result<Self> {
        for name in names {
            self.apply(&[samples::profile(name), samples::namespace(name)])?;
        }
        Ok(self)
    }

    pub(crate) fn with_agent(mut self) -> Result<Self> {
        self.start_agent()?;
        Ok(self)
    }

    /// Starts the agent as the chart's pod; ends the one that runs.
    pub(crate) fn start_agent(&mut self) -> Result<()> {
        drop(self.agent.take());
        self.agent = Some(Agent::start_installed(&self.cluster, &self.installed)?);
        Ok(())
    }

    /// The agent, once it was started.
    pub(crate) fn agent(&self) -> Result<&Agent> {
        self.agent.as_ref().context("no agent")
    }

    pub(crate) fn wait_for_readiness(&self, ready: bool) -> Result<()> {
        let agent = self.agent()?;
        self.explained(eventually(
            &format!("the agent's readiness is {ready}"),
            || {
                ensure!(agent.is_ready()? == ready, "it is {}", !ready);
                Ok(())
            },
        ))
    }

    /// Waits until the agent is not ready, and says these words of it.
    pub(crate) fn wait_until_not_ready(&self, words: &str) -> Result<()> {
        let agent = self.agent()?;
        self.explained(eventually("the agent is not ready, and says why", || {
            let (ready, said) = agent.readiness()?;
            let named = said.to_lowercase().contains(words);
            ensure!(!ready && named, "it says {said}");
            Ok(())
        }))
    }

    pub(crate) fn agent_is_running(&mut self) -> Result<bool> {
        self.agent.as_mut().context("no agent")?.is_running()
    }

    pub(crate) fn apply(&self, objects: &[Value]) -> Result<()> {
        self.cluster.apply_objects(objects)
    }

    /// Grants a plugin that has been delivered what it asks for.
    pub(crate) fn grant(&self, name: &str) -> Result<()> {
        self.reeve(&["plugin", "grant", name, "--apply"]).map(drop)
    }

    /// Of what a plugin that has been delivered asks for, grants just this.
    pub(crate) fn grant_of(&self, name: &str, part: impl Fn(&Value) -> bool) -> Result<()> {
        let printed = self.reeve(&["plugin", "grant", name, "-o", "json"])?;
        let printed: Value = serde_json::from_str(&printed)?;
        let mut objects = printed["items"].as_array().cloned().unwrap_or_default();
        objects.retain(part);
        ensure!(!objects.is_empty(), "that is nothing of {printed}");
        self.apply(&objects)
    }

    /// Delivers a plugin from a file.
    pub(crate) fn deliver(&self, name: &str, component: &Path) -> Result<()> {
        self.cluster.deliver(NAMESPACE, name, component, None)
    }

    /// Puts other bytes into the ConfigMap of a plugin.
    pub(crate) fn replace(&self, name: &str, component: &[u8]) -> Result<()> {
        let path = self.cluster.folder().join("plugin.wasm");
        fs::write(&path, component)?;
        let file = format!("--from-file=plugin.wasm={}", path.display());
        let text = self.cluster.kubectl(&[
            "create",
            "configmap",
            name,
            &file,
            "--namespace",
            NAMESPACE,
            "--dry-run=client",
            "--output=json",
        ])?;
        let mut config_map: Value = serde_json::from_str(&text)?;
        config_map["metadata"]["labels"]["reeve.dev/plugin"] = "true".into();
        let replace = ["replace", "-f", "-"];
        self.cluster
            .kubectl_with(ADMIN, &replace, &config_map.to_string())
            .map(drop)
    }

    /// Runs `reeve` as the administrator, which must succeed, and returns what it said.
    pub(crate) fn reeve(&self, arguments: &[&str]) -> Result<String> {
        self.explained(self.cluster.reeve(arguments))
    }

    /// One object, or none.
    pub(crate) fn get(&self, kind: &str, namespace: &str, name: &str) -> Result<Option<Value>> {
        self.cluster.get(kind, namespace, name)
    }

    /// Waits for an object in which `pointer` has a value, and returns the object.
    pub(crate) fn wait_for(
        &self,
        object: (&str, &str, &str),
        pointer: &str,
        value: impl Into<Value>,
    ) -> Result<Value> {
        let (kind, namespace, name) = object;
        let value = value.into();
        let what = format!("{kind} {namespace}/{name} has {pointer} = {value}");
        self.explained(eventually(&what, || {
            let Some(found) = self.get(kind, namespace, name)? else {
                bail!("it does not exist");
            };
            let seen = found.pointer(pointer).unwrap_or(&Value::Null);
            ensure!(*seen == value, "it has {seen}");
            Ok(found)
        }))
    }

    /// Waits until an object is gone.
    pub(crate) fn wait_for_end(&self, object: (&str, &str, &str)) -> Result<()> {
        let (kind, namespace, name) = object;
        let what = format!("{kind} {namespace}/{name} is gone");
        self.explained(eventually(&what, || {
            ensure!(self.get(kind, namespace, name)?.is_none(), "it is there");
            Ok(())
        }))
    }

    /// Waits until a condition of a Plugin has a status and reason, and returns
    /// its message.
    pub(crate) fn wait_for_condition(
        &self,
        plugin: &str,
        condition: (&str, &str, &str),
    ) -> Result<String> {
        self.wait_for_words(plugin, condition, &[])
    }

    /// As [`Self::wait_for_condition`], until all of these words are in its message too.
    pub(crate) fn wait_for_words(
        &self,
        plugin: &str,
        (kind, status, reason): (&str, &str, &str),
        words: &[&str],
    ) -> Result<String> {
        let what = format!("Plugin {plugin} has {kind} {status} for {reason}");
        self.explained(eventually(&what, || {
            let found = self.plugin(plugin)?;
            let conditions = found["status"]["conditions"].as_array();
            let condition = conditions
                .into_iter()
                .flatten()
                .find(|condition| condition["type"] == kind)
                .with_context(|| format!("its status is {}", found["status"]))?;
            ensure!(
                condition["status"] == status && condition["reason"] == reason,
                "it is {condition}"
            );
            let message = condition["message"].as_str().unwrap_or_default();
            for word in words {
                ensure!(message.contains(word), "`{word}` is not in: {message}");
            }
            Ok(message.to_owned())
        }))
    }

    pub(crate) fn plugin(&self, name: &str) -> Result<Value> {
        self.get("plugin", NAMESPACE, name)?
            .with_context(|| format!("there is no Plugin {name}"))
    }

    /// Adds what the agent printed to an error.
    fn explained<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| match &self.agent {
            Some(agent) => error.context(agent.log_tail()),
            None => error,
        })
    }
}
