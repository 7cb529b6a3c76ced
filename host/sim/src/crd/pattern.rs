//! Regular expressions of schemas, in the syntax that Go and this crate's engine
//! share.

use regex::{Regex, RegexBuilder};

/// A compiled pattern, with the text it was made from.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    text: String,
    regex: Regex,
}

/// A pattern may compile to this many bytes.
const SIZE_MAX: usize = 1 << 20;

/// Compiles a pattern.
///
/// # Errors
///
/// With the reason why it is none.
pub(super) fn compile(text: &str) -> Result<Pattern, String> {
    let regex = RegexBuilder::new(text)
        .size_limit(SIZE_MAX)
        .build()
        .map_err(|error| error.to_string())?;
    Ok(Pattern {
        text: text.to_owned(),
        regex,
    })
}

impl Pattern {
    /// Whether the pattern matches somewhere in `value`.
    pub(super) fn matches(&self, value: &str) -> bool {
        self.regex.is_match(value)
    }

    /// The text of the pattern.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}
