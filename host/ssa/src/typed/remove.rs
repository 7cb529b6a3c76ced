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
