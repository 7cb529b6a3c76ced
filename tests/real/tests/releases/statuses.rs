//! What is compared of a status.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// With this the actors say why something went wrong; a real server has its own words.
const ASKED_FOR: &str = "asked for by annotation";

/// What both controllers can say alike: no times, no digests, and of what failed by
/// request, not why it did. How often it failed is left out where nobody stops trying.
pub(crate) fn of(release: &Value) -> Value {
    let status = &release["status"];
    let mut shown = Map::new();
    for field in [
        "observedGeneration",
        "lastAttemptedGeneration",
        "lastAttemptedRevision",
        "lastAttemptedReleaseAction",
        "lastHandledReconcileAt",
        "lastHandledForceAt",
        "lastHandledResetAt",
        "storageNamespace",
        "failures",
        "installFailures",
        "upgradeFailures",
    ] {
        if let Some(value) = status.get(field).filter(|value| !value.is_null()) {
            shown.insert(field.to_owned(), value.clone());
        }
    }
    for field in [
        "lastAttemptedConfigDigest",
        "lastAttemptedRevisionDigest",
        "lastAttemptedReleaseActionDuration",
    ] {
        let there = status.get(field).is_some_and(Value::is_string);
        shown.insert(format!("has {field}"), json!(there));
    }
    if is_stuck(status) {
        shown.remove("failures");
    }
    let wanted = &status["lastAttemptedConfigDigest"];
    let history = status["history"].as_array().into_iter().flatten();
    let history: Vec<Value> = history.map(|entry| entry_of(entry, wanted)).collect();
    shown.insert("history".to_owned(), json!(history));
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let conditions: Vec<Value> = conditions.map(condition_of).collect();
    shown.insert("conditions".to_owned(), json!(conditions));
    Value::Object(shown)
}

/// Whether it is to go and cannot.
fn is_stuck(status: &Value) -> bool {
    let conditions = status["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| one["type"] == "Released" && one["reason"] == "UninstallFailed")
}

fn entry_of(entry: &Value, wanted: &Value) -> Value {
    let mut shown = json!({"is as wanted": &entry["configDigest"] == wanted});
    for field in [
        "name",
        "namespace",
        "version",
        "status",
        "action",
        "chartName",
        "chartVersion",
    ] {
        shown[field] = entry[field].clone();
    }
    for field in ["deleted", "ociDigest"] {
        shown[format!("has {field}")] = json!(entry.get(field).is_some_and(|f| !f.is_null()));
    }
    let hooks = entry["testHooks"].as_object();
    shown["tests"] = match hooks {
        Some(hooks) => hooks
            .iter()
            .map(|(name, hook)| (name.clone(), hook["phase"].clone()))
            .collect(),
        None => Value::Null,
    };
    shown
}

fn condition_of(condition: &Value) -> Value {
    let mut shown = json!({});
    for field in ["type", "status", "reason", "message", "observedGeneration"] {
        shown[field] = condition[field].clone();
    }
    shown
}

/// Where a status says something else than is expected, and what. A message that ends with
/// a reason made up by the actors may end in any words.
pub(crate) fn differences(expected: &Value, found: &Value) -> Vec<String> {
    let mut all = Vec::new();
    differ("", expected, found, &mut all);
    all
}

fn differ(path: &str, expected: &Value, found: &Value, all: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let names: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
            for name in names {
                let of = |object: &Map<String, Value>| object.get(name).cloned();
                let (one, other) = (of(expected), of(found));
                let path = format!("{path}.{name}");
                differ(
                    &path,
                    &one.unwrap_or_default(),
                    &other.unwrap_or_default(),
                    all,
                );
            }
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            for (index, (one, other)) in expected.iter().zip(found).enumerate() {
                differ(&format!("{path}[{index}]"), one, other, all);
            }
        }
        (Value::String(expected), Value::String(found))
            if expected
                .strip_suffix(ASKED_FOR)
                .is_some_and(|start| found.starts_with(start)) => {}
        _ if expected == found => {}
        _ => all.push(format!("{path}: {expected} and {found}")),
    }
}

/// The conditions alone: what a person follows on a screen.
pub(crate) fn summary(status: &Value) -> String {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or("-").to_owned();
    let shown: Vec<String> = conditions
        .map(|one| {
            let (kind, status) = (text(one, "type"), text(one, "status"));
            format!("{kind}={status} {}", text(one, "reason"))
        })
        .collect();
    shown.join(", ")
}
