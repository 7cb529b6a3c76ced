//! A cluster with Bundles in it, whose plugin returns what they hold, and an agent
//! that can be killed.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use reeve_core::grant::{self, Subject};
use reeve_real::{Agent, ControlPlane, User, Witness, eventually};
use reeve_test_support::{guest, samples};
use serde_json::{Value, json};

const AGENT: &str = "reeve-agent";
const NAMESPACE: &str = "reeve-system";
const PLUGIN: &str = "courier";
/// Where the Bundles and what they hold are.
const APPS: &str = "apps";
pub(crate) const UNITS: usize = 200;
/// Both editions together.
pub(crate) const WAVES: usize = 4;
const FOREIGN: &str = "somebody-elses";
/// What is in that namespace and not the plugin's; the second is the cluster's own.
pub(crate) const OTHERS: [&str; 2] = [FOREIGN, "kube-root-ca.crt"];

/// The units of which the second edition withdraws an object: not so many that a
/// person would be asked first.
const WITHDRAWING: usize = 90;

/// What the Bundles hold. The first edition has not the last wave; the second has not
/// the second wave of some units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edition {
    First,
    Second,
}

impl Edition {
    /// Whether it has an object of this unit in this wave.
    pub(crate) fn has(self, unit: usize, wave: usize) -> bool {
        match self {
            Self::First => wave != WAVES - 1,
            Self::Second => wave != 1 || unit >= WITHDRAWING,
        }
    }

    /// What stands in its objects.
    fn text(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
        }
    }
}

/// The name of a unit's object.
pub(crate) fn name(unit: usize, wave: usize) -> String {
    format!("unit-{unit}-wave-{wave}")
}

pub(crate) struct Stage {
    // Ends before the cluster that it talks to.
    agent: Option<Agent>,
    pub(crate) witness: Witness,
    cluster: ControlPlane,
}

impl Stage {
    /// A cluster with all that the agent needs; it does not run yet.
    pub(crate) fn new() -> Result<Self> {
        let cluster = ControlPlane::builder().user(User::new(AGENT)).start()?;
        cluster.install_kinds()?;
        cluster.establish(&samples::open_crd("Bundle", "bundles"))?;
        apply(
            &cluster,
            &[
                samples::namespace(NAMESPACE),
                samples::namespace(APPS),
                foreign_object(),
            ],
        )?;
        let stage = Self {
            agent: None,
            witness: Witness::start(&cluster, "configmaps", APPS)?,
            cluster,
        };
        stage.apply(&grant::agent_base(NAMESPACE, Subject::User(AGENT)))?;
        let config = json!({
            "primary": "Bundle.v1.example.com",
            "writes": {"ConfigMap.v1": "primary-namespace"},
        });
        let cluster = &stage.cluster;
        cluster.deliver(NAMESPACE, PLUGIN, &guest(PLUGIN), Some(&config))?;
        let grant = ["plugin", "grant", PLUGIN, "--namespace", NAMESPACE];
        let to = ["--agent-user", AGENT, "--apply"];
        cluster.reeve(&[&grant[..], &to].concat())?;
        Ok(stage)
    }

    fn apply(&self, objects: &[Value]) -> Result<()> {
        apply(&self.cluster, objects)
    }

    /// Makes all Bundles hold this edition.
    pub(crate) fn wanted(&self, edition: Edition) -> Result<()> {
        let bundles: Vec<Value> = (0..UNITS).map(|unit| bundle(unit, edition)).collect();
        self.apply(&bundles)
    }

    pub(crate) fn start_agent(&mut self) -> Result<()> {
        // It would wait for the lease of the one before it.
        let arguments = [
            "--leader-elect=false".to_owned(),
            format!("--namespace={NAMESPACE}"),
        ];
        let kubeconfig = self.cluster.kubeconfig_of(AGENT)?;
        let agent = Agent::start_with(&self.cluster, &kubeconfig, &arguments)?;
        self.agent = Some(agent);
        Ok(())
    }

    pub(crate) fn kill_agent(&mut self) -> Result<()> {
        let agent = self.agent.take().context("no agent")?;
        agent.signal("KILL")
    }

    /// Waits until just the objects of this edition exist, as it wants them.
    pub(crate) fn wait_until_made(&mut self, edition: Edition) -> Result<()> {
        let is_alone = self.agent.is_none();
        if is_alone {
            self.start_agent()?;
        }
        let mut wanted = BTreeMap::new();
        for unit in 0..UNITS {
            for wave in (0..WAVES).filter(|&wave| edition.has(unit, wave)) {
                wanted.insert(name(unit, wave), edition.text().to_owned());
            }
        }
        let waited = eventually(&format!("all is as the {edition:?} edition says"), || {
            let found = self.objects()?;
            let differing = wanted
                .iter()
                .filter(|(name, text)| found.get(*name) != Some(text));
            let lacking = differing.count();
            let surplus = found.keys().filter(|name| !wanted.contains_key(*name));
            let surplus: Vec<_> = surplus.take(3).collect();
            ensure!(
                lacking == 0 && surplus.is_empty(),
                "{lacking} of {} are not, and there are {surplus:?}",
                wanted.len()
            );
            Ok(())
        });
        waited.map_err(|error| match &self.agent {
            Some(agent) => error.context(agent.log_tail()),
            None => error,
        })?;
        if is_alone {
            self.kill_agent()?;
        }
        Ok(())
    }

    /// Waits until no unit is in trouble or under way.
    pub(crate) fn wait_until_calm(&self) -> Result<()> {
        eventually("no unit needs to be told of", || {
            let units = self.cluster.list("units", NAMESPACE)?;
            ensure!(units.is_empty(), "there are {units:?}");
            Ok(())
        })
    }

    /// The plugin's objects: what stands in them, by name.
    fn objects(&self) -> Result<BTreeMap<String, String>> {
        let objects = self.cluster.list("configmaps", APPS)?;
        let ours = objects
            .iter()
            .filter(|object| object["metadata"]["labels"]["reeve.dev/plugin"].is_string());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(ours
            .map(|object| {
                (
                    text(&object["metadata"]["name"]),
                    text(&object["data"]["text"]),
                )
            })
            .collect())
    }

    pub(crate) fn foreign_object_is_untouched(&self) -> Result<bool> {
        let found = self.cluster.get("configmap", APPS, FOREIGN)?;
        let found = found.context("it is gone")?;
        let managers = found["metadata"]["managedFields"].as_array();
        Ok(found["data"] == foreign_object()["data"] && managers.is_some_and(|all| all.len() == 1))
    }
}

fn apply(cluster: &ControlPlane, objects: &[Value]) -> Result<()> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    let applied = cluster.kubectl_with(reeve_real::ADMIN, &apply, &list.to_string());
    applied.map(drop)
}

fn foreign_object() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": FOREIGN, "namespace": APPS},
        "data": {"text": "theirs"},
    })
}

fn bundle(unit: usize, edition: Edition) -> Value {
    let objects: Vec<Value> = (0..WAVES)
        .filter(|&wave| edition.has(unit, wave))
        .map(|wave| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {
                    "name": name(unit, wave), "namespace": APPS,
                    "annotations": {"argocd.argoproj.io/sync-wave": wave.to_string()},
                },
                "data": {"text": edition.text()},
            })
        })
        .collect();
    json!({
        "apiVersion": "example.com/v1", "kind": "Bundle",
        "metadata": {"name": format!("unit-{unit}"), "namespace": APPS},
        "spec": {"objects": objects},
    })
}
