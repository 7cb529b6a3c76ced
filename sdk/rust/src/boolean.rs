//! Booleans in labels, as programs written in Go read them.

/// Reads a boolean as `strconv.ParseBool` of Go does, and so most controllers:
/// `1`, `t`, `T`, `TRUE`, `true` and `True`, and the same for false. Everything
/// else is none, `yes`, `tRUE` and the empty text included.
///
/// ```
/// use reeve_sdk::parse_bool;
///
/// assert_eq!(parse_bool("True"), Ok(true));
/// assert_eq!(parse_bool("0"), Ok(false));
/// assert!(parse_bool("yes").is_err());
/// ```
///
/// # Errors
///
/// When the text is none of these.
pub fn parse_bool(text: &str) -> Result<bool, NotABoolean> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err(NotABoolean),
    }
}

/// A text that is no boolean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a boolean: expected `true` or `false`")]
pub struct NotABoolean;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn just_the_twelve_spellings_of_go_are_booleans() {
        for text in ["1", "t", "T", "TRUE", "true", "True"] {
            assert_eq!(parse_bool(text), Ok(true), "{text}");
        }
        for text in ["0", "f", "F", "FALSE", "false", "False"] {
            assert_eq!(parse_bool(text), Ok(false), "{text}");
        }
        for text in ["", "yes", "tRUE", "on", " true", "true ", "00", "TRue", "2"] {
            assert_eq!(parse_bool(text), Err(NotABoolean), "{text:?}");
        }
    }
}
