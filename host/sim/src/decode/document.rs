//! JSON with everything that a map of values forgets: the order of fields, and
//! fields that came twice.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::field::quoted;

/// How many complaints are made at most, as by the server.
const MOST_COMPLAINTS: usize = 100;

/// A value as it was written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Document {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Document>),
    Map(Vec<(String, Document)>),
}

impl Document {
    /// What messages call a value of this sort.
    pub(crate) fn sort(&self) -> &'static str {
        match self {
            Document::Null => "null",
            Document::Bool(_) => "bool",
            Document::Number(_) => "number",
            Document::Text(_) => "string",
            Document::List(_) => "array",
            Document::Map(_) => "object",
        }
    }

    /// The first value of a field.
    pub(crate) fn get(&self, name: &str) -> Option<&Document> {
        match self {
            Document::Map(fields) => {
                let mut named = fields.iter().filter(|(key, _)| key == name);
                named.next_back().map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// Whether any field came twice.
    pub(crate) fn repeats(&self) -> bool {
        match self {
            Document::List(items) => items.iter().any(Document::repeats),
            Document::Map(fields) => {
                let mut names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
                names.sort_unstable();
                !names.is_sorted_by(|a, b| a < b) || fields.iter().any(|(_, value)| value.repeats())
            }
            _ => false,
        }
    }

    /// The plain value; the last one wins where a field came twice.
    pub(crate) fn into_value(self, complaints: &mut Vec<String>) -> Value {
        self.plain(Place::Root, complaints)
    }

    fn plain(self, place: Place<'_>, complaints: &mut Vec<String>) -> Value {
        match self {
            Document::Null => Value::Null,
            Document::Bool(value) => Value::Bool(value),
            Document::Number(number) => Value::Number(whole(number)),
            Document::Text(text) => Value::String(text),
            Document::List(items) => items
                .into_iter()
                .enumerate()
                .map(|(index, item)| item.plain(Place::Item(&place, index), complaints))
                .collect(),
            Document::Map(fields) => {
                let mut map = Map::new();
                for (name, value) in fields {
                    let here = Place::Field(&place, &name);
                    if map.contains_key(&name) {
                        complain(complaints, "duplicate", here);
                    }
                    let value = value.plain(here, complaints);
                    map.insert(name, value);
                }
                Value::Object(map)
            }
        }
    }
}

/// Where a value is in its document: the way there, which is written out only for
/// somebody who is told of it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'a> {
    /// It is the whole document.
    Root,
    /// A field of what is in another place.
    Field(&'a Place<'a>, &'a str),
    /// An item of the list in another place.
    Item(&'a Place<'a>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Root => Ok(()),
            // Of fields without a name at the very beginning nothing is seen.
            Place::Field(holder, name) if holder.is_unseen() => f.write_str(name),
            Place::Field(holder, name) => write!(f, "{holder}.{name}"),
            Place::Item(list, index) => write!(f, "{list}[{index}]"),
        }
    }
}

impl Place<'_> {
    /// Whether nothing would be written of it.
    fn is_unseen(&self) -> bool {
        match self {
            Place::Root => true,
            Place::Field(holder, name) => name.is_empty() && holder.is_unseen(),
            Place::Item(..) => false,
        }
    }
}

/// Adds `unknown field "a.b"`, once.
pub(crate) fn complain(complaints: &mut Vec<String>, what: &str, place: Place<'_>) {
    let complaint = format!("{what} field {}", quoted(&place.to_string()));
    if complaints.len() < MOST_COMPLAINTS && !complaints.contains(&complaint) {
        complaints.push(complaint);
    }
}

/// The server writes a number without a fraction as an integer, however it came.
pub(crate) fn whole(number: Number) -> Number {
    /// Beyond this not every integer is a float.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        // Beyond 63 bits an integer is a float.
        Some(float) if number.is_u64() && !number.is_i64() => {
            Number::from_f64(float).unwrap_or(number)
        }
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() <= EXACT =>
        {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "an integer of less than 54 bits"
            )]
            Number::from(float as i64)
        }
        _ => number,
    }
}

impl From<Value> for Document {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Document::Null,
            Value::Bool(value) => Document::Bool(value),
            Value::Number(number) => Document::Number(number),
            Value::String(text) => Document::Text(text),
            Value::Array(items) => Document::List(items.into_iter().map(Self::from).collect()),
            Value::Object(fields) => Document::Map(
                fields
                    .into_iter()
                    .map(|(name, value)| (name, Self::from(value)))
                    .collect(),
            ),
        }
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyDocument)
    }
}

struct AnyDocument;

impl<'de> Visitor<'de> for AnyDocument {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Document, E> {
        Ok(Document::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Document, E> {
        Ok(Document::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Document, E> {
        Ok(Document::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Document, E> {
        Ok(Document::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Document, E> {
        Ok(Number::from_f64(value).map_or(Document::Null, Document::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Document, E> {
        Ok(Document::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Document, E> {
        Ok(Document::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Document, A::Error> {
        let mut list = Vec::with_capacity(items.size_hint().unwrap_or(0).min(1024));
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Document::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Document, A::Error> {
        let mut map = Vec::new();
        while let Some(field) = fields.next_entry()? {
            map.push(field);
        }
        Ok(Document::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_came_twice_is_told_in_order() {
        let text = r#"{"b":{"k":1,"k":2},"a":[{"x":1,"x":1}],"b":{"j":1.0}}"#;
        let document: Document = serde_json::from_str(text).unwrap();
        let mut complaints = Vec::new();
        let value = document.into_value(&mut complaints);
        assert_eq!(value, json!({"a": [{"x": 1}], "b": {"j": 1}}));
        let expected = [
            "duplicate field \"b.k\"",
            "duplicate field \"a[0].x\"",
            "duplicate field \"b\"",
        ];
        assert_eq!(complaints, expected);
    }
}
