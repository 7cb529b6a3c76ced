//! Fields of features that are off: what a client sends in them is dropped before the
//! object is looked at, as in the real server. What is stored stays.

use serde_json::Value;

/// The fields of pods that no feature is on for, below the given path; for rows.
macro_rules! pod_gated {
    ($($prefix:literal),*) => {
        &[$(
            concat!($prefix, "containers[].lifecycle.stopSignal"),
            concat!($prefix, "initContainers[].lifecycle.stopSignal"),
        )*]
    };
}
pub(super) use pod_gated;

/// Drops fields at dotted paths, in which `[]` stands for items. Those that the stored
/// object has somewhere stay.
pub(super) fn drop(object: &mut Value, old: Option<&Value>, paths: &[&str]) {
    for path in paths {
        if !old.is_some_and(|old| has(old, path)) {
            remove(object, path);
        }
    }
}

/// The first step of a path, whether it is to all items, and the rest.
fn split(path: &str) -> (&str, bool, Option<&str>) {
    let (step, rest) = match path.split_once('.') {
        Some((step, rest)) => (step, Some(rest)),
        None => (path, None),
    };
    match step.strip_suffix("[]") {
        Some(name) => (name, true, rest),
        None => (step, false, rest),
    }
}

fn has(object: &Value, path: &str) -> bool {
    let (name, is_each, rest) = split(path);
    let Some(value) = object.get(name) else {
        return false;
    };
    match rest {
        Some(rest) if is_each => value.as_array().into_iter().flatten().any(|v| has(v, rest)),
        Some(rest) => has(value, rest),
        None => !value.is_null(),
    }
}

/// Removes a field, and what only held that.
fn remove(object: &mut Value, path: &str) {
    let (name, is_each, rest) = split(path);
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    let Some(rest) = rest else {
        fields.remove(name);
        return;
    };
    let Some(value) = fields.get_mut(name) else {
        return;
    };
    if is_each {
        for item in value.as_array_mut().into_iter().flatten() {
            remove(item, rest);
        }
    } else if has(value, rest) {
        remove(value, rest);
        if name == "lifecycle" && value.as_object().is_some_and(serde_json::Map::is_empty) {
            fields.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PATHS: &[&str] = pod_gated!("spec.");

    #[test]
    fn what_is_off_is_dropped() {
        let pod = |lifecycle: Value| json!({"spec": {"containers": [{"lifecycle": lifecycle}]}});
        let mut new = pod(json!({"stopSignal": "SIGINT"}));
        drop(&mut new, None, PATHS);
        assert_eq!(new, json!({"spec": {"containers": [{}]}}));
        let both = pod(json!({"stopSignal": "SIGINT", "preStop": {}}));
        let mut new = both.clone();
        drop(&mut new, None, PATHS);
        assert_eq!(new, pod(json!({"preStop": {}})));
        let mut new = both.clone();
        drop(&mut new, Some(&both), PATHS);
        assert_eq!(new, both);
        let mut new = pod(json!({}));
        drop(&mut new, None, PATHS);
        assert_eq!(new, pod(json!({})));
    }
}
