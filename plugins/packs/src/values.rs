//! Values of charts: trees that are put together from several places.

use reeve_sdk::pointer::unescaped;
use reeve_sdk::prelude::*;
use serde_json::Map;

/// Puts a value at a JSON Pointer of a tree, making the objects on the way.
pub(crate) fn put(tree: &mut Map<String, Value>, path: &str, value: Value) {
    let path = path.strip_prefix('/').unwrap_or(path);
    let (first, rest) = match path.split_once('/') {
        Some((first, rest)) => (first, Some(rest)),
        None => (path, None),
    };
    let name = unescaped(first);
    let Some(rest) = rest else {
        tree.insert(name, value);
        return;
    };
    let inner = tree
        .entry(name)
        .or_insert_with(|| Value::Object(Map::new()));
    if !inner.is_object() {
        *inner = Value::Object(Map::new());
    }
    if let Some(inner) = inner.as_object_mut() {
        put(inner, rest, value);
    }
}

/// Lays a tree over another as Helm does: objects are merged, everything else takes the
/// place of what was there. So does null: Helm takes away what has it, be that from here
/// or from the chart itself.
pub(crate) fn lay_over(tree: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (name, value) in over {
        match (tree.get_mut(name), value) {
            (Some(Value::Object(inner)), Value::Object(over)) => lay_over(inner, over),
            _ => {
                tree.insert(name.clone(), value.clone());
            }
        }
    }
}
