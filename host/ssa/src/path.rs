//! Paths to fields: how a child is named within its parent.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Number, Value};

use crate::encode;
use crate::value;

/// One step of a path: selects a child of a map or a list.
///
/// Equality and order are the server's: fields before keys before values
/// before indexes, and a number equals another of the same size, whether it is
/// written as an integer or as a float.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A field of a struct or an entry of a map.
    Field(String),
    /// The item of an associative list whose key fields have these values,
    /// sorted by field name. Build it with [`PathElement::key`].
    Key(Vec<(String, Value)>),
    /// The item of a set that equals this scalar.
    Value(Value),
    /// The item of a list at this position.
    Index(i64),
}

/// Why a text is not the encoding of a path element.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The text has no type prefix.
    #[error("no type prefix in {0:?}")]
    NoPrefix(String),
    /// A prefix that this library does not know; the server skips such fields.
    #[error("unknown path element type in {0:?}")]
    UnknownType(String),
    /// What follows the prefix is malformed.
    #[error("malformed path element {0:?}")]
    Malformed(String),
}

impl PathElement {
    /// The element for a field of this name.
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    /// The element for a list item with these key fields, in any order.
    pub fn key<K: Into<String>>(fields: impl IntoIterator<Item = (K, Value)>) -> Self {
        let mut fields: Vec<(String, Value)> = fields
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect();
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        Self::Key(fields)
    }

    /// Reads the encoding used as a key of fieldsV1 (`f:spec`, `k:{"name":"a"}`,
    /// `v:"x"`, `i:0`).
    ///
    /// Numbers become floats, as they do in the server when it reads them back.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let malformed = || PathError::Malformed(text.to_owned());
        let Some((prefix, rest)) = text.split_once(':').filter(|(p, _)| p.len() == 1) else {
            return Err(PathError::NoPrefix(text.to_owned()));
        };
        match prefix {
            "f" => Ok(Self::Field(rest.to_owned())),
            "v" => serde_json::from_str(rest)
                .map(|value| Self::Value(floats(value)))
                .map_err(|_| malformed()),
            "k" => match serde_json::from_str(rest) {
                Ok(Value::Object(map)) => Ok(Self::key(
                    map.into_iter().map(|(name, value)| (name, floats(value))),
                )),
                _ => Err(malformed()),
            },
            "i" => rest.parse().map(Self::Index).map_err(|_| malformed()),
            _ => Err(PathError::UnknownType(text.to_owned())),
        }
    }

    /// The encoding that [`PathElement::parse`] reads, byte for byte as the
    /// server writes it.
    pub fn encode(&self) -> String {
        let mut out = String::new();
        match self {
            Self::Field(name) => {
                out.reserve_exact("f:".len() + name.len());
                out.push_str("f:");
                out.push_str(name);
            }
            Self::Key(fields) => {
                out.push_str("k:{");
                for (i, (name, value)) in fields.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    encode::string(&mut out, name);
                    out.push(':');
                    encode::value(&mut out, value);
                }
                out.push('}');
            }
            Self::Value(value) => {
                out.push_str("v:");
                encode::value(&mut out, value);
            }
            Self::Index(index) => {
                out.push_str("i:");
                out.push_str(&index.to_string());
            }
        }
        out
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

/// The server decodes every number of a path as a float. It matters only for
/// how very large ones are printed.
fn floats(value: Value) -> Value {
    match value {
        Value::Number(n) => n
            .as_f64()
            .and_then(Number::from_f64)
            .map_or(Value::Number(n), Value::Number),
        Value::Array(items) => items.into_iter().map(floats).collect(),
        Value::Object(map) => map.into_iter().map(|(k, v)| (k, floats(v))).collect(),
        other => other,
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => compare_keys(a, b),
            (Self::Value(a), Self::Value(b)) => value::compare(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

fn compare_keys(a: &[(String, Value)], b: &[(String, Value)]) -> Ordering {
    for ((name_a, value_a), (name_b, value_b)) in a.iter().zip(b) {
        let order = name_a
            .cmp(name_b)
            .then_with(|| value::compare(value_a, value_b));
        if order != Ordering::Equal {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PathElement {}

impl fmt::Display for PathElement {
    /// The form used in conflicts and validation errors.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", value::display(value))?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={}]", value::display(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A path from the root of an object to one of its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<PathElement>);

impl Path {
    /// The path made of these field names.
    pub fn fields<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self(names.into_iter().map(PathElement::field).collect())
    }
}

impl FromIterator<PathElement> for Path {
    fn from_iter<I: IntoIterator<Item = PathElement>>(elements: I) -> Self {
        Self(elements.into_iter().collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn elements_round_trip_and_print() {
        for (encoded, printed) in [
            ("f:spec", ".spec"),
            ("f:app.kubernetes.io/name", ".app.kubernetes.io/name"),
            (r#"k:{"name":"a"}"#, r#"[name="a"]"#),
            (
                r#"k:{"containerPort":8080,"protocol":"TCP"}"#,
                r#"[containerPort=8080,protocol="TCP"]"#,
            ),
            (r#"k:{"a\"b":"\u003c"}"#, r#"[a"b="<"]"#),
            (r#"v:"x""#, r#"[="x"]"#),
            ("v:1.5", "[=1.5]"),
            ("v:true", "[=true]"),
            ("i:3", "[3]"),
        ] {
            let element = PathElement::parse(encoded).unwrap();
            assert_eq!(element.encode(), encoded);
            assert_eq!(element.to_string(), printed);
        }
    }

    #[test]
    fn malformed_elements_are_told_apart_from_unknown_ones() {
        for text in ["", "f", "spec", "kk:{}"] {
            assert!(matches!(
                PathElement::parse(text),
                Err(PathError::NoPrefix(_))
            ));
        }
        for text in ["k:1", "k:{", "v:", "i:x"] {
            assert!(matches!(
                PathElement::parse(text),
                Err(PathError::Malformed(_))
            ));
        }
        assert!(matches!(
            PathElement::parse("z:1"),
            Err(PathError::UnknownType(_))
        ));
    }

    #[test]
    fn order_is_by_type_then_by_value_not_by_text() {
        let ascending = [
            PathElement::field("a"),
            PathElement::field("b"),
            PathElement::key([("containerPort", json!(80))]),
            PathElement::key([("containerPort", json!(80)), ("protocol", json!("TCP"))]),
            PathElement::key([("containerPort", json!(443))]),
            PathElement::Value(json!("a")),
            PathElement::Index(2),
            PathElement::Index(10),
        ];
        assert!(ascending.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn keys_are_sorted_and_compare_across_notations() {
        let a = PathElement::key([("protocol", json!("TCP")), ("port", json!(80))]);
        let b = PathElement::parse(r#"k:{"port":80,"protocol":"TCP"}"#).unwrap();
        assert_eq!(a, b);
    }
}
