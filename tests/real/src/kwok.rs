//! Simulated nodes: kwok plays the kubelets, and whoever would look after Widgets.
//!
//! What it does is said in stages of our own: Pods on nodes of the cluster run at once,
//! those of Jobs come to their end, and Widgets become ready a moment after each change.
//! The annotations that the actors of the embedded cluster know hold here too:
//! `actor.reeve.dev/fail` on a Pod keeps it from running, `actor.reeve.dev/ready-after`
//! on a Widget says how long it takes.

use std::fs;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::ControlPlane;
use crate::parts::KWOK;
use crate::ports::free_port;
use crate::server::Server;
use crate::wait::eventually;

/// The user that it is; named to the builder with rights to everything.
pub const KWOK_USER: &str = "kwok";

/// Name of the one node.
pub const NODE: &str = "node";

/// How long a Widget takes by default.
const MOMENT_MILLISECONDS: u32 = 200;

/// Simulated nodes. They are gone when this is dropped.
#[derive(Debug)]
pub struct SimulatedNode {
    process: Server,
}

impl SimulatedNode {
    /// The last lines that kwok printed.
    pub fn log_tail(&self) -> String {
        self.process.log_tail()
    }
}

impl ControlPlane {
    /// Makes a node and has kwok play it. Returns at once. The kind Widget must have been
    /// defined, and the control plane know the user [`KWOK_USER`].
    ///
    /// # Errors
    ///
    /// When kwok cannot be built, or as [`Self::kubectl`].
    pub fn start_node(&self) -> Result<SimulatedNode> {
        let program = KWOK.get()?.join("kwok");
        // A kind is described a moment after it is served, and kwok ends where one of its
        // stages has a kind that is not.
        eventually("the kind Widget is described", || {
            let described = self.kubectl(&["get", "--raw", "/openapi/v3"])?;
            ensure!(described.contains("apis/example.com/v1"), "it is not");
            Ok(())
        })?;
        self.apply_objects(&[json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE},
        })])?;
        // JSON is YAML, and its documents are told apart in the same way.
        let stages: Vec<String> = stages().iter().map(Value::to_string).collect();
        let config = self.folder().join("stages.yaml");
        fs::write(&config, stages.join("\n---\n"))?;
        let arguments = [
            format!("--kubeconfig={}", self.kubeconfig_of(KWOK_USER)?.display()),
            format!("--config={}", config.display()),
            "--manage-all-nodes=true".to_owned(),
            "--node-ip=127.0.0.1".to_owned(),
            "--node-lease-duration-seconds=40".to_owned(),
            format!("--server-address=127.0.0.1:{}", free_port()?),
        ];
        let folder = self.folder();
        let process = Server::start("kwok", self.supervise(), &program, &arguments, folder)?;
        Ok(SimulatedNode { process })
    }
}

impl Drop for SimulatedNode {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log_tail());
        }
    }
}

/// What it does to which objects.
fn stages() -> Vec<Value> {
    let lives = absent(".metadata.deletionTimestamp");
    let ready = is(
        r#".status.conditions // [] | .[] | select(.type == "Ready") | .status"#,
        "True",
    );
    let of_job = is(".metadata.ownerReferences // [] | .[] | .kind", "Job");
    vec![
        stage(
            "node-ready",
            ("v1", "Node"),
            &[negated(&ready)],
            &json!({}),
            &json!({"statusTemplate": template(&["Ready"], "")}),
        ),
        stage(
            "pod-runs",
            ("v1", "Pod"),
            &[
                lives.clone(),
                is(".status.phase", "Pending"),
                absent(r#".metadata.annotations["actor.reeve.dev/fail"]"#),
            ],
            &json!({}),
            &json!({"statusTemplate": template(
                &["Initialized", "ContainersReady", "Ready"],
                &containers("true", "running", r#"{"startedAt": {{ Now | Quote }}}"#, "Running"),
            )}),
        ),
        stage(
            "pod-of-job-ends",
            ("v1", "Pod"),
            &[lives.clone(), is(".status.phase", "Running"), of_job],
            &json!({}),
            &json!({"statusTemplate": containers(
                "false",
                "terminated",
                r#"{"exitCode": 0, "reason": "Completed", "startedAt": {{ Now | Quote }}, "finishedAt": {{ Now | Quote }}}"#,
                "Succeeded",
            )}),
        ),
        stage(
            "pod-goes",
            ("v1", "Pod"),
            &[present(".metadata.deletionTimestamp")],
            &json!({}),
            &json!({"delete": true}),
        ),
        stage(
            "widget-ready",
            ("example.com/v1", "Widget"),
            &[
                lives,
                absent("select(.status.observedGeneration == .metadata.generation) | .kind"),
            ],
            &json!({
                "durationMilliseconds": MOMENT_MILLISECONDS,
                "durationFrom": {"jq": {
                    "expression": r#".metadata.annotations["actor.reeve.dev/ready-after"]"#,
                }},
            }),
            &json!({"statusTemplate":
                template(&["Ready"], "observedGeneration: {{ .metadata.generation }}\n")}),
        ),
    ]
}

fn stage(
    name: &str,
    (group, kind): (&str, &str),
    selector: &[Value],
    delay: &Value,
    next: &Value,
) -> Value {
    json!({
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": group, "kind": kind},
            "selector": {"matchExpressions": selector},
            "delay": delay,
            "next": next,
        },
    })
}

fn is(key: &str, value: &str) -> Value {
    json!({"key": key, "operator": "In", "values": [value]})
}

fn negated(one: &Value) -> Value {
    let mut one = one.clone();
    one["operator"] = json!("NotIn");
    one
}

fn absent(key: &str) -> Value {
    json!({"key": key, "operator": "DoesNotExist"})
}

fn present(key: &str) -> Value {
    json!({"key": key, "operator": "Exists"})
}

/// A status in which these conditions are true.
fn template(conditions: &[&str], rest: &str) -> String {
    let conditions = conditions.iter().map(|kind| {
        format!(
            "- {{\"type\": \"{kind}\", \"status\": \"True\", \"reason\": \"Simulated\", \
             \"message\": \"\", \"lastTransitionTime\": {{{{ Now | Quote }}}}}}\n"
        )
    });
    format!("conditions:\n{}{rest}", conditions.collect::<String>())
}

/// The part of a Pod's status that is about its containers.
fn containers(ready: &str, state: &str, details: &str, phase: &str) -> String {
    format!(
        "containerStatuses:\n{{{{ range .spec.containers }}}}\
         - {{\"name\": {{{{ .name | Quote }}}}, \"image\": {{{{ .image | Quote }}}}, \
         \"imageID\": \"\", \"ready\": {ready}, \"restartCount\": 0, \
         \"state\": {{\"{state}\": {details}}}}}\n{{{{ end }}}}\
         phase: {phase}\nstartTime: {{{{ Now | Quote }}}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_yaml_of_a_status() {
        let template = template(&["A", "B"], "observedGeneration: 1\n");
        assert!(
            template.starts_with("conditions:\n- {\"type\": \"A\", "),
            "{template}"
        );
        assert!(
            template.contains("\"lastTransitionTime\": {{ Now | Quote }}}\n- {\"type\": \"B\""),
            "{template}"
        );
        let containers = containers("true", "running", "{}", "Running");
        assert!(
            containers.contains("{{ range .spec.containers }}- {\"name\": {{ .name | Quote }},"),
            "{containers}"
        );
        assert!(containers.ends_with("phase: Running\nstartTime: {{ Now | Quote }}\n"));
    }
}
