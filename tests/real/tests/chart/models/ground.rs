//! A cluster in which models are built and served: the agent with the plugin as the chart
//! installs it, the controllers that make pods, and a node. The test is the scheduler, and
//! tells the node how builds end, so that nothing happens before it was looked at.

use anyhow::{Context, Result, ensure};
use reeve_real::{ControlPlane, Ended, KWOK_USER, SimulatedNode, User, eventually};
use reeve_test_support::component;
use serde_json::Value;

use super::install::{MODELS, install};
use crate::stage::{NAMESPACE, Stage};

/// Those that make deletion and access work, and those that make pods.
const CONTROLLERS: [&str; 7] = [
    "namespace-controller",
    "garbage-collector-controller",
    "serviceaccount-controller",
    "clusterrole-aggregation-controller",
    "deployment-controller",
    "replicaset-controller",
    "job-controller",
];

/// Label of the pods of a build: the name of their Job.
const BUILD: &str = "models.reeve.dev/build";
/// Label of whatever belongs to a ModelDeployment: its name.
const OF: &str = "models.reeve.dev/deployment";

pub(super) struct Ground {
    // Ends before the cluster that it talks to.
    node: SimulatedNode,
    pub(super) stage: Stage,
}

impl Ground {
    /// Whose models are built as the arguments of Helm say, besides those of the document's
    /// command. The Secret with the API token holds `token`. `prepare` makes what else there
    /// has to be.
    pub(super) fn new(
        token: &str,
        arguments: &[&str],
        prepare: impl FnOnce(&Stage) -> Result<()>,
    ) -> Result<Self> {
        let cluster = ControlPlane::builder()
            .controllers(CONTROLLERS)
            .user(User {
                name: KWOK_USER.to_owned(),
                groups: vec!["system:masters".to_owned()],
            })
            .start()?;
        let mut stage = Stage::on(cluster)?;
        let node = stage.cluster.start_told_node()?;
        stage.helm("install", &["--create-namespace"])?;
        stage.start_agent()?;
        stage.kubectl(&["create", "namespace", MODELS])?;
        let secret = ["create", "-n", MODELS, "secret", "generic", "mlops-api-key"];
        let token = format!("--from-literal=secret={token}");
        stage.kubectl(&[&secret[..], &[&token]].concat())?;
        prepare(&stage)?;
        let alone = ["--set", "supervisor.enabled=false"];
        install(&stage, &[&alone[..], arguments].concat())?;
        let file = component("models").to_string_lossy().into_owned();
        let package = ["plugin", "package", &file, "--name", "models"];
        let packed = stage.reeve(&[&package[..], &["--namespace", NAMESPACE]].concat())?;
        stage.kubectl_with(&["apply", "--server-side", "-f", "-"], &packed)?;
        stage.wait_for_reason("models", "Ready", "Running")?;
        Ok(Self { node, stage })
    }

    /// What `reeve model status` answers, whether that is good news or not.
    pub(super) fn status(&self, id: &str) -> Result<Value> {
        let status = ["model", "status", id, "--output=json"];
        let (code, said) = self.stage.cluster.reeve_ended(&status)?;
        let status: Value = serde_json::from_str(&said).with_context(|| said.clone())?;
        let is_good = ["passing", "warning"].map(|good| status["status"] == good);
        let expected = i32::from(!is_good.contains(&true));
        ensure!(code == Some(expected), "it ended with {code:?}: {said}");
        Ok(status)
    }

    /// Waits until `reeve model status` answers with this state and status.
    pub(super) fn wait_for_status(&self, id: &str, state: &str, status: &str) -> Result<Value> {
        self.explained(eventually(&format!("{id} is {state} and {status}"), || {
            let now = self.status(id)?;
            ensure!(now["state"] == state && now["status"] == status, "{now}");
            Ok(now)
        }))
    }

