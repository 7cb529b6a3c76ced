//! A platform, the agent in it, and what there is to see.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use reeve_real::{Agent, eventually};
use reeve_test_platform::{NAMESPACE, PLUGINS, Platform, Tenant, World};
use serde_json::{Value, json};

use crate::expected::{self, APPLICATIONS, KINDS, VOLUMES, Wanted};

/// A condition of a unit.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) plugin: String,
    pub(crate) profile: String,
    pub(crate) condition: String,
    pub(crate) words: String,
}

impl Told {
    /// Whether it is of the unit of this plugin for this Profile.
    pub(crate) fn is_of(&self, plugin: &str, profile: &str) -> bool {
        self.plugin == plugin && self.profile == profile
    }
}

pub(crate) struct Stage {
    // Ends before what it talks to.
    agent: Option<Agent>,
    pub(crate) platform: Platform,
}

impl Stage {
    /// Starts the servers, and installs the chart of the agent. The agent does not run yet.
    pub(crate) fn new(definitions: &Path) -> Result<Self> {
        Ok(Self {
            agent: None,
            platform: Platform::start(definitions)?,
        })
    }

    /// Installs the plugins, and starts the agent.
    pub(crate) fn install(&mut self, world: &World) -> Result<()> {
        self.platform.install_plugins(world)?;
        self.start_agent()?;
        for (plugin, _) in PLUGINS {
            self.wait_for_condition(plugin, "Ready", "Running")?;
        }
        Ok(())
    }

    /// Starts the agent; the one before must have ended.
    pub(crate) fn start_agent(&mut self) -> Result<()> {
        self.agent = Some(Agent::start_installed(
            &self.platform.cluster,
            &self.platform.installed,
        )?);
        Ok(())
    }

    /// Ends it as a crash does, and starts another.
    pub(crate) fn kill_agent(&mut self) -> Result<()> {
        let agent = self.agent.take().context("no agent")?;
        agent.signal("KILL")?;
        drop(agent);
        self.start_agent()
    }

    pub(crate) fn agent(&self) -> Result<&Agent> {
        self.agent.as_ref().context("no agent")
    }

    /// Waits until all objects of all Profiles are as they should be, and there are no
    /// others; returns how many there are.
    pub(crate) fn wait_until_as_specified(
        &self,
        tenants: &[Tenant],
        world: &World,
    ) -> Result<usize> {
        let mut count = 0;
        // Each with a patience of its own: for all together it takes a while.
        for kind in KINDS {
            count += self.wait_for_kind(kind, tenants, world)?;
        }
        Ok(count)
    }

    pub(crate) fn wait_for_kind(
        &self,
        kind: &'static str,
        tenants: &[Tenant],
        world: &World,
    ) -> Result<usize> {
        let wanted = tenants
            .iter()
            .flat_map(|tenant| expected::of(tenant, world))
            .filter(|wanted| wanted.kind == kind);
        let wanted: Vec<Wanted> = wanted.collect();
        self.explained(eventually(
            &format!("all {kind} are as they should be"),
            || self.check(kind, &wanted),
        ))?;
        Ok(wanted.len())
    }

    /// That what plugins have of a kind is what is wanted, and nothing else.
    fn check(&self, kind: &str, wanted: &[Wanted]) -> Result<()> {
        let owners: BTreeMap<String, Value> = self
            .platform
            .cluster
            .list("profiles.kubeflow.org", "")?
            .into_iter()
            .map(|profile| {
                (
                    text(&profile["metadata"]["name"]),
                    profile["metadata"]["uid"].clone(),
                )
            })
            .collect();
        let mut found = self.objects_of_plugins(kind)?;
        for wanted in wanted {
            let key = (wanted.namespace.clone(), wanted.name.clone());
            let (namespace, name) = &key;
            let object = found.remove(&key);
            let object = object.with_context(|| format!("there is no {namespace}/{name}"))?;
            if let Some(difference) = wanted.difference(&object) {
                bail!("{kind} {namespace}/{name}: {difference}");
            }
            ensure!(
                object["metadata"]["deletionTimestamp"].is_null(),
                "{kind} {namespace}/{name} is being deleted"
            );
            let owner = &object["metadata"]["ownerReferences"];
            let profile = text(&owner[0]["name"]);
            ensure!(
                owner.as_array().is_some_and(|owners| owners.len() == 1)
                    && owner[0]["kind"] == "Profile"
                    && owners.get(&profile) == Some(&owner[0]["uid"]),
                "{kind} {namespace}/{name} belongs to {owner}"
            );
        }
        let more: Vec<_> = found.keys().collect();
        ensure!(more.is_empty(), "{kind}: {more:?} should not be there");
        Ok(())
    }

