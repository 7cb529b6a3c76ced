//! JSON of any form, and objects made of text.
//!
//! A component has the code for reading each type that it reads. Here are many that are
//! read once, so there is one type for all of them.

pub(crate) use reeve_sdk::Json;
use reeve_sdk::prelude::*;
use reeve_sdk::{JsonError, parse_json};

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
    Template::new(template).fill(values)
}

/// An object as it is written, for many.
pub(crate) struct Template(Value);

impl Template {
    pub(crate) fn new(text: &'static str) -> Self {
        Self(parse(text).unwrap_or_default())
    }

    /// See [`fill`].
    pub(crate) fn fill(&self, values: &[(&str, Value)]) -> Value {
        let mut object = self.0.clone();
        replace(&mut object, values);
        object
    }
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
