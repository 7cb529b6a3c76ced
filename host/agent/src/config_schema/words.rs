//! What does not fit a schema, in words for whoever wrote the configuration.

use super::MAX_LISTED;
use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

/// Settings that are told of where another is meant.
const MAX_KNOWN: usize = 20;

/// Bytes of a value that are repeated.
const MAX_SHOWN: usize = 100;

/// What does not fit, with the JSON Pointer of it. Where several forms are possible and
/// none fits, those are told of that have at least the type of the value.
pub(super) fn in_words(schema: &Value, error: &ValidationError<'_>) -> String {
    let path = error.instance_path().to_string();
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let named = unexpected.iter().take(MAX_LISTED).map(|name| {
                let name = name.replace('~', "~0").replace('/', "~1");
                format!("{path}/{name}: there is no such setting")
            });
            let named = named.collect::<Vec<_>>().join("; ");
            match known(schema, error) {
                None => named,
                Some(known) => format!("{named}; there are {known}"),
            }
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }
            if !context.is_empty() =>
        {
            of_forms(schema, error, context)
        }
        ValidationErrorKind::Type { kind } => {
            let mut types = Vec::new();
            add_types(kind, &mut types);
            of_types(error, &types)
        }
        _ => format!("{}: {error}", shown_path(&path)),
    }
}

/// The settings that there are where one is that there is not.
fn known(schema: &Value, error: &ValidationError<'_>) -> Option<String> {
    let path = error.schema_path().to_string();
    let (parent, _) = path.rsplit_once('/')?;
    let names = schema.pointer(parent)?.get("properties")?.as_object()?;
    let mut known: Vec<&str> = names.keys().take(MAX_KNOWN).map(String::as_str).collect();
    if names.len() > known.len() {
        known.push("others");
    }
    (!known.is_empty()).then(|| known.join(", "))
}

fn of_forms(
    schema: &Value,
    error: &ValidationError<'_>,
    forms: &[Vec<ValidationError<'_>>],
) -> String {
    let mut types = Vec::new();
    let mut others: Vec<String> = Vec::new();
    for complaints in forms {
        let of_type = complaints.iter().find_map(|complaint| {
            let is_here = complaint.instance_path() == error.instance_path();
            match complaint.kind() {
                ValidationErrorKind::Type { kind } if is_here => Some(kind),
                _ => None,
            }
        });
        match of_type {
            Some(kind) => add_types(kind, &mut types),
            None => {
                let words = complaints.iter().take(MAX_LISTED);
                let words = words.map(|complaint| in_words(schema, complaint));
                let words = words.collect::<Vec<_>>().join("; ");
                if !words.is_empty() && !others.contains(&words) {
                    others.push(words);
                }
            }
        }
    }
    match others.is_empty() {
        true => of_types(error, &types),
        false => others.join(", or "),
    }
}

fn of_types(error: &ValidationError<'_>, types: &[String]) -> String {
    let value: &Value = error.instance();
    let mut shown = value.to_string();
    if shown.len() > MAX_SHOWN {
        shown.truncate(shown.floor_char_boundary(MAX_SHOWN));
        shown.push('…');
    }
    let path = error.instance_path().to_string();
    let path = shown_path(&path);
    let types_in_words = types.join(" or ");
    // YAML reads what has no quotation marks as something else.
    let advice = match value {
        Value::Number(_) | Value::Bool(_) if types.iter().any(|name| name == "string") => {
            format!("; write it in quotation marks: \"{shown}\"")
        }
        _ => String::new(),
    };
    format!("{path}: {shown} is not of type {types_in_words}{advice}")
}

fn add_types(kind: &TypeKind, types: &mut Vec<String>) {
    let found: Vec<String> = match kind {
        TypeKind::Single(single) => vec![single.to_string()],
        TypeKind::Multiple(several) => several.iter().map(|one| one.to_string()).collect(),
    };
    for name in found {
        if !types.contains(&name) {
            types.push(name);
        }
    }
}

fn shown_path(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use serde_json::json;

    #[test]
    fn forms_are_told_of_by_what_they_lack() {
        let quantity = json!({"type": "string", "pattern": "^[0-9]+$"});
        let schema = json!({
            "type": "object",
            "properties": {
                "amount": {"anyOf": [quantity, {"type": "null"}]},
                "both": {"type": ["string", "boolean"]},
                "text": {"type": "string"},
                "deep": {"oneOf": [
                    {"type": "null"},
                    {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}},
                     "additionalProperties": false},
                ]},
                "never": {"anyOf": [{"const": 1}, {"const": 2}]},
            },
        });
        for (config, expected) in [
            (
                json!({"amount": 20}),
                "/amount: 20 is not of type string or null; write it in quotation marks: \"20\"",
            ),
            (
                json!({"amount": [20]}),
                "/amount: [20] is not of type string or null",
            ),
            (
                json!({"amount": "x"}),
                "/amount: \"x\" does not match \"^[0-9]+$\"",
            ),
            (json!({"both": 7}), "/both: 7 is not of type"),
            (
                json!({"text": true}),
                "/text: true is not of type string; write it in quotation marks: \"true\"",
            ),
            (
                json!({"deep": {"a": 1, "b": 2}}),
                "/deep/a: 1 is not of type string; write it",
            ),
            (
                json!({"deep": {"a": "1", "b": 2}}),
                "/deep/b: there is no such setting",
            ),
            (json!({"deep": {}}), "/deep: \"a\" is a required property"),
            (
                json!({"never": 3}),
                "/never: 1 was expected, or /never: 2 was expected",
            ),
        ] {
            let checked = check(schema.to_string().as_bytes(), config.to_string().as_bytes());
            let error = checked.unwrap_err().to_string();
            assert!(error.contains(expected), "{config}: {error}");
        }
        let long = json!({"text": vec!["ä"; 1_000]});
        let checked = check(schema.to_string().as_bytes(), long.to_string().as_bytes());
        assert!(checked.unwrap_err().to_string().len() < 250);
    }
}
