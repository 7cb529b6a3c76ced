//! JSON patches (RFC 6902) and merge patches (RFC 7386). A library for them brings its
//! own reading of operations, which is larger than most components.

use serde_json::{Map, Value};

use crate::pointer::unescaped;

/// One operation.
#[derive(Debug)]
pub(super) struct Operation {
    what: What,
    path: Vec<String>,
}

#[derive(Debug)]
enum What {
    Add(Value),
    Remove,
    Replace(Value),
    Move(Vec<String>),
    Copy(Vec<String>),
    Test(Value),
}

const NOTHING: &str = "nothing is there";

impl Operation {
    pub(super) fn read(operation: &Value) -> Result<Self, String> {
        let op = operation.get("op").and_then(Value::as_str);
        let path = |field: &str| {
            let text = operation.get(field).and_then(Value::as_str);
            text.and_then(keys)
                .ok_or_else(|| format!("`{field}` has to be a JSON Pointer such as `/spec`"))
        };
        let value = || {
            let value = operation.get("value").cloned();
            value.ok_or_else(|| "`value` is missing".to_owned())
        };
        let what = match op {
            Some("add") => What::Add(value()?),
            Some("remove") => What::Remove,
            Some("replace") => What::Replace(value()?),
            Some("move") => What::Move(path("from")?),
            Some("copy") => What::Copy(path("from")?),
            Some("test") => What::Test(value()?),
            _ => {
                return Err(
                    "`op` has to be one of add, copy, move, remove, replace, test".to_owned(),
                );
            }
        };
        let path = path("path")?;
        if let What::Move(from) = &what
            && path.len() > from.len()
            && path.starts_with(from)
        {
            return Err("`path` is within what is moved".to_owned());
        }
        Ok(Self { what, path })
    }

    /// Whether it copies or moves what a Secret holds to another part of it, which is shown
    /// where data is not.
    pub(super) fn bares_data(&self) -> bool {
        let is_data = |path: &[String]| {
            let first = path.first().map(String::as_str);
            matches!(first, Some("data" | "stringData"))
        };
        match &self.what {
            What::Move(from) | What::Copy(from) => {
                (from.is_empty() || is_data(from)) && !is_data(&self.path)
            }
            _ => false,
        }
    }

    pub(super) fn apply(&self, document: &mut Value) -> Result<(), &'static str> {
        let path = &self.path;
        match &self.what {
            What::Add(value) => add(document, path, value.clone()),
            What::Remove => remove(document, path).map(drop),
            What::Replace(value) => {
                *find(document, path).ok_or(NOTHING)? = value.clone();
                Ok(())
            }
            What::Move(from) => {
                let value = remove(document, from)?;
                add(document, path, value)
            }
            What::Copy(from) => {
                let value = find(document, from).ok_or(NOTHING)?.clone();
                add(document, path, value)
            }
            What::Test(value) => match find(document, path) {
                Some(found) if found == value => Ok(()),
                Some(_) => Err("something else is there"),
                None => Err(NOTHING),
            },
        }
    }
}

/// The keys of a JSON Pointer.
fn keys(pointer: &str) -> Option<Vec<String>> {
    if pointer.is_empty() {
        return Some(Vec::new());
    }
    let keys = pointer.strip_prefix('/')?.split('/');
    Some(keys.map(unescaped).collect())
}

/// The index that a key is. It has no zeroes in front.
fn index(key: &str) -> Option<usize> {
    let plain = key.bytes().all(|byte| byte.is_ascii_digit());
    let number = key.parse().ok();
    number.filter(|_| plain && (key == "0" || !key.starts_with('0')))
}

fn find<'a>(document: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(document, |value, key| match value {
        Value::Object(fields) => fields.get_mut(key),
        Value::Array(items) => items.get_mut(index(key)?),
        _ => None,
    })
}

fn add(document: &mut Value, path: &[String], value: Value) -> Result<(), &'static str> {
    let Some((last, before)) = path.split_last() else {
        *document = value;
        return Ok(());
    };
    match find(document, before) {
        Some(Value::Object(fields)) => {
            fields.insert(last.clone(), value);
            Ok(())
        }
        Some(Value::Array(items)) if last == "-" => {
            items.push(value);
            Ok(())
        }
        Some(Value::Array(items)) => {
            let index = index(last).filter(|index| *index <= items.len());
            items.insert(index.ok_or("the list has no such place")?, value);
            Ok(())
        }
        _ => Err("there is no object or list to add to"),
    }
}

fn remove(document: &mut Value, path: &[String]) -> Result<Value, &'static str> {
    let Some((last, before)) = path.split_last() else {
        return Ok(document.take());
    };
    let removed = match find(document, before) {
        Some(Value::Object(fields)) => fields.remove(last),
        Some(Value::Array(items)) => {
            let index = index(last).filter(|index| *index < items.len());
            index.map(|index| items.remove(index))
        }
        _ => None,
    };
    removed.ok_or(NOTHING)
}

