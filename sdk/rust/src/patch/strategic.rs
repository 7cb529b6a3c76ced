//! Strategic merge patches: merge patches that know which lists of the built-in kinds
//! are maps in disguise. In kinds of custom definitions a list takes the place of
//! another, as in kustomize.

use serde_json::{Map, Value};

use crate::pointer::below;

/// What an object or an item says of itself, instead of its fields.
pub(super) const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// Lists whose items are told apart by a field: `patchMergeKey` in the types of
/// Kubernetes 1.36, as far as plugins write them. `ports` are told apart in two ways.
const KEYED: [(&str, &str); 20] = [
    ("conditions", "type"),
    ("containers", "name"),
    ("env", "name"),
    ("ephemeralContainers", "name"),
    ("hostAliases", "ip"),
    ("imagePullSecrets", "name"),
    ("initContainers", "name"),
    ("matchConditions", "name"),
    ("ownerReferences", "uid"),
    ("podIPs", "ip"),
    ("readinessGates", "conditionType"),
    ("resourceClaims", "name"),
    ("schedulingGates", "name"),
    ("secrets", "name"),
    ("topologySpreadConstraints", "topologyKey"),
    ("variables", "name"),
    ("volumeDevices", "devicePath"),
    ("volumeMounts", "mountPath"),
    ("volumes", "name"),
    ("webhooks", "name"),
];

/// Lists of plain values that are sets.
const SETS: [&str; 1] = ["finalizers"];

/// Whether kinds of a group are Kubernetes' own.
pub(super) fn is_builtin(group: &str) -> bool {
    // apiextensions and the like end so, too; their lists are not among those above.
    !group.contains('.') || group.ends_with(".k8s.io")
}

/// Where a patch is wrong, and how.
type Problem = (String, String);

/// Lays a patch over an object.
pub(super) fn merge(
    object: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    builtin: bool,
) -> Result<(), Problem> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                *object = plain_map(patch);
                Ok(())
            }
            Some("delete") => {
                object.clear();
                Ok(())
            }
            Some("merge") => merge_fields(object, patch, builtin),
            _ => Err((
                below("", DIRECTIVE),
                "expected one of delete, merge, replace".to_owned(),
            )),
        };
    }
    merge_fields(object, patch, builtin)
}

fn merge_fields(
    object: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    builtin: bool,
) -> Result<(), Problem> {
    if let Some(kept) = patch.get(RETAIN) {
        let kept = names(kept).ok_or_else(|| expected_names(RETAIN))?;
        object.retain(|key, _| kept.contains(&key.as_str()));
    }
    for (key, value) in patch {
        if let Some(name) = key.strip_prefix(DELETE_FROM) {
            let Some(gone) = value.as_array() else {
                return Err(expected_names(key));
            };
            if let Some(Value::Array(items)) = object.get_mut(name) {
                items.retain(|item| !gone.contains(item));
            }
            continue;
        }
        if key == DIRECTIVE || key == RETAIN {
            continue;
        }
        if key.starts_with('$') {
            return Err((
                below("", key),
                format!("not supported; there are {DIRECTIVE}, {RETAIN} and {DELETE_FROM}…"),
            ));
        }
        let within = |(path, problem): Problem| (format!("{}{path}", below("", key)), problem);
        merge_field(object, key, value, builtin).map_err(within)?;
    }
    Ok(())
}

fn merge_field(
    object: &mut Map<String, Value>,
    key: &str,
    value: &Value,
    builtin: bool,
) -> Result<(), Problem> {
    match (object.get_mut(key), value) {
        (_, Value::Null) => {
            object.remove(key);
        }
        (Some(Value::Object(inner)), Value::Object(patch)) => merge(inner, patch, builtin)?,
        (Some(Value::Array(items)), Value::Array(patch)) if builtin => {
            if let Some(by) = key_of(key, items, patch) {
                return merge_items(items, patch, by);
            }
            if SETS.contains(&key) {
                let new: Vec<Value> = patch
                    .iter()
                    .filter(|item| !items.contains(item))
                    .cloned()
                    .collect();
                items.extend(new);
                return Ok(());
            }
            *items = plain_items(patch);
        }
        (_, value) => {
            if let Some(value) = plain(value) {
                object.insert(key.to_owned(), value);
            }
        }
    }
    Ok(())
}

/// By which field the items of a list are told apart.
fn key_of(name: &str, items: &[Value], patch: &[Value]) -> Option<&'static str> {
    if name == "ports" {
        let has = |key: &str| {
            items
                .iter()
                .chain(patch)
                .any(|item| item.get(key).is_some())
        };
        return match (has("containerPort"), has("port")) {
            (true, _) => Some("containerPort"),
            (false, true) => Some("port"),
            (false, false) => None,
        };
    }
    let found = KEYED.iter().find(|(list, _)| *list == name);
    // Some lists of texts have the name of one of objects.
    let objects = items.iter().chain(patch).all(Value::is_object);
    found.filter(|_| objects).map(|(_, key)| *key)
}

fn merge_items(items: &mut Vec<Value>, patch: &[Value], by: &str) -> Result<(), Problem> {
    // One that says so for the whole list.
    let replaces = |item: &&Value| item[DIRECTIVE] == "replace";
    if patch.iter().any(|item| replaces(&item)) {
        let new = patch.iter().filter(|item| !replaces(item)).cloned();
        *items = plain_items(&new.collect::<Vec<_>>());
        return Ok(());
    }
    for (index, item) in patch.iter().enumerate() {
        let at = |path: &str| format!("/{index}{path}");
        let Some((fields, key)) = item
            .as_object()
            .and_then(|fields| Some((fields, fields.get(by)?)))
        else {
            let problem = format!("lacks `{by}`, by which the items of this list are told apart");
            return Err((at(""), problem));
        };
        let found = items.iter().position(|known| known.get(by) == Some(key));
        if item[DIRECTIVE] == "delete" {
            items.retain(|known| known.get(by) != Some(key));
            continue;
        }
        match found.map(|found| &mut items[found]) {
            Some(Value::Object(known)) => {
                merge(known, fields, true).map_err(|(path, problem)| (at(&path), problem))?;
            }
            _ => items.extend(plain(item)),
        }
    }
    Ok(())
}

/// A value without what is only said of it, and without nulls; none where all of it is.
fn plain(value: &Value) -> Option<Value> {
    Some(match value {
        Value::Object(fields) if fields.get(DIRECTIVE).is_some_and(|one| one == "delete") => {
            return None;
        }
        Value::Object(fields) => Value::Object(plain_map(fields)),
        Value::Array(items) => Value::Array(plain_items(items)),
        other => other.clone(),
    })
}

fn plain_map(fields: &Map<String, Value>) -> Map<String, Value> {
    let fields = fields
        .iter()
        .filter(|(key, value)| !key.starts_with('$') && !value.is_null());
    fields
        .filter_map(|(key, value)| Some((key.clone(), plain(value)?)))
        .collect()
}

fn plain_items(items: &[Value]) -> Vec<Value> {
    items.iter().filter_map(plain).collect()
}

fn names(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

fn expected_names(key: &str) -> Problem {
    (below("", key), "expected a list".to_owned())
}
