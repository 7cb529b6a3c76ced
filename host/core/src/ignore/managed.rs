//! Fields that others own, by the `managedFields` of the live object.

use super::remove::{Location, Step};
use reeve_ssa::{ManagedFields, ManagedFieldsError, Path, PathElement};
use serde_json::Value;

/// Where in `object` the fields are that one of `managers` owns in `live`,
/// whatever the operation.
///
/// Key fields of list items stay: without them the rest of an item would belong
/// to none. An item that is owned as such goes when nothing but its key is left.
pub(super) fn find(
    object: &Value,
    live: &Value,
    managers: &[String],
) -> Result<Vec<Location>, ManagedFieldsError> {
    if managers.is_empty() {
        return Ok(Vec::new());
    }
    let fields = ManagedFields::of(live)?;
    let mut locations = Vec::new();
    let mut items = Vec::new();
    let owned = fields
        .iter()
        .filter(|(id, _)| managers.contains(&id.manager));
    for (_, owned) in owned {
        locations.extend(
            owned
                .set
                .leaves()
                .iter()
                .filter_map(|path| leaf(object, &path)),
        );
        let is_item = |path: &Path| matches!(path.0.last(), Some(PathElement::Key(_)));
        let paths = owned.set.iter().filter(is_item);
        items.extend(paths.filter_map(|path| Some((locate(object, &path)?, path))));
    }
    locations.sort_unstable();
    locations.dedup();
    for (item, path) in items {
        if nothing_left(object, &item, &path, &locations) {
            locations.push(item);
        }
    }
    Ok(locations)
}

/// Where a leaf is, unless it is a key field, or an item as such.
fn leaf(object: &Value, path: &Path) -> Option<Location> {
    match &path.0[..] {
        [] | [.., PathElement::Key(_)] => None,
        [.., PathElement::Key(key), PathElement::Field(field)]
            if key.iter().any(|(name, _)| name == field) =>
        {
            None
        }
        _ => locate(object, path),
    }
}

/// Where a path leads in an object, if it leads anywhere.
pub(crate) fn locate(object: &Value, path: &Path) -> Option<Location> {
    let mut value = object;
    let mut steps = Vec::with_capacity(path.0.len());
    for element in &path.0 {
        let step = match (element, value) {
            (PathElement::Field(name), Value::Object(_)) => Step::Field(name.clone()),
            (PathElement::Index(index), Value::Array(_)) => {
                Step::Item(usize::try_from(*index).ok()?)
            }
            (PathElement::Value(wanted), Value::Array(items)) => {
                Step::Item(items.iter().position(|item| same(item, wanted))?)
            }
            (PathElement::Key(key), Value::Array(items)) => Step::Item(item(items, key)?),
            _ => return None,
        };
        value = match &step {
            Step::Field(name) => value.get(name)?,
            Step::Item(index) => value.get(index)?,
        };
        steps.push(step);
    }
    Some(Location(steps))
}

/// The item with these key fields. One that leaves some of them to their
/// defaults is meant too, if no other has them all.
fn item(items: &[Value], key: &[(String, Value)]) -> Option<usize> {
    let has = |item: &Value, (name, wanted): &(String, Value)| {
        item.get(name).map(|own| same(own, wanted))
    };
    let exact = |item: &Value| key.iter().all(|field| has(item, field) == Some(true));
    let may_be = |item: &Value| {
        key.iter().all(|field| has(item, field) != Some(false))
            && key.iter().any(|field| has(item, field).is_some())
    };
    let position = items.iter().position(exact);
    position.or_else(|| items.iter().position(may_be))
}

/// Equality of scalars; numbers in a path are floats.
fn same(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one.total_cmp(&other).is_eq(),
        _ => one == other,
    }
}

/// Whether of an item nothing is left but its key, once all locations are gone.
fn nothing_left(object: &Value, item: &Location, path: &Path, gone: &[Location]) -> bool {
    let value = item.0.iter().try_fold(object, |value, step| match step {
        Step::Field(name) => value.get(name),
        Step::Item(index) => value.get(index),
    });
    let (Some(Value::Object(fields)), Some(PathElement::Key(key))) = (value, path.0.last()) else {
        return false;
    };
    fields.keys().all(|name| {
        key.iter().any(|(own, _)| own == name) || {
            let mut below = item.clone();
            below.0.push(Step::Field(name.clone()));
            gone.binary_search(&below).is_ok()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn live(manager: &str, fields: &Value) -> Value {
        json!({"metadata": {"managedFields": [
            {"manager": manager, "operation": "Update", "apiVersion": "apps/v1",
             "fieldsType": "FieldsV1", "fieldsV1": fields},
            {"manager": "reeve/p", "operation": "Apply", "apiVersion": "apps/v1",
             "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:paused": {}}}},
        ]}})
    }

    fn check(object: &Value, fields: &Value, expected: &[&str]) {
        let live = live("hpa", fields);
        let found = find(object, &live, &["hpa".into()]).unwrap();
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{fields}");
        assert_eq!(find(object, &live, &["other".into()]).unwrap(), []);
    }

    #[test]
    fn fields_are_found_by_their_owner() {
        let object = json!({
            "metadata": {"finalizers": ["a", "b"], "annotations": {"x/y": "1"}},
            "spec": {
                "replicas": 3, "paused": false,
                "containers": [
                    {"name": "main", "image": "a", "resources": {"limits": {"cpu": "1"}},
                     "ports": [{"containerPort": 80}]},
                    {"name": "side", "image": "b"},
                ],
            },
        });
        for (fields, expected) in [
            (
                json!({"f:spec": {"f:replicas": {}}}),
                vec!["/spec/replicas"],
            ),
            (
                json!({"f:spec": {"f:missing": {}, "f:replicas": {"f:x": {}}}}),
                vec![],
            ),
            (
                json!({"f:metadata": {"f:annotations": {".": {}, "f:x/y": {}}}}),
                vec!["/metadata/annotations/x~1y"],
            ),
            (
                json!({"f:metadata": {"f:finalizers": {".": {}, "v:\"b\"": {}}}}),
                vec!["/metadata/finalizers/1"],
            ),
            (
                json!({"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {
                    "f:resources": {"f:limits": {"f:cpu": {}}}, "f:name": {}}}}}),
                vec!["/spec/containers/0/resources/limits/cpu"],
            ),
            // The item is theirs, and all of it goes.
            (
                json!({"f:spec": {"f:containers": {"k:{\"name\":\"side\"}": {
                    ".": {}, "f:name": {}, "f:image": {}}}}}),
                vec!["/spec/containers/1/image", "/spec/containers/1"],
            ),
            // The item is theirs, but some of it is ours.
            (
                json!({"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {
                    ".": {}, "f:name": {}, "f:image": {}}}}}),
                vec!["/spec/containers/0/image"],
            ),
            // A key field that is left to its default.
            (
                json!({"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {"f:ports": {
                    "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {
                        ".": {}, "f:containerPort": {}, "f:protocol": {}}}}}}}),
                vec!["/spec/containers/0/ports/0"],
            ),
            (
                json!({"f:spec": {"f:containers": {"k:{\"name\":\"gone\"}": {"f:image": {}}}}}),
                vec![],
            ),
        ] {
            check(&object, &fields, &expected);
        }
    }

    #[test]
    fn malformed_fields_are_told() {
        let live = live("hpa", &json!({"f:spec": []}));
        assert!(find(&json!({}), &live, &["hpa".into()]).is_err());
        assert_eq!(find(&json!({}), &live, &[]).unwrap(), []);
    }
}
