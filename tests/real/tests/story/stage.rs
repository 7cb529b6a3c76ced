//! A cluster with the agent in it, and what an operator does to the two.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use reeve_core::grant::{self, Grantee, Served, Subject};
use reeve_core::manifest::{RawManifest, RawPrimary, Scope, WriteRule};
use reeve_core::{GroupVersionKind, Manifest};
use reeve_real::{ADMIN, Agent, ControlPlane, User, eventually};
use reeve_test_support::samples;
use serde_json::Value;

/// The user that the agent is: nothing but what RBAC grants it.
pub(crate) const AGENT: &str = "reeve-agent";

/// Where the agent works.
pub(crate) const NAMESPACE: &str = "reeve-system";

/// A cluster in which Reeve is installed.
pub(crate) struct Stage {
    // Ends before the cluster that it talks to.
    agent: Option<Agent>,
    pub(crate) cluster: ControlPlane,
}

impl Stage {
    /// Starts a cluster and installs Reeve: its CRDs, its namespace, the rights of
    /// the agent. The agent does not run yet.
    pub(crate) fn new() -> Result<Self> {
        let cluster = ControlPlane::builder().user(User::new(AGENT)).start()?;
        cluster.install_kinds()?;
        let stage = Self {
            agent: None,
            cluster,
        };
        stage.apply(&[samples::namespace(NAMESPACE)])?;
        stage.apply(&grant::agent_base(NAMESPACE, Subject::User(AGENT)))?;
        Ok(stage)
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

    /// Starts the agent; ends the one that runs.
    pub(crate) fn start_agent(&mut self) -> Result<()> {
        drop(self.agent.take());
        self.agent = Some(Agent::start(&self.cluster, AGENT, NAMESPACE)?);
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

    /// Grants the plugin `name`, which writes `kind` into the namespaces named
    /// like Profiles, what its manifest asks for.
    pub(crate) fn grant(&self, name: &str, kind: &str) -> Result<()> {
        self.apply(&grant_objects(name, kind)?)
    }

    /// Makes the plugin's ServiceAccount, which is allowed nothing.
    pub(crate) fn create_account(&self, name: &str, kind: &str) -> Result<()> {
        let mut objects = grant_objects(name, kind)?;
        objects.retain(|object| object["kind"] == "ServiceAccount");
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
        (kind, status, reason): (&str, &str, &str),
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
            Ok(condition["message"].as_str().unwrap_or_default().to_owned())
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

/// What `reeve` grants a controller of Profiles that writes `kind`.
fn grant_objects(name: &str, kind: &str) -> Result<Vec<Value>> {
    let manifest = Manifest::try_from(RawManifest {
        primary: Some(RawPrimary {
            kind: GroupVersionKind::new("kubeflow.org", "v1", "Profile"),
            selector: String::new(),
            projection: Vec::new(),
        }),
        reads: Vec::new(),
        writes: vec![WriteRule {
            kind: GroupVersionKind::new("", "v1", kind),
            scope: Scope::NamespaceNamedLikePrimary,
        }],
        sources: Vec::new(),
        actions: Vec::new(),
    })?;
    let grantee = Grantee {
        plugin: name,
        namespace: NAMESPACE,
        service_account: name,
        agent: Subject::User(AGENT),
    };
    let served = |kind: &GroupVersionKind| Served {
        plural: format!("{}s", kind.kind.to_lowercase()),
        namespaced: kind.kind != "Profile",
    };
    Ok(grant::objects(&grantee, &manifest, served))
}
