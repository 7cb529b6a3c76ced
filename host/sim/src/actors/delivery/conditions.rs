//! Conditions as Flux keeps them: in an order for people, each with the generation
//! that it is about, and with the time at which anything of it changed.

use std::cmp::Reverse;

use serde_json::{Value, json};

use crate::kinds::edit::{integer, items, set, text};

pub(super) const READY: &str = "Ready";
pub(super) const RECONCILING: &str = "Reconciling";
pub(super) const STALLED: &str = "Stalled";
/// The reasons that all controllers use.
pub(super) const PROGRESSING: &str = "Progressing";
pub(super) const RETRYING: &str = "ProgressingWithRetry";

/// What a condition says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Truth {
    True,
    False,
    Unknown,
}

impl Truth {
    fn text(self) -> &'static str {
        match self {
            Truth::True => "True",
            Truth::False => "False",
            Truth::Unknown => "Unknown",
        }
    }
}

/// Sets a condition. Its time is kept where status, reason and message are.
pub(super) fn put(
    status: &mut Value,
    (kind, truth): (&str, Truth),
    (reason, message): (&str, &str),
    (generation, now): (i64, &str),
) {
    let same = |condition: &&Value| {
        text(condition, "status") == truth.text()
            && text(condition, "reason") == reason
            && text(condition, "message") == message
    };
    let since = get(status, kind).filter(same);
    let since = since.map_or(json!(now), |known| known["lastTransitionTime"].clone());
    let fresh = json!({
        "type": kind,
        "status": truth.text(),
        "observedGeneration": generation,
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    });
    let others = items(status, "conditions").filter(|other| text(other, "type") != kind);
    let mut conditions: Vec<Value> = others.cloned().collect();
    conditions.push(fresh);
    conditions.sort_by_cached_key(rank);
    set(status, "conditions", conditions);
}

/// What comes first: how it stands altogether, then the newest.
fn rank(condition: &Value) -> (u8, Reverse<i64>, String) {
    let kind = text(condition, "type");
    let generation = integer(condition, "observedGeneration").unwrap_or(0);
    match kind {
        STALLED => (0, Reverse(0), String::new()),
        RECONCILING => (1, Reverse(0), String::new()),
        READY => (2, Reverse(0), String::new()),
        _ => (3, Reverse(generation), kind.to_owned()),
    }
}

/// The condition of a type.
pub(super) fn get<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    items(status, "conditions").find(|condition| text(condition, "type") == kind)
}

/// Whether the condition of a type says this.
pub(super) fn is(status: &Value, kind: &str, truth: Truth) -> bool {
    get(status, kind).is_some_and(|condition| text(condition, "status") == truth.text())
}

/// Removes the condition of a type.
pub(super) fn remove(status: &mut Value, kind: &str) {
    if let Some(Value::Array(conditions)) = status.get_mut("conditions") {
        conditions.retain(|condition| text(condition, "type") != kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_for_people_and_times_are_of_changes() {
        let mut status = json!({});
        let mut say = |kind, truth, message, generation, now| {
            put(
                &mut status,
                (kind, truth),
                ("Why", message),
                (generation, now),
            );
            status.clone()
        };
        say("Released", Truth::True, "a", 1, "t1");
        say(READY, Truth::True, "a", 1, "t1");
        say("ArtifactInStorage", Truth::True, "a", 2, "t2");
        say(RECONCILING, Truth::True, "a", 2, "t2");
        // Another generation alone is no transition; another message is one.
        say(READY, Truth::True, "a", 2, "t3");
        let status = say("Released", Truth::True, "b", 1, "t4");
        let shown: Vec<String> = items(&status, "conditions")
            .map(|c| {
                let text = |field| text(c, field);
                format!(
                    "{} {} {}",
                    text("type"),
                    c["observedGeneration"],
                    text("lastTransitionTime")
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                "Reconciling 2 t2",
                "Ready 2 t1",
                "ArtifactInStorage 2 t2",
                "Released 1 t4"
            ]
        );
        assert!(is(&status, READY, Truth::True) && !is(&status, READY, Truth::False));
        let mut status = status;
        remove(&mut status, READY);
        assert_eq!(get(&status, READY), None);
    }
}
