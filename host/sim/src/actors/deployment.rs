//! Deployments: a ReplicaSet for each version of the template, and the way from
//! one to the next.

mod progress;
mod rollout;

use serde_json::{Map, Value, json};

use self::rollout::Rollout;
use super::context::{Context, Kind, MANAGER};
use super::index::controller;
use super::script::DOMAIN;
use super::tables::{DEPLOYMENTS, PODS, REPLICA_SETS};
use super::{hash, template};
use crate::kinds::edit::{flag, integer, text, text_at};
use crate::rest::meta;
use crate::status::ApiError;

const CONTROLLER: &str = "deployment-controller";
/// The label that tells the pods of different versions apart.
const HASH: &str = "pod-template-hash";
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAX: &str = "deployment.kubernetes.io/max-replicas";

/// Annotations of a Deployment that are not those of its ReplicaSets.
const OWN: &[&str] = &[
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    "deployment.kubernetes.io/revision-history",
    DESIRED,
    MAX,
    "deprecated.deployment.rollback.to",
];

/// A Deployment with its ReplicaSets.
#[derive(Debug)]
pub(super) struct Sets {
    /// That of the present template.
    new: Option<Value>,
    /// The others, oldest first.
    old: Vec<Value>,
}

impl Sets {
    fn all(&self) -> impl Iterator<Item = &Value> {
        self.old.iter().chain(&self.new)
    }
}

pub(super) fn reconcile(context: &mut Context<'_>, deployment: &Value) -> Result<(), ApiError> {
    context.complain(deployment);
    if meta::is_terminating(deployment) {
        let sets = sets(context, deployment);
        return progress::report(context, deployment, &sets, None);
    }
    adopt(context, deployment)?;
    let mut sets = sets(context, deployment);
    let paused = flag(&deployment["spec"], "paused");
    let mut created = None;
    if !paused && sets.new.is_none() && may_start(context, deployment, &sets) {
        match make(context, deployment, &sets) {
            Ok(made) => {
                created = Some(meta::text(&made, "name").to_owned());
                sets.new = Some(made);
            }
            Err(error) => return progress::failed(context, deployment, &error),
        }
    }
    mark(context, deployment, &mut sets)?;
    let rollout = Rollout::new(deployment, &sets);
    for (set, replicas) in rollout.steps(paused, &|set| is_empty(context, set)) {
        resize(context, deployment, set, replicas)?;
    }
    if !paused {
        clean_up(context, deployment, &sets)?;
    }
    progress::report(context, deployment, &sets, created.as_deref())
}

/// A Deployment that recreates its pods waits for the old ones to be gone.
fn may_start(context: &Context<'_>, deployment: &Value, sets: &Sets) -> bool {
    text_at(deployment, "/spec/strategy/type") != "Recreate"
        || sets.old.iter().all(|set| {
            integer(&set["spec"], "replicas").unwrap_or(0) == 0 && is_empty(context, set)
        })
        || sets.old.is_empty()
}

/// Whether no pod of a ReplicaSet is left.
fn is_empty(context: &Context<'_>, set: &Value) -> bool {
    !context
        .controlled(set, PODS)
        .iter()
        .any(|pod| !template::is_over(pod))
}

/// Makes ReplicaSets without a controller the Deployment's.
fn adopt(context: &Context<'_>, deployment: &Value) -> Result<(), ApiError> {
    let Some(selector) = template::selector(deployment).filter(|s| !s.is_empty()) else {
        return Ok(());
    };
    for set in context.list(REPLICA_SETS, meta::text(deployment, "namespace")) {
        let orphan = controller(&set).is_none() && !meta::is_terminating(&set);
        if orphan && selector.matches(template::labels(&set)) {
            let reference = template::controller_reference(deployment);
            context.change(REPLICA_SETS, &set, MANAGER, |set| {
                let metadata = meta::of_mut(set);
                metadata.insert("ownerReferences".to_owned(), json!([reference]));
            })?;
        }
    }
    Ok(())
}

