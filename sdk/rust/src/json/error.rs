//! Why a JSON text could not be read.

use std::fmt;

use serde::de::{Error, Expected, Unexpected};

/// Why a JSON text could not be read, and where.
///
/// ```text
/// /spec/owner/name: invalid type: number, expected a string
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    path: String,
    message: String,
}

impl JsonError {
    /// Where in the text, as a JSON Pointer; empty for all of it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong there.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The error of a part, seen from what it is a part of.
    pub(super) fn below(mut self, key: &str) -> Self {
        let mut path = crate::pointer::below("", key);
        path.push_str(&self.path);
        self.path = path;
        self
    }
}

impl Error for JsonError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self {
            path: String::new(),
            message: message.to_string(),
        }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!(
            "invalid type: {}, expected {expected}",
            Found(found)
        ))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!(
            "invalid value: {}, expected {expected}",
            Found(found)
        ))
    }
}

impl std::error::Error for JsonError {}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// What was found, in the words of JSON; numbers with a fraction without their
/// value, for the sake of size.
struct Found<'a>(Unexpected<'a>);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Unexpected::Bool(value) => f.write_str(if value { "true" } else { "false" }),
            Unexpected::Unsigned(value) => write!(f, "number {value}"),
            Unexpected::Signed(value) => write!(f, "number {value}"),
            Unexpected::Float(_) => f.write_str("number with a fraction"),
            Unexpected::Str(text) => write!(f, "string \"{text}\""),
            Unexpected::Unit | Unexpected::Option => f.write_str("null"),
            Unexpected::Seq => f.write_str("list"),
            Unexpected::Map => f.write_str("object"),
            Unexpected::Other(what) => f.write_str(what),
            _ => f.write_str("another value"),
        }
    }
}
