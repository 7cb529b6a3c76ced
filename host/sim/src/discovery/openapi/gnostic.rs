//! Documents of version 2 in protobuf, in the messages of gnostic's `openapi.v2`, which
//! Go clients read.
//!
//! What a message has a field for is encoded there, extensions (`x-…`) as YAML, for
//! which JSON is good enough. A document is encoded in parts, so that what never changes
//! is encoded once: the entries of a map stand side by side in any order.

use serde_json::{Map, Value};

use super::v2::Parts;

/// A message as it grows.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(low(number) | 0x80);
            number >>= 7;
        }
        self.0.push(low(number));
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, field: u64, value: &Value) {
        // One that is empty is not sent.
        if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
            self.bytes(field, text.as_bytes());
        }
    }

    fn texts(&mut self, field: u64, value: &Value) {
        for text in value.as_array().into_iter().flatten() {
            self.bytes(field, text.as_str().unwrap_or_default().as_bytes());
        }
    }

    fn message(&mut self, field: u64, message: &Message) {
        self.bytes(field, &message.0);
    }

    fn flag(&mut self, field: u64, value: &Value) {
        if value == &Value::Bool(true) {
            self.varint(field << 3);
            self.varint(1);
        }
    }

    fn integer(&mut self, field: u64, value: &Value) {
        let number = value.as_i64().or_else(|| whole(value.as_f64()?));
        if let Some(number) = number.filter(|number| *number != 0) {
            self.varint(field << 3);
            self.varint(number.cast_unsigned());
        }
    }

    fn double(&mut self, field: u64, value: &Value) {
        if let Some(number) = value.as_f64().filter(|number| *number != 0.0) {
            self.varint(field << 3 | 1);
            self.0.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// An entry of a map.
    fn named(&mut self, field: u64, name: &str, value: &Message) {
        let mut entry = Message::default();
        entry.bytes(1, name.as_bytes());
        entry.message(2, value);
        self.message(field, &entry);
    }

    /// Extensions.
    fn extensions(&mut self, field: u64, fields: &Map<String, Value>) {
        for (key, value) in fields.iter().filter(|(key, _)| key.starts_with("x-")) {
            self.named(field, key, &any(value));
        }
    }
}

/// The last seven bits.
fn low(number: u64) -> u8 {
    number.to_le_bytes()[0] & 0x7f
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "it is a whole number in range"
)]
fn whole(number: f64) -> Option<i64> {
    let fits = number.fract() == 0.0 && number.abs() < 9e15;
    fits.then_some(number as i64)
}

fn wrap(field: u64, inner: &Message) -> Message {
    let mut outer = Message::default();
    outer.message(field, inner);
    outer
}

/// A value of any type, as YAML.
fn any(value: &Value) -> Message {
    let mut message = Message::default();
    message.bytes(2, format!("{value}\n").as_bytes());
    message
}

fn fields(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let fields = value.as_object().into_iter().flatten();
    fields.map(|(key, value)| (key.as_str(), value))
}

fn schema(value: &Value) -> Message {
    let mut message = Message::default();
    for (key, value) in fields(value) {
        match key {
            "$ref" => message.text(1, value),
            "format" => message.text(2, value),
            "title" => message.text(3, value),
            "description" => message.text(4, value),
            "default" => message.message(5, &any(value)),
            "multipleOf" => message.double(6, value),
            "maximum" => message.double(7, value),
            "exclusiveMaximum" => message.flag(8, value),
            "minimum" => message.double(9, value),
            "exclusiveMinimum" => message.flag(10, value),
            "maxLength" => message.integer(11, value),
            "minLength" => message.integer(12, value),
            "pattern" => message.text(13, value),
            "maxItems" => message.integer(14, value),
            "minItems" => message.integer(15, value),
            "uniqueItems" => message.flag(16, value),
            "maxProperties" => message.integer(17, value),
            "minProperties" => message.integer(18, value),
            "required" => message.texts(19, value),
            "enum" => {
                for value in value.as_array().into_iter().flatten() {
                    message.message(20, &any(value));
                }
            }
            "additionalProperties" => {
                let mut item = Message::default();
                match value {
                    Value::Bool(_) => item.flag(2, value),
                    _ => item.message(1, &schema(value)),
                }
                message.message(21, &item);
            }
            "type" => {
                let mut item = Message::default();
                item.text(1, value);
                message.message(22, &item);
            }
            "items" => message.message(23, &wrap(1, &schema(value))),
            "properties" => {
                let mut properties = Message::default();
                for (name, value) in fields(value) {
                    properties.named(1, name, &schema(value));
                }
                message.message(25, &properties);
            }
            "externalDocs" => {
                let mut documents = Message::default();
                documents.text(1, &value["description"]);
                documents.text(2, &value["url"]);
                message.message(29, &documents);
            }
            "example" => message.message(30, &any(value)),
            _ => {}
        }
    }
    if let Some(value) = value.as_object() {
        message.extensions(31, value);
    }
    message
}

/// A parameter in itself.
fn parameter(value: &Value) -> Message {
    let mut inner = Message::default();
    let place = value["in"].as_str().unwrap_or_default();
    if place == "body" {
        inner.text(1, &value["description"]);
        inner.text(2, &value["name"]);
        inner.text(3, &value["in"]);
        inner.flag(4, &value["required"]);
        inner.message(5, &schema(&value["schema"]));
        return wrap(1, &inner);
    }
    inner.flag(1, &value["required"]);
    inner.text(2, &value["in"]);
    inner.text(3, &value["description"]);
    inner.text(4, &value["name"]);
    let (kind, ty, unique) = match place {
        "query" => (3, 6, 20),
        _ => (4, 5, 19),
    };
    inner.text(ty, &value["type"]);
    inner.flag(unique, &value["uniqueItems"]);
    wrap(2, &wrap(kind, &inner))
}