fn sets(context: &Context<'_>, deployment: &Value) -> Sets {
    let mut old = context.controlled(deployment, REPLICA_SETS);
    old.sort_by_cached_key(|set| {
        let created = meta::text(set, "creationTimestamp").to_owned();
        (created, revision(set), meta::text(set, "name").to_owned())
    });
    let wanted = plain(&deployment["spec"]["template"]);
    let at = old
        .iter()
        .position(|set| plain(&set["spec"]["template"]) == wanted);
    Sets {
        new: at.map(|at| old.remove(at)),
        old,
    }
}

/// A template without the label that its ReplicaSet added.
fn plain(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(labels) = template
        .pointer_mut("/metadata/labels")
        .and_then(Value::as_object_mut)
    {
        labels.remove(HASH);
    }
    template
}

/// The revision that a Deployment or ReplicaSet is.
fn revision(object: &Value) -> i64 {
    let annotations = object.pointer("/metadata/annotations");
    let text = annotations.map_or("", |annotations| text(annotations, REVISION));
    text.parse().unwrap_or(0)
}

fn make(context: &Context<'_>, deployment: &Value, sets: &Sets) -> Result<Value, ApiError> {
    let spec = &deployment["spec"];
    let mut collisions = integer(&deployment["status"], "collisionCount");
    let rollout = Rollout::new(deployment, sets);
    loop {
        let hash = hash::of(&spec["template"], collisions);
        let mut template = spec["template"].clone();
        let mut selector = spec["selector"].clone();
        label(&mut template, "/metadata", "labels", &hash);
        label(&mut selector, "", "matchLabels", &hash);
        let mut annotations = inherited(deployment);
        annotations.insert(REVISION.to_owned(), json!(next_revision(sets).to_string()));
        bounds(&mut annotations, &rollout);
        let set = json!({
            "metadata": {
                "name": format!("{}-{hash}", meta::text(deployment, "name")),
                "labels": template["metadata"]["labels"],
                "annotations": annotations,
                "ownerReferences": [template::controller_reference(deployment)],
            },
            "spec": {
                "replicas": rollout.first_size(),
                "minReadySeconds": spec.get("minReadySeconds").cloned().unwrap_or(json!(0)),
                "selector": selector,
                "template": template,
            },
        });
        let namespace = meta::text(deployment, "namespace");
        match context.create(REPLICA_SETS, namespace, MANAGER, set) {
            // Another one has that name: the next hash is tried, and remembered.
            Err(error) if error.reason() == "AlreadyExists" && collisions.unwrap_or(0) < 10 => {
                collisions = Some(collisions.unwrap_or(0) + 1);
                context.change_status(DEPLOYMENTS, deployment, MANAGER, |deployment| {
                    deployment["status"]["collisionCount"] = json!(collisions);
                })?;
            }
            Ok(made) => {
                scaled(context, deployment, &made, 0, rollout.first_size());
                return Ok(made);
            }
            other => return other,
        }
    }
}

fn label(object: &mut Value, at: &str, field: &str, hash: &str) {
    let Some(object) = object.pointer_mut(at) else {
        return;
    };
    if let Some(labels) = crate::kinds::edit::ensure_object(object, field) {
        crate::kinds::edit::set(labels, HASH, hash);
    }
}

