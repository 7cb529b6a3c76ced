//! The operations of a JSON patch, as lenient as the real server's and as bounded.

use json_patch::PatchOperation;
use serde_json::Value;

use crate::depth::{self, READABLE};
use crate::status::ApiError;

/// How many bytes of JSON the copies of one patch may add: `JSONPatchMaxCopyBytes`
/// of the real server. Each copy may double what is there.
const COPIED: usize = 3 * 1024 * 1024;

/// Does the operations in order.
///
/// # Errors
///
/// 422 where one of them cannot be done, or where the copies come to too much;
/// 400 where a value would be deeper than objects can be. `object` is then of no
/// use.
pub(crate) fn run(object: &mut Value, operations: &[Value]) -> Result<(), ApiError> {
    run_each(object, operations).map_err(|(why, _)| why)
}

/// As [`run`]. With a refusal comes the operation that cannot be done, where it is one that
/// does not fit the object.
pub(crate) fn run_each<'o>(
    object: &mut Value,
    operations: &'o [Value],
) -> Result<(), (ApiError, Option<&'o Value>)> {
    let mut bounds = Bounds {
        copied: 0,
        depth: depth::of(object),
    };
    for operation in operations {
        bounds.check(object, operation).map_err(|why| (why, None))?;
        let done = operate(object, operation);
        done.ok_or_else(|| (ApiError::patch_rejected(), Some(operation)))?;
    }
    Ok(())
}

/// What kube-apiserver says of an operation of a webhook that does not fit the object, in the
/// words of its library (`gopkg.in/evanphx/json-patch.v4`); none where these are not known.
pub(crate) fn complaint(operation: &Value) -> Option<String> {
    let text = |field: &str| operation.get(field).and_then(Value::as_str);
    let path = text("path").unwrap_or_default();
    let last = path.rsplit('/').next().unwrap_or_default();
    Some(match text("op")? {
        "remove" => format!(
            "error in remove for path: '{path}': Unable to remove nonexistent key: {last}: missing value"
        ),
        "test" => format!("testing value {path} failed: test failed"),
        "replace" if path.is_empty() => {
            "replace operation value must be object or array: %!w(<nil>)".to_owned()
        }
        "add" | "replace" | "copy" | "move" => return None,
        other => format!("Unexpected kind: {other}"),
    })
}

/// What the operations so far have come to.
struct Bounds {
    /// Bytes that were copied.
    copied: usize,
    /// No value is deeper than this.
    depth: usize,
}

impl Bounds {
    /// Refuses an operation that would make the object too large or too deep,
    /// before it is done.
    fn check(&mut self, object: &Value, operation: &Value) -> Result<(), ApiError> {
        let text = |field: &str| operation.get(field).and_then(Value::as_str);
        let (Some(op), Some(path)) = (text("op"), text("path")) else {
            return Ok(());
        };
        let level = levels(path);
        let added = match op {
            "add" | "replace" => operation.get("value").map_or(0, depth::of),
            "copy" | "move" => {
                let from = text("from").unwrap_or_default();
                let Some(value) = object.pointer(&resolved(object, from, Last::There)) else {
                    return Ok(());
                };
                if op == "copy" {
                    self.copied = self.copied.saturating_add(value.to_string().len());
                    if self.copied > COPIED {
                        return Err(ApiError::patch_rejected());
                    }
                }
                // Looked at only where it may matter: a large value can be moved often.
                let most = self.depth.saturating_sub(levels(from));
                if level + most > READABLE {
                    depth::of(value)
                } else {
                    most
                }
            }
            _ => return Ok(()),
        };
        if level + added > READABLE {
            return Err(depth::too_deep());
        }
        self.depth = self.depth.max(level + added);
        Ok(())
    }
}

/// How many lists and maps a JSON pointer goes through.
fn levels(pointer: &str) -> usize {
    pointer.matches('/').count()
}

/// What the last step of a pointer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// A value that is there.
    There,
    /// A place where one is put, which may be behind the last item.
    New,
}