    /// Waits, and ends at once when something is no longer so that has to be so meanwhile.
    pub(super) fn wait_while<T>(
        &self,
        what: &str,
        is_so: impl Fn() -> Result<()>,
        look: impl Fn() -> Result<T>,
    ) -> Result<T> {
        self.explained(eventually(what, || match is_so() {
            Err(broken) => Ok(Err(broken)),
            Ok(()) => look().map(Ok),
        }))?
    }

    /// One object of the models, which has to be there.
    pub(super) fn get(&self, kind: &str, name: &str) -> Result<Value> {
        let found = self.stage.get(kind, MODELS, name)?;
        found.with_context(|| format!("there is no {kind} {name}"))
    }

    /// The Job that builds what is wanted now, once it is there.
    pub(super) fn job(&self, name: &str, model: &str) -> Result<Value> {
        self.explained(eventually(&format!("{model} is being built"), || {
            let deployment = self.get("modeldeployment", name)?;
            let job = deployment["status"]["job"].as_str();
            let job = self.get("job", job.with_context(|| deployment.to_string())?)?;
            let annotations = &job["metadata"]["annotations"];
            ensure!(annotations["models.reeve.dev/model-id"] == model, "{job}");
            Ok(job)
        }))
    }

    /// The pods of a build.
    pub(super) fn build_pods(&self, job: &str) -> Result<Vec<Value>> {
        let pods = self.stage.list("pods", MODELS)?;
        let of_job = |pod: &Value| pod["metadata"]["labels"][BUILD] == job;
        Ok(pods.into_iter().filter(of_job).collect())
    }

    /// The pod of a build that is at work, once it is. It is put on the node.
    pub(super) fn build_pod(&self, job: &str) -> Result<Value> {
        self.explained(eventually(&format!("a pod of {job} runs"), || {
            let pods = self.build_pods(job)?;
            self.schedule(&pods)?;
            let mut pods = pods.into_iter();
            let running = pods.find(|pod| pod["status"]["phase"] == "Running");
            running.context("none does")
        }))
    }

    /// The pods that serve a deployment, or are to.
    pub(super) fn servers(&self, name: &str) -> Result<Vec<Value>> {
        let pods = self.stage.list("pods", MODELS)?;
        let serves = |pod: &Value| {
            let labels = &pod["metadata"]["labels"];
            labels[OF] == name && labels[BUILD].is_null()
        };
        Ok(pods.into_iter().filter(serves).collect())
    }

    /// Puts pods on the node that are on none.
    pub(super) fn schedule(&self, pods: &[Value]) -> Result<()> {
        for pod in pods {
            let name = name_of(pod)?;
            if pod["spec"]["nodeName"].is_null() && pod["metadata"]["deletionTimestamp"].is_null() {
                self.stage.cluster.schedule(MODELS, name)?;
            }
        }
        Ok(())
    }

    /// Has the pod of a build end, and returns when it has.
    pub(super) fn end(&self, pod: &Value, ended: Ended<'_>) -> Result<()> {
        let name = name_of(pod)?;
        self.stage.cluster.end_pod(MODELS, name, ended)?;
        self.explained(eventually(&format!("{name} has ended"), || {
            let pod = self.get("pod", name)?;
            let phase = &pod["status"]["phase"];
            ensure!(*phase == "Succeeded" || *phase == "Failed", "{pod}");
            Ok(())
        }))
    }

    /// Adds what there is to an error.
    fn explained<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| {
            let kinds = "modeldeployments,jobs,deployments,replicasets,pods";
            let there = self.stage.kubectl(&["get", kinds, "-n", MODELS]);
            let there = there.unwrap_or_else(|error| format!("{error:#}"));
            error.context(format!("{there}\n{}", self.node.log_tail()))
        })
    }
}

pub(super) fn name_of(object: &Value) -> Result<&str> {
    let name = object["metadata"]["name"].as_str();
    name.context("an object has a name")
}

/// Whether a condition of an object holds.
pub(super) fn holds(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| one["type"] == kind && one["status"] == "True")
}
