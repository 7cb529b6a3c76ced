//! ReplicaSets: as many pods as are wanted.

use std::time::Duration;

use serde_json::{Value, json};

use super::conditions::{self, Condition};
use super::context::{Context, Kind, MANAGER};
use super::index::controller;
use super::tables::{PODS, REPLICA_SETS};
use super::template;
use crate::clock;
use crate::kinds::edit::{integer, items, remove, set as assign, text, text_at};
use crate::rest::meta;
use crate::status::ApiError;

pub(super) fn reconcile(context: &mut Context<'_>, set: &Value) -> Result<(), ApiError> {
    context.complain(set);
    let failure = if meta::is_terminating(set) {
        None
    } else {
        adopt(context, REPLICA_SETS, set)?;
        scale(context, set)
    };
    report(context, set, failure.as_ref())
}

/// Makes pods without a controller the object's, and lets those go that it does
/// not select any more.
pub(super) fn adopt(context: &Context<'_>, table: &str, owner: &Value) -> Result<(), ApiError> {
    let Some(selector) = template::selector(owner).filter(|selector| !selector.is_empty()) else {
        return Ok(());
    };
    for pod in context.controlled(owner, PODS) {
        if !selector.matches(template::labels(&pod)) && !meta::is_terminating(&pod) {
            let uid = meta::text(owner, "uid").to_owned();
            context.change(PODS, &pod, MANAGER, |pod| {
                let references = pod.pointer_mut("/metadata/ownerReferences");
                if let Some(Value::Array(references)) = references {
                    references.retain(|reference| reference["uid"] != uid.as_str());
                }
            })?;
        }
    }
    for pod in context.list(PODS, meta::text(owner, "namespace")) {
        let orphan = controller(&pod).is_none() && template::is_active(&pod);
        if orphan && selector.matches(template::labels(&pod)) && takes(table, owner, &pod) {
            let reference = template::controller_reference(owner);
            context.change(PODS, &pod, MANAGER, |pod| {
                let metadata = meta::of_mut(pod);
                let references = metadata
                    .entry("ownerReferences")
                    .or_insert_with(|| json!([]));
                if let Value::Array(references) = references {
                    references.push(reference.clone());
                }
            })?;
        }
    }
    Ok(())
}

/// A StatefulSet only takes pods that are named after it.
fn takes(table: &str, owner: &Value, pod: &Value) -> bool {
    table != super::tables::STATEFUL_SETS || super::stateful_set::ordinal(owner, pod).is_some()
}

/// Makes or deletes pods. The answer is why one could not be made.
fn scale(context: &Context<'_>, set: &Value) -> Option<ApiError> {
    let wanted = integer(&set["spec"], "replicas").unwrap_or(1);
    let pods = context.controlled(set, PODS);
    let mut active: Vec<Value> = pods.into_iter().filter(template::is_active).collect();
    let present = i64::try_from(active.len()).unwrap_or(i64::MAX);
    for _ in present..wanted {
        if let Err(error) = make(context, set) {
            let message = format!("Error creating: {error}");
            context.event(
                "replicaset-controller",
                set,
                Kind::Warning,
                "FailedCreate",
                &message,
            );
            return Some(error);
        }
    }
    active.sort_by_cached_key(rank);
    let surplus = usize::try_from(present - wanted).unwrap_or(0);
    for pod in active.iter().take(surplus) {
        if let Err(error) = context.delete(PODS, pod) {
            return Some(error);
        }
        let message = format!("Deleted pod: {}", meta::text(pod, "name"));
        context.event(
            "replicaset-controller",
            set,
            Kind::Normal,
            "SuccessfulDelete",
            &message,
        );
    }
    None
}

fn make(context: &Context<'_>, set: &Value) -> Result<(), ApiError> {
    let mut pod = template::pod(set, &set["spec"]["template"]);
    // Names leave room for the letters that are added.
    pod["metadata"]["generateName"] = json!(format!("{}-", meta::text(set, "name")));
    let made = context.create(PODS, meta::text(set, "namespace"), MANAGER, pod)?;
    let message = format!("Created pod: {}", meta::text(&made, "name"));
    context.event(
        "replicaset-controller",
        set,
        Kind::Normal,
        "SuccessfulCreate",
        &message,
    );
    Ok(())
}

/// Which pods go first: those without a node, then those that are not ready, then
/// the youngest.
fn rank(pod: &Value) -> (bool, bool, std::cmp::Reverse<String>, String) {
    (
        !text_at(pod, "/spec/nodeName").is_empty(),
        is_ready(pod),
        std::cmp::Reverse(meta::text(pod, "creationTimestamp").to_owned()),
        meta::text(pod, "name").to_owned(),
    )
}

/// Whether a pod is ready.
pub(super) fn is_ready(pod: &Value) -> bool {
    conditions::is_true(&pod["status"], "Ready")
}

/// Whether a pod has been ready for so many seconds; asks for another look when
/// it will have been.
pub(super) fn is_available(context: &mut Context<'_>, pod: &Value, seconds: i64) -> bool {
    if !is_ready(pod) {
        return false;
    }
    if seconds <= 0 {
        return true;
    }
    let since = conditions::get(&pod["status"], "Ready")
        .and_then(|condition| clock::parse(text(condition, "lastTransitionTime")));
    let seconds = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    let Some(available) = since.map(|since| since + seconds) else {
        return false;
    };
    if available > context.now() {
        context.wake_at(available);
        return false;
    }
    true
}

fn report(
    context: &mut Context<'_>,
    set: &Value,
    failure: Option<&ApiError>,
) -> Result<(), ApiError> {
    let pods = context.controlled(set, PODS);
    let labels = set.pointer("/spec/template/metadata/labels");
    let labels = labels.and_then(Value::as_object);
    let min_ready = integer(&set["spec"], "minReadySeconds").unwrap_or(0);
    let (mut replicas, mut labeled, mut ready, mut available, mut ending) = (0, 0, 0, 0, 0);
    for pod in &pods {
        if meta::is_terminating(pod) && !template::is_over(pod) {
            ending += 1;
        }
        if !template::is_active(pod) {
            continue;
        }
        replicas += 1;
        let has = |key: &String, value: &Value| {
            template::labels(pod).and_then(|labels| labels.get(key)) == Some(value)
        };
        labeled += i64::from(
            labels
                .into_iter()
                .flatten()
                .all(|(key, value)| has(key, value)),
        );
        ready += i64::from(is_ready(pod));
        available += i64::from(is_available(context, pod, min_ready));
    }
    let now = context.timestamp();
    let generation = meta::generation(set);
    context.change_status(REPLICA_SETS, set, MANAGER, |set| {
        let mut status = json!({"replicas": replicas, "terminatingReplicas": ending});
        for (field, count) in [
            ("fullyLabeledReplicas", labeled),
            ("readyReplicas", ready),
            ("availableReplicas", available),
            ("observedGeneration", generation),
        ] {
            if count != 0 {
                assign(&mut status, field, count);
            }
        }
        let known: Vec<Value> = items(&set["status"], "conditions").cloned().collect();
        if !known.is_empty() {
            assign(&mut status, "conditions", known);
        }
        match failure {
            Some(error) => conditions::replace(
                &mut status,
                Condition {
                    kind: "ReplicaFailure",
                    status: true,
                    reason: "FailedCreate",
                    message: &error.to_string(),
                },
                &now,
                &[],
            ),
            None => conditions::remove(&mut status, "ReplicaFailure"),
        }
        if items(&status, "conditions").next().is_none() {
            remove(&mut status, "conditions");
        }
        assign(set, "status", status);
    })
}
