//! A cluster with the plugin quotas in it, and an agent that reaches it over a network
//! that can go wrong.

use anyhow::{Context as _, Result, ensure};
use reeve_core::grant::{self, Subject};
use reeve_real::{Agent, ControlPlane, Proxy, User, eventually};
use reeve_test_support::{component, samples};
use serde_json::Value;

use crate::gate::Gate;

/// The user that the agent is.
const AGENT: &str = "reeve-agent";
pub(crate) const NAMESPACE: &str = "reeve-system";
pub(crate) const PLUGIN: &str = "quotas";
pub(crate) const PROFILES: [&str; 3] = ["ann", "bob", "cleo"];
/// The label of a Profile that sets its quota of pods.
const PODS: &str = "quotas.statcan.gc.ca/pods";

pub(crate) struct Stage {
    // They end before the cluster that they talk to.
    agent: Option<Agent>,
    pub(crate) proxy: Proxy,
    pub(crate) cluster: ControlPlane,
    /// Quotas that were asked for, so that each is another.
    asked: u32,
}

impl Stage {
    /// All quotas are in place.
    pub(crate) fn new() -> Result<Self> {
        let builder = ControlPlane::builder().user(User::new(AGENT));
        let cluster = builder.reads_of(AGENT).start()?;
        cluster.install_kinds()?;
        cluster.establish(&samples::profile_crd())?;
        cluster.apply_objects(&[samples::namespace(NAMESPACE)])?;
        cluster.apply_objects(&grant::agent_base(NAMESPACE, Subject::User(AGENT)))?;
        for name in PROFILES {
            cluster.apply_objects(&[samples::profile(name), samples::namespace(name)])?;
        }
        cluster.deliver(NAMESPACE, PLUGIN, &component(PLUGIN), None)?;
        let proxy = Proxy::start(cluster.port())?;
        let kubeconfig = cluster.kubeconfig_through(&proxy, AGENT)?;
        let namespace = format!("--namespace={NAMESPACE}");
        let agent = Agent::start_with(&cluster, &kubeconfig, &[namespace])?;
        let stage = Self {
            agent: Some(agent),
            proxy,
            cluster,
            asked: 0,
        };
        stage.grant()?;
        for profile in PROFILES {
            stage.wait_for_pods(profile, "100")?;
        }
        Ok(stage)
    }

    /// Has the agent go another way from here on. All quotas are in place again.
    pub(crate) fn go_through(&mut self, gate: &Gate) -> Result<()> {
        self.agent = None;
        let kubeconfig = gate.kubeconfig(&self.cluster, AGENT)?;
        let namespace = format!("--namespace={NAMESPACE}");
        self.agent = Some(Agent::start_with(&self.cluster, &kubeconfig, &[namespace])?);
        for profile in PROFILES {
            let pods = self.ask(profile)?;
            self.wait_for_pods(profile, &pods)?;
        }
        Ok(())
    }

    /// Grants the plugin what it asks for.
    pub(crate) fn grant(&self) -> Result<()> {
        let grant = ["plugin", "grant", PLUGIN, "--namespace", NAMESPACE];
        let to = ["--agent-user", AGENT, "--apply"];
        self.cluster.reeve(&[&grant[..], &to].concat()).map(drop)
    }

    /// Asks for another quota for a Profile, by its label. Returns what was asked for.
    pub(crate) fn ask(&mut self, profile: &str) -> Result<String> {
        self.asked += 1;
        let pods = self.asked.to_string();
        let label = format!("{PODS}={pods}");
        let label = ["label", "profile", profile, &label, "--overwrite"];
        self.cluster.kubectl(&label)?;
        Ok(pods)
    }

    /// What the quota of a Profile says of pods.
    pub(crate) fn pods(&self, profile: &str) -> Result<String> {
        let quota = self.cluster.get("resourcequota", profile, "quotas")?;
        let quota = quota.context("there is no quota")?;
        let pods = quota["spec"]["hard"]["pods"].as_str();
        Ok(pods.unwrap_or_default().to_owned())
    }

    pub(crate) fn wait_for_pods(&self, profile: &str, pods: &str) -> Result<()> {
        self.explained(eventually(
            &format!("{profile} may have {pods} pods"),
            || {
                let seen = self.pods(profile)?;
                ensure!(seen == pods, "it may have {seen}");
                Ok(())
            },
        ))
    }

    /// Waits until the condition Ready of the Unit of a Profile has a reason and text;
    /// none is a Unit that is gone.
    pub(crate) fn wait_until_said(&self, profile: &str, said: Option<(&str, &str)>) -> Result<()> {
        self.explained(eventually(&format!("{profile} says {said:?}"), || {
            let units = self.cluster.list("units", NAMESPACE)?;
            let mut of = units
                .iter()
                .filter(|unit| unit["spec"]["primary"]["name"] == profile);
            let conditions = of.next().map(|unit| unit["status"]["conditions"].clone());
            let Some((reason, text)) = said else {
                ensure!(conditions.is_none(), "it says {conditions:?}");
                return Ok(());
            };
            let conditions = conditions.context("it says nothing")?;
            let all = conditions.as_array().into_iter().flatten();
            let mut ready = all.filter(|one| one["type"] == "Ready");
            let ready = ready.next().context("no condition Ready")?;
            let message = ready["message"].as_str().unwrap_or_default();
            ensure!(
                ready["reason"] == reason && message.contains(text),
                "it says {ready}"
            );
            Ok(())
        }))
    }

    /// Waits until the agent says that it is ready, or that it is not.
    pub(crate) fn wait_for_readiness(&self, ready: bool) -> Result<()> {
        self.explained(eventually(&format!("readiness is {ready}"), || {
            let agent = self.agent.as_ref().context("no agent runs")?;
            let (is, said) = agent.readiness()?;
            ensure!(is == ready, "it says {said}");
            Ok(())
        }))
    }

    /// What the agent has asked for so far.
    pub(crate) fn requests(&self) -> Result<Requests> {
        let mut requests = Requests::default();
        for event in self.cluster.audit_log()? {
            let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
            if text("/user/username") != Some(AGENT) {
                continue;
            }
            match (text("/verb"), text("/stage")) {
                (Some("list"), Some("ResponseComplete")) => requests.lists += 1,
                (Some("watch"), Some("ResponseStarted")) => requests.watches += 1,
                // Its end.
                (Some("watch"), _) => {}
                _ if text("/objectRef/resource") == Some("resourcequotas") => {
                    requests.writes += 1;
                }
                _ => {}
            }
        }
        Ok(requests)
    }

    /// Bytes that the agent has allocated.
    pub(crate) fn memory(&self) -> Result<u64> {
        self.agent.as_ref().context("no agent runs")?.memory()
    }

    /// Adds what the agent printed to an error.
    pub(crate) fn explained<T>(&self, result: Result<T>) -> Result<T> {
        let log = || self.agent.as_ref().map(Agent::log_tail).unwrap_or_default();
        result.map_err(|error| error.context(log()))
    }
}

/// How often the agent has asked for what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requests {
    pub(crate) lists: usize,
    pub(crate) watches: usize,
    /// Writes of quotas, those that were refused too.
    pub(crate) writes: usize,
}

impl Requests {
    /// Those after others.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            lists: self.lists - before.lists,
            watches: self.watches - before.watches,
            writes: self.writes - before.writes,
        }
    }
}
