//! DaemonSets: a pod on every node that takes one.

use serde_json::{Value, json};

use super::context::{Context, Kind, MANAGER};
use super::node;
use super::replica_set::{adopt, is_available, is_ready};
use super::revision::{self, LABEL, Revisions};
use super::tables::{DAEMON_SETS, NODES, PODS};
use super::template;
use crate::kinds::edit::{ensure_object, integer, items, set, text, text_at};
use crate::rest::meta;
use crate::status::ApiError;

const CONTROLLER: &str = "daemonset-controller";
const GENERATION: &str = "pod-template-generation";

/// What pods of daemons tolerate.
const TOLERATED: &[(&str, &str)] = &[
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

pub(super) fn reconcile(context: &mut Context<'_>, set: &Value) -> Result<(), ApiError> {
    context.complain(set);
    if meta::is_terminating(set) {
        return Ok(());
    }
    adopt(context, DAEMON_SETS, set)?;
    let revisions = Revisions::of(context, set)?;
    let hash = revision::hash_of(&revisions.new).to_owned();
    let pods = context.controlled(set, PODS);
    let nodes = context.list(NODES, "");
    let acted = act(context, set, &hash, &nodes, &pods);
    report(context, set, &hash, &nodes, &pods)?;
    let in_use = |revision: &Value| {
        let hash = revision::hash_of(revision);
        pods.iter().any(|pod| hash_of(pod) == hash)
    };
    revisions.clean_up(context, set, &in_use)?;
    acted
}

fn hash_of(pod: &Value) -> &str {
    let labels = pod.pointer("/metadata/labels");
    labels.map_or("", |labels| text(labels, LABEL))
}

/// The node that a pod is on, or is meant for.
fn node_of(pod: &Value) -> &str {
    let named = text_at(pod, "/spec/nodeName");
    if !named.is_empty() {
        return named;
    }
    text_at(
        pod,
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0",
    )
}

/// The pod that the set would make, before it is meant for a node.
fn prototype(set_object: &Value) -> Value {
    let mut pod = template::pod(set_object, &set_object["spec"]["template"]);
    let mut tolerations: Vec<Value> = items(&pod["spec"], "tolerations").cloned().collect();
    for (key, effect) in TOLERATED {
        let known = tolerations
            .iter()
            .any(|t| text(t, "key") == *key && text(t, "effect") == *effect);
        if !known {
            tolerations.push(json!({"key": key, "operator": "Exists", "effect": effect}));
        }
    }
    set(&mut pod["spec"], "tolerations", tolerations);
    pod
}

fn act(
    context: &mut Context<'_>,
    set_object: &Value,
    hash: &str,
    nodes: &[Value],
    pods: &[Value],
) -> Result<(), ApiError> {
    let prototype = prototype(set_object);
    let mut unavailable = 0;
    let mut outdated = Vec::new();
    let min_ready = integer(&set_object["spec"], "minReadySeconds").unwrap_or(0);
    let mut meant = 0;
    for node in nodes {
        let name = meta::text(node, "name");
        let here: Vec<&Value> = pods.iter().filter(|pod| node_of(pod) == name).collect();
        if !node::is_for(node, &prototype) {
            for pod in here {
                delete(context, set_object, pod)?;
            }
            continue;
        }
        meant += 1;
        let (over, active): (Vec<&Value>, Vec<&Value>) =
            here.into_iter().partition(|pod| template::is_over(pod));
        for pod in over {
            delete(context, set_object, pod)?;
        }
        let Some((pod, surplus)) = active.split_first() else {
            make(context, set_object, hash, prototype.clone(), name)?;
            unavailable += 1;
            continue;
        };
        for pod in surplus {
            delete(context, set_object, pod)?;
        }
        if meta::is_terminating(pod) || !is_available(context, pod, min_ready) {
            unavailable += 1;
        }
        if hash_of(pod) != hash && !meta::is_terminating(pod) {
            outdated.push(*pod);
        }
    }
    for pod in pods
        .iter()
        .filter(|pod| !nodes.iter().any(|n| meta::text(n, "name") == node_of(pod)))
    {
        delete(context, set_object, pod)?;
    }
    if text_at(set_object, "/spec/updateStrategy/type") == "OnDelete" {
        return Ok(());
    }
    replace(context, set_object, &outdated, unavailable, meant)
}

/// Deletes pods of older templates: those that are not ready at once, others as
/// far as enough stay ready.
fn replace(
    context: &mut Context<'_>,
    set_object: &Value,
    outdated: &[&Value],
    unavailable: i64,
    meant: i64,
) -> Result<(), ApiError> {
    let most = set_object.pointer("/spec/updateStrategy/rollingUpdate/maxUnavailable");
    let surge = set_object.pointer("/spec/updateStrategy/rollingUpdate/maxSurge");
    // Replacements beside the old pods are not played; one at a time is.
    let most = template::share(most, meant, true)
        .max(template::share(surge, meant, true))
        .max(1);
    let mut room = most - unavailable;
    for pod in outdated {
        if !is_ready(pod) {
            delete(context, set_object, pod)?;
        } else if room > 0 {
            room -= 1;
            delete(context, set_object, pod)?;
        }
    }
    Ok(())
}

fn make(
    context: &Context<'_>,
    set_object: &Value,
    hash: &str,
    mut pod: Value,
    node: &str,
) -> Result<(), ApiError> {
    let name = meta::text(set_object, "name");
    set(&mut pod["metadata"], "generateName", format!("{name}-"));
    if let Some(labels) = ensure_object(&mut pod["metadata"], "labels") {
        set(labels, LABEL, hash);
        set(labels, GENERATION, generation(set_object));
    }
    let terms =
        json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]);
    let affinity = ensure_object(&mut pod["spec"], "affinity");
    if let Some(of_node) = affinity.and_then(|affinity| ensure_object(affinity, "nodeAffinity")) {
        set(
            of_node,
            "requiredDuringSchedulingIgnoredDuringExecution",
            json!({"nodeSelectorTerms": terms}),
        );
    }
    let made = context.create(PODS, meta::text(set_object, "namespace"), MANAGER, pod)?;
    let message = format!("Created pod: {}", meta::text(&made, "name"));
    context.event(
        CONTROLLER,
        set_object,
        Kind::Normal,
        "SuccessfulCreate",
        &message,
    );
    Ok(())
}