/// Lays a merge patch over an object.
pub(super) fn merge(object: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, value) in patch {
        match value {
            Value::Null => drop(object.remove(key)),
            Value::Object(inner) => {
                let place = object.entry(key.clone()).or_insert(Value::Null);
                if !place.is_object() {
                    *place = Value::Object(Map::new());
                }
                if let Some(place) = place.as_object_mut() {
                    merge(place, inner);
                }
            }
            value => drop(object.insert(key.clone(), value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn operations_do_what_the_standard_says() {
        let document = json!({"a": {"b": [1, 2]}, "c~/": null});
        for (operation, expected) in [
            (
                json!({"op": "add", "path": "/a/b/1", "value": 9}),
                Ok(json!({"a": {"b": [1, 9, 2]}, "c~/": null})),
            ),
            (
                json!({"op": "add", "path": "/a/b/-", "value": 9}),
                Ok(json!({"a": {"b": [1, 2, 9]}, "c~/": null})),
            ),
            (
                json!({"op": "add", "path": "/a/b/2", "value": 9}),
                Ok(json!({"a": {"b": [1, 2, 9]}, "c~/": null})),
            ),
            (json!({"op": "add", "path": "", "value": 9}), Ok(json!(9))),
            (
                json!({"op": "remove", "path": "/c~0~1"}),
                Ok(json!({"a": {"b": [1, 2]}})),
            ),
            (
                json!({"op": "replace", "path": "/a/b/0", "value": null}),
                Ok(json!({"a": {"b": [null, 2]}, "c~/": null})),
            ),
            (
                json!({"op": "move", "path": "/d", "from": "/a/b"}),
                Ok(json!({"a": {}, "c~/": null, "d": [1, 2]})),
            ),
            (
                json!({"op": "copy", "path": "/d", "from": "/a/b/0"}),
                Ok(json!({"a": {"b": [1, 2]}, "c~/": null, "d": 1})),
            ),
            (
                json!({"op": "test", "path": "/c~0~1", "value": null}),
                Ok(document.clone()),
            ),
            (
                json!({"op": "test", "path": "/a/b/0", "value": 2}),
                Err("something else is there"),
            ),
            (
                json!({"op": "test", "path": "/x", "value": null}),
                Err("nothing is there"),
            ),
            (
                json!({"op": "remove", "path": "/a/b/2"}),
                Err("nothing is there"),
            ),
            (
                json!({"op": "remove", "path": "/a/b/00"}),
                Err("nothing is there"),
            ),
            (
                json!({"op": "replace", "path": "/x", "value": 1}),
                Err("nothing is there"),
            ),
            (
                json!({"op": "add", "path": "/x/y", "value": 1}),
                Err("there is no object or list to add to"),
            ),
            (
                json!({"op": "add", "path": "/a/b/3", "value": 1}),
                Err("the list has no such place"),
            ),
            (
                json!({"op": "add", "path": "/a/b/01", "value": 1}),
                Err("the list has no such place"),
            ),
        ] {
            let mut found = document.clone();
            let applied = Operation::read(&operation).unwrap().apply(&mut found);
            assert_eq!(applied.map(|()| found), expected, "{operation}");
        }
        for (operation, expected) in [
            (json!({"op": "swap", "path": "/a"}), "`op` has to be one of"),
            (json!("add"), "`op` has to be one of"),
            (json!({"op": "add", "path": "/a"}), "`value` is missing"),
            (
                json!({"op": "remove", "path": "a"}),
                "`path` has to be a JSON Pointer",
            ),
            (
                json!({"op": "copy", "path": "/a"}),
                "`from` has to be a JSON Pointer",
            ),
            (
                json!({"op": "move", "from": "/a", "path": "/a/b"}),
                "`path` is within what is moved",
            ),
        ] {
            let error = Operation::read(&operation).unwrap_err();
            assert!(error.starts_with(expected), "{operation}: {error}");
        }
    }

    #[test]
    fn merge_patches_do_what_the_standard_says() {
        for (document, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (
                json!({"a": "b", "b": 1}),
                json!({"a": null}),
                json!({"b": 1}),
            ),
            (
                json!({"a": [1]}),
                json!({"a": {"b": null, "c": 1}}),
                json!({"a": {"c": 1}}),
            ),
            (
                json!({}),
                json!({"a": {"bb": {"ccc": null}}}),
                json!({"a": {"bb": {}}}),
            ),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (
                json!({"a": [{"b": 1}]}),
                json!({"a": [1]}),
                json!({"a": [1]}),
            ),
        ] {
            let mut found = document.as_object().unwrap().clone();
            merge(&mut found, patch.as_object().unwrap());
            assert_eq!(Value::Object(found), expected, "{document} {patch}");
        }
    }
}
