//! Taking fields out of an object.

use serde_json::{Map as JsonMap, Value};

use super::{Form, items};
use crate::path::PathElement;
use crate::schema::{List, Map, Schema, TypeRef};
use crate::set::FieldSet;

/// The object without the fields in `fields` and all below them.
///
/// A map or list that loses its last entry this way becomes null; its parent
/// drops it only when it is in the set itself. What lies inside an atomic list
/// or map cannot be removed alone: naming something inside removes it whole.
pub fn remove(schema: &Schema, object: &Value, fields: &FieldSet) -> Value {
    value(schema, schema.root, object, fields)
}

fn value(schema: &Schema, ty: TypeRef, from: &Value, fields: &FieldSet) -> Value {
    match Form::of(schema.atom(ty), Some(from)) {
        Some(Form::Scalar(_)) => from.clone(),
        Some(Form::Map(shape)) => match from {
            Value::Object(from) if !from.is_empty() && !shape.atomic => {
                map(schema, shape, from, fields)
            }
            _ => Value::Null,
        },
        Some(Form::List(shape)) => match from {
            Value::Array(from) if !from.is_empty() && !shape.is_atomic() => {
                list(schema, shape, from, fields)
            }
            _ => Value::Null,
        },
        None => Value::Null,
    }
}

fn map(schema: &Schema, shape: &Map, from: &JsonMap<String, Value>, fields: &FieldSet) -> Value {
    let mut out = JsonMap::new();
    for (name, item) in from {
        let element = PathElement::Field(name.clone());
        if fields.members.contains(&element) {
            continue;
        }
        let item = match (fields.children.get(&element), shape.type_of(name)) {
            (Some(below), Some(ty)) => value(schema, ty, item, below),
            _ => item.clone(),
        };
        out.insert(name.clone(), item);
    }
    if out.is_empty() {
        Value::Null
    } else {
        Value::Object(out)
    }
}

fn list(schema: &Schema, shape: &List, from: &[Value], fields: &FieldSet) -> Value {
    let mut out = Vec::with_capacity(from.len());
    for item in from {
        let Ok(element) = items::element(shape, item) else {
            out.push(item.clone());
            continue;
        };
        if fields.members.contains(&element) {
            continue;
        }
        out.push(match fields.children.get(&element) {
            Some(below) => value(schema, shape.element, item, below),
            None => item.clone(),
        });
    }
    if out.is_empty() {
        Value::Null
    } else {
        Value::Array(out)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::typed::testing::{schema, set, spec};

    #[test]
    fn fields_go_and_what_is_emptied_becomes_null() {
        let object = json!({
            "text": "a",
            "map": {"a": "1", "b": "1"},
            "set": ["a", "b"],
            "items": [{"id": 1, "value": "v"}, {"id": 2}],
            "whole": {"a": "1"},
            "list": ["a"],
        });
        for (fields, changed, expected) in [
            (set(&["text"]), "text", None),
            (set(&["map a"]), "map", Some(json!({"b": "1"}))),
            (set(&["map a", "map b"]), "map", Some(json!(null))),
            (set(&["map"]), "map", None),
            (set(&["set v:\"a\""]), "set", Some(json!(["b"]))),
            (
                set(&["set v:\"a\"", "set v:\"b\""]),
                "set",
                Some(json!(null)),
            ),
            (
                set(&[
                    "items k:{\"id\":1,\"kind\":\"x\"} value",
                    "items k:{\"id\":2,\"kind\":\"x\"}",
                ]),
                "items",
                Some(json!([{"id": 1}])),
            ),
            (set(&["whole a"]), "whole", Some(json!(null))),
            (set(&["list"]), "list", None),
            (set(&["absent"]), "text", Some(json!("a"))),
        ] {
            let mut wanted = object.clone();
            match expected {
                Some(value) => wanted[changed] = value,
                None => {
                    wanted.as_object_mut().unwrap().remove(changed);
                }
            }
            let left = remove(&schema(), &spec(object.clone()), &fields);
            assert_eq!(left, spec(wanted), "without {}", fields.to_fields_v1());
        }
    }
}