fn generation(set_object: &Value) -> &str {
    let annotations = set_object.pointer("/metadata/annotations");
    annotations.map_or("", |a| text(a, "deprecated.daemonset.template.generation"))
}

fn delete(context: &Context<'_>, set_object: &Value, pod: &Value) -> Result<(), ApiError> {
    if meta::is_terminating(pod) {
        return Ok(());
    }
    context.delete(PODS, pod)?;
    let message = format!("Deleted pod: {}", meta::text(pod, "name"));
    context.event(
        CONTROLLER,
        set_object,
        Kind::Normal,
        "SuccessfulDelete",
        &message,
    );
    Ok(())
}

fn report(
    context: &mut Context<'_>,
    set_object: &Value,
    hash: &str,
    nodes: &[Value],
    pods: &[Value],
) -> Result<(), ApiError> {
    let prototype = prototype(set_object);
    let min_ready = integer(&set_object["spec"], "minReadySeconds").unwrap_or(0);
    let (mut desired, mut current, mut misplaced) = (0, 0, 0);
    let (mut ready, mut available, mut updated) = (0, 0, 0);
    for node in nodes {
        let name = meta::text(node, "name");
        let pod = pods
            .iter()
            .find(|pod| node_of(pod) == name && template::is_active(pod));
        if !node::is_for(node, &prototype) {
            misplaced += i64::from(pod.is_some());
            continue;
        }
        desired += 1;
        let Some(pod) = pod else { continue };
        current += 1;
        ready += i64::from(is_ready(pod));
        available += i64::from(is_available(context, pod, min_ready));
        updated += i64::from(hash_of(pod) == hash);
    }
    let generation = meta::generation(set_object);
    context.change_status(DAEMON_SETS, set_object, MANAGER, |live| {
        let mut status = json!({
            "currentNumberScheduled": current,
            "desiredNumberScheduled": desired,
            "numberMisscheduled": misplaced,
            "numberReady": ready,
        });
        for (field, count) in [
            ("observedGeneration", generation),
            ("updatedNumberScheduled", updated),
            ("numberAvailable", available),
            ("numberUnavailable", desired - available),
        ] {
            if count != 0 {
                set(&mut status, field, count);
            }
        }
        if let Some(collisions) = live["status"].get("collisionCount").cloned() {
            set(&mut status, "collisionCount", collisions);
        }
        set(live, "status", status);
    })
}
