//! Texts of Secrets, as the API server keeps them.
//!
//! `stringData` is for whoever writes, and is never read: the server encodes it into `data`.
//! Who applied it would own a field that is not there, and never learn that somebody else
//! has changed the value.

use crate::kind::ObjectReference;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// Moves `stringData` of a Secret into `data`, where it wins as on the server. What is no
/// text stays, for the server to refuse. Says whether anything is otherwise than before.
pub(super) fn encode(reference: &ObjectReference, body: &mut Value) -> bool {
    let Some(body) = body.as_object_mut().filter(|_| reference.kind.is_secret()) else {
        return false;
    };
    let texts = body.get("stringData").and_then(Value::as_object);
    let Some(texts) = texts.filter(|texts| texts.values().all(Value::is_string)) else {
        return false;
    };
    let encoded: Vec<(String, Value)> = texts
        .iter()
        .filter_map(|(key, text)| Some((key.clone(), STANDARD.encode(text.as_str()?).into())))
        .collect();
    let data = body
        .entry("data")
        .or_insert_with(|| Value::Object(Map::new()));
    if data.is_null() {
        *data = Value::Object(Map::new());
    }
    let Some(data) = data.as_object_mut() else {
        return false;
    };
    data.extend(encoded);
    body.remove("stringData");
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::GroupVersionKind;
    use serde_json::json;

    fn encoded(kind: GroupVersionKind, mut body: Value) -> Value {
        encode(&ObjectReference::new(kind, None, "a"), &mut body);
        body
    }

    #[test]
    fn texts_are_encoded_and_win() {
        let secret = || GroupVersionKind::new("", "v1", "Secret");
        for (body, expected) in [
            (
                json!({"data": {"a": "eA==", "b": "eQ=="}, "stringData": {"a": "é", "c": ""}}),
                json!({"data": {"a": "w6k=", "b": "eQ==", "c": ""}}),
            ),
            (
                json!({"stringData": {"a": "x"}}),
                json!({"data": {"a": "eA=="}}),
            ),
            (
                json!({"data": null, "stringData": {"a": "x"}}),
                json!({"data": {"a": "eA=="}}),
            ),
            // The server says what is wrong with these.
            (
                json!({"stringData": {"a": 1}}),
                json!({"stringData": {"a": 1}}),
            ),
            (
                json!({"data": 1, "stringData": {"a": "x"}}),
                json!({"data": 1, "stringData": {"a": "x"}}),
            ),
        ] {
            assert_eq!(encoded(secret(), body), expected);
        }
        let other = json!({"stringData": {"a": "x"}});
        let kind = GroupVersionKind::new("", "v1", "ConfigMap");
        assert_eq!(encoded(kind, other.clone()), other);
    }
}
