//! Simulated nodes: kwok plays the kubelets, and whoever would look after Widgets.
//!
//! What it does is said in stages of our own: Pods on nodes of the cluster run at once,
//! those of Jobs come to their end, and Widgets become ready a moment after each change.
//! The annotations that the actors of the embedded cluster know hold here too:
//! `actor.reeve.dev/fail` on a Pod keeps it from running, `actor.reeve.dev/ready-after`
//! on a Widget says how long it takes. A node that is told ends Pods of Jobs when a test
//! says so, and as it says.

use std::fs;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::ControlPlane;
use crate::credentials::ADMIN;
use crate::parts::KWOK;
use crate::ports::free_port;
use crate::server::Server;
use crate::wait::eventually;

/// The user that it is; named to the builder with rights to everything.
pub const KWOK_USER: &str = "kwok";

/// Name of the one node.
pub const NODE: &str = "node";

/// How a container of a Pod came to its end, and with it the Pod.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// Name of the container. Those before it did well, and those after an init container
    /// that failed never started.
    pub container: &'a str,
    /// With which code.
    pub code: i32,
    /// What it left as its termination message.
    pub message: &'a str,
}

/// On a Pod, what is in [`Ended`].
const CONTAINER: &str = "actor.reeve.dev/exit-container";
const CODE: &str = "actor.reeve.dev/exit-code";
const MESSAGE: &str = "actor.reeve.dev/termination-message";

/// How a Pod of a Job whose node is told comes to its end.
const AS_TOLD: &str = r#"
{{ $annotations := .metadata.annotations }}
{{ $container := index $annotations "actor.reeve.dev/exit-container" }}
{{ $code := index $annotations "actor.reeve.dev/exit-code" }}
{{ $message := index $annotations "actor.reeve.dev/termination-message" }}
{{ $fails := false }}
initContainerStatuses:
{{ range .spec.initContainers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: {{ not (and (eq .name $container) (ne $code "0")) }}
  restartCount: 0
  state:
    terminated:
      startedAt: {{ Now | Quote }}
      finishedAt: {{ Now | Quote }}
{{ if eq .name $container }}
{{ $fails = ne $code "0" }}
      exitCode: {{ $code }}
      reason: {{ if $fails }}Error{{ else }}Completed{{ end }}
      message: {{ $message | Quote }}
{{ else }}
      exitCode: 0
      reason: Completed
{{ end }}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: false
  restartCount: 0
  state:
{{ if $fails }}
    waiting:
      reason: PodInitializing
{{ else }}
    terminated:
      startedAt: {{ Now | Quote }}
      finishedAt: {{ Now | Quote }}
      exitCode: {{ if eq .name $container }}{{ $code }}{{ else }}0{{ end }}
      reason: {{ if and (eq .name $container) (ne $code "0") }}Error{{ else }}Completed{{ end }}
      message: {{ if eq .name $container }}{{ $message | Quote }}{{ else }}""{{ end }}
{{ end }}
{{ end }}
phase: {{ if eq $code "0" }}Succeeded{{ else }}Failed{{ end }}
"#;

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
        // A kind is described a moment after it is served, and kwok ends where one of its
        // stages has a kind that is not.
        eventually("the kind Widget is described", || {
            let described = self.kubectl(&["get", "--raw", "/openapi/v3"])?;
            ensure!(described.contains("apis/example.com/v1"), "it is not");
            Ok(())
        })?;
        let further = [pod_of_job_ends(), widget_ready()];
        self.start_node_with(&[&stages()[..], &further].concat())
    }

    /// As [`Self::start_node`] for a node on which Pods of Jobs run until it is told how
    /// they end; see [`Self::end_pod`]. It does without the kind Widget.
    ///
    /// # Errors
    ///
    /// As [`Self::start_node`].
    pub fn start_told_node(&self) -> Result<SimulatedNode> {
        self.start_node_with(&[&stages()[..], &[pod_of_job_ends_as_told()]].concat())
    }

    /// Puts a Pod on the node, as a scheduler does.
    ///
    /// # Errors
    ///
    /// As [`Self::kubectl`].
    pub fn schedule(&self, namespace: &str, pod: &str) -> Result<()> {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/binding");
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
            "target": {"apiVersion": "v1", "kind": "Node", "name": NODE},
        });
        let create = ["create", "--raw", &path, "-f", "-"];
        self.kubectl_with(ADMIN, &create, &binding.to_string())
            .map(drop)
    }

    /// Tells a node from [`Self::start_told_node`] how a Pod of a Job ends.
    ///
    /// # Errors
    ///
    /// As [`Self::kubectl`].
    pub fn end_pod(&self, namespace: &str, pod: &str, ended: Ended<'_>) -> Result<()> {
        let told = json!({"metadata": {"annotations": {
            CONTAINER: ended.container,
            CODE: ended.code.to_string(),
            MESSAGE: ended.message,
        }}});
        let patch = ["patch", "pod", pod, "-n", namespace, "--type=merge", "-p"];
        self.kubectl(&[&patch[..], &[&told.to_string()]].concat())
            .map(drop)
    }

    fn start_node_with(&self, stages: &[Value]) -> Result<SimulatedNode> {
        let program = KWOK.get()?.join("kwok");
        self.apply_objects(&[json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE},
        })])?;
        // JSON is YAML, and its documents are told apart in the same way.
        let stages: Vec<String> = stages.iter().map(Value::to_string).collect();
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

/// What each node does to which objects.
fn stages() -> Vec<Value> {
    let ready = is(
        r#".status.conditions // [] | .[] | select(.type == "Ready") | .status"#,
        "True",
    );
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
                lives(),
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
            "pod-goes",
            ("v1", "Pod"),
            &[present(".metadata.deletionTimestamp")],
            &json!({}),
            &json!({"delete": true}),
        ),
    ]
}

fn pod_of_job_ends() -> Value {
    stage(
        "pod-of-job-ends",
        ("v1", "Pod"),
        &of_job_at_work(),
        &json!({}),
        &json!({"statusTemplate": containers(
            "false",
            "terminated",
            r#"{"exitCode": 0, "reason": "Completed", "startedAt": {{ Now | Quote }}, "finishedAt": {{ Now | Quote }}}"#,
            "Succeeded",
        )}),
    )
}

fn pod_of_job_ends_as_told() -> Value {
    let told = present(&format!(".metadata.annotations[{CODE:?}]"));
    stage(
        "pod-of-job-ends-as-told",
        ("v1", "Pod"),
        &[&of_job_at_work()[..], &[told]].concat(),
        &json!({}),
        &json!({"statusTemplate": AS_TOLD}),
    )
}

fn widget_ready() -> Value {
    stage(
        "widget-ready",
        ("example.com/v1", "Widget"),
        &[
            lives(),
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
    )
}

fn lives() -> Value {
    absent(".metadata.deletionTimestamp")
}

fn of_job_at_work() -> [Value; 3] {
    let of_job = is(".metadata.ownerReferences // [] | .[] | .kind", "Job");
    [lives(), is(".status.phase", "Running"), of_job]
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

    #[test]
    fn what_a_node_is_told_is_what_it_reads() {
        for annotation in [CONTAINER, CODE, MESSAGE] {
            let read = format!("index $annotations {annotation:?}");
            assert!(AS_TOLD.contains(&read), "{read}");
        }
    }
}
