//! JSON and URLs with `{name}` in the place of what is reported.

use reeve_sdk::prelude::*;

/// What may stand in a path: what has no slash.
pub(super) const IN_PATHS: [&str; 4] = ["deploymentId", "environmentId", "event", "modelId"];

/// What may stand in a body.
pub(super) const NAMES: [&str; 14] = [
    "deploymentId",
    "environmentId",
    "event",
    "phase",
    "state",
    "status",
    "statusCode",
    "reason",
    "message",
    "since",
    "oldModelInUse",
    "modelId",
    "currentModelId",
    "predictionUrl",
];

/// A piece of a text.
#[derive(Debug, PartialEq)]
enum Piece<'a> {
    Text(&'a str),
    Name(&'a str),
}

/// The pieces of a text. A brace that begins no name is a brace.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric());
    let mut pieces = Vec::new();
    let (mut rest, mut from) = (text, 0);
    while let Some(open) = rest.get(from..).and_then(|part| part.find('{')) {
        let open = from + open;
        let inner = &rest[open + 1..];
        match inner
            .find('}')
            .map(|close| (&inner[..close], open + close + 2))
        {
            Some((name, end)) if is_name(name) => {
                if open > 0 {
                    pieces.push(Piece::Text(&rest[..open]));
                }
                pieces.push(Piece::Name(name));
                (rest, from) = (&rest[end..], 0);
            }
            _ => from = open + 1,
        }
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    pieces
}

/// Refuses names that there are not.
pub(super) fn check(template: &Value, names: &[&str], path: &str) -> Result<(), ConfigError> {
    match template {
        Value::String(text) => {
            let mut pieces = pieces(text).into_iter();
            let unknown = pieces.find_map(|piece| match piece {
                Piece::Name(name) if !names.contains(&name) => Some(name),
                _ => None,
            });
            match unknown {
                None => Ok(()),
                Some(name) => Err(ConfigError::new(
                    path,
                    format!("{{{name}}}: expected one of {}", names.join(", ")),
                )),
            }
        }
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.try_for_each(|(index, item)| check(item, names, &format!("{path}/{index}")))
        }
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            check(value, names, &reeve_sdk::pointer::below(path, key))
        }),
        _ => Ok(()),
    }
}

/// The template with what is reported. A text that is nothing but a name becomes what it
/// names, and is left out with its key where there is none.
pub(super) fn fill(template: &Value, values: &Value) -> Option<Value> {
    Some(match template {
        Value::String(text) => match pieces(text).as_slice() {
            [Piece::Name(name)] => values.get(name).filter(|value| !value.is_null())?.clone(),
            pieces => Value::String(joined(pieces, values, |text| text)),
        },
        Value::Array(items) => items.iter().filter_map(|item| fill(item, values)).collect(),
        Value::Object(fields) => {
            let filled = fields.iter();
            let filled =
                filled.filter_map(|(key, value)| Some((key.clone(), fill(value, values)?)));
            Value::Object(filled.collect())
        }
        other => other.clone(),
    })
}

/// The URL, with what is reported escaped.
pub(super) fn path(template: &str, values: &Value) -> String {
    joined(&pieces(template), values, |text| escaped(&text))
}

/// The URL below which all that a template gives are: up to the last slash before the
/// first name. None where that is no path.
pub(super) fn base(template: &str) -> Option<String> {
    let pieces = pieces(template);
    let Some(Piece::Text(start)) = pieces.first() else {
        return None;
    };
    let start = start.split(['?', '#']).next().unwrap_or_default();
    let (_, rest) = start.split_once("://")?;
    if pieces.len() == 1 && rest.contains('/') {
        return Some(start.to_owned());
    }
    let slash = start.rfind('/')?;
    (rest.contains('/')).then(|| start[..=slash].to_owned())
}

fn joined<T: AsRef<str>>(
    pieces: &[Piece<'_>],
    values: &Value,
    written: impl Fn(String) -> T,
) -> String {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(plain) => text.push_str(plain),
            Piece::Name(name) => match values.get(name) {
                None | Some(Value::Null) => {}
                Some(Value::String(value)) => text.push_str(written(value.clone()).as_ref()),
                Some(value) => text.push_str(written(value.to_string()).as_ref()),
            },
        }
    }
    text
}

/// A text as a part of a path or a query.
fn escaped(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                written.push(char::from(byte));
            }
            byte => {
                const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
                written.push('%');
                for digit in [byte >> 4, byte & 15] {
                    written.push(char::from(DIGITS[usize::from(digit)]));
                }
            }
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_in_and_nothing_else_is() {
        let values =
            json!({"state": "ready", "statusCode": 2, "modelId": null, "oldModelInUse": true});
        for (template, expected) in [
            (json!("{state}"), json!("ready")),
            (json!("{statusCode}"), json!(2)),
            (
                json!({"a": "{modelId}", "b": "{oldModelInUse}"}),
                json!({"b": true}),
            ),
            (json!(["{modelId}", 1]), json!([1])),
            (json!("is {state} ({statusCode})"), json!("is ready (2)")),
            (json!("{ {} {state"), json!("{ {} {state")),
            (json!("{{state}}"), json!("{ready}")),
            (json!("no {modelId}."), json!("no .")),
        ] {
            assert_eq!(fill(&template, &values), Some(expected), "{template}");
        }
        assert_eq!(fill(&json!("{modelId}"), &values), None);
    }

    #[test]
    fn what_is_reported_cannot_leave_its_place_in_a_url() {
        let values = json!({"deploymentId": "../a?b#c é"});
        let filled = path("https://e.example/v1/{deploymentId}/status", &values);
        assert_eq!(
            filled,
            "https://e.example/v1/..%2Fa%3Fb%23c%20%C3%A9/status"
        );
    }

    #[test]
    fn a_grant_is_for_what_stands_before_the_first_name() {
        for (template, expected) in [
            (
                "https://e.example/v1/events/",
                Some("https://e.example/v1/events/"),
            ),
            (
                "https://e.example/v1/events?x=1",
                Some("https://e.example/v1/events"),
            ),
            (
                "https://e.example/v1/{deploymentId}/s",
                Some("https://e.example/v1/"),
            ),
            (
                "https://e.example/v1/d-{deploymentId}",
                Some("https://e.example/v1/"),
            ),
            ("https://e.example/", Some("https://e.example/")),
            (
                "https://e.example/v1?d={deploymentId}",
                Some("https://e.example/"),
            ),
            ("https://e.example", None),
            ("https://{deploymentId}.example/", None),
            ("https://e.example{deploymentId}/", None),
            ("{deploymentId}", None),
        ] {
            assert_eq!(base(template).as_deref(), expected, "{template}");
        }
    }

    #[test]
    fn a_name_that_there_is_not_is_refused_with_its_place() {
        let error = check(&json!({"a/b": ["{state}", "x{stat}"]}), &NAMES, "/body").unwrap_err();
        assert_eq!(error.path, "/body/a~1b/1");
        assert!(
            error.message.starts_with("{stat}: expected one of "),
            "{}",
            error.message
        );
    }
}
