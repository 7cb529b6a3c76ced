//! What a Deployment says of itself: counts, and whether it gets anywhere.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::{Sets, rollout};
use crate::actors::conditions::{self, Condition};
use crate::actors::context::{Context, Kind, MANAGER};
use crate::actors::tables::DEPLOYMENTS;
use crate::clock;
use crate::kinds::edit::{flag, integer, items, remove, set, text};
use crate::rest::meta;
use crate::status::ApiError;

/// A deadline that is none.
const NO_DEADLINE: i64 = i32::MAX as i64;
/// The time that moves with every change of the condition.
const STAMPS: &[&str] = &["lastUpdateTime"];

/// Whether all replicas are of the present template and available, as far as the
/// status knows.
pub(super) fn is_complete(deployment: &Value) -> bool {
    is_complete_with(deployment, &deployment["status"])
}

fn is_complete_with(deployment: &Value, status: &Value) -> bool {
    let wanted = integer(&deployment["spec"], "replicas").unwrap_or(1);
    let count = |field: &str| integer(status, field).unwrap_or(0);
    count("updatedReplicas") == wanted
        && count("replicas") == wanted
        && count("availableReplicas") == wanted
        && count("observedGeneration") >= meta::generation(deployment)
}

/// Says why no ReplicaSet could be made.
pub(super) fn failed(
    context: &Context<'_>,
    deployment: &Value,
    error: &ApiError,
) -> Result<(), ApiError> {
    let now = context.timestamp();
    let message = format!("Failed to create new replica set: {error}");
    context.event(
        "deployment-controller",
        deployment,
        Kind::Warning,
        "ReplicaSetCreateError",
        &message,
    );
    context.change_status(DEPLOYMENTS, deployment, MANAGER, |deployment| {
        let condition = progressing(false, "ReplicaSetCreateError", &message);
        conditions::replace(&mut deployment["status"], condition, &now, STAMPS);
    })
}

/// Brings the status up to date. `created` is the ReplicaSet that was made just
/// now.
pub(super) fn report(
    context: &mut Context<'_>,
    deployment: &Value,
    sets: &Sets,
    created: Option<&str>,
) -> Result<(), ApiError> {
    let now = context.now();
    let mut wake = None;
    let written = context.change_status(DEPLOYMENTS, deployment, MANAGER, |live| {
        let view = View {
            deployment,
            sets,
            created,
            now,
        };
        let (status, next) = view.status(&live["status"]);
        wake = next;
        set(live, "status", status);
    });
    if let Some(wake) = wake {
        context.wake_at(wake);
    }
    written
}

struct View<'a> {
    deployment: &'a Value,
    sets: &'a Sets,
    created: Option<&'a str>,
    now: SystemTime,
}

