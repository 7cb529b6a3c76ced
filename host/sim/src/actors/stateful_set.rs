//! StatefulSets: pods with names, made and replaced in order.

use serde_json::{Value, json};

use super::context::{Context, Kind, MANAGER};
use super::replica_set::{adopt, is_available, is_ready};
use super::revision::{self, LABEL, Revisions};
use super::tables::{CLAIMS, PODS, STATEFUL_SETS};
use super::template;
use crate::kinds::edit::{ensure_object, integer, items, set, text, text_at};
use crate::rest::meta;
use crate::status::ApiError;

const CONTROLLER: &str = "statefulset-controller";

pub(super) fn reconcile(context: &mut Context<'_>, set: &Value) -> Result<(), ApiError> {
    context.complain(set);
    if meta::is_terminating(set) {
        return Ok(());
    }
    adopt(context, STATEFUL_SETS, set)?;
    let revisions = Revisions::of(context, set)?;
    let update = meta::text(&revisions.new, "name");
    let current = match text_at(set, "/status/currentRevision") {
        known if revisions.named(known).is_some() => known,
        _ => update,
    };
    let view = View {
        set,
        revisions: &revisions,
        current,
        update,
    };
    let pods = context.controlled(set, PODS);
    let acted = view.act(context, &pods);
    view.report(context, &pods)?;
    let in_use = |revision: &Value| {
        let name = meta::text(revision, "name");
        name == current || pods.iter().any(|pod| revision_of(pod) == name)
    };
    revisions.clean_up(context, set, &in_use)?;
    acted
}

/// The number at the end of the name of a pod of the set.
pub(super) fn ordinal(set: &Value, pod: &Value) -> Option<i64> {
    let name = meta::text(pod, "name");
    let number = name
        .strip_prefix(meta::text(set, "name"))?
        .strip_prefix('-')?;
    number.parse().ok().filter(|ordinal| *ordinal >= 0)
}

fn revision_of(pod: &Value) -> &str {
    let labels = pod.pointer("/metadata/labels");
    labels.map_or("", |labels| text(labels, LABEL))
}

struct View<'a> {
    set: &'a Value,
    revisions: &'a Revisions,
    current: &'a str,
    update: &'a str,
}