/// A pointer whose steps into lists are counted from the front: the server takes
/// negative ones, which count from the end.
fn resolved(object: &Value, pointer: &str, last: Last) -> String {
    if !pointer.contains("/-") {
        return pointer.to_owned();
    }
    let mut at = Some(object);
    let mut out = String::with_capacity(pointer.len());
    let mut steps = pointer.split('/').skip(1).peekable();
    while let Some(step) = steps.next() {
        let is_last = steps.peek().is_none();
        let plain = step.replace("~1", "/").replace("~0", "~");
        let next = match at {
            Some(Value::Array(items)) => {
                let room = items.len() + usize::from(is_last && last == Last::New);
                let back = step.strip_prefix('-').and_then(|n| n.parse::<usize>().ok());
                match back.and_then(|back| room.checked_sub(back)) {
                    Some(index) => {
                        out.push('/');
                        out.push_str(&index.to_string());
                        at = items.get(index);
                        continue;
                    }
                    None => step.parse::<usize>().ok().and_then(|n| items.get(n)),
                }
            }
            Some(Value::Object(fields)) => fields.get(&plain),
            _ => None,
        };
        out.push('/');
        out.push_str(step);
        at = next;
    }
    out
}

/// One operation.
fn operate(object: &mut Value, operation: &Value) -> Option<()> {
    let text = |field: &str| operation.get(field).and_then(Value::as_str);
    let op = text("op")?;
    let last = match op {
        "add" | "copy" | "move" => Last::New,
        _ => Last::There,
    };
    let path = resolved(object, text("path")?, last);
    let value = || operation.get("value").cloned().unwrap_or_default();
    match op {
        // An absent field of a map may be replaced, and stands for null.
        "replace" if !path.is_empty() => {
            let (parent, key) = path.rsplit_once('/')?;
            let key = key.replace("~1", "/").replace("~0", "~");
            match object.pointer_mut(parent)? {
                Value::Object(fields) => {
                    fields.insert(key, value());
                    Some(())
                }
                Value::Array(items) => {
                    let index = key.parse::<usize>().ok()?;
                    *items.get_mut(index)? = value();
                    Some(())
                }
                _ => None,
            }
        }
        "test" if operation.get("value").is_none_or(Value::is_null) => object
            .pointer(&path)
            .is_none_or(Value::is_null)
            .then_some(()),
        // The whole may be replaced by another object or list, and nothing else.
        "replace" => match value() {
            whole @ (Value::Object(_) | Value::Array(_)) => {
                *object = whole;
                Some(())
            }
            _ => None,
        },
        "add" | "remove" | "copy" | "move" if path.is_empty() => None,
        "add" | "test" => {
            let single = serde_json::json!({"op": op, "path": path, "value": value()});
            apply(object, single)
        }
        "copy" | "move" => {
            let from = resolved(object, text("from")?, Last::There);
            let (parent, _) = from.rsplit_once('/')?;
            // Of a field that a map does not have, the copy is null.
            let is_map = object.pointer(parent).is_some_and(Value::is_object);
            if op == "copy" && is_map && object.pointer(&from).is_none() {
                let single = serde_json::json!({"op": "add", "path": path, "value": null});
                return apply(object, single);
            }
            let single = serde_json::json!({"op": op, "path": path, "from": from});
            apply(object, single)
        }
        _ => apply(object, serde_json::json!({"op": op, "path": path})),
    }
}

