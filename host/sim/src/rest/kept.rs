//! Whether a write changes anything.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::meta;
use crate::resource::Resource;
use crate::store::Object;

/// Brings what is to be stored into the form that it is read in again, and says what tells
/// apart what the real server stores, where that is something else; see [`Object::mark`].
///
/// It is something else where defaults are set only in reading, at the `odd` parts of its
/// metadata, and where an empty text is still at one of the places where null came for it.
pub(super) fn mark(
    resource: &Resource,
    object: &mut Value,
    odd: &Value,
    blank: &[(String, String)],
) -> Option<u64> {
    let unfilled = resource.fill_late(object);
    let is_blank = |(field, key): &&(String, String)| object[field.as_str()][key.as_str()] == "";
    let blank: Vec<_> = blank.iter().filter(is_blank).collect();
    if unfilled.is_none() && odd.is_null() && blank.is_empty() {
        return None;
    }
    let mut stored = unfilled.unwrap_or_else(|| object.clone());
    // A version is never stored in an object.
    meta::of_mut(&mut stored).remove("resourceVersion");
    let digest = Sha256::digest(json!([stored, odd, blank]).to_string());
    digest.first_chunk().copied().map(u64::from_le_bytes)
}

/// Whether what is to be stored, with this [`mark`], is what is stored. `before` is that in
/// the version of the request, which is not always the one that is stored.
///
/// kube-apiserver compares what it encodes with the bytes that it has; before that, it gives
/// owners their times back where those are all that changed of the decoded object
/// (`IgnoreManagedFieldsTimestampsTransformer`). What has a mark is another decoded object
/// each time, so its times count: it is written once a second at most.
pub(super) fn is_kept(
    resource: &Resource,
    live: &Object,
    before: &Value,
    after: &Value,
    mark: Option<u64>,
) -> bool {
    if !live.is_as_written() {
        return false;
    }
    if mark.is_some() || live.mark().is_some() {
        return mark == live.mark();
    }
    let is_as_stored = |value: &Value| value["apiVersion"] == *live.api_version();
    if is_as_stored(before) {
        same(before, after)
    } else if is_as_stored(after) {
        same(&live.value(), after)
    } else {
        !resource.is_custom() && same(before, after)
    }
}

/// Whether nothing changed that is worth a write: the times in `managedFields`
/// alone are not.
fn same(before: &Value, after: &Value) -> bool {
    alike(before, after, &["metadata", "managedFields", "time"])
}

/// Whether two values are the same but for the field that a way leads to, through
/// objects and through all items of lists.
fn alike(a: &Value, b: &Value, way: &[&str]) -> bool {
    match (a, b, way) {
        (Value::Object(a), Value::Object(b), [last]) => {
            let rest = |fields: &Map<String, Value>| {
                fields.len() - usize::from(fields.contains_key(*last))
            };
            rest(a) == rest(b)
                && a.iter()
                    .all(|(key, value)| key == last || b.get(key) == Some(value))
        }
        (Value::Object(a), Value::Object(b), [next, further @ ..]) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| match b.get(key) {
                    Some(other) if key == next => alike(value, other, further),
                    other => other == Some(value),
                })
        }
        (Value::Array(a), Value::Array(b), _) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b, way))
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_times_of_owners_are_no_change() {
        let object = |time: Option<&str>, manager: &str, time_of_data: &str| {
            let mut entry = json!({"manager": manager, "operation": "Apply"});
            if let Some(time) = time {
                entry["time"] = json!(time);
            }
            json!({
                "metadata": {"name": "a", "managedFields": [entry]},
                "data": {"time": time_of_data},
            })
        };
        let before = object(Some("1"), "m", "x");
        for (after, expected) in [
            (object(Some("1"), "m", "x"), true),
            (object(Some("2"), "m", "x"), true),
            (object(None, "m", "x"), true),
            (object(Some("1"), "n", "x"), false),
            (object(Some("1"), "m", "y"), false),
            (
                json!({"metadata": {"name": "a"}, "data": {"time": "x"}}),
                false,
            ),
            (
                json!({"metadata": {"name": "a", "managedFields": []}, "data": {"time": "x"}}),
                false,
            ),
        ] {
            assert_eq!(same(&before, &after), expected, "{after}");
            assert_eq!(same(&after, &before), expected, "{after}");
        }
    }
}
