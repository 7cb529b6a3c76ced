//! RuntimeClasses: what pods that are run by one cost besides, and where they can run.

use serde_json::Value;

use crate::kinds::edit::{ensure_object, entries, integer, items, present, set, text, text_at};
use crate::server::Shared;

const CLASSES: &str = "runtimeclasses.node.k8s.io";
const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

/// The class that a pod names, if it does.
fn class_of(server: &Shared, pod: &Value) -> Result<Value, String> {
    match text_at(pod, "/spec/runtimeClassName") {
        "" => Ok(Value::Null),
        name => match server.store.get(CLASSES, name) {
            Some(class) => Ok(class.value()),
            None => Err(format!("pod rejected: RuntimeClass {name:?} not found")),
        },
    }
}

fn overhead_of(class: &Value) -> Option<&Value> {
    let overhead = class
        .get("overhead")
        .filter(|overhead| overhead.is_object());
    overhead.map(|overhead| overhead.get("podFixed").unwrap_or(&Value::Null))
}

/// Adds to a new pod what its class says.
///
/// # Errors
///
/// When there is no such class, or the pod says something else.
pub(super) fn assign(server: &Shared, pod: &mut Value) -> Result<(), String> {
    let class = class_of(server, pod)?;
    let Some(spec) = ensure_object(pod, "spec") else {
        return Ok(());
    };
    if let Some(overhead) = overhead_of(&class) {
        if present(spec, "overhead").is_some_and(|given| given != overhead) {
            return Err(MISMATCH.to_owned());
        }
        if !overhead.is_null() {
            set(spec, "overhead", overhead.clone());
        }
    }
    let Some(scheduling) = class.get("scheduling").filter(|given| given.is_object()) else {
        return Ok(());
    };
    for (key, value) in entries(scheduling, "nodeSelector") {
        let Some(selector) = ensure_object(spec, "nodeSelector") else {
            break;
        };
        if let Some(given) = selector.get(key).filter(|given| *given != value) {
            let plain = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                plain(value),
                plain(given)
            ));
        }
        set(selector, key, value.clone());
    }
    let both = items(spec, "tolerations").chain(items(scheduling, "tolerations"));
    let both: Vec<Value> = both.cloned().collect();
    set(spec, "tolerations", merged(&both));
    Ok(())
}

/// Holds a pod to its class.
///
/// # Errors
///
/// When what it costs besides is not what its class says.
pub(super) fn check(server: &Shared, pod: &Value) -> Result<(), String> {
    let class = class_of(server, pod)?;
    let given = pod.pointer("/spec/overhead").unwrap_or(&Value::Null);
    match overhead_of(&class) {
        Some(overhead) if overhead != given => Err(MISMATCH.to_owned()),
        None if !given.is_null() => Err(
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

/// Tolerations without those that another one includes.
fn merged(all: &[Value]) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for (index, toleration) in all.iter().enumerate() {
        let mut later = all.iter().skip(index + 1);
        let is_redundant = merged.iter().any(|known| includes(known, toleration))
            || later.any(|other| other != toleration && includes(other, toleration));
        if !is_redundant {
            merged.push(toleration.clone());
        }
    }
    merged
}

/// Whether whatever `one` tolerates `all` does, too.
fn includes(all: &Value, one: &Value) -> bool {
    let (key, operator) = (text(all, "key"), text(all, "operator"));
    let (effect, seconds) = (text(all, "effect"), integer(all, "tolerationSeconds"));
    let is_any_key = key.is_empty() && operator == "Exists";
    let lasts = || match (seconds, integer(one, "tolerationSeconds")) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(most), Some(wanted)) => wanted <= most,
    };
    all == one
        || ((text(one, "key") == key || is_any_key)
            && (text(one, "effect") == effect || effect.is_empty())
            && (effect != "NoExecute" || lasts())
            && match operator {
                "Exists" => true,
                "" | "Equal" => {
                    text(one, "operator") == "Equal" && text(one, "value") == text(all, "value")
                }
                _ => false,
            })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tolerations_are_merged() {
        let all = json!({"operator": "Exists"});
        let one = json!({"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute"});
        let brief = json!({"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5});
        for (given, expected) in [
            (vec![&one, &all], vec![&all]),
            (vec![&all, &one], vec![&all]),
            (vec![&one, &one], vec![&one]),
            (vec![&one, &brief], vec![&one, &brief]),
        ] {
            let owned = |list: Vec<&Value>| list.into_iter().cloned().collect::<Vec<_>>();
            assert_eq!(merged(&owned(given)), owned(expected));
        }
    }
}
