//! Pods and Nodes.

use serde_json::{Value, json};

use super::column::{Cells, Column, Layout, NONE};
use crate::kinds::edit::{flag, integer, items, text, text_at};

pub(super) const LAYOUTS: &[Layout] = &[
    Layout::of(
        "",
        "Pod",
        &[
            Column::NAME,
            Column::text("Ready"),
            Column::text("Status"),
            Column::text("Restarts"),
            Column::AGE,
            Column::wide("IP"),
            Column::wide("Node"),
            Column::wide("Nominated Node"),
            Column::wide("Readiness Gates"),
        ],
        pod,
    )
    .with_condition(completed),
    Layout::of(
        "",
        "Node",
        &[
            Column::NAME,
            Column::text("Status"),
            Column::text("Roles"),
            Column::AGE,
            Column::text("Version"),
            Column::wide("Internal-IP"),
            Column::wide("External-IP"),
            Column::wide("OS-Image"),
            Column::wide("Kernel-Version"),
            Column::wide("Container-Runtime"),
        ],
        node,
    ),
];

/// kubectl hides what is over unless asked.
fn completed(pod: &Value) -> Option<Value> {
    let (reason, message) = match text_at(pod, "/status/phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!({"type": "Completed", "status": "True", "reason": reason, "message": message}))
}

/// What the containers of a pod say, put together.
#[derive(Debug, Default)]
struct Summary {
    ready: usize,
    restarts: Restarts,
    /// Those of sidecars: they count for as long as the pod runs.
    of_sidecars: Restarts,
    reason: String,
}

#[derive(Debug, Default)]
struct Restarts {
    number: i64,
    last: String,
}

impl Restarts {
    fn count(&mut self, container: &Value) {
        self.number += integer(container, "restartCount").unwrap_or(0);
        let finished = text_at(container, "/lastState/terminated/finishedAt");
        if finished > self.last.as_str() {
            finished.clone_into(&mut self.last);
        }
    }
}

/// Whether an init container is a sidecar, which runs beside the others.
fn is_sidecar(container: &Value) -> bool {
    text(container, "restartPolicy") == "Always"
}

fn pod(o: &Cells<'_>) -> Vec<Value> {
    let sidecars = o.list("/spec/initContainers").filter(|c| is_sidecar(c));
    let total = o.len("/spec/containers") + sidecars.count();
    let mut summary = Summary {
        reason: o.text("/status/phase").to_owned(),
        ..Summary::default()
    };
    if let reason @ ("Evicted" | "NodeLost" | "NodeAffinity" | "Shutdown") =
        o.text("/status/reason")
    {
        reason.clone_into(&mut summary.reason);
    } else if !o.text("/status/reason").is_empty() {
        o.text("/status/reason").clone_into(&mut summary.reason);
    }
    let gated = o
        .list("/status/conditions")
        .any(|c| text(c, "type") == "PodScheduled" && text(c, "reason") == "SchedulingGated");
    if gated {
        "SchedulingGated".clone_into(&mut summary.reason);
    }
    let initializing = init_containers(o, &mut summary);
    if !initializing || is_true(o, "Initialized") {
        containers(o, &mut summary);
    }
    if o.is_ending() {
        if o.text("/status/reason") == "NodeLost" {
            "Unknown".clone_into(&mut summary.reason);
        } else if !matches!(o.text("/status/phase"), "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut summary.reason);
        }
    }
    let Restarts { number, last } = &summary.restarts;
    let restarts = if *number > 0 && !last.is_empty() {
        format!("{number} ({} ago)", o.since_text(last))
    } else {
        number.to_string()
    };
    let gates = match o.len("/spec/readinessGates") {
        0 => NONE.to_owned(),
        all => {
            let open = o
                .list("/spec/readinessGates")
                .filter(|gate| is_true(o, text(gate, "conditionType")))
                .count();
            format!("{open}/{all}")
        }
    };
    vec![
        o.name(),
        json!(format!("{}/{total}", summary.ready)),
        json!(summary.reason),
        json!(restarts),
        o.age(),
        json!(o.text_or("/status/podIPs/0/ip", NONE)),
        json!(o.text_or("/spec/nodeName", NONE)),
        json!(o.text_or("/status/nominatedNodeName", NONE)),
        json!(gates),
    ]
}

fn is_true(o: &Cells<'_>, condition: &str) -> bool {
    o.list("/status/conditions")
        .any(|c| text(c, "type") == condition && text(c, "status") == "True")
}

/// Whether the pod still initializes, and why it is not further.
fn init_containers(o: &Cells<'_>, summary: &mut Summary) -> bool {
    let total = o.len("/spec/initContainers");
    let sidecars: Vec<&str> = o
        .list("/spec/initContainers")
        .filter(|container| is_sidecar(container))
        .map(|container| text(container, "name"))
        .collect();
    for (index, container) in o.list("/status/initContainerStatuses").enumerate() {
        summary.restarts.count(container);
        let is_sidecar = sidecars.contains(&text(container, "name"));
        if is_sidecar {
            summary.of_sidecars.count(container);
        }
        let terminated = container.pointer("/state/terminated");
        let waiting = text_at(container, "/state/waiting/reason");
        summary.reason = match terminated {
            Some(state) if integer(state, "exitCode").unwrap_or(0) == 0 => continue,
            _ if is_sidecar && flag(container, "started") => {
                summary.ready += usize::from(flag(container, "ready"));
                continue;
            }
            Some(state) => format!("Init:{}", end_of(state)),
            None if !waiting.is_empty() && waiting != "PodInitializing" => {
                format!("Init:{waiting}")
            }
            None => format!("Init:{index}/{total}"),
        };
        return true;
    }
    false
}

fn containers(o: &Cells<'_>, summary: &mut Summary) {
    summary.restarts = std::mem::take(&mut summary.of_sidecars);
    let mut running = false;
    let mut failure = None;
    let status = o.at("/status").unwrap_or(&Value::Null);
    let all: Vec<&Value> = items(status, "containerStatuses").collect();
    for container in all.into_iter().rev() {
        summary.restarts.count(container);
        let waiting = text_at(container, "/state/waiting/reason");
        if !waiting.is_empty() {
            waiting.clone_into(&mut summary.reason);
        } else if let Some(state) = container.pointer("/state/terminated") {
            summary.reason = end_of(state);
            if integer(state, "exitCode").unwrap_or(0) != 0 {
                failure = Some(summary.reason.clone());
            }
        } else if flag(container, "ready") && container.pointer("/state/running").is_some() {
            running = true;
            summary.ready += 1;
        }
    }
    if summary.reason == "Completed" {
        summary.reason = match failure {
            _ if running && is_true(o, "Ready") => "Running".to_owned(),
            Some(failure) => failure,
            None if running => "NotReady".to_owned(),
            None => return,
        };
    }
}

/// How a container ended.
fn end_of(state: &Value) -> String {
    let signal = integer(state, "signal").unwrap_or(0);
    match text(state, "reason") {
        "" if signal != 0 => format!("Signal:{signal}"),
        "" => format!("ExitCode:{}", integer(state, "exitCode").unwrap_or(0)),
        reason => reason.to_owned(),
    }
}

fn node(o: &Cells<'_>) -> Vec<Value> {
    const ROLE: &str = "node-role.kubernetes.io/";
    let ready = o
        .list("/status/conditions")
        .find(|condition| text(condition, "type") == "Ready");
    let mut status = match ready.map(|condition| text(condition, "status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if o.at("/spec/unschedulable") == Some(&Value::Bool(true)) {
        status.push_str(",SchedulingDisabled");
    }
    let mut roles: Vec<&str> = o
        .at("/metadata/labels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix(ROLE) {
            Some(role) if !role.is_empty() => Some(role),
            _ if key == "kubernetes.io/role" => value.as_str(),
            _ => None,
        })
        .collect();
    roles.sort_unstable();
    roles.dedup();
    let roles = match roles.join(",") {
        none if none.is_empty() => NONE.to_owned(),
        roles => roles,
    };
    let address = |kind: &str| {
        o.list("/status/addresses")
            .find(|address| text(address, "type") == kind)
            .map_or(NONE, |address| text(address, "address"))
    };
    let info = |field: &str| {
        let pointer = format!("/status/nodeInfo/{field}");
        o.text_or(&pointer, "<unknown>").to_owned()
    };
    let mut kernel = info("kernelVersion");
    let architecture = o.text("/status/nodeInfo/architecture");
    if !architecture.is_empty() {
        kernel = format!("{kernel} ({architecture})");
    }
    vec![
        o.name(),
        json!(status),
        json!(roles),
        o.age(),
        json!(o.text("/status/nodeInfo/kubeletVersion")),
        json!(address("InternalIP")),
        json!(address("ExternalIP")),
        json!(info("osImage")),
        json!(kernel),
        json!(info("containerRuntimeVersion")),
    ]
}
