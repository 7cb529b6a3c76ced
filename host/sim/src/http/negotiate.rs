//! Content negotiation: in which form an object is asked for, and given.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};
use serde_json::Value;

use super::yaml;
use crate::protobuf;
use crate::status::ApiError;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The object as it is.
    Object,
    /// Rows and columns for people.
    Table,
    /// Only the metadata.
    Metadata,
}

/// The encoding of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
}

/// What the caller accepts first of what can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// The form.
    pub(crate) form: Form,
    /// The encoding.
    pub(crate) encoding: Encoding,
}

impl Accepted {
    /// Reads the `Accept` header.
    pub(crate) fn parse(headers: &HeaderMap) -> Result<Self, ApiError> {
        let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
        let Some(accept) = accept.filter(|text| !text.trim().is_empty()) else {
            return Ok(Accepted {
                form: Form::Object,
                encoding: Encoding::Json,
            });
        };
        accept
            .split(',')
            .find_map(clause)
            .ok_or_else(ApiError::not_acceptable)
    }
}

/// The meaning of one clause; `None` when it cannot be served.
fn clause(text: &str) -> Option<Accepted> {
    let mut parts = text.split(';').map(str::trim);
    let encoding = match parts.next()? {
        "application/json" | "*/*" | "application/*" => Encoding::Json,
        "application/yaml" => Encoding::Yaml,
        _ => return None,
    };
    let (mut form, mut version, mut group) = (None, "", "");
    for part in parts {
        match part.split_once('=') {
            Some(("as", value)) => form = Some(value),
            Some(("v", value)) => version = value,
            Some(("g", value)) => group = value,
            _ => {}
        }
    }
    let form = match form {
        None => Form::Object,
        Some(_) if group != "meta.k8s.io" || !matches!(version, "v1" | "v1beta1") => return None,
        Some("Table") => Form::Table,
        Some("PartialObjectMetadata" | "PartialObjectMetadataList") => Form::Metadata,
        Some(_) => return None,
    };
    Some(Accepted { form, encoding })
}

/// The media type of the body, without parameters.
pub(crate) fn content_type(headers: &HeaderMap) -> &str {
    let text = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    text.and_then(|text| text.split(';').next())
        .unwrap_or_default()
        .trim()
}

/// Parses a body of JSON, YAML or protobuf that holds an object of `kind`.
pub(crate) fn parse_body(headers: &HeaderMap, body: &[u8], kind: &str) -> Result<Value, ApiError> {
    match content_type(headers) {
        "" | "application/json" => json(body).map_err(|why| unrecognized(body, kind, &why)),
        "application/vnd.kubernetes.protobuf" => {
            protobuf::decode(body).map_err(|error| ApiError::bad_request(error.to_string()))
        }
        "application/yaml" => yaml(body).map_err(|why| unrecognized(body, kind, &why)),
        _ => Err(ApiError::unsupported_media_type(
            "application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )),
    }
}

/// Parses JSON.
pub(crate) fn json(body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body).map_err(|error| syntax(body, &error))
}

/// Why a body is no JSON, in the words of Go where they are known.
fn syntax(body: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let line = body
        .split(|byte| *byte == b'\n')
        .nth(error.line().saturating_sub(1));
    let found = line.and_then(|line| line.get(error.column().saturating_sub(1)));
    let text = error.to_string();
    let wanted = [
        ("key must be a string", "beginning of object key string"),
        ("expected value", "beginning of value"),
    ];
    match (found, wanted.iter().find(|(why, _)| text.starts_with(why))) {
        (Some(found), Some((_, wanted))) => {
            format!(
                "invalid character '{}' looking for {wanted}",
                char::from(*found)
            )
        }
        _ => text,
    }
}

/// Parses YAML, of which JSON is a part and the usual case.
pub(crate) fn yaml(body: &[u8]) -> Result<Value, String> {
    if let Ok(value) = serde_json::from_slice(body) {
        return Ok(value);
    }
    let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
    yaml::parse(text).map_err(|error| error.to_string())
}

fn unrecognized(body: &[u8], kind: &str, why: &str) -> ApiError {
    let shown = if body.is_empty() {
        "<empty>".to_owned()
    } else {
        let text = String::from_utf8_lossy(body);
        // Long bodies are not repeated to the caller.
        text.chars().take(120).collect()
    };
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: {why} ({shown})"
    ))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn check(accept: &'static str, expected: Option<(Form, Encoding)>) {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        let got = Accepted::parse(&headers).ok().map(|a| (a.form, a.encoding));
        assert_eq!(got, expected, "{accept}");
    }

    #[test]
    fn the_first_form_that_can_be_given_is() {
        check("application/json", Some((Form::Object, Encoding::Json)));
        check("*/*", Some((Form::Object, Encoding::Json)));
        check("application/yaml", Some((Form::Object, Encoding::Yaml)));
        check(
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            Some((Form::Table, Encoding::Json)),
        );
        check(
            "application/json;as=Table;v=v9;g=meta.k8s.io,application/json",
            Some((Form::Object, Encoding::Json)),
        );
        check(
            "application/vnd.kubernetes.protobuf,application/json",
            Some((Form::Object, Encoding::Json)),
        );
        check("application/vnd.kubernetes.protobuf", None);
        check(
            "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            Some((Form::Metadata, Encoding::Json)),
        );
    }

    #[test]
    fn bodies_are_json_or_yaml() {
        let mut headers = HeaderMap::new();
        assert_eq!(parse_body(&headers, b"{\"a\":1}", "Pod").unwrap()["a"], 1);
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/yaml; charset=utf-8"),
        );
        assert_eq!(parse_body(&headers, b"a: 1\n", "Pod").unwrap()["a"], 1);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        assert_eq!(parse_body(&headers, b"k8s", "Pod").unwrap_err().code(), 415);
    }
}
