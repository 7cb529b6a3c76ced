//! Objects in Kubernetes' protobuf encoding, which kubectl sends for built-in
//! kinds even to servers that only answer JSON.
//!
//! `protobuf/table.txt` says which field has which number; it is written by
//! `examples/protobuf_table.rs` from the published definitions. Only decoding is
//! needed: every client that sends protobuf takes JSON for an answer.

use std::collections::HashMap;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::clock;

const TEXT: &str = include_str!("protobuf/table.txt");
/// What every encoded object starts with.
const MAGIC: &[u8] = b"k8s\0";
/// Deeper messages are not objects but attacks.
const DEPTH: usize = 100;

/// Fields that are no fields in JSON: what they hold stands in their place.
const INLINE: &[&str] = &[
    "deviceConfiguration",
    "ephemeralContainerCommon",
    "handler",
    "ingressRuleValue",
    "localObjectReference",
    "persistentVolumeSource",
    "rule",
    "ruleWithOperations",
    "volumeSource",
];

type Message = HashMap<u64, Field>;

#[derive(Debug, Clone, Copy)]
struct Field {
    name: &'static str,
    kind: &'static str,
}

static MESSAGES: LazyLock<HashMap<&'static str, Message>> = LazyLock::new(|| {
    let mut messages: HashMap<&'static str, Message> = HashMap::new();
    let mut current = "";
    for line in TEXT.lines() {
        let Some(field) = line.strip_prefix(' ') else {
            current = line;
            messages.insert(current, Message::new());
            continue;
        };
        let mut parts = field.split(' ');
        if let (Some(Ok(number)), Some(name), Some(kind)) =
            (parts.next().map(str::parse), parts.next(), parts.next())
            && let Some(message) = messages.get_mut(current)
        {
            let name = json_name(name);
            message.insert(number, Field { name, kind });
        }
    }
    messages
});

/// Why bytes are no object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    /// They do not start as an object does.
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    Magic,
    /// They end too early or contradict themselves.
    #[error("proto: illegal wireType or unexpected end")]
    Malformed,
    /// They hold a kind that has no protobuf form here.
    #[error("no protobuf decoder for this kind")]
    Kind,
}

/// Decodes an object, with the `apiVersion` and `kind` that its envelope names.
pub(crate) fn decode(bytes: &[u8]) -> Result<Value, DecodeError> {
    let envelope = bytes.strip_prefix(MAGIC).ok_or(DecodeError::Magic)?;
    let envelope = message("runtime.Unknown", envelope, 0)?;
    let api_version = envelope
        .pointer("/typeMeta/apiVersion")
        .and_then(Value::as_str);
    let kind = envelope.pointer("/typeMeta/kind").and_then(Value::as_str);
    let (Some(api_version), Some(kind)) = (api_version, kind) else {
        return Err(DecodeError::Kind);
    };
    let raw = envelope
        .get("raw")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let raw = STANDARD.decode(raw).map_err(|_| DecodeError::Malformed)?;
    let mut object = message(&name(api_version, kind), &raw, 0)?;
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    Ok(object)
}

/// Whether objects of this kind have a form here.
#[cfg(test)]
pub(crate) fn knows(api_version: &str, kind: &str) -> bool {
    MESSAGES.contains_key(name(api_version, kind).as_str())
}

/// `core.v1.Pod` for `v1` and `Pod`; `rbac.v1.Role` for
/// `rbac.authorization.k8s.io/v1` and `Role`.
fn name(api_version: &str, kind: &str) -> String {
    if kind == "DeleteOptions" {
        return "meta.v1.DeleteOptions".to_owned();
    }
    let (group, version) = api_version
        .rsplit_once('/')
        .unwrap_or(("core", api_version));
    let package = group.split('.').next().unwrap_or_default();
    format!("{package}.{version}.{kind}")
}

