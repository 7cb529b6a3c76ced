//! Strategic merge patches: merge patches that know which lists of the built-in
//! kinds are maps in disguise.

use serde_json::{Map, Value};

/// Why a patch cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StrategicError {
    /// An item of a merged list lacks its key.
    #[error("map: {item} does not contain declared merge key: {key}")]
    NoKey {
        /// The item, as Go prints it.
        item: String,
        /// The key.
        key: &'static str,
    },
    /// A list of objects is patched with something else.
    #[error("list element types are not identical: {0}")]
    Mixed(String),
    /// A `$patch` that is no directive.
    #[error("unknown patch type: {0} in map: {1}")]
    Directive(String, String),
}

/// How a list is patched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strategy {
    /// Item by item, told apart by this field.
    ByKey(&'static str),
    /// As a set of plain values.
    Set,
    /// As a whole.
    Replace,
}

/// The lists that merge, with the field that tells their items apart. Of those
/// that share a name, the first whose hint is a field of the items is meant.
const MERGED: &[(&str, Strategy, &str)] = &[
    ("addresses", Strategy::ByKey("type"), ""),
    ("conditions", Strategy::ByKey("type"), ""),
    ("containers", Strategy::ByKey("name"), ""),
    ("env", Strategy::ByKey("name"), ""),
    ("ephemeralContainers", Strategy::ByKey("name"), ""),
    ("finalizers", Strategy::Set, ""),
    ("hostAliases", Strategy::ByKey("ip"), ""),
    ("imagePullSecrets", Strategy::ByKey("name"), ""),
    ("initContainers", Strategy::ByKey("name"), ""),
    ("ownerReferences", Strategy::ByKey("uid"), ""),
    ("podIPs", Strategy::ByKey("ip"), ""),
    ("ports", Strategy::ByKey("containerPort"), "containerPort"),
    ("ports", Strategy::ByKey("port"), "port"),
    ("resourceClaims", Strategy::ByKey("name"), ""),
    ("schedulingGates", Strategy::ByKey("name"), ""),
    ("secrets", Strategy::ByKey("name"), ""),
    (
        "topologySpreadConstraints",
        Strategy::ByKey("topologyKey"),
        "",
    ),
    ("volumeDevices", Strategy::ByKey("devicePath"), ""),
    ("volumeMounts", Strategy::ByKey("mountPath"), ""),
    ("volumes", Strategy::ByKey("name"), ""),
];

