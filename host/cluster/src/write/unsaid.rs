//! What is not said of Secrets: the API server's refusals quote what they refuse.

use crate::resource::Resource;
use crate::status::Status;

/// What stands before a value of any form, up to the end of the text.
const GOT: &str = ", got ";
/// What stands before a value, as in `Invalid value: "a": must be b`.
const VALUE: &str = " value: ";
const HIDDEN: &str = "(not shown)";

/// Takes values out of a refusal, where it is about a Secret.
pub(super) fn without_values(resource: &Resource, mut status: Status) -> Status {
    if resource.kind.is_secret() {
        status.message = cut(&status.message);
        for cause in &mut status.details.causes {
            cause.message = cut(&cause.message);
        }
    }
    status
}

fn cut(text: &str) -> String {
    let (mut rest, got) = match text.split_once(GOT) {
        Some((before, _)) => (before, [GOT, HIDDEN].concat()),
        None => (text, String::new()),
    };
    let mut shown = String::new();
    while let Some((before, value)) = rest.split_once(VALUE) {
        // What is lacking has no value, and its field and the reason follow.
        let is_lacking = before.ends_with("Required");
        shown.extend([before, VALUE]);
        rest = value;
        if !is_lacking {
            shown += HIDDEN;
            rest = after(value);
        }
    }
    shown + rest + &got
}

/// What follows a value. Where one without quotes ends, nobody can tell.
fn after(text: &str) -> &str {
    let Some(quoted) = text.strip_prefix('"') else {
        return "";
    };
    let mut escaped = false;
    for (at, char) in quoted.char_indices() {
        match char {
            '"' if !escaped => return quoted.get(at + 1..).unwrap_or_default(),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::GroupVersionKind;
    use serde_json::json;

    fn told(kind: &str, message: &str) -> Status {
        let resource = Resource {
            kind: GroupVersionKind::new("", "v1", kind),
            plural: "any".into(),
            namespaced: true,
        };
        let causes = [json!({"reason": "FieldValueInvalid", "message": message, "field": "a"})];
        let body = json!({"message": message, "details": {"causes": causes}}).to_string();
        without_values(&resource, Status::parse(422, body.as_bytes()))
    }

    #[test]
    fn values_of_secrets_are_not_told() {
        for (message, expected) in [
            (
                ".immutable: expected boolean, got &{map[password:c4n4ry, got it\nx]}",
                ".immutable: expected boolean, got (not shown)",
            ),
            (
                r#"Secret "one" is invalid: metadata.labels: Invalid value: "c4n4ry \": x": a valid label must be y"#,
                r#"Secret "one" is invalid: metadata.labels: Invalid value: (not shown): a valid label must be y"#,
            ),
            (
                r#"[type: Unsupported value: "c4n4ry": supported values: "a", b: Duplicate value: {"a":"x: c4n4ry"}: x]"#,
                r#"[type: Unsupported value: (not shown): supported values: "a", b: Duplicate value: (not shown)"#,
            ),
            (
                r#"[metadata.name: Required value: name is required, type: Invalid value: "c4n4ry": x]"#,
                "[metadata.name: Required value: name is required, type: Invalid value: (not shown): x]",
            ),
            (r#"Invalid value: "c4n4ry"#, "Invalid value: (not shown)"),
            ("Invalid value: c4n4ry", "Invalid value: (not shown)"),
            (
                r#"strict decoding error: unknown field "dat""#,
                r#"strict decoding error: unknown field "dat""#,
            ),
        ] {
            let status = told("Secret", message);
            assert_eq!(status.message, expected);
            assert_eq!(status.details.causes[0].message, expected);
            assert_eq!(told("ConfigMap", message).message, message);
        }
    }
}
