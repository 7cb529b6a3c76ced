//! Whether an object fits its type.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::items;
use super::{At, Form};
use crate::path::{Path, PathElement};
use crate::schema::{List, Map, Scalar, Schema, TypeRef};
use crate::value::{integer, sorted};

/// Whether sets and keyed lists may name an item twice. Objects that were
/// stored by other means may; a config that is applied may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// They may.
    Allowed,
    /// They may not.
    Refused,
}

/// A place where an object does not fit its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeError {
    /// Where.
    pub path: Path,
    /// What is wrong there, in the server's words.
    pub message: String,
}

/// All places where an object does not fit its type; prints as the server
/// prints them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeErrors(Vec<TypeError>);

impl TypeErrors {
    /// The errors in the order they were met.
    pub fn iter(&self) -> impl Iterator<Item = &TypeError> {
        self.0.iter()
    }

    pub(super) fn push(&mut self, at: At<'_>, message: String) {
        self.0.push(TypeError {
            path: Path(at.path()),
            message,
        });
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    pub(super) fn or<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() {
            Ok(value)
        } else {
            Err(self)
        }
    }
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.0.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

impl fmt::Display for TypeErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [one] = self.0.as_slice() {
            return one.fmt(f);
        }
        f.write_str("errors:")?;
        self.0.iter().try_for_each(|error| write!(f, "\n  {error}"))
    }
}

impl std::error::Error for TypeErrors {}

/// Checks an object against its type: declared fields only, scalars of the
/// right kind, list items that can be named.
pub fn validate(schema: &Schema, object: &Value, duplicates: Duplicates) -> Result<(), TypeErrors> {
    let walk = |ordered| {
        let mut walk = Walk {
            schema,
            duplicates,
            ordered,
            errors: TypeErrors::default(),
        };
        walk.value(At::Root, schema.root, object);
        walk.errors.or(())
    };
    // What fits does so in any order.
    walk(false).or_else(|_| walk(true))
}

struct Walk<'s> {
    schema: &'s Schema,
    duplicates: Duplicates,
    /// Whether the fields of a map are looked at in the order of their names.
    ordered: bool,
    errors: TypeErrors,
}

impl Walk<'_> {
    fn value(&mut self, at: At<'_>, ty: TypeRef, value: &Value) {
        match Form::of(self.schema.atom(ty), Some(value)) {
            Some(Form::Scalar(scalar)) => {
                if let Some(message) = scalar_error(scalar, value) {
                    self.errors.push(at, message);
                }
            }
            Some(Form::Map(map)) => self.map(at, map, value),
            Some(Form::List(list)) => self.list(at, list, value),
            None => {}
        }
    }

    fn map(&mut self, at: At<'_>, map: &Map, value: &Value) {
        let entries = match value {
            Value::Null => return,
            Value::Object(entries) => entries,
            other => {
                let message = format!("expected map, got {}", go_pointer(other));
                return self.errors.push(at, message);
            }
        };
        // The server looks no further in a map with a field that may not be there.
        if self.ordered {
            let mut entries = sorted(entries).into_iter();
            entries.all(|(name, item)| self.field(at, map, name, item));
        } else {
            entries
                .iter()
                .all(|(name, item)| self.field(at, map, name, item));
        }
    }

    /// Whether there may be such a field.
    fn field(&mut self, at: At<'_>, map: &Map, name: &str, item: &Value) -> bool {
        let here = At::Field(&at, name);
        let Some(ty) = map.type_of(name) else {
            let message = "field not declared in schema".to_owned();
            self.errors.push(here, message);
            return false;
        };
        self.value(here, ty, item);
        true
    }

    fn list(&mut self, at: At<'_>, list: &List, value: &Value) {
        let items = match value {
            Value::Null => return,
            Value::Array(items) => items,
            other => {
                let message = format!("expected list, got {}", go_pointer(other));
                return self.errors.push(at, message);
            }
        };
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let element = if list.is_atomic() {
                PathElement::Index(i64::try_from(index).unwrap_or(i64::MAX))
            } else {
                match items::element(list, item) {
                    Ok(element) => element,
                    Err(reason) => {
                        let message = format!("element {index}: {reason}");
                        return self.errors.push(at, message);
                    }
                }
            };
            // Places are told apart anyhow, and only a refusal asks for more.
            let is_told_apart = list.is_atomic() || self.duplicates == Duplicates::Allowed;
            if !is_told_apart && seen.contains(&element) {
                self.errors
                    .push(at, format!("duplicate entries for key {element}"));
            }
            self.value(At::Item(&at, &element), list.element, item);
            if !is_told_apart {
                seen.insert(element);
            }
        }
    }
}

