//! Whether a write changes anything.

use serde_json::{Map, Value};

use crate::resource::Resource;
use crate::store::Object;

/// Whether what is to be stored is what is stored. `before` is that in the version of the
/// request, which is not always the one that is stored.
pub(super) fn is_kept(resource: &Resource, live: &Object, before: &Value, after: &Value) -> bool {
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