/// The annotations that a ReplicaSet has from its Deployment. Those for actors are
/// looked up where they are.
fn inherited(deployment: &Value) -> Map<String, Value> {
    let annotations = deployment.pointer("/metadata/annotations");
    let annotations = annotations.and_then(Value::as_object).into_iter().flatten();
    annotations
        .filter(|(key, _)| !OWN.contains(&key.as_str()) && !key.starts_with(DOMAIN))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn bounds(annotations: &mut Map<String, Value>, rollout: &Rollout<'_>) {
    annotations.insert(DESIRED.to_owned(), json!(rollout.wanted().to_string()));
    annotations.insert(MAX.to_owned(), json!(rollout.most().to_string()));
}

fn next_revision(sets: &Sets) -> i64 {
    sets.old.iter().map(revision).max().unwrap_or(0) + 1
}

/// Keeps the annotations of the present ReplicaSet up to date, and the revision of
/// the Deployment.
fn mark(context: &Context<'_>, deployment: &Value, sets: &mut Sets) -> Result<(), ApiError> {
    let Some(set) = sets.new.clone() else {
        return Ok(());
    };
    let wanted = next_revision(sets).max(revision(&set));
    let mut annotations = inherited(deployment);
    annotations.insert(REVISION.to_owned(), json!(wanted.to_string()));
    let min_ready = deployment["spec"].get("minReadySeconds").cloned();
    let apply = |set: &mut Value| {
        if let Some(known) = crate::kinds::edit::ensure_object(&mut set["metadata"], "annotations")
        {
            for (key, value) in &annotations {
                crate::kinds::edit::set(known, key, value.clone());
            }
        }
        match &min_ready {
            Some(seconds) => {
                crate::kinds::edit::set(&mut set["spec"], "minReadySeconds", seconds.clone())
            }
            None => drop(crate::kinds::edit::remove(
                &mut set["spec"],
                "minReadySeconds",
            )),
        }
    };
    let mut marked = set.clone();
    apply(&mut marked);
    if marked != set {
        context.change(REPLICA_SETS, &set, MANAGER, apply)?;
        sets.new = Some(marked);
    }
    if revision(deployment) != wanted {
        context.change_status(DEPLOYMENTS, deployment, MANAGER, |deployment| {
            if let Some(known) =
                crate::kinds::edit::ensure_object(&mut deployment["metadata"], "annotations")
            {
                crate::kinds::edit::set(known, REVISION, wanted.to_string());
            }
        })?;
    }
    Ok(())
}

/// Gives a ReplicaSet another size.
fn resize(
    context: &Context<'_>,
    deployment: &Value,
    set: &Value,
    replicas: i64,
) -> Result<(), ApiError> {
    let before = integer(&set["spec"], "replicas").unwrap_or(0);
    let wanted = integer(&deployment["spec"], "replicas").unwrap_or(1);
    let most = wanted + rollout::surge(deployment);
    context.change(REPLICA_SETS, set, MANAGER, |set| {
        set["spec"]["replicas"] = json!(replicas);
        if let Some(known) = crate::kinds::edit::ensure_object(&mut set["metadata"], "annotations")
        {
            crate::kinds::edit::set(known, DESIRED, wanted.to_string());
            crate::kinds::edit::set(known, MAX, most.to_string());
        }
    })?;
    if before != replicas {
        scaled(context, deployment, set, before, replicas);
    }
    Ok(())
}

fn scaled(context: &Context<'_>, deployment: &Value, set: &Value, before: i64, after: i64) {
    if before == after {
        return;
    }
    let way = if after > before { "up" } else { "down" };
    let name = meta::text(set, "name");
    let message = format!("Scaled {way} replica set {name} from {before} to {after}");
    context.event(
        CONTROLLER,
        deployment,
        Kind::Normal,
        "ScalingReplicaSet",
        &message,
    );
}

/// Deletes the oldest ReplicaSets that nothing is left of, beyond those that are
/// to be kept, once the rollout is complete.
fn clean_up(context: &Context<'_>, deployment: &Value, sets: &Sets) -> Result<(), ApiError> {
    let limit = integer(&deployment["spec"], "revisionHistoryLimit");
    let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else {
        return Ok(());
    };
    if !progress::is_complete(deployment) {
        return Ok(());
    }
    let idle = |set: &&Value| {
        integer(&set["spec"], "replicas").unwrap_or(0) == 0
            && integer(&set["status"], "replicas").unwrap_or(0) == 0
            && integer(&set["status"], "observedGeneration") == Some(meta::generation(set))
            && !meta::is_terminating(set)
    };
    let mut old: Vec<&Value> = sets.old.iter().collect();
    old.sort_by_key(|set| revision(set));
    let surplus = old.len().saturating_sub(limit);
    for set in old.into_iter().take(surplus).filter(idle) {
        context.delete(REPLICA_SETS, set)?;
    }
    Ok(())
}
