//! Content negotiation: in which form an object is asked for, and given.

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use serde_json::Value;

use crate::decode::{self, Document};
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
    /// Reads the `Accept` header, for an answer that may be a stream.
    pub(crate) fn parse(headers: &HeaderMap, is_stream: bool) -> Result<Self, ApiError> {
        let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
        let Some(accept) = accept.filter(|text| !text.trim().is_empty()) else {
            return Ok(Accepted {
                form: Form::Object,
                encoding: Encoding::Json,
            });
        };
        let mut clauses: Vec<Clause<'_>> = accept.split(',').map(Clause::parse).collect();
        // The most wanted first, and of those what says most.
        clauses.sort_by(|a, b| b.rank().total_cmp(&a.rank()));
        let mut accepted = clauses.iter().filter_map(Clause::accepted);
        let found = accepted.find(|accepted| !is_stream || accepted.encoding == Encoding::Json);
        found.ok_or_else(|| {
            // The encoding could be given, the form could not.
            let encodings = ["application/json", "application/yaml"];
            let known = clauses
                .iter()
                .any(|clause| encodings.contains(&clause.media));
            if known && is_stream {
                ApiError::not_acceptable_stream()
            } else {
                ApiError::not_acceptable(known)
            }
        })
    }
}

/// One of the forms that a caller accepts.
#[derive(Debug)]
struct Clause<'a> {
    media: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        Clause {
            media: parts.next().unwrap_or_default(),
            parameters: parts.filter_map(|part| part.split_once('=')).collect(),
        }
    }

    fn parameter(&self, name: &str) -> Option<&'a str> {
        let mut found = self.parameters.iter().rev();
        found.find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    /// How much it is wanted; of two that are wanted alike, the one that names a type
    /// is before the one that takes any.
    fn rank(&self) -> f64 {
        const LEAST: f64 = 1e-6;
        let quality = self.parameter("q");
        let quality = quality.map_or(1.0, |text| text.parse().unwrap_or(0.0));
        let wildcards = self.media.split('/').filter(|part| *part == "*").count();
        if wildcards == 0 {
            quality
        } else {
            quality - LEAST
        }
    }

    /// What it means; `None` when it cannot be served.
    fn accepted(&self) -> Option<Accepted> {
        let encoding = match self.media {
            "application/json" | "*/*" => Encoding::Json,
            "application/yaml" => Encoding::Yaml,
            _ => return None,
        };
        let text = |name: &str| self.parameter(name).unwrap_or_default();
        let form = match self.parameter("as") {
            None => Form::Object,
            Some(_) if text("g") != "meta.k8s.io" || !matches!(text("v"), "v1" | "v1beta1") => {
                return None;
            }
            Some("Table") => Form::Table,
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") => Form::Metadata,
            Some(_) => return None,
        };
        Some(Accepted { form, encoding })
    }
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

/// Parses a body of JSON, YAML or protobuf that holds an object of `kind`, and
/// checks that what it says of its type can be read.
/// The second part of the answer is the complaint about keys that came twice in
/// YAML; JSON keeps them.
pub(crate) fn document(
    headers: &HeaderMap,
    body: &[u8],
    kind: &str,
) -> Result<(Document, Option<String>), ApiError> {
    let unrecognized = |why: &str| {
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({})",
            summary(body)
        ))
    };
    let no_type = |why: &str| {
        unrecognized(&format!(
            "couldn't get version/kind; json parse error: {why}"
        ))
    };
    let mut repeated = None;
    let is_empty = headers.get(CONTENT_TYPE).is_none_or(HeaderValue::is_empty);
    // Go reads media types in any case.
    let document = match content_type(headers).to_ascii_lowercase().as_str() {
        "" if !is_empty => return Err(unsupported()),
        "" | "application/json" => decode::json(body).map_err(|why| no_type(&why))?,
        "application/vnd.kubernetes.protobuf" => {
            let value = protobuf::decode(body);
            Document::from(value.map_err(|error| unrecognized(&error.to_string()))?)
        }
        "application/yaml" => {
            let document;
            (document, repeated) = decode::yaml(body).map_err(|why| unrecognized(&why))?;
            document
        }
        _ => return Err(unsupported()),
    };
    match &document {
        // Nothing is an object without a type.
        Document::Null => return Ok((Document::Map(Vec::new()), repeated)),
        Document::Map(_) => {}
        other => {
            let sort = other.sort();
            return Err(no_type(&format!(
                "json: cannot unmarshal {sort} into Go value of type {TYPE_META}"
            )));
        }
    }
    for field in ["apiVersion", "kind"] {
        match document.get(field) {
            None | Some(Document::Null | Document::Text(_)) => {}
            Some(other) => {
                let sort = other.sort();
                return Err(no_type(&format!(
                    "json: cannot unmarshal {sort} into Go struct field .{field} of type string"
                )));
            }
        }
    }
    Ok((document, repeated))
}

fn unsupported() -> ApiError {
    ApiError::unsupported_media_type(
        "application/json, application/yaml, application/vnd.kubernetes.protobuf",
    )
}

/// What the server reads the type of an object into, as it prints that.
const TYPE_META: &str = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// Parses a body that holds an object of `kind` which is not kept.
pub(crate) fn parse_body(headers: &HeaderMap, body: &[u8], kind: &str) -> Result<Value, ApiError> {
    let (document, _) = document(headers, body, kind)?;
    Ok(document.into_value(&mut Vec::new()))
}

/// The beginning of a body, for a message; of what is no JSON, the bytes.
pub(crate) fn summary(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    let start = body.get(..SHOWN).unwrap_or(body);
    let shown = match body.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(start).into_owned(),
        Some(_) => start.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if body.len() > SHOWN {
        format!("{shown} ...")
    } else {
        shown
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn check(accept: &'static str, expected: Option<(Form, Encoding)>) {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        let parsed = Accepted::parse(&headers, false).ok();
        let got = parsed.map(|a| (a.form, a.encoding));
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
    fn what_is_wanted_more_is_given() {
        let (json, yaml) = (
            Some((Form::Object, Encoding::Json)),
            Some((Form::Object, Encoding::Yaml)),
        );
        check("application/json;q=0.1, application/yaml", yaml);
        check("application/json;q=0.9, application/yaml;q=0.8", json);
        check("*/*, application/yaml", yaml);
        check("text/plain, */*;q=0.1", json);
        check("application/json;q=x, application/yaml;q=0.1", yaml);
    }

    #[test]
    fn streams_are_json() {
        let parse = |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            Accepted::parse(&headers, true)
        };
        let refused = parse("application/yaml").unwrap_err();
        assert_eq!(refused.code(), 406);
        assert!(
            refused
                .to_string()
                .starts_with("only the following media types")
        );
        let accepted = parse("application/yaml, application/json;q=0.1").unwrap();
        assert_eq!(accepted.encoding, Encoding::Json);
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
        for (given, code) in [("Application/JSON", None), ("", None), (";", Some(415))] {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(given));
            let refused = parse_body(&headers, b"{}", "Pod").err();
            assert_eq!(refused.map(|error| error.code()), code, "{given:?}");
        }
    }
}
