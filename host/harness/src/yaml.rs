//! Values as the YAML that people read and write.

use serde_json::Value;

/// A value over as many lines as it takes, each ended.
pub(crate) fn block(value: &Value) -> String {
    let mut text = match value {
        // Without anything in it, the other form is the only one.
        Value::Object(fields) if fields.is_empty() => flow(value),
        Value::Array(items) if items.is_empty() => flow(value),
        _ => serde_saphyr::to_string(value).unwrap_or_else(|_| flow(value)),
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// A value on one line, which may stand anywhere.
pub(crate) fn flow(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(key, value)| format!("{}: {}", text(key), flow(value)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::String(string) => text(string),
        other => other.to_string(),
    }
}

/// A text, quoted unless it plainly is one.
fn text(text: &str) -> String {
    let word = |c: char| c.is_ascii_alphanumeric() || "-._/".contains(c);
    // What reads as a number, a boolean or nothing in any YAML needs quotes.
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let reserved = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    let plain =
        starts && text.chars().all(word) && !reserved.contains(&text.to_lowercase().as_str());
    if plain {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_reads_back() {
        for value in [
            json!({"a": {"b": ["1", 1, true, "true", null, "null", "No", ""]}, "quotas.statcan.gc.ca/gpu": "4Gi"}),
            json!([
                "368G",
                "0x10",
                "1e3",
                "~",
                "- a",
                "a: b",
                "a #b",
                "{",
                "line\nbreak",
                "é"
            ]),
            json!({"empty": {}, "none": []}),
            json!({}),
            json!("100"),
        ] {
            for text in [block(&value), flow(&value)] {
                let read: Value = serde_saphyr::from_str(&text).unwrap();
                assert_eq!(read, value, "{text}");
            }
        }
    }

    #[test]
    fn flow_is_for_people() {
        let value = json!({"pods": "100", "spec": [{"name": "a.b/c"}, 2]});
        assert_eq!(flow(&value), r#"{pods: "100", spec: [{name: a.b/c}, 2]}"#);
    }
}
