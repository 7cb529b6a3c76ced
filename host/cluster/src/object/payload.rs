//! Leaving out of a ConfigMap's JSON what makes it long.

use super::{LAST_APPLIED, Text, mark};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Carrier<'a> {
    #[serde(borrow)]
    binary_data: Option<BTreeMap<Text<'a>, &'a RawValue>>,
    #[serde(borrow)]
    metadata: Option<Annotated<'a>>,
}

#[derive(Deserialize)]
struct Annotated<'a> {
    #[serde(borrow)]
    annotations: Option<BTreeMap<Text<'a>, &'a RawValue>>,
}

/// The text of an object with a mark in place of each value of `binaryData`, and of the copy
/// that `kubectl apply` keeps of it all; none where it has no such values. All else stays
/// byte for byte.
///
/// It is looked at once, however long it is: a component is most of what an agent lists.
pub(crate) fn without_payload(json: &str) -> Option<String> {
    // Most have none. Only what is escaped could be the word in disguise.
    if !json.contains("\"binaryData\"") && !json.contains('\\') {
        return None;
    }
    let carrier: Carrier<'_> = serde_json::from_str(json).ok()?;
    let data = carrier.binary_data?;
    let annotations = carrier.metadata.and_then(|metadata| metadata.annotations);
    let annotations = annotations.iter().flatten();
    let copies = annotations.filter(|(key, _)| key.0 == LAST_APPLIED);
    let mut long: Vec<&str> = data.values().map(|value| value.get()).collect();
    long.extend(copies.map(|(_, value)| value.get()));
    // They are slices of the text, which is gone through once.
    long.sort_by_key(|value| value.as_ptr());
    let (mut short, mut rest) = (String::new(), json);
    for value in long {
        let Some(mark) = mark_of(value) else {
            continue;
        };
        let start = (value.as_ptr() as usize).checked_sub(rest.as_ptr() as usize)?;
        short.push_str(rest.get(..start)?);
        short.push('"');
        short.push_str(&mark);
        short.push('"');
        rest = rest.get(start + value.len()..)?;
    }
    short.push_str(rest);
    Some(short)
}

/// The mark of the text that a JSON value is; none where it is another value.
fn mark_of(value: &str) -> Option<String> {
    let text = value.strip_prefix('"')?.strip_suffix('"')?;
    if !text.contains('\\') {
        return Some(mark(text));
    }
    let text: String = serde_json::from_str(value).ok()?;
    Some(mark(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With `A`, `B` and `C` for the marks of three texts, and their words for these.
    fn check(json: &str, expected: Option<&str>) {
        let marks = [("A", "first"), ("B", "sec/ond"), ("C", "third")];
        let expected = expected.map(|text| {
            let filled = |text: String, (name, of): &(&str, &str)| {
                text.replace(&format!("\"{name}\""), &format!("\"{}\"", mark(of)))
            };
            marks.iter().fold(text.to_owned(), filled)
        });
        assert_eq!(without_payload(json), expected, "{json}");
    }

    #[test]
    fn marks_stand_for_what_is_long_and_all_else_stays() {
        check(
            r#"{"binaryData":{"a":"first", "b" : "sec\/ond"},"n":1.50,"metadata":{"name":"x"}}"#,
            Some(r#"{"binaryData":{"a":"A", "b" : "B"},"n":1.50,"metadata":{"name":"x"}}"#),
        );
        // However it is written, and wherever the copy stands.
        check(
            r#"{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"third","x":"first"}},"binaryD\u0061ta":{"b":"sec/ond","a":"f\u0069rst","c":null}}"#,
            Some(
                r#"{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"C","x":"first"}},"binaryD\u0061ta":{"b":"B","a":"A","c":null}}"#,
            ),
        );
    }

    #[test]
    fn what_has_no_payload_is_left_alone() {
        for json in [
            r#"{"metadata":{"name":"x","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"third"}}}"#,
            r#"{"metadata":{"name":"x"},"data":{"\"binaryData\"":"first"}}"#,
            r#"{"metadata":{"name":"x"},"binaryData":null}"#,
            r#"{"metadata":{"name":"x"},"binaryData":"first"}"#,
            r#"{"binaryData":{"a":"first"}"#,
        ] {
            check(json, None);
        }
    }
}