fn message(name: &str, bytes: &[u8], depth: usize) -> Result<Value, DecodeError> {
    let fields = MESSAGES.get(name).ok_or(DecodeError::Kind)?;
    if depth > DEPTH {
        return Err(DecodeError::Malformed);
    }
    let mut object = Map::new();
    let mut reader = Reader(bytes);
    while let Some((number, wire)) = reader.field()? {
        let Some(field) = fields.get(&number) else {
            continue;
        };
        let (many, kind) = match field.kind.split_at_checked(2) {
            Some((many @ ("[]" | "{}"), kind)) => (many, kind),
            _ => ("", field.kind),
        };
        match many {
            "[]" => {
                let items = object.entry(field.name).or_insert_with(|| json!([]));
                if let Value::Array(items) = items {
                    items.push(value(kind, &wire, depth)?);
                }
            }
            "{}" => {
                let (key, value) = entry(kind, &wire, depth)?;
                let entries = object.entry(field.name).or_insert_with(|| json!({}));
                entries[key] = value;
            }
            _ => {
                let value = value(kind, &wire, depth)?;
                put(&mut object, field.name, value);
            }
        }
    }
    Ok(special(name, object))
}

/// The name of a field in JSON.
fn json_name(name: &'static str) -> &'static str {
    match name {
        "aPIGroup" => "apiGroup",
        "Expression" => "expression",
        "Name" => "name",
        "Webhooks" => "webhooks",
        other => other,
    }
}

/// Texts that are empty are fields that are not set.
fn put(object: &mut Map<String, Value>, name: &str, value: Value) {
    match value {
        Value::Null => {}
        Value::String(text) if text.is_empty() => {}
        Value::Object(fields) if INLINE.contains(&name) => object.extend(fields),
        value => {
            object.insert(name.to_owned(), value);
        }
    }
}

/// Messages that are no objects in JSON.
fn special(name: &str, object: Map<String, Value>) -> Value {
    let number = |field: &str| object.get(field).and_then(Value::as_i64).unwrap_or(0);
    let take = |field: &str| object.get(field).cloned().unwrap_or(Value::Null);
    match name {
        "meta.v1.Time" | "meta.v1.MicroTime" | "meta.v1.Timestamp" => {
            if object.is_empty() {
                return Value::Null;
            }
            let micros = (name == "meta.v1.MicroTime").then(|| number("nanos") / 1000);
            time(number("seconds"), micros)
        }
        "meta.v1.Duration" => json!(format!("{}ns", number("duration"))),
        "api.resource.Quantity" => json!(take("string").as_str().unwrap_or("0")),
        "util.intstr.IntOrString" if number("type") == 1 => {
            json!(take("strVal").as_str().unwrap_or_default())
        }
        "util.intstr.IntOrString" => json!(number("intVal")),
        "runtime.RawExtension" | "meta.v1.FieldsV1" => {
            let raw = take(if name == "meta.v1.FieldsV1" {
                "Raw"
            } else {
                "raw"
            });
            let bytes = STANDARD
                .decode(raw.as_str().unwrap_or_default())
                .unwrap_or_default();
            serde_json::from_slice(&bytes).unwrap_or_default()
        }
        // Named lists of texts.
        _ if object.is_empty() && name.ends_with("ExtraValue") => json!([]),
        _ if name.ends_with("ExtraValue") => take("items"),
        _ => Value::Object(object),
    }
}

fn time(seconds: i64, micros: Option<i64>) -> Value {
    let seconds = u64::try_from(seconds).unwrap_or(0);
    let text = clock::rfc3339(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds));
    match micros {
        None => json!(text),
        Some(micros) => json!(format!("{}.{micros:06}Z", text.trim_end_matches('Z'))),
    }
}

fn entry(kind: &str, wire: &Wire<'_>, depth: usize) -> Result<(String, Value), DecodeError> {
    let Wire::Bytes(bytes) = wire else {
        return Err(DecodeError::Malformed);
    };
    let (mut key, mut found) = (String::new(), None);
    let mut reader = Reader(bytes);
    while let Some((number, wire)) = reader.field()? {
        match number {
            1 => {
                key = value("string", &wire, depth)?
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            }
            2 => found = Some(value(kind, &wire, depth)?),
            _ => {}
        }
    }
    let nothing = if matches!(kind, "string" | "bytes") {
        json!("")
    } else {
        Value::Null
    };
    Ok((key, found.unwrap_or(nothing)))
}

