//! A cluster in which the chart is installed, and the agent as it says.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use reeve_real::{ADMIN, Account, Agent, Container, ControlPlane, Pod, Unpacked, eventually};
use reeve_test_support::samples;
use serde_json::Value;

use crate::helm::{chart_of, helm};

/// Where the chart is installed.
pub(crate) const NAMESPACE: &str = "reeve-system";

/// The user that the agent's ServiceAccount is.
pub(crate) const AGENT: &str = "system:serviceaccount:reeve-system:reeve";

pub(crate) struct Stage {
    // Ends before the cluster that it talks to.
    agent: Option<Agent>,
    pub(crate) cluster: ControlPlane,
}

impl Stage {
    /// A cluster with the Profile kind, two Profiles and their Namespaces.
    pub(crate) fn new() -> Result<Self> {
        Self::on(ControlPlane::start()?)
    }

    /// The same on a control plane that runs.
    pub(crate) fn on(cluster: ControlPlane) -> Result<Self> {
        let stage = Self {
            agent: None,
            cluster,
        };
        stage.cluster.establish(&samples::profile_crd())?;
        for name in ["ann", "bob"] {
            stage.apply(&[samples::profile(name), samples::namespace(name)])?;
        }
        Ok(stage)
    }

    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.cluster.kubectl(arguments)
    }

    pub(crate) fn kubectl_with(&self, arguments: &[&str], input: &str) -> Result<String> {
        self.cluster.kubectl_with(ADMIN, arguments, input)
    }

    pub(crate) fn apply(&self, objects: &[Value]) -> Result<()> {
        self.cluster.apply_objects(objects)
    }

    /// Runs Helm on the chart of the agent.
    pub(crate) fn helm(&self, command: &str, arguments: &[&str]) -> Result<String> {
        self.helm_on("reeve", command, arguments)
    }

    /// Runs Helm on a chart of this repository, whose release has its name.
    pub(crate) fn helm_on(&self, name: &str, command: &str, arguments: &[&str]) -> Result<String> {
        let chart = chart_of(name);
        let chart = chart.to_string_lossy();
        let mut all = vec![command, name];
        if command != "uninstall" {
            all.push(&chart);
        }
        all.extend(["--namespace", NAMESPACE]);
        all.extend(arguments);
        helm(
            self.cluster.folder(),
            Some(&self.cluster.kubeconfig()),
            &all,
        )
    }

    pub(crate) fn reeve(&self, arguments: &[&str]) -> Result<String> {
        self.cluster.reeve(arguments)
    }

    /// Starts the agent as its pod would be: as the chart's ServiceAccount, with a
    /// token that the API server gave, and with the chart's configuration. Where the
    /// system allows it, it also finds the cluster as a pod does.
    pub(crate) fn start_agent(&mut self) -> Result<()> {
        drop(self.agent.take());
        let token = self.token()?;
        let file = self.file("reeve.yaml");
        self.write_configuration(&file)?;
        let arguments = [
            format!("--config={}", file.display()),
            format!("--namespace={NAMESPACE}"),
            format!("--cache={}", self.file("cache").display()),
            "--leader-elect".to_owned(),
        ];
        let cluster = &self.cluster;
        self.agent = Some(match Pod::possible() {
            Some(pod) => {
                let account = Account {
                    namespace: NAMESPACE,
                    token: &token,
                };
                Agent::start_in_pod(cluster, pod, &account, &arguments)?
            }
            None => {
                let kubeconfig = cluster.kubeconfig_with_token("reeve", &token)?;
                Agent::start_with(cluster, &kubeconfig, &arguments)?
            }
        });
        self.wait_until_ready()
    }

    /// Starts the agent of an image as the container that the chart's Deployment asks
    /// for: with its arguments, its environment, its volumes and its account.
    pub(crate) fn start_agent_of(&mut self, image: &Unpacked) -> Result<()> {
        drop(self.agent.take());
        let deployment = self.get("deployment", NAMESPACE, "reeve")?;
        let deployment = deployment.context("no Deployment")?;
        let said = &deployment["spec"]["template"]["spec"]["containers"][0];
        let texts = |of: &Value| -> Vec<String> {
            let all = of.as_array().into_iter().flatten();
            all.filter_map(|text| text.as_str().map(str::to_owned))
                .collect()
        };
        let environment = said["env"].as_array().into_iter().flatten();
        let environment = environment.map(|one| {
            // What is no value is the one field that the chart refers to.
            let value = one["value"].as_str().unwrap_or(NAMESPACE);
            (
                one["name"].as_str().unwrap_or_default().to_owned(),
                value.to_owned(),
            )
        });
        let (settings, cache) = (self.file("etc"), self.file("var-cache"));
        for folder in [&settings, &cache] {
            fs::create_dir_all(folder)?;
        }
        self.write_configuration(&settings.join("reeve.yaml"))?;
        let container = Container {
            image: image.clone(),
            arguments: texts(&said["args"]),
            environment: environment.collect(),
            volumes: vec![
                (settings, "/etc/reeve".to_owned()),
                (cache.clone(), "/var/cache/reeve".to_owned()),
            ],
            namespace: NAMESPACE.to_owned(),
            token: self.token()?,
        };
        // As `fsGroup` makes a volume: the container's group may write.
        let group = container.user()?.split(':').next_back();
        let group = group.context("no group")?.parse()?;
        std::os::unix::fs::chown(&cache, None, Some(group))?;
        fs::set_permissions(&cache, Permissions::from_mode(0o2775))?;
        self.agent = Some(Agent::start_in_container(&self.cluster, &container)?);
        self.wait_until_ready()
    }

    fn token(&self) -> Result<String> {
        let token = self.kubectl(&["create", "token", "reeve", "-n", NAMESPACE])?;
        Ok(token.trim().to_owned())
    }

    /// Writes the configuration that the chart has made.
    fn write_configuration(&self, file: &Path) -> Result<()> {
        let config = self
            .get("configmap", NAMESPACE, "reeve-config")?
            .context("no configuration")?;
        let text = config.pointer("/data/reeve.yaml").and_then(Value::as_str);
        fs::write(file, text.context("no configuration")?)?;
        Ok(())
    }

    fn wait_until_ready(&self) -> Result<()> {
        eventually("the agent is ready", || {
            let agent = self.agent.as_ref().context("no agent")?;
            ensure!(agent.is_ready()?, "{}", agent.log_tail());
            Ok(())
        })
    }

    /// Ends the agent as a crash does.
    pub(crate) fn kill_agent(&mut self) -> Result<()> {
        let agent = self.agent.take().context("no agent")?;
        agent.signal("KILL")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        Path::new(self.cluster.folder()).join(name)
    }

    /// One object, or none.
    pub(crate) fn get(&self, kind: &str, namespace: &str, name: &str) -> Result<Option<Value>> {
        self.cluster.get(kind, namespace, name)
    }

    /// All objects of a kind in a namespace.
    pub(crate) fn list(&self, kind: &str, namespace: &str) -> Result<Vec<Value>> {
        self.cluster.list(kind, namespace)
    }

    /// Waits until the quota for a Profile says this of pods.
    pub(crate) fn wait_for_pods(&self, profile: &str, pods: &str) -> Result<()> {
        self.explained(eventually(
            &format!("{profile} may have {pods} pods"),
            || {
                let Some(found) = self.get("resourcequota", profile, "quotas")? else {
                    bail!("there is no quota");
                };
                let seen = &found["spec"]["hard"]["pods"];
                ensure!(seen == pods, "it has {seen}");
                Ok(())
            },
        ))
    }

    /// Waits until a condition of the Plugin has a reason, and returns its message.
    pub(crate) fn wait_for_reason(&self, plugin: &str, kind: &str, reason: &str) -> Result<String> {
        self.explained(eventually(
            &format!("{plugin} is {kind} for {reason}"),
            || {
                let found = self
                    .get("plugin", NAMESPACE, plugin)?
                    .context("no Plugin")?;
                let conditions = found["status"]["conditions"].as_array();
                let condition = conditions.into_iter().flatten().find(|c| c["type"] == kind);
                let condition = condition.context("no condition")?;
                ensure!(condition["reason"] == reason, "it is {condition}");
                Ok(condition["message"].as_str().unwrap_or_default().to_owned())
            },
        ))
    }

    /// Adds what the agent printed to an error.
    fn explained<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| match &self.agent {
            Some(agent) => error.context(agent.log_tail()),
            None => error,
        })
    }
}