/// A parameter of a request, or where it is.
fn parameter_item(value: &Value) -> Message {
    if value.get("$ref").is_none() {
        return wrap(1, &parameter(value));
    }
    let mut reference = Message::default();
    reference.text(1, &value["$ref"]);
    wrap(2, &reference)
}

fn operation(value: &Value) -> Message {
    let mut message = Message::default();
    message.texts(1, &value["tags"]);
    message.text(3, &value["description"]);
    message.text(5, &value["operationId"]);
    message.texts(6, &value["produces"]);
    message.texts(7, &value["consumes"]);
    for value in value["parameters"].as_array().into_iter().flatten() {
        message.message(8, &parameter_item(value));
    }
    let mut responses = Message::default();
    for (code, value) in fields(&value["responses"]) {
        let mut response = Message::default();
        response.text(1, &value["description"]);
        if let Some(found) = value.get("schema") {
            response.message(2, &wrap(1, &schema(found)));
        }
        responses.named(1, code, &wrap(1, &response));
    }
    message.message(9, &responses);
    message.texts(10, &value["schemes"]);
    if let Some(value) = value.as_object() {
        message.extensions(13, value);
    }
    message
}

fn path_item(value: &Value) -> Message {
    const METHODS: [(&str, u64); 7] = [
        ("get", 2),
        ("put", 3),
        ("post", 4),
        ("delete", 5),
        ("options", 6),
        ("head", 7),
        ("patch", 8),
    ];
    let mut message = Message::default();
    for (method, field) in METHODS {
        if let Some(found) = value.get(method) {
            message.message(field, &operation(found));
        }
    }
    for value in value["parameters"].as_array().into_iter().flatten() {
        message.message(9, &parameter_item(value));
    }
    message
}

/// The entries of the paths, the definitions and the parameters.
pub(super) fn parts(parts: &Parts) -> [Vec<u8>; 3] {
    let encode = |map: &Map<String, Value>, field: u64, one: fn(&Value) -> Message| {
        let mut message = Message::default();
        for (name, value) in map {
            message.named(field, name, &one(value));
        }
        message.0
    };
    [
        encode(&parts.paths, 2, path_item),
        encode(&parts.definitions, 1, schema),
        encode(&parts.parameters, 1, parameter),
    ]
}

/// The whole document, of what is always there and what is added.
pub(super) fn document(
    always: &[Vec<u8>; 3],
    [more_paths, more_definitions, _]: &[Vec<u8>; 3],
    security: &Value,
) -> Vec<u8> {
    let [paths, definitions, parameters] = always;
    let mut message = Message::default();
    message.bytes(1, b"2.0");
    let mut info = Message::default();
    let described = super::info();
    info.text(1, &described["title"]);
    info.text(2, &described["version"]);
    message.message(2, &info);
    message.bytes(8, &[paths.as_slice(), more_paths].concat());
    message.bytes(9, &[definitions.as_slice(), more_definitions].concat());
    message.bytes(10, parameters);
    let mut requirement = Message::default();
    requirement.named(1, "BearerToken", &Message::default());
    message.message(12, &requirement);
    let mut key = Message::default();
    key.text(1, &security["type"]);
    key.text(2, &security["name"]);
    key.text(3, &security["in"]);
    key.text(4, &security["description"]);
    let mut securities = Message::default();
    securities.named(1, "BearerToken", &wrap(2, &key));
    message.message(13, &securities);
    message.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "cases are written in place")]
    fn check(message: Message, expected: &[u8]) {
        assert_eq!(message.0, expected);
    }

    #[test]
    fn schemas_are_encoded_field_by_field() {
        check(
            schema(&json!({"type": "string"})),
            b"\xb2\x01\x08\x0a\x06string",
        );
        check(
            schema(&json!({"$ref": "#/definitions/A", "description": "d"})),
            b"\x0a\x0f#/definitions/A\x22\x01d",
        );
        check(
            schema(&json!({"maxLength": 300, "minLength": 0})),
            b"\x58\xac\x02",
        );
        check(schema(&json!({"maximum": 1})), b"\x39\0\0\0\0\0\0\xf0\x3f");
        check(
            schema(&json!({"enum": ["a"]})),
            b"\xa2\x01\x06\x12\x04\"a\"\n",
        );
        check(
            schema(&json!({"properties": {"a": {"uniqueItems": true}}})),
            b"\xca\x01\x0a\x0a\x08\x0a\x01a\x12\x03\x80\x01\x01",
        );
        check(
            schema(&json!({"x-kubernetes-list-type": "set"})),
            b"\xfa\x01\x22\x0a\x16x-kubernetes-list-type\x12\x08\x12\x06\"set\"\n",
        );
        check(
            schema(&json!({"additionalProperties": true})),
            b"\xaa\x01\x02\x10\x01",
        );
        check(schema(&json!({"items": {}})), b"\xba\x01\x02\x0a\0");
    }

    #[test]
    fn parameters_are_encoded_by_their_place() {
        check(
            parameter_item(&json!({"$ref": "#/p"})),
            b"\x12\x05\x0a\x03#/p",
        );
        check(
            parameter_item(&json!({"name": "a", "in": "query", "type": "string"})),
            b"\x0a\x16\x12\x14\x1a\x12\x12\x05query\x22\x01a\x32\x06string",
        );
        check(
            parameter_item(&json!({"name": "a", "in": "path", "required": true})),
            b"\x0a\x0f\x12\x0d\x22\x0b\x08\x01\x12\x04path\x22\x01a",
        );
    }
}
