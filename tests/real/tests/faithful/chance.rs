//! What the real server says, leaves out or orders by chance: it goes through maps in any
//! order, and through time. Both servers' answers lose it before they are compared.

use std::borrow::Cow;

use serde_json::{Value, json};

/// The text without what the real server says, leaves out or orders by chance: it goes
/// through a map in any order, and stops at the first field that its schema does not have.
pub(crate) fn without_chance(text: &str) -> Cow<'_, str> {
    const UNTYPED: &str = "failed to create typed patch object (";
    const UNDECLARED: &str = "field not declared in schema";
    const SEVERAL: &str = "errors:\n";
    match text.split_once("): ") {
        Some((before, after)) if before.starts_with(UNTYPED) && after.contains(UNDECLARED) => {
            format!("{before}): <the place>: {UNDECLARED}").into()
        }
        Some((before, after)) if before.starts_with(UNTYPED) && after.starts_with(SEVERAL) => {
            let mut errors: Vec<_> = after.lines().skip(1).collect();
            errors.sort_unstable();
            format!("{before}): {SEVERAL}{}", errors.join("\n")).into()
        }
        _ => text.into(),
    }
}

/// The text with the JSON in it in the order of its keys, its owners in any order, and
/// without versions: the real server writes the fields of built-in kinds in the order of
/// its types.
pub(crate) fn sorted_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['{', '[', '"']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let mut values = serde_json::Deserializer::from_str(from).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                rest = &from[values.byte_offset()..];
                match value {
                    // JSON in quotes.
                    Value::String(inner) if inner.starts_with('{') => {
                        out.push_str(&json!(sorted_json(&inner)).to_string());
                    }
                    Value::String(_) => out.push_str(&from[..values.byte_offset()]),
                    mut value => {
                        hide_chance(&mut value);
                        out.push_str(&value.to_string());
                    }
                }
            }
            _ => {
                out.push_str(&from[..1]);
                rest = &from[1..];
            }
        }
    }
    out + rest
}

/// Takes away what the real server orders by time, and versions, at any depth.
pub(crate) fn hide_chance(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                if key == "managedFields" {
                    order_of_owners(value);
                }
                match value {
                    Value::String(version) if key == "resourceVersion" => {
                        *version = "<some version>".to_owned();
                    }
                    other => hide_chance(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hide_chance),
        _ => {}
    }
}

/// Owners are listed by time, and whether a second passes between two requests is
/// chance. That a server keeps its own order is checked here; then the order is
/// taken away.
pub(crate) fn order_of_owners(entries: &mut Value) {
    let Value::Array(entries) = entries else {
        return;
    };
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let by_time = |entry: &Value| {
        (
            text(entry, "operation"),
            text(entry, "time"),
            text(entry, "manager"),
            text(entry, "apiVersion"),
            text(entry, "subresource"),
        )
    };
    let ordered = entries.is_sorted_by_key(by_time);
    entries.sort_by_key(|entry| {
        (
            text(entry, "operation"),
            text(entry, "manager"),
            text(entry, "apiVersion"),
            text(entry, "subresource"),
        )
    });
    if !ordered {
        entries.push(json!("not ordered by operation, time and manager"));
    }
}

/// In which order a schema or a map is gone through is chance in the
/// real server; other complaints of built-in kinds keep their order.
pub(crate) fn sort_complaints(status: &mut Value) {
    let text = |pointer: &str| {
        let text = status.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default()
    };
    let group = text("/details/group");
    let by_schema = group.ends_with(".example.com") || group == DEFINITIONS;
    let by_chance = by_schema || OF_MAPS.contains(&text("/details/kind"));
    if !by_chance && !has_labels(status) {
        return;
    }
    if sort_causes(status) > 1 {
        // The message says the same.
        status["message"] = json!("<the causes>");
    }
}

/// Whether several labels or annotations are complained about, which are a map, too.
fn has_labels(status: &Value) -> bool {
    let causes = status.pointer("/details/causes").and_then(Value::as_array);
    let of_a_map = |cause: &&Value| {
        matches!(
            cause["field"].as_str(),
            Some("metadata.labels" | "metadata.annotations")
        )
    };
    causes.is_some_and(|causes| causes.iter().filter(of_a_map).count() > 1)
}

/// Sorts the causes of a refusal; the answer is how many there are.
pub(crate) fn sort_causes(status: &mut Value) -> usize {
    let causes = status
        .pointer_mut("/details/causes")
        .and_then(Value::as_array_mut);
    causes.map_or(0, |causes| {
        causes.sort_by_key(ToString::to_string);
        causes.len()
    })
}

/// Kinds that hold maps, of texts or quantities, and little else.
const OF_MAPS: [&str; 4] = ["ConfigMap", "Secret", "ResourceQuota", "LimitRange"];

const DEFINITIONS: &str = "apiextensions.k8s.io";

#[test]
fn what_is_wrong_with_a_map_is_told_in_any_order() {
    let text = |errors: [&str; 2]| {
        let errors = errors.join("\n");
        format!("failed to create typed patch object (/b; a/v1, Kind=B): errors:\n{errors}")
    };
    let (one, other) = ("  .spec.a: expected string, got 1", "  .spec.b: duplicate");
    let found = text([other, one]);
    assert_eq!(without_chance(&found), text([one, other]));
    let one = "failed to create typed patch object (/b; a/v1, Kind=B): .spec: expected map";
    assert_eq!(without_chance(one), one);
}
