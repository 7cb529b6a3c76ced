//! Pods: how they come to a node. What they do there is the kubelet's business.

use serde_json::{Value, json};

use super::conditions;
use super::context::{Context, Kind, MANAGER, SCHEDULER, key};
use super::index::controller;
use super::routes::claims_of;
use super::script::{Failure, Script};
use super::tables::{CLAIMS, JOBS, NODES, PODS};
use super::{claim, job, kubelet, node, template};
use crate::kinds::edit::{items, set, text, text_at};
use crate::rest::meta;
use crate::rest::write::{Part, Writer};
use crate::status::ApiError;

pub(super) fn reconcile(context: &mut Context<'_>, pod: &Value) -> Result<(), ApiError> {
    release(context, pod)?;
    if !template::is_active(pod) {
        return Ok(());
    }
    context.complain(pod);
    let behind = behind(context, pod);
    let layers: Vec<&Value> = behind.iter().collect();
    let script = context.script(pod, &layers);
    if script.ignored {
        return Ok(());
    }
    if text_at(pod, "/spec/nodeName").is_empty() {
        schedule(context, pod, &script)
    } else {
        kubelet::run(context, pod, &script, behind.first())
    }
}

/// The controllers of a pod, the nearest first.
fn behind(context: &Context<'_>, pod: &Value) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    loop {
        let target = controller(found.last().unwrap_or(pod)).and_then(|c| c.target);
        let next = target.and_then(|target| context.get(&target.table, &target.key));
        match next {
            // Nothing real is deeper; a circle would be.
            Some(next) if found.len() < 4 => found.push(next),
            _ => return found,
        }
    }
}

/// Lets a pod of a Job go that is not there any more to count it.
fn release(context: &Context<'_>, pod: &Value) -> Result<(), ApiError> {
    if !job::is_tracked(pod) {
        return Ok(());
    }
    let owner = controller(pod).and_then(|c| {
        let found = context.get(JOBS, &c.target?.key)?;
        (meta::text(&found, "uid") == &*c.uid).then_some(found)
    });
    if owner.is_some() {
        return Ok(());
    }
    context.change(PODS, pod, MANAGER, job::untrack)
}

fn schedule(context: &mut Context<'_>, pod: &Value, script: &Script) -> Result<(), ApiError> {
    let spec = &pod["spec"];
    if text(spec, "schedulerName") != "default-scheduler" {
        return Ok(());
    }
    if items(spec, "schedulingGates").next().is_some() {
        let message = "Scheduling is blocked due to non-empty scheduling gates";
        return not_scheduled(context, pod, "SchedulingGated", message);
    }
    let nodes = context.list(NODES, "");
    if nodes.is_empty() {
        let message = "no nodes available to schedule pods";
        return not_scheduled(context, pod, "Unschedulable", message);
    }
    let fitting = nodes.iter().filter(|node| node::takes(node, pod));
    let fitting: Vec<&Value> = match script.failure {
        Some(Failure::Schedule) => Vec::new(),
        _ => fitting.collect(),
    };
    let Some(node) = least_used(context, &fitting) else {
        let message = format!(
            "0/{0} nodes are available: {0} node(s) didn't match.",
            nodes.len()
        );
        return not_scheduled(context, pod, "Unschedulable", &message);
    };
    let mut waiting = false;
    for name in claims_of(pod) {
        let claim_key = format!("{}/{name}", meta::text(pod, "namespace"));
        let Some(found) = context.get(CLAIMS, &claim_key) else {
            let message = format!("persistentvolumeclaim {name:?} not found");
            return not_scheduled(context, pod, "Unschedulable", &message);
        };
        if claim::is_bound(&found) {
            continue;
        }
        if !claim::waits_for_consumer(context, &found) {
            let message = "pod has unbound immediate PersistentVolumeClaims";
            return not_scheduled(context, pod, "Unschedulable", message);
        }
        waiting = true;
        claim::select_node(context, &found, meta::text(node, "name"))?;
    }
    // The binding of the last claim brings the pod up again.
    if waiting {
        return Ok(());
    }
    bind(context, pod, meta::text(node, "name"))
}

fn bind(context: &Context<'_>, pod: &Value, node: &str) -> Result<(), ApiError> {
    let Some(resource) = context.shared.registry.find_table(PODS) else {
        return Ok(());
    };
    let writer = Writer::of_server(
        context.shared,
        &resource,
        Part::Other("binding".to_owned()),
        SCHEDULER,
    );
    writer.bind(&key(pod), meta::text(pod, "uid"), node)?;
    let message = format!("Successfully assigned {} to {node}", key(pod));
    context.event(
        "default-scheduler",
        pod,
        Kind::Normal,
        "Scheduled",
        &message,
    );
    Ok(())
}

/// The node with the fewest pods.
fn least_used<'n>(context: &Context<'_>, nodes: &[&'n Value]) -> Option<&'n Value> {
    if let [only] = nodes {
        return Some(only);
    }
    let pods = context.list(PODS, "");
    let used = |node: &&&Value| {
        let name = meta::text(node, "name");
        let on = |pod: &&Value| text_at(pod, "/spec/nodeName") == name && template::is_active(pod);
        pods.iter().filter(on).count()
    };
    nodes.iter().min_by_key(used).copied()
}

fn not_scheduled(
    context: &Context<'_>,
    pod: &Value,
    reason: &str,
    message: &str,
) -> Result<(), ApiError> {
    let known = conditions::get(&pod["status"], "PodScheduled");
    if known.is_some_and(|c| text(c, "reason") == reason && text(c, "message") == message) {
        return Ok(());
    }
    let now = context.timestamp();
    context.change_status(PODS, pod, SCHEDULER, |pod| {
        let generation = pod["metadata"]["generation"].clone();
        let condition = json!({
            "type": "PodScheduled",
            "status": "False",
            "observedGeneration": generation,
            "lastProbeTime": null,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        });
        if let Some(status) = pod.get_mut("status") {
            conditions::remove(status, "PodScheduled");
            let mut list: Vec<Value> = items(status, "conditions").cloned().collect();
            list.push(condition);
            set(status, "conditions", list);
        }
    })?;
    if reason == "Unschedulable" {
        context.event(
            "default-scheduler",
            pod,
            Kind::Warning,
            "FailedScheduling",
            message,
        );
    }
    Ok(())
}
