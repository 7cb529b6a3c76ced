//! Custom resources: somebody who says that they are reconciled.
//!
//! Acted for are the kinds that are asked for, and objects with annotations for
//! actors. What is written are the conditions that kstatus knows: `Reconciling`
//! while it takes, `Ready` in the end, `Stalled` where it fails. Kinds of Flux and Argo
//! CD get what their own controllers would write, see [`delivery`].

use serde_json::{Value, json};

use super::conditions::{self, Condition};
use super::context::Context;
use super::delivery::{self, Role};
use super::script::{Script, is_addressed};
use crate::kinds::edit::{set, text};
use crate::rest::meta;
use crate::status::ApiError;

pub(super) fn reconcile(
    context: &mut Context<'_>,
    table: &str,
    object: &Value,
) -> Result<(), ApiError> {
    let Some(resource) = context.shared.registry.find_table(table) else {
        return Ok(());
    };
    let wanted = context.settings.act_for(&resource.kind, &resource.group) || is_addressed(object);
    if !wanted {
        return Ok(());
    }
    if let Some(role) = Role::of(&resource.kind, &resource.group) {
        return delivery::reconcile(role, context, &resource, object);
    }
    if resource.subresource("status").is_none() || meta::is_terminating(object) {
        return Ok(());
    }
    context.complain(object);
    let script = context.script(object, &[]);
    let generation = meta::generation(object);
    let stamp = stamp(object, generation);
    let since = context.since(object, &format!("generation {generation}"), &stamp);
    let elapsed = context.elapsed(since);
    let (ready, next) = script.readiness(elapsed);
    if let Some(next) = next {
        context.wake_at(since + next);
    }
    let stage = Stage::of(&script, ready, elapsed >= script.ready_after);
    let manager = format!("{}-controller", resource.kind.to_ascii_lowercase());
    let now = context.timestamp();
    context.change_status(table, object, &manager, |object| {
        let mut status = match object.get("status") {
            Some(status) if status.is_object() => status.clone(),
            _ => json!({}),
        };
        stage.write(&mut status, generation, &now);
        set(object, "status", status);
    })
}

/// Since when a generation has been there, as far as the object tells: its first
/// since it was made, and others since the conditions spoke of them.
fn stamp(object: &Value, generation: i64) -> String {
    if generation == 1 {
        return meta::text(object, "creationTimestamp").to_owned();
    }
    let conditions = object
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    let conditions = conditions.into_iter().flatten();
    let about = conditions.filter(|condition| condition["observedGeneration"] == generation);
    let times = about.map(|condition| text(condition, "lastTransitionTime"));
    times.min().unwrap_or_default().to_owned()
}

/// How far a generation has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Working,
    Ready,
    Degraded,
    Stalled,
}

impl Stage {
    fn of(script: &Script, ready: bool, worked: bool) -> Self {
        if script.stalled || (script.failure.is_some() && worked) {
            return Stage::Stalled;
        }
        match (ready, worked) {
            (true, _) => Stage::Ready,
            (false, true) => Stage::Degraded,
            (false, false) => Stage::Working,
        }
    }

    fn write(self, status: &mut Value, generation: i64, now: &str) {
        let condition = |kind, truth, reason, message| Condition {
            kind,
            status: truth,
            reason,
            message,
        };
        // A generation counts as observed when somebody is done with it.
        if self != Stage::Working {
            set(status, "observedGeneration", generation);
        }
        let put = |status: &mut Value, condition| {
            conditions::set_standard(status, condition, generation, now);
        };
        match self {
            Stage::Working => {
                let message = "reconciliation in progress";
                put(
                    status,
                    condition("Reconciling", true, "Progressing", message),
                );
                conditions::remove(status, "Stalled");
                let unknown = condition("Ready", false, "Progressing", message);
                conditions::set_unknown(status, unknown, generation, now);
            }
            Stage::Ready => {
                conditions::remove(status, "Reconciling");
                conditions::remove(status, "Stalled");
                let message = "reconciliation succeeded";
                put(
                    status,
                    condition("Ready", true, "ReconciliationSucceeded", message),
                );
            }
            Stage::Degraded => {
                conditions::remove(status, "Reconciling");
                let message = "degraded, as asked for by annotation";
                put(status, condition("Ready", false, "Degraded", message));
            }
            Stage::Stalled => {
                conditions::remove(status, "Reconciling");
                let message = "stalled, as asked for by annotation";
                put(status, condition("Stalled", true, "Stalled", message));
                put(status, condition("Ready", false, "Stalled", message));
            }
        }
    }
}
