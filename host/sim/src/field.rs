//! Field errors: what a validation says about one field, in the server's words.
//!
//! A validation walks an object with a [`Path`] and pushes [`FieldError`]s into
//! an [`Errors`] list. The list becomes the `details.causes` and the message of
//! an `Invalid` Status.

mod repeated;

use std::fmt;

use indexmap::IndexSet;
use serde_json::{Value, json};

pub(crate) use self::repeated::Repeated;

/// Where a value sits in an object, as a chain of borrowed segments.
///
/// Walking down allocates nothing; the text is made only when an error is.
#[derive(Debug, Clone, Copy)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    segment: Segment<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Segment<'a> {
    Empty,
    Field(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    /// The object itself; its text is empty.
    pub const ROOT: Path<'static> = Path {
        parent: None,
        segment: Segment::Empty,
    };

    /// A path of one field.
    #[must_use]
    pub const fn new(field: &'a str) -> Self {
        Path {
            parent: None,
            segment: Segment::Field(field),
        }
    }

    /// The field `name` of the value here; `name` may itself hold dots.
    #[must_use]
    pub const fn child<'b>(&'b self, name: &'b str) -> Path<'b> {
        Path {
            parent: Some(self),
            segment: Segment::Field(name),
        }
    }

    /// The list item at `index`.
    #[must_use]
    pub const fn index<'b>(&'b self, index: usize) -> Path<'b> {
        Path {
            parent: Some(self),
            segment: Segment::Index(index),
        }
    }

    /// The map entry `key`.
    #[must_use]
    pub const fn key<'b>(&'b self, key: &'b str) -> Path<'b> {
        Path {
            parent: Some(self),
            segment: Segment::Key(key),
        }
    }

    fn write(&self, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.write(out);
        }
        match self.segment {
            Segment::Empty => {}
            Segment::Field(name) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            Segment::Index(index) => out.push_str(&format!("[{index}]")),
            Segment::Key(key) => {
                out.push('[');
                out.push_str(key);
                out.push(']');
            }
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(&mut text);
        f.write_str(&text)
    }
}

/// What is wrong with a field, as the API's `CauseType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorType {
    /// A value that refers to something absent.
    NotFound,
    /// A value that must be given.
    Required,
    /// A value that must be unique.
    Duplicate,
    /// A malformed value.
    Invalid,
    /// A value of another type than the schema's.
    TypeInvalid,
    /// A value outside an enumeration.
    NotSupported,
    /// A well-formed value that may not be given here.
    Forbidden,
    /// A text that is too long.
    TooLong,
    /// A text that is too short.
    TooShort,
    /// A list with too many items.
    TooMany,
    /// A list with too few items.
    TooFew,
    /// A failure of the server.
    Internal,
}

impl ErrorType {
    /// The `reason` of the cause.
    pub const fn reason(self) -> &'static str {
        match self {
            ErrorType::NotFound => "FieldValueNotFound",
            ErrorType::Required => "FieldValueRequired",
            ErrorType::Duplicate => "FieldValueDuplicate",
            ErrorType::Invalid => "FieldValueInvalid",
            ErrorType::TypeInvalid => "FieldValueTypeInvalid",
            ErrorType::NotSupported => "FieldValueNotSupported",
            ErrorType::Forbidden => "FieldValueForbidden",
            ErrorType::TooLong => "FieldValueTooLong",
            ErrorType::TooShort => "FieldValueTooShort",
            ErrorType::TooMany => "FieldValueTooMany",
            ErrorType::TooFew => "FieldValueTooFew",
            ErrorType::Internal => "InternalError",
        }
    }

    /// The words the message starts with.
    pub const fn words(self) -> &'static str {
        match self {
            ErrorType::NotFound => "Not found",
            ErrorType::Required => "Required value",
            ErrorType::Duplicate => "Duplicate value",
            ErrorType::Invalid | ErrorType::TypeInvalid => "Invalid value",
            ErrorType::NotSupported => "Unsupported value",
            ErrorType::Forbidden => "Forbidden",
            ErrorType::TooLong => "Too long",
            ErrorType::TooShort => "Too short",
            ErrorType::TooMany => "Too many",
            ErrorType::TooFew => "Too few",
            ErrorType::Internal => "Internal error",
        }
    }
}

