//! JSON of any form, and objects made of text.
//!
//! A component has the code for reading each type that it reads. Here are many that are
//! read once, so there is one type for all of them.

use std::fmt;

use reeve_sdk::prelude::*;
use reeve_sdk::{JsonError, parse_json};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number};

/// Any JSON, as the cluster or a document has it.
pub(crate) struct Json(pub(crate) Value);

/// Reads a JSON text.
pub(crate) fn parse(text: &str) -> Result<Value, JsonError> {
    parse_json(text).map(|Json(value)| value)
}

/// The text at a JSON Pointer; empty where there is none.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default()
}

/// The whole number at a JSON Pointer; zero where there is none.
pub(crate) fn number(value: &Value, pointer: &str) -> i64 {
    let found = value.pointer(pointer).and_then(Value::as_i64);
    found.unwrap_or_default()
}

/// Whether there is `true` at a JSON Pointer.
pub(crate) fn is_true(value: &Value, pointer: &str) -> bool {
    value.pointer(pointer).and_then(Value::as_bool) == Some(true)
}

/// An object as it is written, with values in the place of texts such as `"$name"`. What
/// is written is part of the program; each is rendered by some test.
pub(crate) fn fill(template: &'static str, values: &[(&str, Value)]) -> Value {
    let mut object = parse(template).unwrap_or_default();
    replace(&mut object, values);
    object
}

fn replace(value: &mut Value, values: &[(&str, Value)]) {
    match value {
        Value::String(text) => {
            let name = text.strip_prefix('$');
            let given = values.iter().find(|(known, _)| Some(*known) == name);
            if let Some((_, given)) = given {
                *value = given.clone();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, values)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace(field, values)),
        _ => {}
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any).map(Self)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Json(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let Json(value) = entries.next_value()?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
