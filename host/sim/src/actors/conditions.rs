//! Conditions in a status: a list with one entry a type.

use serde_json::{Value, json};

use crate::kinds::edit::{items, set, text};

/// A condition as it should be; its times are the list's business.
#[derive(Debug, Clone, Copy)]
pub(super) struct Condition<'a> {
    pub(super) kind: &'a str,
    pub(super) status: bool,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
}

/// The condition of a type.
pub(super) fn get<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    items(status, "conditions").find(|condition| text(condition, "type") == kind)
}

/// Whether the condition of a type is true.
pub(super) fn is_true(status: &Value, kind: &str) -> bool {
    get(status, kind).is_some_and(|condition| text(condition, "status") == "True")
}

/// Removes the condition of a type.
pub(super) fn remove(status: &mut Value, kind: &str) {
    if let Some(Value::Array(conditions)) = status.get_mut("conditions") {
        conditions.retain(|condition| text(condition, "type") != kind);
    }
}

/// Sets a condition, where its status or reason is another one: then it goes to
/// the end of the list, as the workloads' controllers do it. `stamps` are the names
/// of the times that are always the present one; the time of the last transition
/// is kept where the status is.
pub(super) fn replace(status: &mut Value, condition: Condition<'_>, now: &str, stamps: &[&str]) {
    let Condition {
        kind,
        reason,
        message,
        ..
    } = condition;
    let truth = truth(condition.status);
    let known = get(status, kind).cloned();
    if known
        .as_ref()
        .is_some_and(|known| text(known, "status") == truth && text(known, "reason") == reason)
    {
        return;
    }
    let transition = known
        .filter(|known| text(known, "status") == truth)
        .map_or(json!(now), |known| known["lastTransitionTime"].clone());
    let mut fresh = json!({"type": kind, "status": truth});
    for stamp in stamps {
        set(&mut fresh, stamp, now);
    }
    set(&mut fresh, "lastTransitionTime", transition);
    if !reason.is_empty() {
        set(&mut fresh, "reason", reason);
    }
    if !message.is_empty() {
        set(&mut fresh, "message", message);
    }
    remove(status, kind);
    push(status, fresh);
}

/// Sets a condition in its place, with the generation that it is about.
pub(super) fn set_standard(
    status: &mut Value,
    condition: Condition<'_>,
    generation: i64,
    now: &str,
) {
    put(
        status,
        condition.kind,
        truth(condition.status),
        condition,
        generation,
        now,
    );
}

/// As [`set_standard`], where neither true nor false is known.
pub(super) fn set_unknown(
    status: &mut Value,
    condition: Condition<'_>,
    generation: i64,
    now: &str,
) {
    put(
        status,
        condition.kind,
        "Unknown",
        condition,
        generation,
        now,
    );
}

fn put(
    status: &mut Value,
    kind: &str,
    truth: &str,
    condition: Condition<'_>,
    generation: i64,
    now: &str,
) {
    let known = get(status, kind);
    let transition = known
        .filter(|known| text(known, "status") == truth)
        .map_or(json!(now), |known| known["lastTransitionTime"].clone());
    let fresh = json!({
        "type": kind,
        "status": truth,
        "observedGeneration": generation,
        "lastTransitionTime": transition,
        "reason": condition.reason,
        "message": condition.message,
    });
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    let mut conditions = conditions.into_iter().flatten();
    match conditions.find(|condition| text(condition, "type") == kind) {
        Some(slot) => *slot = fresh,
        None => push(status, fresh),
    }
}

fn push(status: &mut Value, condition: Value) {
    if let Some(Value::Array(conditions)) = status.get_mut("conditions") {
        conditions.push(condition);
    } else {
        set(status, "conditions", vec![condition]);
    }
}

fn truth(status: bool) -> &'static str {
    if status { "True" } else { "False" }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: Condition<'static> = Condition {
        kind: "Ready",
        status: true,
        reason: "Done",
        message: "done",
    };

    #[test]
    fn transitions_are_changes_of_the_status() {
        let mut status = json!({});
        replace(&mut status, READY, "t1", &["lastUpdateTime"]);
        replace(
            &mut status,
            Condition {
                message: "other",
                ..READY
            },
            "t2",
            &["lastUpdateTime"],
        );
        assert_eq!(
            status["conditions"],
            json!([{"type": "Ready", "status": "True", "lastUpdateTime": "t1",
                "lastTransitionTime": "t1", "reason": "Done", "message": "done"}])
        );
        replace(
            &mut status,
            Condition {
                reason: "Again",
                ..READY
            },
            "t3",
            &["lastUpdateTime"],
        );
        assert_eq!(status["conditions"][0]["lastUpdateTime"], "t3");
        assert_eq!(status["conditions"][0]["lastTransitionTime"], "t1");
        set_standard(
            &mut status,
            Condition {
                status: false,
                ..READY
            },
            2,
            "t4",
        );
        assert_eq!(status["conditions"][0]["lastTransitionTime"], "t4");
        assert!(!is_true(&status, "Ready"));
        remove(&mut status, "Ready");
        assert_eq!(status["conditions"], json!([]));
    }
}
