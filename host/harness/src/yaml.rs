//! Values as the YAML that people read and write, and what is wrong with theirs.

use serde_json::Value;
use serde_saphyr::{DefaultMessageFormatter, Localizer, Location, MessageFormatter, SnippetMode};
use std::borrow::Cow;
use std::path::Path;

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

/// What is wrong with a text: `file:line:column: what`, and below it the line with a
/// mark. Place and message are there once.
pub(crate) fn problem(path: &Path, text: &str, error: &serde_saphyr::Error) -> String {
    let message = error.render_with_options(serde_saphyr::render_options! {
        formatter: &Placeless,
        snippets: SnippetMode::Off,
    });
    // Which is for who writes programs.
    let message = message.replace(", set DuplicateKeyPolicy in Options if acceptable", "");
    let message = message.trim_end();
    let path = path.display();
    let Some(at) = error.location() else {
        return format!("{path}: {message}");
    };
    let (number, column) = (at.line(), at.column());
    let index = usize::try_from(number).unwrap_or_default().wrapping_sub(1);
    let Some(line) = text.lines().nth(index) else {
        return format!("{path}:{number}:{column}: {message}");
    };
    // Tabs stay, so that the mark stands where the line has its fault.
    let before = usize::try_from(column)
        .unwrap_or_default()
        .saturating_sub(1);
    let indent: String = line
        .chars()
        .take(before)
        .map(|c| if c == '\t' { '\t' } else { ' ' })
        .collect();
    let margin = " ".repeat(number.to_string().len());
    format!(
        "{path}:{number}:{column}: {message}\n{number} | {line}\n{margin} | {indent}^",
        line = line.trim_end()
    )
}

/// Messages without the place, which is told beside them.
struct Placeless;

impl MessageFormatter for Placeless {
    fn localizer(&self) -> &dyn Localizer {
        self
    }

    fn format_message<'a>(&self, error: &'a serde_saphyr::Error) -> Cow<'a, str> {
        DefaultMessageFormatter.format_message(error)
    }
}

impl Localizer for Placeless {
    fn attach_location<'a>(&self, base: Cow<'a, str>, _: Location) -> Cow<'a, str> {
        base
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_problem_is_told_once_with_its_place() {
        let text = "a: 1\nb:\n  c: [\n";
        let error = serde_saphyr::from_str::<Value>(text).unwrap_err();
        assert_eq!(
            problem(Path::new("x.yaml"), text, &error),
            "x.yaml:3:6: unclosed bracket '['\n3 |   c: [\n  |      ^"
        );
    }

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
