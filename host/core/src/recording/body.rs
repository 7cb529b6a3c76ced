//! Bytes in a file that people read, without the loss of one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error as _;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// Bytes that crossed the border to a plugin.
///
/// In the file they are `{"json": …}` where they are one JSON text, which then stands
/// there as it was, blanks and order of keys included; `{"text": "…"}` where they are
/// other UTF-8; `{"base64": "…"}` where they are not even that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body(Vec<u8>);

impl Body {
    /// These bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// What the bytes say, if they are JSON.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.0).ok()
    }

    fn raw(&self) -> Option<&RawValue> {
        let raw: &RawValue = serde_json::from_slice(&self.0).ok()?;
        // Blanks around a value are not part of it, and would be lost. A line break
        // within would not: it stays, in a file of many lines.
        (raw.get().as_bytes() == self.0).then_some(raw)
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match (self.raw(), std::str::from_utf8(&self.0)) {
            (Some(raw), _) => map.serialize_entry("json", raw)?,
            (None, Ok(text)) => map.serialize_entry("text", text)?,
            (None, Err(_)) => map.serialize_entry("base64", &STANDARD.encode(&self.0))?,
        }
        map.end()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default, deserialize_with = "raw")]
    json: Option<Box<RawValue>>,
    text: Option<String>,
    base64: Option<String>,
}

/// `null` is a JSON text like any other.
fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { json, text, base64 } = Written::deserialize(deserializer)?;
        match (json, text, base64) {
            (Some(raw), None, None) => Ok(Self::new(raw.get())),
            (None, Some(text), None) => Ok(Self::new(text)),
            (None, None, Some(text)) => STANDARD
                .decode(text)
                .map(Self)
                .map_err(|error| D::Error::custom(format!("`base64` is damaged: {error}"))),
            _ => Err(D::Error::custom(
                "expected exactly one of `json`, `text` and `base64`",
            )),
        }
    }
}