impl View<'_> {
    fn spec(&self) -> &Value {
        &self.set["spec"]
    }

    fn first(&self) -> i64 {
        self.spec()
            .pointer("/ordinals/start")
            .and_then(Value::as_i64)
            .unwrap_or(0)
    }

    fn wanted(&self) -> i64 {
        integer(self.spec(), "replicas").unwrap_or(1)
    }

    fn is_parallel(&self) -> bool {
        text(self.spec(), "podManagementPolicy") == "Parallel"
    }

    fn rolls(&self) -> bool {
        text_at(self.spec(), "/updateStrategy/type") != "OnDelete"
    }

    /// From which ordinal on pods are of the new revision.
    fn partition(&self) -> i64 {
        let partition = self
            .spec()
            .pointer("/updateStrategy/rollingUpdate/partition");
        self.first() + partition.and_then(Value::as_i64).unwrap_or(0)
    }

    /// Takes the next step: makes, deletes or replaces pods.
    fn act(&self, context: &mut Context<'_>, pods: &[Value]) -> Result<(), ApiError> {
        let min_ready = integer(self.spec(), "minReadySeconds").unwrap_or(0);
        let last = self.first() + self.wanted();
        let find = |wanted: i64| {
            pods.iter()
                .find(|pod| ordinal(self.set, pod) == Some(wanted))
        };
        for number in self.first()..last {
            match find(number) {
                // A pod that ended is replaced by another of the same name, as is
                // one that is being deleted.
                Some(pod) if meta::is_terminating(pod) => {
                    if !self.is_parallel() {
                        return Ok(());
                    }
                }
                Some(pod) if template::is_over(pod) => {
                    context.delete(PODS, pod)?;
                    self.make(context, number)?;
                    if !self.is_parallel() {
                        return Ok(());
                    }
                }
                Some(pod) => {
                    self.make_claims(context, number)?;
                    if !self.is_parallel() && !is_available(context, pod, min_ready) {
                        return Ok(());
                    }
                }
                None => {
                    self.make(context, number)?;
                    if !self.is_parallel() {
                        return Ok(());
                    }
                }
            }
        }
        let mut surplus: Vec<&Value> = pods
            .iter()
            .filter(|pod| ordinal(self.set, pod).is_none_or(|n| n < self.first() || n >= last))
            .collect();
        surplus.sort_by_key(|pod| std::cmp::Reverse(ordinal(self.set, pod)));
        for pod in surplus {
            if !meta::is_terminating(pod) {
                self.delete(context, pod)?;
            }
            if !self.is_parallel() {
                return Ok(());
            }
        }
        if !self.rolls() {
            return Ok(());
        }
        for number in (self.partition().max(self.first())..last).rev() {
            let Some(pod) = find(number) else {
                return Ok(());
            };
            if revision_of(pod) != self.update && !meta::is_terminating(pod) {
                return self.delete(context, pod);
            }
            if !is_available(context, pod, min_ready) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn delete(&self, context: &Context<'_>, pod: &Value) -> Result<(), ApiError> {
        context.delete(PODS, pod)?;
        let (name, set) = (meta::text(pod, "name"), meta::text(self.set, "name"));
        let message = format!("delete Pod {name} in StatefulSet {set} successful");
        context.event(
            CONTROLLER,
            self.set,
            Kind::Normal,
            "SuccessfulDelete",
            &message,
        );
        Ok(())
    }

    fn make(&self, context: &Context<'_>, number: i64) -> Result<(), ApiError> {
        self.make_claims(context, number)?;
        let revision = if self.rolls() && number < self.partition() {
            self.current
        } else {
            self.update
        };
        let source = self
            .revisions
            .named(revision)
            .unwrap_or(&self.revisions.new);
        let mut pod = template::pod(self.set, &revision::template(source));
        let set_name = meta::text(self.set, "name");
        let name = format!("{set_name}-{number}");
        set(&mut pod["metadata"], "name", name.clone());
        if let Some(labels) = ensure_object(&mut pod["metadata"], "labels") {
            set(labels, "statefulset.kubernetes.io/pod-name", name.clone());
            set(labels, "apps.kubernetes.io/pod-index", number.to_string());
            set(labels, LABEL, revision);
        }
        let spec = &mut pod["spec"];
        set(spec, "hostname", name.clone());
        set(spec, "subdomain", text(self.spec(), "serviceName"));
        let mut volumes: Vec<Value> = Vec::new();
        for claim in items(self.spec(), "volumeClaimTemplates") {
            let volume = text_at(claim, "/metadata/name");
            let claim = format!("{volume}-{name}");
            volumes.push(json!({"name": volume, "persistentVolumeClaim": {"claimName": claim}}));
        }
        let others = items(spec, "volumes").filter(|volume| {
            !volumes
                .iter()
                .any(|claimed| claimed["name"] == volume["name"])
        });
        let others: Vec<Value> = others.cloned().collect();
        volumes.extend(others);
        if !volumes.is_empty() {
            set(spec, "volumes", volumes);
        }
        let namespace = meta::text(self.set, "namespace");
        match context.create(PODS, namespace, MANAGER, pod) {
            Ok(_) => {
                let message = format!("create Pod {name} in StatefulSet {set_name} successful");
                context.event(
                    CONTROLLER,
                    self.set,
                    Kind::Normal,
                    "SuccessfulCreate",
                    &message,
                );
                Ok(())
            }
            Err(error) => {
                let message =
                    format!("create Pod {name} in StatefulSet {set_name} failed error: {error}");
                context.event(
                    CONTROLLER,
                    self.set,
                    Kind::Warning,
                    "FailedCreate",
                    &message,
                );
                Err(error)
            }
        }
    }

    /// Makes the claims of a pod that are not there. They outlive it, and the set.
    fn make_claims(&self, context: &Context<'_>, number: i64) -> Result<(), ApiError> {
        let namespace = meta::text(self.set, "namespace");
        for wanted in items(self.spec(), "volumeClaimTemplates") {
            let volume = text_at(wanted, "/metadata/name");
            let name = format!("{volume}-{}-{number}", meta::text(self.set, "name"));
            if context
                .get(CLAIMS, &format!("{namespace}/{name}"))
                .is_some()
            {
                continue;
            }
            let selected = self.spec().pointer("/selector/matchLabels").cloned();
            let mut labels = wanted
                .pointer("/metadata/labels")
                .cloned()
                .unwrap_or_else(|| json!({}));
            for (key, value) in selected
                .as_ref()
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                set(&mut labels, key, value.clone());
            }
            let claim = json!({
                "metadata": {
                    "name": name,
                    "labels": labels,
                    "annotations": wanted.pointer("/metadata/annotations").cloned().unwrap_or_else(|| json!({})),
                },
                "spec": wanted["spec"],
            });
            context.create(CLAIMS, namespace, MANAGER, claim)?;
        }
        Ok(())
    }

    fn report(&self, context: &mut Context<'_>, pods: &[Value]) -> Result<(), ApiError> {
        let min_ready = integer(self.spec(), "minReadySeconds").unwrap_or(0);
        let (mut replicas, mut ready, mut available) = (0, 0, 0);
        let (mut current, mut updated) = (0, 0);
        for pod in pods {
            if template::is_over(pod) {
                continue;
            }
            replicas += 1;
            if meta::is_terminating(pod) {
                continue;
            }
            ready += i64::from(is_ready(pod));
            available += i64::from(is_available(context, pod, min_ready));
            current += i64::from(revision_of(pod) == self.current);
            updated += i64::from(revision_of(pod) == self.update);
        }
        // The update is over when all pods are of the new revision and ready.
        let wanted = self.wanted();
        let done = self.rolls() && updated == wanted && ready == wanted && replicas == wanted;
        let current_name = if done { self.update } else { self.current };
        let generation = meta::generation(self.set);
        context.change_status(STATEFUL_SETS, self.set, MANAGER, |live| {
            let mut status = json!({"replicas": replicas, "availableReplicas": available});
            for (field, count) in [
                ("observedGeneration", generation),
                ("readyReplicas", ready),
                ("currentReplicas", if done { updated } else { current }),
                ("updatedReplicas", updated),
            ] {
                if count != 0 {
                    set(&mut status, field, count);
                }
            }
            set(&mut status, "currentRevision", current_name);
            set(&mut status, "updateRevision", self.update);
            let collisions = live["status"].get("collisionCount").cloned();
            set(
                &mut status,
                "collisionCount",
                collisions.unwrap_or(json!(0)),
            );
            set(live, "status", status);
        })
    }
}
