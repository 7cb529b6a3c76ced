//! What a rule sees: a value as its schema says it is, with names that are
//! identifiers.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube_cel::cel::objects::{Key, Map, Value as Cel};
use serde_json::{Map as Fields, Value};

use super::{DURATION, TIMESTAMP, called};
use crate::cel::RESERVED;
use crate::kinds::edit::{entries, flag, text};

/// What a schema says of the types of values.
#[derive(Debug, Default)]
pub(super) struct Shape {
    sort: Sort,
    properties: HashMap<String, Shape>,
    /// Of the values of a map, whose keys are data and not names.
    additional: Option<Box<Shape>>,
    is_map: bool,
    items: Option<Box<Shape>>,
    is_embedded: bool,
}

/// Scalars that are something else than they look.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Sort {
    #[default]
    Plain,
    /// A number that is a double, also without a fraction.
    Double,
    Timestamp,
    Duration,
    Bytes,
}

impl Shape {
    /// Reads the types of a schema.
    pub(super) fn of(schema: &Value) -> Self {
        let below = |field: &str| {
            let schema = schema.get(field).filter(|schema| schema.is_object());
            schema.map(|schema| Box::new(Shape::of(schema)))
        };
        let sort = match (text(schema, "type"), text(schema, "format")) {
            ("number", _) => Sort::Double,
            ("string", "date" | "date-time") => Sort::Timestamp,
            ("string", "duration") => Sort::Duration,
            ("string", "byte") => Sort::Bytes,
            _ => Sort::Plain,
        };
        let properties = entries(schema, "properties");
        Shape {
            sort,
            properties: properties
                .map(|(name, schema)| (name.to_owned(), Shape::of(schema)))
                .collect(),
            additional: below("additionalProperties"),
            is_map: !matches!(
                schema.get("additionalProperties"),
                None | Some(Value::Bool(false))
            ),
            items: below("items"),
            is_embedded: flag(schema, "x-kubernetes-embedded-resource"),
        }
    }

    /// The value as a rule sees it.
    pub(super) fn cel(&self, value: &Value) -> Cel {
        static PLAIN: std::sync::LazyLock<Shape> = std::sync::LazyLock::new(Shape::default);
        match value {
            Value::Null => Cel::Null,
            Value::Bool(value) => Cel::Bool(*value),
            Value::Number(number) => match number.as_i64() {
                Some(whole) if self.sort != Sort::Double => Cel::Int(whole),
                _ => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => self.text(text),
            Value::Array(items) => {
                let shape = self.items.as_deref().unwrap_or(&PLAIN);
                let items: Vec<Cel> = items.iter().map(|item| shape.cel(item)).collect();
                Cel::List(Arc::new(items))
            }
            Value::Object(fields) => self.map(fields, &PLAIN),
        }
    }

    fn map(&self, fields: &Fields<String, Value>, plain: &Shape) -> Cel {
        let mut map = HashMap::with_capacity(fields.len());
        for (name, value) in fields {
            let shape = self.properties.get(name);
            let shape = shape.or(self.additional.as_deref()).unwrap_or(plain);
            let is_plain = self.is_map || RESERVED.contains(&name.as_str());
            let plain = is_plain.then(|| name.clone());
            let written = escaped(name).filter(|_| !self.is_map);
            for name in plain.into_iter().chain(written) {
                map.insert(Key::String(Arc::new(name)), shape.cel(value));
            }
        }
        if self.is_embedded {
            let empty = Cel::Map(Map {
                map: Arc::new(HashMap::new()),
            });
            for (name, absent) in [
                ("apiVersion", Cel::String(Arc::default())),
                ("kind", Cel::String(Arc::default())),
                ("metadata", empty),
            ] {
                map.entry(Key::String(Arc::new(name.to_owned())))
                    .or_insert(absent);
            }
        }
        Cel::Map(Map { map: Arc::new(map) })
    }

    /// A text, or what it is the text of. What is no such thing stays a text: that is
    /// for the format to complain about.
    fn text(&self, text: &str) -> Cel {
        let plain = || Cel::String(Arc::new(text.to_owned()));
        match self.sort {
            Sort::Plain | Sort::Double => plain(),
            Sort::Timestamp => {
                // A date alone is the midnight that it begins with.
                let time = if text.contains(['T', 't']) {
                    text.to_owned()
                } else {
                    format!("{text}T00:00:00Z")
                };
                let time = Cel::String(Arc::new(time));
                called(TIMESTAMP, time).unwrap_or_else(plain)
            }
            Sort::Duration => called(DURATION, plain()).unwrap_or_else(plain),
            Sort::Bytes => match STANDARD.decode(text) {
                Ok(bytes) => Cel::Bytes(Arc::new(bytes)),
                Err(_) => plain(),
            },
        }
    }
}

/// A name of a field as rules write it; none where it cannot be written. The rules
/// are those of `cel.Escape` in the real server.
pub(super) fn escaped(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/');
    if !name.chars().all(is_legal) {
        return None;
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let (from, to) = match first {
            '_' if rest.starts_with("__") => ("__", "__underscores__"),
            '.' => (".", "__dot__"),
            '-' => ("-", "__dash__"),
            '/' => ("/", "__slash__"),
            _ => {
                out.push(first);
                rest = rest.get(first.len_utf8()..).unwrap_or_default();
                continue;
            }
        };
        out.push_str(to);
        rest = rest.get(from.len()..).unwrap_or_default();
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_identifiers() {
        for (name, expected) in [
            ("plain", Some("plain")),
            ("my_field", Some("my_field")),
            ("_a_", Some("_a_")),
            ("a__b", Some("a__underscores__b")),
            ("a___b", Some("a__underscores___b")),
            ("a.b-c/d", Some("a__dot__b__dash__c__slash__d")),
            ("namespace", Some("__namespace__")),
            ("default", Some("default")),
            ("1a", None),
            ("a b", None),
            ("é", None),
            ("", None),
        ] {
            assert_eq!(escaped(name).as_deref(), expected, "{name}");
        }
    }
}
