//! Some fields of an object, read past the others.
//!
//! Whoever looks at each object that is written asks for few of them, and who owns fields
//! is often as long as all the rest.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

/// A name, borrowed where it can be.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Reads those members of a map whose names are wanted.
struct Members<W>(W);

/// What of an object to read.
pub(super) fn read(json: &[u8], wanted: &[&str]) -> serde_json::Result<Value> {
    let mut json = serde_json::Deserializer::from_slice(json);
    let fields = Members(|name: &str| match name {
        _ if wanted.iter().all(|wanted| *wanted != name) => Part::None,
        "metadata" => Part::Metadata,
        _ => Part::Whole,
    });
    let fields = fields.deserialize(&mut json)?;
    json.end()?;
    Ok(Value::Object(fields))
}

/// How much of a member is read.
enum Part {
    None,
    Whole,
    /// All of it but who owns fields.
    Metadata,
}

impl<'de, W: Fn(&str) -> Part> DeserializeSeed<'de> for Members<W> {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, W: Fn(&str) -> Part> Visitor<'de> for Members<W> {
    type Value = Map<String, Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut read = Map::new();
        while let Some(Name(name)) = members.next_key()? {
            let value = match self.0(&name) {
                Part::Whole => members.next_value()?,
                Part::Metadata => Value::Object(members.next_value_seed(Members(of_metadata))?),
                Part::None => {
                    members.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            read.insert(name.into_owned(), value);
        }
        Ok(read)
    }
}

fn of_metadata(name: &str) -> Part {
    match name {
        "managedFields" => Part::None,
        _ => Part::Whole,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wanted_is_read_and_nothing_else() {
        let object = json!({
            "kind": "Thing",
            "metadata": {"name": "n", "managedFields": [{"manager": "m"}], "labels": {"a": "b"}},
            "spec": {"metadata": {"managedFields": [1]}, "x": [1.5, null]},
            "status": {"y": 2},
        });
        for (wanted, expected) in [
            (&[][..], json!({})),
            (
                &["spec", "none"],
                json!({"spec": {"metadata": {"managedFields": [1]}, "x": [1.5, null]}}),
            ),
            (
                &["metadata", "kind"],
                json!({"kind": "Thing", "metadata": {"name": "n", "labels": {"a": "b"}}}),
            ),
        ] {
            let found = read(object.to_string().as_bytes(), wanted).unwrap();
            assert_eq!(found, expected, "{wanted:?}");
        }
        assert_eq!(
            read(br#"{"s\u0070ec":1}"#, &["spec"]).unwrap(),
            json!({"spec": 1})
        );
    }
}
