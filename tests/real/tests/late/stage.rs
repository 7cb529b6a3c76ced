//! A cluster with Bundles in it, whose plugin returns what they hold, and two replicas of
//! the agent, of which the first reaches the API server through a gate.

use anyhow::{Context as _, Result, ensure};
use reeve_core::grant::{self, Subject};
use reeve_real::{Agent, ControlPlane, User, eventually};
use reeve_test_support::{guest, samples};
use serde_json::{Value, json};

use crate::gate::Gate;

const AGENT: &str = "reeve-agent";
const NAMESPACE: &str = "reeve-system";
const PLUGIN: &str = "courier";
/// As whom the plugin writes.
const ACCOUNT: &str = "system:serviceaccount:reeve-system:courier";
/// Where the Bundles and what they hold are.
const APPS: &str = "apps";

/// A short lease: the test waits for its end.
const ELECTION: [&str; 4] = [
    "--leader-elect",
    "--lease-duration=4s",
    "--lease-renew-deadline=2s",
    "--lease-retry-period=500ms",
];

/// Each Bundle holds this object of its own beside the others, since a plugin that returns
/// nothing at all is another story.
const ANCHOR: &str = "anchor";

pub(crate) struct Stage {
    // They end before the cluster that they talk to.
    one: Option<Agent>,
    two: Option<Agent>,
    pub(crate) gate: Gate,
    cluster: ControlPlane,
}

impl Stage {
    /// The first replica leads, and the plugin runs.
    pub(crate) fn new() -> Result<Self> {
        let builder = ControlPlane::builder().audited().user(User::new(AGENT));
        let cluster = builder.start()?;
        cluster.install_kinds()?;
        cluster.establish(&samples::open_crd("Bundle", "bundles"))?;
        cluster.apply_objects(&[samples::namespace(NAMESPACE), samples::namespace(APPS)])?;
        cluster.apply_objects(&grant::agent_base(NAMESPACE, Subject::User(AGENT)))?;
        let config = json!({
            "primary": "Bundle.v1.example.com",
            "writes": {"ConfigMap.v1": "primary-namespace"},
        });
        cluster.deliver(NAMESPACE, PLUGIN, &guest(PLUGIN), Some(&config))?;
        let grant = ["plugin", "grant", PLUGIN, "--namespace", NAMESPACE];
        let to = ["--agent-user", AGENT, "--apply"];
        cluster.reeve(&[&grant[..], &to].concat())?;
        let gate = Gate::start(&cluster)?;
        let kubeconfig = gate.kubeconfig(&cluster, AGENT)?;
        let one = Agent::start_named(&cluster, "one", &kubeconfig, &arguments())?;
        let stage = Self {
            one: Some(one),
            two: None,
            gate,
            cluster,
        };
        stage.bundle("first", &[])?;
        stage.wait_for_text("first-anchor", ANCHOR)?;
        Ok(stage)
    }

    /// Starts the second replica, and waits until it follows.
    pub(crate) fn start_second(&mut self) -> Result<()> {
        let kubeconfig = self.cluster.kubeconfig_of(AGENT)?;
        let two = Agent::start_named(&self.cluster, "two", &kubeconfig, &arguments())?;
        let two = self.two.insert(two);
        eventually("the second replica follows", || {
            let (_, said) = two.ask("/readyz")?;
            ensure!(said.contains("\nfollower of "), "it says {said:?}");
            Ok(())
        })
    }

    /// Kills the first replica, and waits until the second leads.
    pub(crate) fn second_takes_over(&mut self) -> Result<()> {
        let one = self.one.take().context("the first replica is gone")?;
        one.signal("KILL")?;
        let two = self.two.as_ref().context("there is no second replica")?;
        self.explained(eventually("the second replica leads", || {
            let (_, counted) = two.ask("/metrics")?;
            ensure!(counted.contains("\nreeve_leader 1\n"));
            Ok(())
        }))
    }

    /// Makes or changes a Bundle, which holds ConfigMaps with these names and texts.
    pub(crate) fn bundle(&self, name: &str, objects: &[(&str, &str)]) -> Result<()> {
        let anchor = format!("{name}-{ANCHOR}");
        let objects: Vec<Value> = [(anchor.as_str(), ANCHOR)]
            .iter()
            .chain(objects)
            .map(|(name, text)| config_map(name, text))
            .collect();
        self.cluster.apply_objects(&[json!({
            "apiVersion": "example.com/v1", "kind": "Bundle",
            "metadata": {"name": name, "namespace": APPS},
            "spec": {"objects": objects},
        })])
    }

