//! Making a request that shows a difference as small as it gets.

use anyhow::Result;
use serde_json::Value;

/// Each asks the oracle once or twice.
const ATTEMPTS: usize = 3_000;

/// The smallest request found that is still `different`, by leaving out one part
/// after the other of the objects in it.
pub(crate) fn reduce(
    request: &Value,
    mut different: impl FnMut(&Value) -> Result<bool>,
) -> Result<Value> {
    let mut smallest = request.clone();
    let mut attempts = 0;
    loop {
        let before = smallest.clone();
        for pointer in parts(&smallest) {
            let mut candidate = smallest.clone();
            if !remove(&mut candidate, &pointer) {
                continue;
            }
            attempts += 1;
            if different(&candidate)? {
                smallest = candidate;
            }
        }
        if smallest == before || attempts > ATTEMPTS {
            return Ok(smallest);
        }
    }
}

/// Pointers to everything that may be left out, large parts first.
fn parts(request: &Value) -> Vec<String> {
    let mut out = Vec::new();
    for object in ["live", "object"] {
        collect(&request[object], &format!("/{object}"), &mut out);
    }
    let needed = |pointer: &str| {
        let (_, field) = pointer[1..].split_once('/').unwrap_or(("", pointer));
        let entry = field.strip_prefix("metadata/managedFields/");
        let inside_entry = entry.and_then(|entry| entry.split_once('/'));
        matches!(field, "apiVersion" | "kind" | "metadata" | "metadata/name")
            || inside_entry.is_some_and(|(_, field)| !field.starts_with("fieldsV1/"))
    };
    out.retain(|pointer| !needed(pointer));
    out.sort_by_key(|pointer| pointer.matches('/').count());
    out
}

fn collect(value: &Value, at: &str, out: &mut Vec<String>) {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(map) => map
            .iter()
            .map(|(name, item)| (name.replace('~', "~0").replace('/', "~1"), item))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, item)| (index.to_string(), item))
            .rev()
            .collect(),
        _ => Vec::new(),
    };
    for (name, item) in below {
        let pointer = format!("{at}/{name}");
        collect(item, &pointer, out);
        out.push(pointer);
    }
}

fn remove(value: &mut Value, pointer: &str) -> bool {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        return false;
    };
    match value.pointer_mut(parent) {
        Some(Value::Object(map)) => {
            let name = name.replace("~1", "/").replace("~0", "~");
            map.remove(&name).is_some()
        }
        Some(Value::Array(items)) => match name.parse::<usize>() {
            Ok(index) if index < items.len() => {
                items.remove(index);
                true
            }
            _ => false,
        },
        _ => false,
    }
}