/// Why a value is not such a scalar; null always is.
pub(super) fn scalar_error(scalar: Scalar, value: &Value) -> Option<String> {
    match (scalar, value) {
        (_, Value::Null)
        | (Scalar::Numeric, Value::Number(_))
        | (Scalar::String, Value::String(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (
            Scalar::Untyped | Scalar::Quantity,
            Value::Number(_) | Value::String(_) | Value::Bool(_),
        ) => None,
        (Scalar::Numeric, _) => Some(format!(
            "expected numeric (int or float), got {}",
            go_type(value)
        )),
        (Scalar::String, _) => Some(format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            go_syntax(value)
        )),
        (Scalar::Boolean, _) => Some(format!("expected boolean, got {}", go_pointer(value))),
        (Scalar::Untyped | Scalar::Quantity, _) => {
            Some(format!("expected any scalar, got {}", go_pointer(value)))
        }
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) if integer(n).is_some() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// The server prints a wrong value as the pointer to a struct that holds it.
fn go_pointer(value: &Value) -> String {
    format!("&{{{}}}", go_plain(value))
}

fn go_plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(s) => s.clone(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(go_plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let entries: Vec<_> = sorted(map)
                .into_iter()
                .map(|(key, value)| format!("{key}:{}", go_plain(value)))
                .collect();
            format!("map[{}]", entries.join(" "))
        }
        scalar => crate::value::display(scalar),
    }
}

fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let entries: Vec<_> = sorted(map)
                .into_iter()
                .map(|(key, value)| format!("{}:{}", crate::value::quote(key), go_syntax(value)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", entries.join(", "))
        }
        scalar => crate::value::display(scalar),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::typed::testing::schema;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "cases read better as literals"
    )]
    fn check(object: Value, duplicates: Duplicates, expected: &str) {
        let text = match validate(&schema(), &object, duplicates) {
            Ok(()) => String::new(),
            Err(errors) => errors.to_string(),
        };
        assert_eq!(text, expected, "{object}");
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (spec, expected) in [
            (json!({"text": "a", "number": 1, "free": {"x": [{}]}}), ""),
            (
                json!({"text": null, "map": null, "set": null, "items": null}),
                "",
            ),
            (
                json!({"undeclared": 1}),
                ".spec.undeclared: field not declared in schema",
            ),
            (
                json!({"number": "1"}),
                ".spec.number: expected numeric (int or float), got string",
            ),
            (
                json!({"text": 1.5}),
                ".spec.text: expected string, got &value.valueUnstructured{Value:1.5}",
            ),
            (
                json!({"map": ["a", 1]}),
                ".spec.map: expected map, got &{[a 1]}",
            ),
            (
                json!({"set": {"b": 1, "a": null}}),
                ".spec.set: expected list, got &{map[a:<nil> b:1]}",
            ),
            (
                json!({"set": ["a", "a"]}),
                ".spec.set: duplicate entries for key [=\"a\"]",
            ),
            (
                json!({"items": [{"id": 1}, {"id": 1, "kind": "x"}]}),
                ".spec.items: duplicate entries for key [id=1,kind=\"x\"]",
            ),
            (
                json!({"items": [{"id": 1, "value": 2}]}),
                ".spec.items[id=1,kind=\"x\"].value: expected string, got \
                 &value.valueUnstructured{Value:2}",
            ),
            (
                json!({"number": true, "text": 1}),
                "errors:\n  .spec.number: expected numeric (int or float), got bool\n  \
                 .spec.text: expected string, got &value.valueUnstructured{Value:1}",
            ),
        ] {
            check(json!({"spec": spec}), Duplicates::Refused, expected);
        }
    }

    #[test]
    fn stored_objects_may_have_duplicates() {
        check(
            json!({"spec": {"set": ["a", "a"]}}),
            Duplicates::Allowed,
            "",
        );
    }
}
