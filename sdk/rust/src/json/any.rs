//! JSON of any form.

use std::fmt;
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

/// Any JSON that a plugin reads: a [`Value`], to which it gives access.
///
/// To read a `Value` itself works as well and makes a component a hundred KB larger:
/// depending on the features of `serde_json`, a second parser comes with it, for a key
/// that it then treats in a way of its own. Here every key is a key.
///
/// ```
/// use reeve_sdk::prelude::*;
///
/// #[input]
/// struct Volume {
///     metadata: Metadata,
///     #[serde(default)]
///     spec: Json,
/// }
///
/// let answer: Json = reeve_sdk::parse_json(r#"{"result": {"a": 1}}"#).unwrap();
/// assert_eq!(answer.pointer("/result/a"), Some(&json!(1)));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Json(pub Value);

impl Deref for Json {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
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
        f.write_str("any JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value);
        number
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
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
        let mut map = serde_json::Map::new();
        while let Some(key) = entries.next_key()? {
            let Json(value) = entries.next_value()?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn what_is_read_is_what_serde_json_reads() {
        for text in [
            "null",
            "true",
            "-3",
            "18446744073709551615",
            "-9223372036854775808",
            "1.5",
            "-0",
            "1e3",
            r#""ä\n\u00e9""#,
            "[]",
            r#"[1, [null, {"a": []}]]"#,
            r#"{"b": {"c": 0.1}, "a": "x"}"#,
        ] {
            let found: Json = crate::parse_json(text).unwrap();
            assert_eq!(
                *found,
                serde_json::from_str::<Value>(text).unwrap(),
                "{text}"
            );
        }
        for text in ["", "{", "[1,]", "nul", "1 2", "1e999"] {
            assert!(crate::parse_json::<Json>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn no_key_has_a_meaning_of_its_own() {
        let text = r#"{"$serde_json::private::RawValue": "[1]"}"#;
        let found: Json = crate::parse_json(text).unwrap();
        assert_eq!(*found, json!({"$serde_json::private::RawValue": "[1]"}));
    }

    #[test]
    fn nothing_is_null() {
        assert_eq!(*Json::default(), Value::Null);
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(value in values()) {
            let found: Json = crate::parse_json(&value.to_string()).unwrap();
            prop_assert_eq!(found.0, value);
        }
    }
}