impl View<'_> {
    fn spec(&self) -> &Value {
        &self.deployment["spec"]
    }

    /// The next status, and when it may have to change by itself.
    fn status(&self, before: &Value) -> (Value, Option<SystemTime>) {
        let sum = |field: &str| -> i64 {
            let counts = self
                .sets
                .all()
                .map(|set| integer(&set["status"], field).unwrap_or(0));
            counts.sum()
        };
        let new = self.sets.new.as_ref().map(|set| &set["status"]);
        let updated = new
            .and_then(|status| integer(status, "replicas"))
            .unwrap_or(0);
        let total = sum("replicas");
        let sizes = self
            .sets
            .all()
            .map(|set| integer(&set["spec"], "replicas").unwrap_or(0));
        let missing = (sizes.sum::<i64>() - sum("availableReplicas")).max(0);
        let mut status = json!({"terminatingReplicas": sum("terminatingReplicas")});
        for (field, count) in [
            ("observedGeneration", meta::generation(self.deployment)),
            ("replicas", total),
            ("updatedReplicas", updated),
            ("readyReplicas", sum("readyReplicas")),
            ("availableReplicas", sum("availableReplicas")),
            ("unavailableReplicas", missing),
            (
                "collisionCount",
                integer(before, "collisionCount").unwrap_or(0),
            ),
        ] {
            if count != 0 {
                set(&mut status, field, count);
            }
        }
        let known: Vec<Value> = items(before, "conditions").cloned().collect();
        set(&mut status, "conditions", known);
        self.judge_availability(&mut status);
        let wake = self.judge_progress(before, &mut status);
        self.pass_on_failure(&mut status);
        if items(&status, "conditions").next().is_none() {
            remove(&mut status, "conditions");
        }
        (status, wake)
    }

    fn judge_availability(&self, status: &mut Value) {
        let wanted = integer(self.spec(), "replicas").unwrap_or(1);
        let least = wanted - rollout::unavailable(self.deployment);
        let enough = integer(status, "availableReplicas").unwrap_or(0) >= least;
        let condition = if enough {
            Condition {
                kind: "Available",
                status: true,
                reason: "MinimumReplicasAvailable",
                message: "Deployment has minimum availability.",
            }
        } else {
            Condition {
                kind: "Available",
                status: false,
                reason: "MinimumReplicasUnavailable",
                message: "Deployment does not have minimum availability.",
            }
        };
        conditions::replace(status, condition, &self.timestamp(), STAMPS);
    }

    /// Judges whether the rollout moves on. The answer is when it will have taken
    /// too long.
    fn judge_progress(&self, before: &Value, status: &mut Value) -> Option<SystemTime> {
        let deadline = integer(self.spec(), "progressDeadlineSeconds");
        let deadline = deadline.filter(|seconds| *seconds != NO_DEADLINE);
        if deadline.is_none() {
            conditions::remove(status, "Progressing");
            return None;
        }
        let now = self.timestamp();
        let reason = |status: &Value| {
            let known = conditions::get(status, "Progressing");
            known
                .map(|known| text(known, "reason").to_owned())
                .unwrap_or_default()
        };
        if flag(self.spec(), "paused") {
            let paused = condition_unknown("DeploymentPaused", "Deployment is paused");
            unknown(status, &paused, &now);
            return None;
        }
        if reason(status) == "DeploymentPaused" {
            let resumed = condition_unknown("DeploymentResumed", "Deployment is resumed");
            unknown(status, &resumed, &now);
        }
        if let Some(name) = self.created {
            let message = format!("Created new replica set {name:?}");
            let condition = progressing(true, "NewReplicaSetCreated", &message);
            conditions::replace(status, condition, &now, STAMPS);
        }
        let name = self
            .sets
            .new
            .as_ref()
            .map_or("", |set| meta::text(set, "name"));
        let settled = reason(before) == "NewReplicaSetAvailable"
            && integer(status, "replicas") == integer(status, "updatedReplicas");
        if settled && self.created.is_none() {
            return None;
        }
        if is_complete_with(self.deployment, status) {
            let message = format!("ReplicaSet {name:?} has successfully progressed.");
            let condition = progressing(true, "NewReplicaSetAvailable", &message);
            conditions::replace(status, condition, &now, STAMPS);
            return None;
        }
        if self.created.is_none() && moved(before, status) {
            let message = format!("ReplicaSet {name:?} is progressing.");
            touch(
                status,
                progressing(true, "ReplicaSetUpdated", &message),
                &now,
            );
        }
        self.judge_deadline(status, deadline.unwrap_or(NO_DEADLINE), name)
    }

    fn judge_deadline(&self, status: &mut Value, seconds: i64, name: &str) -> Option<SystemTime> {
        let known = conditions::get(status, "Progressing")?;
        if matches!(
            text(known, "reason"),
            "NewReplicaSetAvailable" | "ProgressDeadlineExceeded"
        ) {
            return None;
        }
        let updated = clock::parse(text(known, "lastUpdateTime"))?;
        let seconds = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        // Later than the deadline, not at it.
        let over = updated + seconds + Duration::from_secs(1);
        if over > self.now {
            return Some(over);
        }
        let message = format!("ReplicaSet {name:?} has timed out progressing.");
        let condition = progressing(false, "ProgressDeadlineExceeded", &message);
        conditions::replace(status, condition, &self.timestamp(), STAMPS);
        None
    }

    /// Passes on that a ReplicaSet cannot make pods.
    fn pass_on_failure(&self, status: &mut Value) {
        let mut failing = self
            .sets
            .all()
            .filter_map(|set| conditions::get(&set["status"], "ReplicaFailure"));
        match failing.next() {
            Some(failure) => {
                let condition = Condition {
                    kind: "ReplicaFailure",
                    status: text(failure, "status") == "True",
                    reason: text(failure, "reason"),
                    message: text(failure, "message"),
                };
                conditions::replace(status, condition, &self.timestamp(), STAMPS);
            }
            None => conditions::remove(status, "ReplicaFailure"),
        }
    }

    fn timestamp(&self) -> String {
        clock::rfc3339(self.now)
    }
}

fn progressing<'c>(status: bool, reason: &'c str, message: &'c str) -> Condition<'c> {
    Condition {
        kind: "Progressing",
        status,
        reason,
        message,
    }
}

/// Sets the condition even where only its time changes: that is what the deadline
/// counts from.
fn touch(status: &mut Value, condition: Condition<'_>, now: &str) {
    let known = conditions::get(status, "Progressing").cloned();
    conditions::remove(status, "Progressing");
    conditions::replace(status, condition, now, STAMPS);
    let Some(known) = known.filter(|known| text(known, "status") == "True") else {
        return;
    };
    let list = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in list.into_iter().flatten() {
        if text(condition, "type") == "Progressing" {
            set(
                condition,
                "lastTransitionTime",
                known["lastTransitionTime"].clone(),
            );
        }
    }
}

fn condition_unknown(reason: &str, message: &str) -> Value {
    json!({"type": "Progressing", "status": "Unknown", "reason": reason, "message": message})
}

/// Sets a condition whose status is not known.
fn unknown(status: &mut Value, condition: &Value, now: &str) {
    let known = conditions::get(status, "Progressing");
    if known.is_some_and(|known| text(known, "reason") == text(condition, "reason")) {
        return;
    }
    let transition = known
        .filter(|known| text(known, "status") == "Unknown")
        .map_or(json!(now), |known| known["lastTransitionTime"].clone());
    let mut condition = condition.clone();
    set(&mut condition, "lastUpdateTime", now);
    set(&mut condition, "lastTransitionTime", transition);
    conditions::remove(status, "Progressing");
    let mut list: Vec<Value> = items(status, "conditions").cloned().collect();
    list.push(condition);
    set(status, "conditions", list);
}

/// Whether more has been done than at the last look.
fn moved(before: &Value, after: &Value) -> bool {
    let count = |status: &Value, field: &str| integer(status, field).unwrap_or(0);
    let old = |status: &Value| count(status, "replicas") - count(status, "updatedReplicas");
    count(after, "updatedReplicas") > count(before, "updatedReplicas")
        || old(after) < old(before)
        || count(after, "readyReplicas") > count(before, "readyReplicas")
        || count(after, "availableReplicas") > count(before, "availableReplicas")
}
