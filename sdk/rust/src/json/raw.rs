//! JSON that is read piece by piece, as far as somebody asks for it.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeOwned, Error, Visitor};
use serde::{Deserialize, Deserializer};

use super::{JsonError, parse};

/// By what [`RawJson`] asks this crate's reader for the text of a value.
pub(super) const NAME: &str = "reeve_sdk::RawJson";

/// A JSON value that is not read yet: its text.
///
/// For what may have any form, each part of which is to be judged by itself: an item that
/// does not fit its type then costs that item, and not all that was read with it. It is
/// also smaller than [`Json`](crate::Json) where there are no numbers with a fraction to
/// be had, since nothing reads them.
///
/// Only this crate reads it: in types of [`parse_json`](crate::parse_json), of
/// [`Context`](crate::Context) and of configuration, primaries and inputs. Other readers,
/// such as `serde_json`, answer with an error.
///
/// ```
/// use reeve_sdk::{RawJson, parse_json};
///
/// let items: Vec<RawJson> = parse_json(r#"["alice", 1]"#).unwrap();
/// assert_eq!(items[0].read::<String>().unwrap(), "alice");
/// assert!(items[1].read::<String>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawJson(String);

impl RawJson {
    /// The text as it stood there.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads the value.
    ///
    /// # Errors
    ///
    /// When it does not fit the type. The path in the error starts at this value.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, JsonError> {
        parse(&self.0)
    }

    fn is_null(&self) -> bool {
        self.0 == "null"
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(NAME, Text)
    }
}

struct Text;

impl Visitor<'_> for Text {
    type Value = RawJson;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON that this crate reads")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<RawJson, E> {
        Ok(RawJson(text.to_owned()))
    }
}

/// A JSON object whose fields are read one by one, each when somebody asks for it.
///
/// Where little is read of large objects of many kinds, it is smaller than a type for each
/// of them. Like [`RawJson`] it is read by this crate alone.
///
/// ```
/// use reeve_sdk::{Fields, parse_json};
///
/// let pod: Fields = parse_json(r#"{"spec": {"nodeName": "a", "priority": 1}}"#).unwrap();
/// let spec: Fields = pod.read("spec").unwrap();
/// assert_eq!(spec.read::<String>("nodeName").unwrap(), "a");
/// assert_eq!(spec.read::<String>("hostname").unwrap(), "");
/// let error = spec.read::<String>("priority").unwrap_err();
/// assert_eq!(error.to_string(), "/priority: invalid type: number, expected a string");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(BTreeMap<String, RawJson>);

impl Fields {
    /// All fields with their names, which are sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The field of this name, not read yet.
    pub fn get(&self, name: &str) -> Option<&RawJson> {
        self.0.get(name)
    }

    /// Reads the field of this name. One that is absent or null is as in the type's
    /// `Default`; with an `Option` it can be told.
    ///
    /// # Errors
    ///
    /// When there is something else than the type has.
    pub fn read<T: DeserializeOwned + Default>(&self, name: &str) -> Result<T, JsonError> {
        match self.get(name) {
            Some(value) if !value.is_null() => value.read().map_err(|error| error.below(name)),
            _ => Ok(T::default()),
        }
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_json;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn a_value_is_kept_as_it_stands() {
        for text in [
            "null",
            "true",
            "-1.5e3",
            "99999999999999999999",
            r#""a\u00e9 \" ]""#,
            "[1, [ ], {\"a\" : null}]",
            "{ }",
        ] {
            let around = format!("[0 , {text}\n, 1]");
            let items: Vec<RawJson> = parse_json(&around).unwrap();
            assert_eq!(items[1].as_str(), text);
            assert_eq!(items.len(), 3);
        }
    }

    #[test]
    fn what_is_no_json_is_refused_wherever_it_stands() {
        for text in ["[", "[1,]", "[nul]", "[\"a]", "[{\"a\" 1}]", "[1] 2", "[-]"] {
            assert!(parse_json::<Vec<RawJson>>(text).is_err(), "{text}");
        }
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        assert!(parse_json::<RawJson>(&deep).is_err());
    }

    #[test]
    fn a_field_that_does_not_fit_costs_no_other() {
        let object: Fields =
            parse_json(r#"{"b": ["x"], "a": 1, "none": null, "deep": {"c": [1, "y"]}}"#).unwrap();
        let names: Vec<_> = object.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "b", "deep", "none"]);
        assert_eq!(object.read::<Vec<String>>("b"), Ok(vec!["x".to_owned()]));
        assert_eq!(object.read::<Option<u8>>("a"), Ok(Some(1)));
        assert_eq!(object.read::<Option<u8>>("none"), Ok(None));
        assert_eq!(object.read::<Option<u8>>("absent"), Ok(None));
        assert_eq!(object.read::<Fields>("absent"), Ok(Fields::default()));
        assert_eq!(object.get("none").map(RawJson::as_str), Some("null"));
        let deep: Fields = object.read("deep").unwrap();
        let told = |error: JsonError| error.to_string();
        assert_eq!(
            deep.read::<Vec<String>>("c").map_err(told),
            Err("/c/0: invalid type: number, expected a string".to_owned())
        );
        assert_eq!(
            object.read::<Fields>("b").map_err(told),
            Err("/b: invalid type: list, expected a map".to_owned())
        );
    }

    #[test]
    fn other_readers_say_that_they_cannot() {
        let error = serde_json::from_str::<RawJson>("1").unwrap_err();
        assert!(error.to_string().contains("JSON that this crate reads"));
    }

    proptest! {
        #[test]
        fn what_is_read_later_is_what_is_read_at_once(text in "[\\[\\]{}:,\"a1 .-]{0,12}") {
            let kept = parse_json::<RawJson>(&text);
            let value = serde_json::from_str::<Value>(&text);
            prop_assert_eq!(kept.is_ok(), value.is_ok(), "{}", text);
            if let (Ok(kept), Ok(value)) = (kept, value) {
                prop_assert_eq!(serde_json::from_str::<Value>(kept.as_str()).unwrap(), value);
            }
        }
    }
}