/// One thing wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// What is wrong.
    pub kind: ErrorType,
    /// The path of the field, as in `spec.ports[0].name`.
    pub field: String,
    /// The offending value as it is printed, where the kind of error prints it.
    pub value: Option<String>,
    /// The explanation; may be empty.
    pub detail: String,
}

impl FieldError {
    fn new(
        kind: ErrorType,
        path: &Path<'_>,
        value: Option<String>,
        detail: impl Into<String>,
    ) -> Self {
        FieldError {
            kind,
            field: path.to_string(),
            value,
            detail: detail.into(),
        }
    }

    /// A value that must be given.
    pub fn required(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Required, path, None, detail)
    }

    /// A malformed value.
    pub fn invalid(path: &Path<'_>, value: &Value, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Invalid, path, Some(printed(value)), detail)
    }

    /// A malformed text; spares the caller a [`Value`].
    pub fn invalid_str(path: &Path<'_>, value: &str, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Invalid, path, Some(quoted(value)), detail)
    }

    /// A value that cannot be so, and is too large to be shown.
    pub fn invalid_unshown(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Invalid, path, None, detail)
    }

    /// A value of another type than the schema's.
    pub fn type_invalid(path: &Path<'_>, value: &Value, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::TypeInvalid, path, Some(printed(value)), detail)
    }

    /// A value that refers to something absent.
    pub fn not_found(path: &Path<'_>, value: &Value) -> Self {
        Self::new(ErrorType::NotFound, path, Some(printed(value)), "")
    }

    /// A value that must be unique.
    pub fn duplicate(path: &Path<'_>, value: &Value) -> Self {
        Self::new(ErrorType::Duplicate, path, Some(printed(value)), "")
    }

    /// A value outside the `supported` ones, which are named in the given order.
    pub fn not_supported<S: AsRef<str>>(path: &Path<'_>, value: &Value, supported: &[S]) -> Self {
        let names: Vec<String> = supported.iter().map(|s| quoted(s.as_ref())).collect();
        let detail = if names.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", names.join(", "))
        };
        Self::new(ErrorType::NotSupported, path, Some(printed(value)), detail)
    }

    /// A well-formed value that may not be given here.
    pub fn forbidden(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Forbidden, path, None, detail)
    }

    /// A text of more than `limit` bytes.
    pub fn too_long(path: &Path<'_>, limit: usize) -> Self {
        let bytes = if limit == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {limit} {bytes}");
        Self::new(ErrorType::TooLong, path, None, detail)
    }

    /// A list of `actual` items where `limit` are allowed.
    pub fn too_many(path: &Path<'_>, actual: usize, limit: usize) -> Self {
        let items = if limit == 1 { "item" } else { "items" };
        let detail = format!("must have at most {limit} {items}");
        Self::new(ErrorType::TooMany, path, Some(actual.to_string()), detail)
    }

    /// A failure of the server itself.
    pub fn internal(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Internal, path, None, detail)
    }

    /// The message without the field: `Invalid value: "x": must be …`.
    pub fn body(&self) -> String {
        let mut text = String::from(self.kind.words());
        if let Some(value) = &self.value {
            text.push_str(": ");
            text.push_str(value);
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }

    /// The entry of `details.causes`.
    pub fn cause(&self) -> Value {
        json!({"reason": self.kind.reason(), "message": self.body(), "field": self.field})
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// All that is wrong with an object, in the order it was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Errors(Vec<FieldError>);

impl Errors {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one error.
    pub fn push(&mut self, error: FieldError) {
        self.0.push(error);
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many errors there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The errors in order.
    pub fn iter(&self) -> std::slice::Iter<'_, FieldError> {
        self.0.iter()
    }

    /// Keeps only the errors that `keep` says yes to.
    pub fn retain(&mut self, keep: impl FnMut(&FieldError) -> bool) {
        self.0.retain(keep);
    }

    /// The `details.causes` of the Status.
    pub fn causes(&self) -> Vec<Value> {
        self.0.iter().map(FieldError::cause).collect()
    }

    /// One message of all errors: repeated ones once, several in brackets.
    pub fn aggregate(&self) -> String {
        let texts: IndexSet<String> = self.0.iter().map(FieldError::to_string).collect();
        let texts: Vec<String> = texts.into_iter().collect();
        match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        }
    }

    /// The message of an `Invalid` Status for the object `name` of `kind`,
    /// which for a kind in a group is `Kind.group`.
    pub fn message(&self, kind: &str, name: &str) -> String {
        if self.0.is_empty() {
            return format!("{kind} {} is invalid", quoted(name));
        }
        format!("{kind} {} is invalid: {}", quoted(name), self.aggregate())
    }
}

impl Extend<FieldError> for Errors {
    fn extend<I: IntoIterator<Item = FieldError>>(&mut self, errors: I) {
        self.0.extend(errors);
    }
}

impl IntoIterator for Errors {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// A value as the server prints it in a message: texts quoted, numbers and
/// booleans bare, the rest as JSON.
pub fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        other => escape_html(&other.to_string()),
    }
}