/// A value as Go prints it: `map[a:1 b:[x]]`.
pub(crate) fn printed(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| format!("{key}:{}", printed(value)));
            format!("map[{}]", fields.collect::<Vec<_>>().join(" "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(printed).collect();
            format!("[{}]", items.join(" "))
        }
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";

/// Applies `patch` to `object`.
///
/// # Errors
///
/// When the patch breaks the rules of its language; `object` is then half
/// patched and of no use.
pub(crate) fn merge(object: &mut Value, patch: &Value) -> Result<(), StrategicError> {
    let Value::Object(patch) = patch else {
        *object = patch.clone();
        return Ok(());
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    if let Value::Object(object) = object {
        forget_replaced(object, patch);
        merge_map(object, patch)?;
    }
    Ok(())
}

/// Removes the one structure that a patch replaces and does not merge: the selector of
/// a PodDisruptionBudget.
fn forget_replaced(object: &mut Map<String, Value>, patch: &Map<String, Value>) {
    if object
        .get("kind")
        .is_some_and(|kind| kind == "PodDisruptionBudget")
        && patch
            .get("spec")
            .is_some_and(|spec| spec.get("selector").is_some())
        && let Some(Value::Object(spec)) = object.get_mut("spec")
    {
        spec.remove("selector");
    }
}

fn merge_map(
    object: &mut Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<(), StrategicError> {
    match patch
        .get(PATCH)
        .map(|directive| directive.as_str().unwrap_or_default())
    {
        None => {}
        Some("replace") => {
            *object = without_directives(patch);
            return Ok(());
        }
        Some("delete") => {
            object.clear();
            return Ok(());
        }
        Some(other) => {
            let map = printed(&Value::Object(patch.clone()));
            return Err(StrategicError::Directive(other.to_owned(), map));
        }
    }
    if let Some(Value::Array(keep)) = patch.get(RETAIN_KEYS) {
        object.retain(|key, _| keep.iter().any(|kept| kept == key));
    }
    for (key, value) in patch {
        if let Some(list) = key.strip_prefix(DELETE_FROM) {
            delete_from(object, list, value);
        }
    }
    for (key, value) in patch.iter().filter(|(key, _)| !key.starts_with('$')) {
        match value {
            Value::Null => {
                object.remove(key);
            }
            // What replaces nothing is nothing.
            Value::Object(inner) if inner.contains_key(PATCH) && !object.contains_key(key) => {}
            Value::Object(_) => merge(object.entry(key.as_str()).or_insert(Value::Null), value)?,
            // Only those of pods merge.
            Value::Array(items)
                if key == "imagePullSecrets" && !object.contains_key("containers") =>
            {
                object.insert(key.clone(), Value::Array(items.clone()));
            }
            Value::Array(items) => {
                let present = object
                    .entry(key.as_str())
                    .or_insert_with(|| Value::Array(Vec::new()));
                merge_list(present, key, items)?;
            }
            scalar => {
                object.insert(key.clone(), scalar.clone());
            }
        }
    }
    for (key, value) in patch {
        if let (Some(list), Value::Array(order)) = (key.strip_prefix(ORDER), value)
            && let Some(Value::Array(items)) = object.get_mut(list)
        {
            sort(items, order, strategy(list, order));
        }
    }
    Ok(())
}

fn merge_list(present: &mut Value, name: &str, patch: &[Value]) -> Result<(), StrategicError> {
    if !present.is_array() {
        *present = Value::Array(Vec::new());
    }
    let Value::Array(items) = present else {
        return Ok(());
    };
    let replace = patch
        .iter()
        .any(|item| item.get(PATCH).is_some_and(|d| d == "replace"));
    let plain = |items: &[Value]| items.iter().any(|item| !item.is_object());
    if !items.is_empty() && !plain(items) && plain(patch) {
        let [items, patch] = [items.clone(), patch.to_vec()].map(|list| printed(&list.into()));
        return Err(StrategicError::Mixed(format!("[{items} {patch}]")));
    }
    let strategy = if items.is_empty() {
        strategy(name, patch)
    } else {
        strategy(name, items)
    };
    match strategy {
        _ if replace => {
            *items = patch
                .iter()
                .filter(|i| i.get(PATCH).is_none())
                .cloned()
                .collect()
        }
        Strategy::Replace => *items = patch.iter().map(cleaned).collect(),
        Strategy::Set => {
            for item in patch {
                if !items.contains(item) {
                    items.push(item.clone());
                }
            }
        }
        Strategy::ByKey(key) => {
            let before: Vec<Value> = ids(items, key);
            for item in patch {
                merge_item(items, key, item)?;
            }
            arrange(items, key, &before, &ids(patch, key));
        }
    }
    Ok(())
}

/// What tells the items of a list apart.
fn ids(items: &[Value], key: &str) -> Vec<Value> {
    let ids = items.iter().map(|item| item.get(key));
    ids.map(|id| id.cloned().unwrap_or_default()).collect()
}

/// Puts items into the order of the server: those of the patch as the patch has
/// them, and the others where they were, behind the new ones that come first.
fn arrange(items: &mut Vec<Value>, key: &str, before: &[Value], patch: &[Value]) {
    let rank =
        |order: &[Value], item: &Value| order.iter().position(|id| item.get(key) == Some(id));
    let (mut patched, kept): (Vec<Value>, Vec<Value>) = std::mem::take(items)
        .into_iter()
        .partition(|item| rank(patch, item).is_some());
    patched.sort_by_key(|item| rank(patch, item));
    let (mut patched, mut kept) = (patched.into_iter().peekable(), kept.into_iter().peekable());
    loop {
        let next = match (kept.peek(), patched.peek()) {
            (Some(old), Some(new)) => match rank(before, new) {
                Some(at) if rank(before, old) < Some(at) => kept.next(),
                _ => patched.next(),
            },
            (Some(_), None) => kept.next(),
            (None, _) => patched.next(),
        };
        match next {
            Some(item) => items.push(item),
            None => return,
        }
    }
}

fn merge_item(
    items: &mut Vec<Value>,
    key: &'static str,
    item: &Value,
) -> Result<(), StrategicError> {
    let Some(id) = item.get(key) else {
        let item = printed(item);
        return Err(StrategicError::NoKey { item, key });
    };
    let at = items
        .iter()
        .position(|present| present.get(key) == Some(id));
    if item
        .get(PATCH)
        .is_some_and(|directive| directive == "delete")
    {
        items.retain(|present| present.get(key) != Some(id));
        return Ok(());
    }
    match at.and_then(|at| items.get_mut(at)) {
        Some(present) => merge(present, item),
        None => {
            let mut fresh = Value::Object(Map::new());
            merge(&mut fresh, item)?;
            items.push(fresh);
            Ok(())
        }
    }
}

fn strategy(name: &str, items: &[Value]) -> Strategy {
    let candidates = MERGED.iter().filter(|(list, _, _)| *list == name);
    for (_, strategy, hint) in candidates {
        if hint.is_empty() || items.iter().any(|item| item.get(hint).is_some()) {
            // Lists of plain values that share a name with lists of structs.
            let plain = items.iter().any(|item| !item.is_object());
            return match strategy {
                Strategy::ByKey(_) if plain => Strategy::Replace,
                other => *other,
            };
        }
    }
    Strategy::Replace
}

/// Brings the items that `order` names into its order, after those it does not.
fn sort(items: &mut [Value], order: &[Value], strategy: Strategy) {
    let rank = |item: &Value| match strategy {
        Strategy::ByKey(key) => order.iter().position(|o| o.get(key) == item.get(key)),
        _ => order.iter().position(|o| o == item),
    };
    items.sort_by_key(rank);
}

fn delete_from(object: &mut Map<String, Value>, list: &str, gone: &Value) {
    if let (Some(Value::Array(items)), Value::Array(gone)) = (object.get_mut(list), gone) {
        items.retain(|item| !gone.contains(item));
    }
}

fn without_directives(patch: &Map<String, Value>) -> Map<String, Value> {
    let fields = patch.iter().filter(|(key, _)| !key.starts_with('$'));
    fields
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn cleaned(item: &Value) -> Value {
    match item {
        Value::Object(fields) => Value::Object(without_directives(fields)),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(object: Value, patch: &Value, expected: &Value) {
        let mut object = object;
        merge(&mut object, patch).unwrap();
        assert_eq!(&object, expected);
    }

    #[test]
    fn maps_merge_and_null_removes() {
        check(
            json!({"a": {"x": 1, "y": 2}, "b": 1}),
            &json!({"a": {"x": null, "z": 3}, "b": null}),
            &json!({"a": {"y": 2, "z": 3}}),
        );
        check(
            json!({"a": {"x": 1, "y": 2}}),
            &json!({"a": {"$retainKeys": ["y", "z"], "z": 1}}),
            &json!({"a": {"y": 2, "z": 1}}),
        );
        check(
            json!({"a": {"x": 1}}),
            &json!({"a": {"$patch": "replace", "z": 1}}),
            &json!({"a": {"z": 1}}),
        );
    }

    #[test]
    fn keyed_lists_merge_by_key() {
        check(
            json!({"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}),
            &json!({"containers": [
                {"name": "a", "image": "2"},
                {"name": "b", "$patch": "delete"},
                {"name": "c", "ports": [{"containerPort": 1, "name": "x"}]},
            ]}),
            &json!({"containers": [
                {"name": "a", "image": "2"},
                {"name": "c", "ports": [{"containerPort": 1, "name": "x"}]},
            ]}),
        );
        check(
            json!({"ports": [{"port": 80, "protocol": "TCP"}]}),
            &json!({"ports": [{"port": 80, "targetPort": 8080}]}),
            &json!({"ports": [{"port": 80, "protocol": "TCP", "targetPort": 8080}]}),
        );
        let error = merge(
            &mut json!({"containers": [{"name": "a"}]}),
            &json!({"containers": [{"image": "x"}]}),
        );
        assert!(matches!(
            error,
            Err(StrategicError::NoKey { key: "name", .. })
        ));
    }

    #[test]
    fn other_lists_are_replaced_and_sets_grow() {
        check(
            json!({"args": ["a"], "finalizers": ["x", "y"]}),
            &json!({
                "args": ["b"],
                "finalizers": ["z"],
                "$deleteFromPrimitiveList/finalizers": ["x"],
                "$setElementOrder/finalizers": ["z", "y"],
            }),
            &json!({"args": ["b"], "finalizers": ["z", "y"]}),
        );
    }
}
