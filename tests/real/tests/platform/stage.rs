//! A cluster with simulated nodes, whose plugin returns what Bundles hold.

use anyhow::{Context as _, Result, ensure};
use reeve_core::grant::{self, Subject};
use reeve_real::{Agent, ControlPlane, KWOK_USER, NODE, SimulatedNode, User, eventually};
use reeve_test_support::{guest, samples};
use serde_json::{Value, json};

const AGENT: &str = "reeve-agent";
const NAMESPACE: &str = "reeve-system";
pub(crate) const PLUGIN: &str = "courier";

/// Those that make deletion work, and those that make Pods of workloads. Who is to
/// bind the Pods to nodes is left out: they name theirs.
const CONTROLLERS: [&str; 7] = [
    "namespace-controller",
    "garbage-collector-controller",
    "serviceaccount-controller",
    "clusterrole-aggregation-controller",
    "deployment-controller",
    "replicaset-controller",
    "job-controller",
];

pub(crate) struct Stage {
    // They end before the cluster that they talk to.
    agent: Agent,
    _node: SimulatedNode,
    pub(crate) cluster: ControlPlane,
}

impl Stage {
    /// A cluster with these namespaces, and an agent and the plugin in it, with the
    /// rights that `reeve plugin grant` gives.
    pub(crate) fn new(namespaces: &[&str]) -> Result<Self> {
        let kwok = User {
            name: KWOK_USER.to_owned(),
            groups: vec!["system:masters".to_owned()],
        };
        let cluster = ControlPlane::builder()
            .audited()
            .controllers(CONTROLLERS)
            .user(User::new(AGENT))
            .user(kwok)
            .start()?;
        cluster.install_kinds()?;
        for (kind, plural) in [("Bundle", "bundles"), ("Widget", "widgets")] {
            cluster.establish(&samples::open_crd(kind, plural))?;
        }
        let node = cluster.start_node()?;
        let namespaces = namespaces.iter().chain(&[NAMESPACE]);
        let namespaces: Vec<Value> = namespaces.map(|name| samples::namespace(name)).collect();
        cluster.apply_objects(&namespaces)?;
        cluster.apply_objects(&grant::agent_base(NAMESPACE, Subject::User(AGENT)))?;
        let config = json!({
            "primary": "Bundle.v1.example.com",
            "writes": {
                "Deployment.v1.apps": "primary-namespace",
                "Job.v1.batch": "primary-namespace",
                "Widget.v1.example.com": "primary-namespace",
            },
        });
        cluster.deliver(NAMESPACE, PLUGIN, &guest(PLUGIN), Some(&config))?;
        let grant = ["plugin", "grant", PLUGIN, "--namespace", NAMESPACE];
        let to = ["--agent-user", AGENT, "--apply"];
        cluster.reeve(&[&grant[..], &to].concat())?;
        let agent = Agent::start(&cluster, AGENT, NAMESPACE)?;
        Ok(Self {
            agent,
            _node: node,
            cluster,
        })
    }

    /// Makes or changes a Bundle. Pods of what it holds run on the one node.
    pub(crate) fn bundle(&self, namespace: &str, name: &str, spec: &Value) -> Result<()> {
        let mut spec = spec.clone();
        let objects = spec["objects"].as_array_mut().into_iter().flatten();
        for object in objects {
            if let Some(pod) = object.pointer_mut("/spec/template/spec") {
                pod["nodeName"] = json!(NODE);
            }
        }
        let bundle = json!({
            "apiVersion": "example.com/v1", "kind": "Bundle",
            "metadata": {"name": name, "namespace": namespace},
            "spec": spec,
        });
        let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        let applied = self
            .cluster
            .kubectl_with(reeve_real::ADMIN, &apply, &bundle.to_string());
        applied.map(drop)
    }

    /// The `Unit` of a Bundle, if it is in trouble or under way.
    pub(crate) fn unit(&self, namespace: &str, name: &str) -> Result<Option<Value>> {
        let units = self.cluster.list("units", NAMESPACE)?;
        Ok(units.into_iter().find(|unit| {
            let primary = &unit["spec"]["primary"];
            primary["name"] == name && primary["namespace"] == namespace
        }))
    }

    /// Waits until a unit is as `look` wants it; none is one that is well.
    pub(crate) fn wait_for_unit(
        &self,
        (namespace, name): (&str, &str),
        what: &str,
        look: impl Fn(Option<&Value>) -> bool,
    ) -> Result<Option<Value>> {
        self.explained(eventually(what, || {
            let unit = self.unit(namespace, name)?;
            let status = unit.as_ref().map(|unit| &unit["status"]);
            ensure!(look(status), "it is {status:?}");
            Ok(unit)
        }))
    }

    /// Waits until there are just so many objects of the plugin in a namespace, and the
    /// unit is well.
    pub(crate) fn wait_for_all(&self, unit: (&str, &str), count: usize) -> Result<()> {
        self.explained(eventually(
            &format!("all {count} objects are there"),
            || {
                let found = self.objects(unit.0)?;
                ensure!(found.len() == count, "there are {}: {found:?}", found.len());
                Ok(())
            },
        ))?;
        self.wait_for_unit(unit, "the unit is well", |unit| unit.is_none())
            .map(drop)
    }

    /// The plugin's objects in a namespace, as `Kind/name`.
    pub(crate) fn objects(&self, namespace: &str) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for kind in ["deployments", "jobs", "widgets"] {
            let objects = self.cluster.list(kind, namespace)?;
            names.extend(
                objects
                    .iter()
                    .filter(|object| is_of_a_plugin(object))
                    .map(|object| {
                        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                        format!(
                            "{}/{}",
                            text(&object["kind"]),
                            text(&object["metadata"]["name"])
                        )
                    }),
            );
        }
        Ok(names)
    }

    /// Waits until there are no objects of the plugin in a namespace.
    pub(crate) fn wait_until_empty(&self, namespace: &str) -> Result<()> {
        self.explained(eventually("all of it is gone", || {
            let left = self.objects(namespace)?;
            ensure!(left.is_empty(), "{left:?}");
            Ok(())
        }))
    }

    /// One object.
    pub(crate) fn get(&self, kind: &str, namespace: &str, name: &str) -> Result<Value> {
        let found = self.cluster.get(kind, namespace, name)?;
        found.with_context(|| format!("there is no {kind} {namespace}/{name}"))
    }

    /// Waits until an object has a value at a JSON Pointer.
    pub(crate) fn wait_for_value(
        &self,
        (kind, namespace, name): (&str, &str, &str),
        pointer: &str,
        value: &Value,
    ) -> Result<()> {
        let what = format!("{kind} {namespace}/{name} has {pointer} = {value}");
        self.explained(eventually(&what, || {
            let found = self.get(kind, namespace, name)?;
            let seen = found.pointer(pointer).unwrap_or(&Value::Null);
            ensure!(seen == value, "it has {seen}");
            Ok(())
        }))
    }

    /// Waits until an object is gone.
    pub(crate) fn wait_for_end(&self, kind: &str, namespace: &str, name: &str) -> Result<()> {
        let what = format!("{kind} {namespace}/{name} is gone");
        self.explained(eventually(&what, || {
            let found = self.cluster.get(kind, namespace, name)?;
            ensure!(found.is_none(), "it is there");
            Ok(())
        }))
    }

    /// Adds what the agent printed to an error.
    fn explained<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| error.context(self.agent.log_tail()))
    }
}

/// Whether an object has the label of a plugin.
fn is_of_a_plugin(object: &Value) -> bool {
    object["metadata"]["labels"]["reeve.dev/plugin"].is_string()
}
