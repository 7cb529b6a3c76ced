//! How the server orders, compares and prints JSON scalars and containers.
//!
//! Path elements of sets and keyed lists carry values, so the order of a field
//! set, its encoding and the text of a conflict all rest on these rules. They
//! differ from those of `serde_json`: a float equals the integer of the same
//! size, and printing follows Go.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// The total order of values: numbers, strings, booleans, lists, maps, null.
///
/// Integers and floats are compared by size, whatever their notation.
pub(crate) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => compare_slices(a.iter(), b.iter(), compare),
        (Value::Object(a), Value::Object(b)) => {
            let (a, b) = (sorted(a), sorted(b));
            compare_slices(a.iter(), b.iter(), |(ka, va), (kb, vb)| {
                ka.cmp(kb).then_with(|| compare(va, vb))
            })
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

/// Whether two values are the same to the server.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}

/// A value as it stands in the text of a path: strings quoted, numbers as Go
/// prints them.
pub(crate) fn display(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => match integer(n) {
            Some(i) => i.to_string(),
            None => go_float(n.as_f64().unwrap_or_default()),
        },
        Value::String(s) => quote(s),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(display).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(map) => sorted(map)
            .into_iter()
            .map(|(key, value)| format!("{key}={}", display(value)))
            .collect(),
    }
}

/// The integer that the server sees in a number: anything written without
/// point or exponent that fits 64 signed bits.
pub(crate) fn integer(n: &Number) -> Option<i64> {
    n.as_i64()
}

/// Go's `%v` of a float: the shortest digits, an exponent of two digits below
/// 1e-4 and from 1e6.
pub(crate) fn go_float(f: f64) -> String {
    let text = format!("{f:e}");
    let Some((digits, exponent)) = text.split_once('e') else {
        return text;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return format!("{f}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Go's `%q`: a double-quoted string with Go's escapes.
pub(crate) fn quote(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{07}' => out.push_str("\\a"),
            '\u{08}' => out.push_str("\\b"),
            '\u{0c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{0b}' => out.push_str("\\v"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                out.push_str(&format!("\\x{:02x}", c as u32));
            }
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => {
            let (a, b) = (
                a.as_f64().unwrap_or_default(),
                b.as_f64().unwrap_or_default(),
            );
            a.partial_cmp(&b).unwrap_or(Ordering::Equal)
        }
    }
}

fn compare_slices<T>(
    mut a: impl Iterator<Item = T>,
    mut b: impl Iterator<Item = T>,
    by: impl Fn(T, T) -> Ordering,
) -> Ordering {
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => match by(a, b) {
                Ordering::Equal => {}
                other => return other,
            },
        }
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// Entries by key, whatever map type `serde_json` was built with.
pub(crate) fn sorted(map: &serde_json::Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by_key(|(key, _)| *key);
    entries
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn order_puts_kinds_in_turn_and_numbers_by_size() {
        let ascending = [
            json!(-1),
            json!(0.5),
            json!(80),
            json!(443),
            json!("10"),
            json!("9"),
            json!(false),
            json!(true),
            json!([]),
            json!([1]),
            json!([1, 2]),
            json!({}),
            json!({"a": 1}),
            json!({"b": 0}),
            json!(null),
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j), "{a} against {b}");
            }
        }
    }

    #[test]
    fn a_float_equals_the_integer_of_its_size() {
        assert!(equal(&json!({"a": [80.0]}), &json!({"a": [80]})));
        assert!(!equal(&json!(80), &json!("80")));
        assert!(!equal(&json!({"a": null}), &json!({})));
    }

    #[test]
    fn values_print_as_go_prints_them() {
        for (value, text) in [
            (json!(8080), "8080"),
            (json!(8080.0), "8080"),
            (json!(123_456_789.0), "1.23456789e+08"),
            (json!(0.25), "0.25"),
            (json!(0.00001), "1e-05"),
            (json!("a\"b\n"), r#""a\"b\n""#),
            (json!("é"), "\"é\""),
            (json!(true), "true"),
            (json!(null), "null"),
        ] {
            assert_eq!(display(&value), text);
        }
    }
}
