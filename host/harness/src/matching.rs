//! Whether an object is as expected, in part or as a whole.

use serde_json::{Map, Value};

/// Labels and annotations by which the agent marks what it owns. They are its own
/// business and no part of what a plugin decides.
const HOST_PREFIX: &str = "reeve.dev/";

/// What a server writes by itself into the metadata of every object.
const BOOKKEEPING: [&str; 6] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// How much of an object an expectation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The fields that it names.
    Part,
    /// All of it, except what server and agent write for themselves.
    Whole,
}

impl Extent {
    /// What of an actual object the expectation is about. It is as expected if it
    /// equals [`normal`] of the expectation.
    pub(crate) fn relevant(self, expected: &Value, actual: &Value) -> Value {
        match self {
            Self::Part => part(expected, actual),
            Self::Whole => without_bookkeeping(expected, actual),
        }
    }
}

/// An expectation without the fields that it expects not to be there.
pub(crate) fn normal(expected: &Value) -> Value {
    match expected {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key.clone(), normal(value)))
                .collect(),
        ),
        Value::Array(items) => items.iter().map(normal).collect(),
        other => other.clone(),
    }
}

/// The fields of an actual value that an expectation names. Of a list, all items
/// count: the expectation has to have as many.
fn part(expected: &Value, actual: &Value) -> Value {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => Value::Object(
            expected
                .iter()
                .filter_map(|(key, expected)| {
                    let actual = actual.get(key)?;
                    Some((key.clone(), part(expected, actual)))
                })
                .collect(),
        ),
        (Value::Array(expected), Value::Array(actual)) => actual
            .iter()
            .enumerate()
            .map(|(index, actual)| match expected.get(index) {
                Some(expected) => part(expected, actual),
                None => actual.clone(),
            })
            .collect(),
        (_, actual) => actual.clone(),
    }
}

/// An actual object without what server and agent write for themselves, unless
/// the expectation names it.
fn without_bookkeeping(expected: &Value, actual: &Value) -> Value {
    let mut actual = actual.clone();
    let names = |path: &str| expected.pointer(path).is_some();
    let Some(object) = actual.as_object_mut() else {
        return actual;
    };
    if !names("/status") {
        object.remove("status");
    }
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return actual;
    };
    metadata.retain(|key, _| {
        !BOOKKEEPING.contains(&key.as_str()) || names(&format!("/metadata/{key}"))
    });
    for field in ["labels", "annotations"] {
        let named = expected["metadata"].get(field).and_then(Value::as_object);
        drop_host_marks(metadata, field, named);
    }
    if let Some(Value::Array(owners)) = metadata.get_mut("ownerReferences") {
        for (index, owner) in owners.iter_mut().enumerate() {
            let named = names(&format!("/metadata/ownerReferences/{index}/uid"));
            if let Some(owner) = owner.as_object_mut().filter(|_| !named) {
                owner.remove("uid");
            }
        }
    }
    actual
}

fn drop_host_marks(
    metadata: &mut Map<String, Value>,
    field: &str,
    named: Option<&Map<String, Value>>,
) {
    let Some(Value::Object(marks)) = metadata.get_mut(field) else {
        return;
    };
    marks.retain(|key, _| {
        !key.starts_with(HOST_PREFIX) || named.is_some_and(|named| named.contains_key(key))
    });
    if marks.is_empty() && named.is_none() {
        metadata.remove(field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(extent: Extent, expected: &Value, actual: &Value, matches: bool) {
        let relevant = extent.relevant(expected, actual);
        assert_eq!(
            relevant == normal(expected),
            matches,
            "{expected} {relevant}"
        );
    }

    #[test]
    fn a_part_matches_whatever_else_there_is() {
        let actual = json!({"a": 1, "b": {"c": "x", "d": [1, {"e": 2, "f": 3}]}});
        for (expected, matches) in [
            (json!({}), true),
            (json!({"a": 1}), true),
            (json!({"a": 2}), false),
            (json!({"a": "1"}), false),
            (json!({"b": {"c": "x"}}), true),
            (json!({"b": {"c": null}}), false),
            (json!({"b": {"z": null}}), true),
            (json!({"b": {"z": 1}}), false),
            (json!({"b": {"d": [1, {"e": 2}]}}), true),
            (json!({"b": {"d": [1]}}), false),
            (json!({"b": {"d": [1, {"e": 2}, 3]}}), false),
            (json!({"b": "x"}), false),
        ] {
            check(Extent::Part, &expected, &actual, matches);
        }
    }

    #[test]
    fn the_whole_is_without_bookkeeping() {
        let actual = json!({
            "metadata": {
                "name": "a",
                "uid": "1",
                "generation": 2,
                "labels": {"reeve.dev/plugin": "p"},
                "annotations": {"reeve.dev/applied": "x", "mine": "y"},
                "ownerReferences": [{"name": "o", "uid": "2"}],
            },
            "spec": {"b": 1},
            "status": {"c": 2},
        });
        let expected = json!({
            "metadata": {
                "name": "a",
                "annotations": {"mine": "y"},
                "ownerReferences": [{"name": "o"}],
            },
            "spec": {"b": 1},
        });
        check(Extent::Whole, &expected, &actual, true);
        for (pointer, value) in [
            ("/metadata", json!({"name": "a"})),
            ("/spec", json!({})),
            ("/spec", json!({"b": 1, "c": 2})),
        ] {
            let mut other = expected.clone();
            *other.pointer_mut(pointer).unwrap() = value;
            check(Extent::Whole, &other, &actual, false);
        }
        let mut named = expected;
        named["status"] = json!({"c": 2});
        named["metadata"]["uid"] = json!("1");
        named["metadata"]["labels"] = json!({"reeve.dev/plugin": "p"});
        check(Extent::Whole, &named, &actual, true);
        named["status"] = json!({"c": 3});
        check(Extent::Whole, &named, &actual, false);
    }
}