/// A value as JSON, as Go encodes it.
pub(crate) fn escaped_json(value: &Value) -> String {
    escape_html(&value.to_string())
}

/// A struct as JSON, as Go encodes it: fields in their order, not sorted.
pub(crate) fn go_json(value: &impl serde::Serialize) -> String {
    // Nothing that is written so can fail to be.
    escape_html(&serde_json::to_string(value).unwrap_or_default())
}

/// Go's JSON encoder escapes what could end a script element or a line of one, and so
/// does the server inside messages.
fn escape_html(text: &str) -> String {
    const ESCAPED: [char; 5] = ['<', '>', '&', '\u{2028}', '\u{2029}'];
    if !text.contains(ESCAPED) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if ESCAPED.contains(&letter) {
            out.push_str(&format!("\\u{:04x}", u32::from(letter)));
        } else {
            out.push(letter);
        }
    }
    out
}

/// A text in double quotes, escaped as Go's `%q` does.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                out.push_str(&format!("\\x{:02x}", c as u32));
            }
            c if c.is_control() || c == '\u{feff}' || (c != ' ' && c.is_whitespace()) => {
                out.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_as_the_server_writes_them() {
        let spec = Path::new("spec");
        let ports = spec.child("ports");
        let port = ports.index(2);
        let labels = spec.child("limits");
        assert_eq!(port.child("name").to_string(), "spec.ports[2].name");
        assert_eq!(labels.key("cpu").to_string(), "spec.limits[cpu]");
        assert_eq!(Path::ROOT.child("spec").to_string(), "spec");
        assert_eq!(Path::ROOT.index(0).to_string(), "[0]");
    }

    #[test]
    fn bodies() {
        let path = Path::new("spec.x");
        let check = |error: FieldError, body: &str| assert_eq!(error.body(), body);
        check(FieldError::required(&path, ""), "Required value");
        check(
            FieldError::required(&path, "give it"),
            "Required value: give it",
        );
        check(
            FieldError::invalid(&path, &json!("a\"b"), "bad"),
            r#"Invalid value: "a\"b": bad"#,
        );
        check(
            FieldError::invalid(&path, &json!(3), "bad"),
            "Invalid value: 3: bad",
        );
        check(
            FieldError::invalid(&path, &json!({"a": "<"}), "bad"),
            r#"Invalid value: {"a":"\u003c"}: bad"#,
        );
        check(
            FieldError::not_supported(&path, &json!("A"), &["B", "C"]),
            r#"Unsupported value: "A": supported values: "B", "C""#,
        );
        check(
            FieldError::too_long(&path, 63),
            "Too long: may not be more than 63 bytes",
        );
        check(
            FieldError::too_many(&path, 9, 8),
            "Too many: 9: must have at most 8 items",
        );
        check(
            FieldError::duplicate(&path, &json!("a")),
            r#"Duplicate value: "a""#,
        );
    }

    #[test]
    fn messages_join_and_drop_repeats() {
        let mut errors = Errors::new();
        let path = Path::new("a");
        errors.push(FieldError::required(&path, ""));
        assert_eq!(
            errors.message("Secret", "x"),
            r#"Secret "x" is invalid: a: Required value"#
        );
        errors.push(FieldError::required(&path, ""));
        errors.push(FieldError::forbidden(&path, "no"));
        assert_eq!(
            errors.message("Secret", "x"),
            r#"Secret "x" is invalid: [a: Required value, a: Forbidden: no]"#
        );
        assert_eq!(errors.causes().len(), 3);
    }
}
