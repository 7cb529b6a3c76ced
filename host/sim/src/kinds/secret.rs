//! Secrets: `stringData`, types and the keys that they ask for.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::config::{DATA_MAX, check_key, decoded_len, validate_frozen};
use super::edit::{default_to, ensure_object, entries, remove, set, text};
use super::meta::validate_immutable;
use crate::field::{Errors, FieldError, Path};

pub(super) fn default(secret: &mut Value) {
    default_to(secret, "type", "Opaque");
    let Some(Value::Object(texts)) = remove(secret, "stringData") else {
        return;
    };
    if let Some(data) = ensure_object(secret, "data") {
        for (key, text) in texts {
            set(
                data,
                &key,
                STANDARD.encode(text.as_str().unwrap_or_default()),
            );
        }
    }
}

pub(super) fn validate(secret: &Value, errors: &mut Errors) {
    let data = Path::new("data");
    let mut size = 0;
    for (key, value) in entries(secret, "data") {
        check_key(&data.key(key), key, errors);
        size += decoded_len(value);
    }
    if size > DATA_MAX {
        errors.push(FieldError::too_long(&data, DATA_MAX));
    }
    let has = |key: &str| {
        secret
            .get("data")
            .is_some_and(|data| data.get(key).is_some())
    };
    let mut require = |key: &str| errors.push(FieldError::required(&data.key(key), ""));
    match text(secret, "type") {
        "kubernetes.io/service-account-token" => {
            const ACCOUNT: &str = "kubernetes.io/service-account.name";
            let annotations = secret.pointer("/metadata/annotations");
            if annotations.is_none_or(|a| text(a, ACCOUNT).is_empty()) {
                let meta = Path::new("metadata");
                let path = meta.child("annotations");
                errors.push(FieldError::required(&path.key(ACCOUNT), ""));
            }
        }
        "kubernetes.io/dockercfg" => validate_json(secret, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => validate_json(secret, ".dockerconfigjson", errors),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            require("username");
            require("password");
        }
        "kubernetes.io/ssh-auth" => {
            let key = secret.pointer("/data/ssh-privatekey");
            if key.is_none_or(|key| decoded_len(key) == 0) {
                require("ssh-privatekey");
            }
        }
        "kubernetes.io/tls" => ["tls.crt", "tls.key"]
            .into_iter()
            .filter(|key| !has(key))
            .for_each(require),
        _ => {}
    }
}

pub(super) fn validate_update(secret: &Value, old: &Value, errors: &mut Errors) {
    validate_immutable(&Path::new("type"), secret, old, "type", errors);
    validate_frozen(secret, old, &["data"], errors);
}

/// A key that must hold a JSON object.
fn validate_json(secret: &Value, key: &str, errors: &mut Errors) {
    let data = Path::new("data");
    let path = data.key(key);
    let Some(value) = secret.get("data").and_then(|data| data.get(key)) else {
        errors.push(FieldError::required(&path, ""));
        return;
    };
    let bytes = value
        .as_str()
        .and_then(|text| STANDARD.decode(text).ok())
        .unwrap_or_default();
    if let Err(error) = serde_json::from_slice::<serde_json::Map<String, Value>>(&bytes) {
        errors.push(FieldError::invalid_str(
            &path,
            "<secret contents redacted>",
            json_complaint(&bytes, &error),
        ));
    }
}

/// The complaint in the words of the server's decoder.
fn json_complaint(bytes: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(byte) if !b"{[\"-0123456789tfn".contains(byte) => format!(
            "invalid character '{}' looking for beginning of value",
            char::from(*byte)
        ),
        _ => error.to_string(),
    }
}