fn apply(object: &mut Value, operation: Value) -> Option<()> {
    let operation: PatchOperation = serde_json::from_value(operation).ok()?;
    json_patch::patch(object, &[operation]).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(operations: &Value, expected: &Value) {
        let mut object = json!({"l": [1, 2, 3], "m": {"-1": "x", "a/b": [4]}});
        run(&mut object, operations.as_array().unwrap()).unwrap();
        assert_eq!(&object, expected, "{operations}");
    }

    #[test]
    fn negative_steps_count_from_the_end_of_lists() {
        let m = json!({"-1": "x", "a/b": [4]});
        check(
            &json!([{"op": "remove", "path": "/l/-1"}]),
            &json!({"l": [1, 2], "m": m}),
        );
        check(
            &json!([{"op": "add", "path": "/l/-1", "value": 9}]),
            &json!({"l": [1, 2, 3, 9], "m": m}),
        );
        check(
            &json!([{"op": "add", "path": "/l/-4", "value": 9}]),
            &json!({"l": [9, 1, 2, 3], "m": m}),
        );
        check(
            &json!([{"op": "replace", "path": "/l/-3", "value": 9}, {"op": "test", "path": "/l/-1", "value": 3}]),
            &json!({"l": [9, 2, 3], "m": m}),
        );
        check(
            &json!([{"op": "move", "from": "/l/-1", "path": "/l/0"}]),
            &json!({"l": [3, 1, 2], "m": m}),
        );
        check(
            &json!([{"op": "add", "path": "/l/-", "value": 9}, {"op": "remove", "path": "/m/-1"}]),
            &json!({"l": [1, 2, 3, 9], "m": {"a/b": [4]}}),
        );
        check(
            &json!([{"op": "replace", "path": "/m/a~1b/-1", "value": 9}]),
            &json!({"l": [1, 2, 3], "m": {"-1": "x", "a/b": [9]}}),
        );
        for path in ["/l/-4", "/l/--1", "/l/-x"] {
            let mut object = json!({"l": [1, 2, 3]});
            let refused = run(&mut object, &[json!({"op": "remove", "path": path})]);
            assert_eq!(refused, Err(ApiError::patch_rejected()), "{path}");
        }
    }

    #[test]
    fn the_whole_and_what_is_not_there() {
        let run = |operation: Value| {
            let mut object = json!({"l": [1], "m": {}});
            run(&mut object, &[operation]).ok().map(|()| object)
        };
        let copied = json!({"l": [1], "m": {"x": null}});
        let copy = |from: &str, path: &str| json!({"op": "copy", "from": from, "path": path});
        assert_eq!(run(copy("/none", "/m/x")), Some(copied));
        assert_eq!(run(copy("/none/none", "/m/x")), None);
        assert_eq!(run(copy("/l/1", "/m/x")), None);
        assert_eq!(run(copy("", "/m/x")), None);
        assert_eq!(run(copy("/l", "")), None);
        let whole = |op: &str, value: Value| json!({"op": op, "path": "", "value": value});
        assert_eq!(run(whole("add", json!({}))), None);
        assert_eq!(run(whole("replace", Value::Null)), None);
        assert_eq!(run(whole("replace", json!({}))), Some(json!({})));
        let same = json!({"l": [1], "m": {}});
        assert_eq!(run(whole("test", same.clone())), Some(same));
        assert_eq!(run(whole("test", json!({}))), None);
    }

    #[test]
    fn copies_that_double_come_to_an_end() {
        let mut operations = vec![json!({"op": "add", "path": "/x", "value": {}})];
        operations.extend(
            (0..60).map(|n| json!({"op": "copy", "from": "/x", "path": format!("/x/k{n}")})),
        );
        let refused = run(&mut json!({}), &operations);
        assert_eq!(refused, Err(ApiError::patch_rejected()));
        let few = operations.get(..10).unwrap();
        assert_eq!(run(&mut json!({}), few), Ok(()));
    }

    #[test]
    fn nothing_is_moved_deeper_than_it_can_be_stored() {
        let way = "/a".repeat(50);
        let mut deep = json!({});
        for _ in 0..50 {
            deep = json!({"a": deep});
        }
        let mut operations = vec![json!({"op": "add", "path": "/y", "value": 1})];
        for _ in 0..100 {
            operations.extend([
                json!({"op": "add", "path": "/x", "value": deep}),
                json!({"op": "move", "from": "/y", "path": format!("/x{way}")}),
                json!({"op": "move", "from": "/x", "path": "/y"}),
            ]);
        }
        assert_eq!(run(&mut json!({}), &operations), Err(depth::too_deep()));
        // A shallow value may be moved to a deep place and back as often as one likes.
        let mut object = json!({"x": deep, "y": 1});
        let (there, back) = (
            json!({"op": "move", "from": "/y", "path": format!("/x{way}/b")}),
            json!({"op": "move", "from": format!("/x{way}/b"), "path": "/y"}),
        );
        let often: Vec<Value> = std::iter::repeat_n([there, back], 200).flatten().collect();
        assert_eq!(run(&mut object, &often), Ok(()));
        assert_eq!(object, json!({"x": deep, "y": 1}));
    }
}
