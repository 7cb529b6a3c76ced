//! Which object, in which state, an apply is for.

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Map, Value};

/// What must hold of the live object for an apply to happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preconditions<'a> {
    /// It has this uid.
    pub uid: Option<&'a str>,
    /// It has this version.
    pub resource_version: Option<&'a str>,
}

impl<'a> Preconditions<'a> {
    /// The fields of `metadata` that say so to the API server, with their values.
    pub(super) fn fields(self) -> impl Iterator<Item = (&'static str, &'a str)> {
        let fields = [
            ("uid", self.uid),
            ("resourceVersion", self.resource_version),
        ];
        let said = |(field, value): (_, Option<&'a str>)| Some((field, value?));
        fields.into_iter().filter_map(said)
    }
}

/// Most of what is sent is no longer.
const USUAL_BYTES: usize = 1536;

/// What is sent of a body. It is not copied for that: most of what an agent sends has
/// preconditions.
pub(super) fn sent(body: &Value, onto: Preconditions<'_>) -> serde_json::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(USUAL_BYTES);
    serde_json::to_writer(&mut text, &Body { body, onto })?;
    Ok(text)
}

/// An object with preconditions in its metadata.
struct Body<'a> {
    body: &'a Value,
    onto: Preconditions<'a>,
}

/// The metadata, with preconditions in the place of what was there.
struct Metadata<'a> {
    fields: &'a Map<String, Value>,
    onto: Preconditions<'a>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(fields) = self.body else {
            return self.body.serialize(serializer);
        };
        let mut map = serializer.serialize_map(None)?;
        // What lacks metadata must not be taken for what has no preconditions.
        if !fields.contains_key("metadata") && self.onto != Preconditions::default() {
            let (fields, onto) = (&Map::new(), self.onto);
            map.serialize_entry("metadata", &Metadata { fields, onto })?;
        }
        for (name, value) in fields {
            match value {
                Value::Object(fields) if name == "metadata" => {
                    let onto = self.onto;
                    map.serialize_entry(name, &Metadata { fields, onto })?;
                }
                value => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

impl Serialize for Metadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let replaced = |name: &str| self.onto.fields().any(|(field, _)| field == name);
        for (name, value) in self.fields.iter().filter(|(name, _)| !replaced(name)) {
            map.serialize_entry(name, value)?;
        }
        for (field, value) in self.onto.fields() {
            map.serialize_entry(field, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(body: &Value, uid: Option<&str>, version: Option<&str>, expected: &Value) {
        let onto = Preconditions {
            uid,
            resource_version: version,
        };
        let bytes = sent(body, onto).unwrap();
        let read: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(read, *expected);
        // Read as JSON, the last of two fields of one name would hide the first.
        assert_eq!(bytes.len(), expected.to_string().len());
    }

    #[test]
    fn preconditions_are_in_the_metadata_and_nowhere_else() {
        let body = json!({"kind": "A", "metadata": {"name": "a"}, "spec": {"metadata": {}}});
        check(&body, None, None, &body);
        let mut with = body.clone();
        with["metadata"]["uid"] = json!("u\"");
        check(&body, Some("u\""), None, &with);
        with["metadata"]["resourceVersion"] = json!("7");
        check(&body, Some("u\""), Some("7"), &with);
        // What was said before gives way.
        with["metadata"]["uid"] = json!("other");
        let mut expected = with.clone();
        expected["metadata"]["uid"] = json!("u");
        check(&with, Some("u"), Some("7"), &expected);
        check(&with, None, None, &with);
    }

    #[test]
    fn what_is_no_object_is_sent_as_it_is() {
        for body in [json!(3), json!({"metadata": "none"})] {
            check(&body, Some("u"), Some("7"), &body);
        }
        check(&json!({}), None, None, &json!({}));
        let metadata = json!({"metadata": {"uid": "u", "resourceVersion": "7"}});
        check(&json!({}), Some("u"), Some("7"), &metadata);
    }
}