    /// All of a kind that plugins have made, by namespace and name.
    pub(crate) fn objects_of_plugins(
        &self,
        kind: &str,
    ) -> Result<BTreeMap<(String, String), Value>> {
        let objects = self
            .platform
            .cluster
            .list(kind, "")?
            .into_iter()
            .filter(|object| {
                let metadata = &object["metadata"];
                // That is how plugins themselves come.
                let is_delivery = metadata["namespace"] == NAMESPACE;
                let is_marked = metadata["labels"]["reeve.dev/plugin"].is_string();
                // Logins carry no label of ours.
                let is_login = text(&metadata["name"]).starts_with("gitea-postgresql-secret-");
                !is_delivery && (is_marked || is_login)
            });
        let key = |object: &Value| {
            let metadata = &object["metadata"];
            (text(&metadata["namespace"]), text(&metadata["name"]))
        };
        Ok(objects.map(|object| (key(&object), object)).collect())
    }

    /// By which it is told whether objects of a kind are still the same.
    pub(crate) fn uids(&self, kind: &str) -> Result<BTreeMap<(String, String), String>> {
        let objects = self.objects_of_plugins(kind)?.into_iter();
        let uids = objects.map(|(key, object)| (key, text(&object["metadata"]["uid"])));
        Ok(uids.collect())
    }

    /// Those of volumes and claims, together.
    pub(crate) fn uids_of_volumes(&self) -> Result<BTreeMap<(String, String), String>> {
        let mut uids = self.uids(VOLUMES)?;
        uids.extend(self.uids(expected::CLAIMS)?);
        Ok(uids)
    }

    /// Says of the Applications of proxies what Argo CD says when it has deployed them.
    pub(crate) fn play_argocd(&self) -> Result<()> {
        for ((namespace, name), application) in self.objects_of_plugins(APPLICATIONS)? {
            if !name.starts_with("s3proxy-") {
                continue;
            }
            let spec = &application["spec"];
            let status = json!({"status": {
                "health": {"status": "Healthy"},
                "sync": {
                    "status": "Synced",
                    "comparedTo": {
                        "source": spec["source"], "destination": spec["destination"],
                    },
                },
            }});
            self.patch((APPLICATIONS, &namespace, &name), &status)?;
        }
        Ok(())
    }

    /// Edits an object by hand.
    pub(crate) fn patch(&self, object: (&str, &str, &str), patch: &Value) -> Result<()> {
        let (kind, namespace, name) = object;
        let patch = patch.to_string();
        let mut arguments = vec!["patch", kind, name, "--type=merge", "--patch", &patch];
        if !namespace.is_empty() {
            arguments.extend(["--namespace", namespace]);
        }
        self.platform.cluster.kubectl(&arguments).map(drop)
    }

    /// Deletes an object by hand, and does not wait for its end.
    pub(crate) fn delete(&self, object: (&str, &str, &str)) -> Result<()> {
        let (kind, namespace, name) = object;
        let mut arguments = vec!["delete", kind, name, "--wait=false"];
        if !namespace.is_empty() {
            arguments.extend(["--namespace", namespace]);
        }
        self.platform.cluster.kubectl(&arguments).map(drop)
    }

    /// Waits until a condition of a Plugin has a reason.
    pub(crate) fn wait_for_condition(&self, plugin: &str, of: &str, reason: &str) -> Result<()> {
        let what = format!("{of} of {plugin} is {reason}");
        self.explained(eventually(&what, || {
            let found = self.platform.cluster.get("plugin", NAMESPACE, plugin)?;
            let found = found.context("no Plugin")?;
            let conditions = found["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            let condition = conditions.find(|condition| condition["type"] == of);
            let condition = condition.context("no condition")?;
            ensure!(condition["reason"] == reason, "it is {condition}");
            Ok(())
        }))
    }

    /// What units have to say: each condition, but for those that say that all is well.
    pub(crate) fn told(&self) -> Result<Vec<Told>> {
        let mut told = Vec::new();
        for unit in self.platform.cluster.list("units", NAMESPACE)? {
            let spec = &unit["spec"];
            let conditions = unit["status"]["conditions"].as_array();
            for condition in conditions.into_iter().flatten() {
                if condition["type"] == "Ready" && condition["status"] == "True" {
                    continue;
                }
                told.push(Told {
                    plugin: text(&spec["plugin"]),
                    profile: text(&spec["primary"]["name"]),
                    condition: text(&condition["type"]),
                    words: text(&condition["message"]),
                });
            }
        }
        Ok(told)
    }

    /// Adds what the agent printed to an error.
    pub(crate) fn explained<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| match &self.agent {
            Some(agent) => {
                let told = self.told().unwrap_or_default();
                let told: Vec<String> =
                    told.iter().take(20).map(|one| format!("{one:?}")).collect();
                error.context(format!("{}\n{}", told.join("\n"), agent.log_tail()))
            }
            None => error,
        })
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
