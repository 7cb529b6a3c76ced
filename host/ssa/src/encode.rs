//! JSON text exactly as the server's encoder writes it inside field sets.

use serde_json::{Number, Value};

use crate::value::{integer, sorted};

/// A string, with only what JSON demands escaped. Keys are written this way.
pub(crate) fn string(out: &mut String, s: &str) {
    escaped(out, s, false);
}

/// A value. Strings also have `<`, `>`, `&` and the two Unicode line ends
/// escaped, as Go does for the sake of HTML.
pub(crate) fn value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(n) => number(out, n),
        Value::String(s) => escaped(out, s, true),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                self::value(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (i, (key, item)) in sorted(map).into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                escaped(out, key, true);
                out.push(':');
                self::value(out, item);
            }
            out.push('}');
        }
    }
}

fn number(out: &mut String, n: &Number) {
    let Some(f) = n.as_f64().filter(|_| integer(n).is_none()) else {
        out.push_str(&n.to_string());
        return;
    };
    let size = f.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{f:e}");
        match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                out.push_str(digits);
                out.push_str("e+");
                out.push_str(exponent);
            }
            _ => out.push_str(&text),
        }
    } else {
        out.push_str(&f.to_string());
    }
}

fn escaped(out: &mut String, s: &str, html: bool) {
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20
                || (html && matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}')) =>
            {
                out.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_as_by_the_server() {
        for (input, expected) in [
            (json!(80), "80"),
            (json!(80.0), "80"),
            (json!(0.1), "0.1"),
            (json!(1e21), "1e+21"),
            (json!(1e-7), "1e-7"),
            (json!("a<b"), r#""a\u003cb""#),
            (json!("\u{1}\n"), r#""\u0001\n""#),
            (
                json!({"b": [true, null], "a": 1}),
                r#"{"a":1,"b":[true,null]}"#,
            ),
        ] {
            let mut out = String::new();
            value(&mut out, &input);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn keys_keep_html_characters() {
        let mut out = String::new();
        string(&mut out, "a<\"b");
        assert_eq!(out, r#""a<\"b""#);
    }
}
