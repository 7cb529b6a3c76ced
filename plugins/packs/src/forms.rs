//! Whether a value of the configuration is what its key may hold.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reeve_sdk::names::check_dns_subdomain;
use reeve_sdk::prelude::*;

use crate::keys::{Form, Key};

/// Why a value cannot be used. Never says what it is: it may be a secret in a wrong
/// place.
pub(crate) fn check(key: &Key, value: &Value) -> Result<(), String> {
    let expected = |what: &str| Err(format!("expected {what}"));
    match key.form {
        Form::Bool if value.is_boolean() => return Ok(()),
        Form::Bool => return expected("true or false"),
        Form::Json if value.is_object() || value.is_array() => return Ok(()),
        _ => {}
    }
    let Value::String(text) = value else {
        return expected(match key.form {
            Form::Json => "JSON, or a text that is JSON",
            _ => "a text",
        });
    };
    if text.is_empty() {
        return Ok(());
    }
    if text.starts_with('<') && text.ends_with('>') {
        return Err("still has the placeholder of the example; put in the value".to_owned());
    }
    match key.form {
        Form::Text | Form::Bool => Ok(()),
        Form::Url if host_of(text, "https://").is_some() => Ok(()),
        Form::Url => expected("an https URL with a host, such as https://a.example.com"),
        Form::Host if check_dns_subdomain(text).is_ok() => Ok(()),
        Form::Host => expected("a host name, such as a.example.com"),
        Form::Oci if is_repository(text) => Ok(()),
        Form::Oci => expected("an OCI address, such as oci://registry.example.com/charts"),
        Form::OneOf(values) if values.contains(&text.as_str()) => Ok(()),
        Form::OneOf(values) => Err(format!("expected one of {}", values.join(", "))),
        Form::Json => match crate::json::parse(text) {
            Ok(_) => Ok(()),
            Err(_) => expected("JSON, or a text that is JSON"),
        },
        Form::Pem => match decode(text) {
            Some(_) => Ok(()),
            None => expected("base64 of a PEM text"),
        },
    }
}

/// The bytes of a text in base64, with or without line breaks.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    if let Ok(bytes) = STANDARD.decode(text) {
        return Some(bytes);
    }
    let plain: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    STANDARD.decode(plain).ok()
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The host of a URL of this scheme.
pub(crate) fn host_of<'a>(url: &'a str, scheme: &str) -> Option<&'a str> {
    let rest = url.strip_prefix(scheme)?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, port.parse::<u16>().is_ok()),
        None => (authority, true),
    };
    (port && check_dns_subdomain(host).is_ok()).then_some(host)
}

/// Whether charts can be looked for below this address: a tag or a digest would end up
/// in the middle of theirs.
fn is_repository(url: &str) -> bool {
    let rest = host_of(url, "oci://").and_then(|_| url.strip_prefix("oci://"));
    let Some((_, path)) = rest.and_then(|rest| rest.split_once('/')) else {
        return false;
    };
    !path.is_empty() && !path.ends_with('/') && !path.contains([':', '@', '?', '#', ' '])
}
