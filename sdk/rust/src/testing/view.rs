//! What a plugin sees of an object.

use crate::pointer::unescaped;
use serde_json::{Map, Value};

use crate::{Kind, ObjectReference};

/// The name of an object, when it has all that a name needs.
pub(super) fn reference(object: &Value) -> Option<ObjectReference> {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let mut reference =
        Kind::parse(text("/apiVersion")?, text("/kind")?).object(text("/metadata/name")?);
    reference.namespace = text("/metadata/namespace").map(str::to_owned);
    Some(reference)
}

/// The keys of each JSON Pointer.
pub(super) fn parse(pointers: &[String]) -> Result<Vec<Vec<String>>, String> {
    pointers
        .iter()
        .map(|pointer| match pointer.strip_prefix('/') {
            Some(keys) => Ok(keys.split('/').map(unescaped).collect()),
            None => Err(format!("`{pointer}` is no JSON Pointer such as `/spec`")),
        })
        .collect()
}

/// The object, stripped of bookkeeping, and of all but these parts; no parts
/// stand for all but the status.
pub(super) fn seen(object: &Value, parts: &[Vec<String>]) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for hidden in ["managedFields", "resourceVersion", "selfLink"] {
            metadata.remove(hidden);
        }
        if parts.is_empty() {
            metadata.remove("generation");
        }
    }
    if parts.is_empty() {
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        return object;
    }
    let mut seen = Value::Object(Map::new());
    let always = [
        "apiVersion",
        "kind",
        "metadata/name",
        "metadata/namespace",
        "metadata/uid",
    ];
    for path in always {
        let path: Vec<_> = path.split('/').map(str::to_owned).collect();
        copy(&object, &mut seen, &path);
    }
    for path in parts {
        copy(&object, &mut seen, path);
    }
    seen
}

fn copy(from: &Value, to: &mut Value, path: &[String]) {
    let Some((key, rest)) = path.split_first() else {
        *to = from.clone();
        return;
    };
    if let (Some(from), Some(fields)) = (from.get(key), to.as_object_mut()) {
        let part = fields
            .entry(key.clone())
            .or_insert_with(|| Value::Object(Map::new()));
        copy(from, part, rest);
    }
}
