//! Faults from a shell: `/debug/faults` on the server itself, for administrators.
//!
//! `GET` lists those that are on, `PUT` puts others in their place, `DELETE` ends
//! them. It works during any outage.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Fault, FaultError};
use crate::http::response::{self, Answer};
use crate::identity::Identity;
use crate::server::Shared;
use crate::status::ApiError;

/// The segments of the path.
const PATH: [&str; 2] = ["debug", "faults"];

/// Whether a path is this one.
pub(crate) fn is_path(segments: &[String]) -> bool {
    segments == PATH
}

/// Answers a request to the path.
pub(crate) fn answer(
    shared: &Arc<Shared>,
    method: &Method,
    user: &Identity,
    body: &Bytes,
) -> Result<Answer, ApiError> {
    user.check_is_master("look at faults or change them")?;
    match *method {
        Method::GET | Method::HEAD => {}
        Method::PUT => {
            let faults = parse(body).map_err(ApiError::bad_request)?;
            shared.set_faults(faults);
        }
        Method::DELETE => shared.set_faults(Vec::new()),
        _ => return Err(ApiError::method_not_allowed()),
    }
    let active = shared.faults.active();
    let texts: Vec<String> = active.iter().map(ToString::to_string).collect();
    Ok(response::json(StatusCode::OK, &json!({"faults": texts})))
}

/// Reads a list of faults, as such, or as the field `faults` of a map: what `GET`
/// answers can be sent back.
fn parse(body: &[u8]) -> Result<Vec<Fault>, String> {
    const FORM: &str = "write a JSON list of faults, such as [\"latency: delay=200ms\"]";
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| format!("the body is no JSON: {error}; {FORM}"))?;
    let list = value.get("faults").unwrap_or(&value);
    let Some(items) = list.as_array() else {
        return Err(format!("the body is no list; {FORM}"));
    };
    let read = |(at, item)| {
        Fault::from_value(item)
            .map_err(|error: FaultError| format!("item {at} of the list: {error}"))
    };
    items.iter().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_in_both_forms() {
        for body in [
            r#"["reset", {"fault": "latency", "delay": "1s"}]"#,
            r#"{"faults": ["reset", "latency: delay=1s"]}"#,
        ] {
            let faults = parse(body.as_bytes()).unwrap();
            let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
            assert_eq!(texts, ["reset", "latency: delay=1s"]);
        }
        for (body, expected) in [
            (
                "reset",
                "the body is no JSON: expected value at line 1 column 1; write a JSON list of faults, such as [\"latency: delay=200ms\"]",
            ),
            (
                "\"reset\"",
                "the body is no list; write a JSON list of faults, such as [\"latency: delay=200ms\"]",
            ),
            (
                "[\"reset\", \"latency\"]",
                "item 1 of the list: fault latency: field delay is missing; write latency: delay=200ms",
            ),
        ] {
            assert_eq!(parse(body.as_bytes()).unwrap_err(), expected);
        }
    }
}