fn value(kind: &str, wire: &Wire<'_>, depth: usize) -> Result<Value, DecodeError> {
    Ok(match (kind, wire) {
        ("string", Wire::Bytes(bytes)) => json!(String::from_utf8_lossy(bytes)),
        ("bytes", Wire::Bytes(bytes)) => json!(STANDARD.encode(bytes)),
        ("bool", Wire::Number(number)) => json!(*number != 0),
        // Negative numbers are written in two's complement.
        ("int32" | "int64", Wire::Number(number)) => json!(number.cast_signed()),
        ("double", Wire::Number(number)) => json!(f64::from_bits(*number)),
        (kind, Wire::Bytes(bytes)) => message(kind, bytes, depth + 1)?,
        _ => return Err(DecodeError::Malformed),
    })
}

/// A value as it stands in the bytes.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The next field with its number; `None` at the end.
    fn field(&mut self) -> Result<Option<(u64, Wire<'a>)>, DecodeError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let wire = match tag & 7 {
            0 => Wire::Number(self.varint()?),
            1 => Wire::Number(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| DecodeError::Malformed)?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Number(u64::from(u32::from_le_bytes(self.array()?))),
            _ => return Err(DecodeError::Malformed),
        };
        Ok(Some((tag >> 3, wire)))
    }

    fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(DecodeError::Malformed)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        self.take(N)?.try_into().map_err(|_| DecodeError::Malformed)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(DecodeError::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field of bytes.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        out.extend_from_slice(bytes);
        out
    }

    fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let types = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &types), field(2, raw)].concat()
    }

    #[test]
    fn objects_are_decoded_by_the_table() {
        let metadata = [field(1, b"a"), field(3, b"")].concat();
        let entry = [field(1, b"k"), field(2, b"v")].concat();
        let raw = [field(1, &metadata), field(2, &entry)].concat();
        assert_eq!(
            decode(&envelope("v1", "ConfigMap", &raw)),
            Ok(
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}})
            )
        );
    }

    #[test]
    fn what_is_no_object_is_refused() {
        assert_eq!(decode(b"{}"), Err(DecodeError::Magic));
        assert_eq!(
            decode(&envelope("v1", "Nothing", b"")),
            Err(DecodeError::Kind)
        );
        assert_eq!(
            decode(&envelope("v1", "ConfigMap", &[0x0a, 0x7f])),
            Err(DecodeError::Malformed)
        );
        let endless = [0x80; 12];
        assert_eq!(
            decode(&envelope("v1", "ConfigMap", &endless)),
            Err(DecodeError::Malformed)
        );
    }

    /// A field of a message is one in JSON, or what it holds stands in its place.
    #[test]
    fn fields_of_messages_are_those_of_json() {
        let mut strange: Vec<String> = Vec::new();
        for kind in crate::kinds::all() {
            let message = name(&kind.api_version(), kind.kind);
            let package = message.trim_end_matches(kind.kind);
            let fields = |of: &str| {
                let fields = MESSAGES.get(format!("{package}{of}").as_str());
                let fields = fields.into_iter().flat_map(HashMap::values);
                let names = fields.map(|field| field.name);
                names.filter(|name| !INLINE.contains(name)).collect()
            };
            let found = crate::types::strange_fields(kind.group, kind.version, kind.kind, fields);
            strange.extend(found.into_iter().map(|field| format!("{package}{field}")));
        }
        strange.sort();
        strange.dedup();
        assert_eq!(strange, Vec::<String>::new());
    }

    #[test]
    fn every_type_of_the_table_is_in_it() {
        for (name, message) in MESSAGES.iter() {
            for field in message.values() {
                let kind = field.kind.trim_start_matches("[]").trim_start_matches("{}");
                let scalar = matches!(
                    kind,
                    "string" | "bytes" | "bool" | "int32" | "int64" | "double"
                );
                assert!(scalar || MESSAGES.contains_key(kind), "{name}: {kind}");
            }
        }
    }
}