    /// The path of a ConfigMap.
    pub(crate) fn path(name: &str) -> String {
        format!("/api/v1/namespaces/{APPS}/configmaps/{name}")
    }

    /// A ConfigMap, with all of its metadata.
    pub(crate) fn object(&self, name: &str) -> Result<Value> {
        let found = self.cluster.get("configmap", APPS, name)?;
        found.with_context(|| format!("there is no {name}"))
    }

    /// Deletes a ConfigMap and makes one of its name anew, as somebody who knows nothing
    /// of the plugin; returns it.
    pub(crate) fn make_anew(&self, object: &Value) -> Result<Value> {
        let name = object["metadata"]["name"].as_str().context("no name")?;
        let delete = ["delete", "configmap", name, "-n", APPS];
        self.cluster.kubectl(&delete)?;
        let create = ["create", "-n", APPS, "-f", "-"];
        let text = object.to_string();
        self.cluster
            .kubectl_with(reeve_real::ADMIN, &create, &text)?;
        self.object(name)
    }

    pub(crate) fn wait_for_text(&self, name: &str, text: &str) -> Result<()> {
        self.explained(eventually(&format!("{name} says {text}"), || {
            let seen = &self.object(name)?["data"]["text"];
            ensure!(seen == text, "it says {seen}");
            Ok(())
        }))
    }

    pub(crate) fn wait_until_gone(&self, name: &str) -> Result<()> {
        self.explained(eventually(&format!("{name} is gone"), || {
            let found = self.cluster.get("configmap", APPS, name)?;
            ensure!(found.is_none(), "it is there");
            Ok(())
        }))
    }

    /// Waits until the agent has done all that there was to do: it does what another
    /// Bundle asks for then, and no unit is in trouble or under way.
    pub(crate) fn wait_until_calm(&self, mark: &str) -> Result<()> {
        self.bundle(mark, &[])?;
        self.wait_for_text(&format!("{mark}-{ANCHOR}"), ANCHOR)?;
        self.explained(eventually("no unit needs to be told of", || {
            let units = self.cluster.list("units", NAMESPACE)?;
            ensure!(units.is_empty(), "there are {units:?}");
            Ok(())
        }))
    }

    /// Waits until the unit of a Bundle is in trouble for this reason.
    pub(crate) fn wait_until_said(&self, bundle: &str, reason: &str) -> Result<()> {
        self.explained(eventually(&format!("{bundle} says {reason}"), || {
            let units = self.cluster.list("units", NAMESPACE)?;
            let mut of = units.iter();
            let unit = of.find(|unit| unit["spec"]["primary"]["name"] == bundle);
            let conditions = &unit.context("it says nothing")?["status"]["conditions"];
            let mut all = conditions.as_array().into_iter().flatten();
            ensure!(
                all.any(|one| one["type"] == "Ready" && one["reason"] == reason),
                "it says {conditions}"
            );
            Ok(())
        }))
    }

    /// What the plugin's requests that change a ConfigMap were answered, in order.
    pub(crate) fn answers(&self, verb: &str, name: &str) -> Result<Vec<u64>> {
        let log = self.cluster.audit_log()?;
        let ours = log.iter().filter(|event| {
            event["impersonatedUser"]["username"] == ACCOUNT
                && event["verb"] == verb
                && event["objectRef"]["resource"] == "configmaps"
                && event["objectRef"]["namespace"] == APPS
                && event["objectRef"]["name"] == name
        });
        let mut answers: Vec<_> = ours
            .map(|event| {
                let code = event["responseStatus"]["code"].as_u64();
                (
                    event["stageTimestamp"].to_string(),
                    code.unwrap_or_default(),
                )
            })
            .collect();
        answers.sort();
        Ok(answers.into_iter().map(|(_, code)| code).collect())
    }

    /// Adds what the agents printed to an error.
    fn explained<T>(&self, result: Result<T>) -> Result<T> {
        let agents = [&self.one, &self.two].into_iter().flatten();
        let logs: String = agents.map(Agent::log_tail).collect();
        result.map_err(|error| error.context(logs))
    }
}

fn arguments() -> Vec<String> {
    let namespace = format!("--namespace={NAMESPACE}");
    let election = ELECTION.map(str::to_owned);
    election.into_iter().chain([namespace]).collect()
}

/// A ConfigMap with a text.
pub(crate) fn config_map(name: &str, text: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": APPS},
        "data": {"text": text},
    })
}
