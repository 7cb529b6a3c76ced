//! Why a call gave no outcome.

use std::fmt;

use crate::cluster::ReadError;

/// Why `reconcile` gave no outcome. Nothing is applied and nothing is deleted.
///
/// The text is for people: say what is wrong, where, and what to do about it.
///
/// `?` turns a [`ReadError`] into the failure that suits it, and an error of
/// `serde_json` into a terminal one. For all other errors say which it is, with
/// [`OrFail`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It may work later: run again with growing delays.
    #[error("{0}")]
    Retry(String),
    /// It cannot work until something that was read changes.
    #[error("{0}")]
    Terminal(String),
    /// Something that was looked for is not there yet. Not an error: run again
    /// when it changes.
    #[error("{0}")]
    NotReady(String),
}

impl Failure {
    /// It may work later.
    pub fn retry(text: impl Into<String>) -> Self {
        Self::Retry(text.into())
    }

    /// It cannot work until something that was read changes.
    pub fn terminal(text: impl Into<String>) -> Self {
        Self::Terminal(text.into())
    }

    /// Something that was looked for is not there yet.
    pub fn not_ready(text: impl Into<String>) -> Self {
        Self::NotReady(text.into())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::Terminal(error.to_string())
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        let text = error.to_string();
        match error {
            ReadError::NotSynced(_) => Self::NotReady(text),
            // A grant is no object that was read: only trying again notices it.
            ReadError::Forbidden(_) => Self::Retry(text),
            ReadError::Undeclared(_) | ReadError::Invalid(_) | ReadError::Malformed { .. } => {
                Self::Terminal(text)
            }
        }
    }
}

/// Turns what is missing or went wrong into a [`Failure`].
///
/// ```
/// use reeve_sdk::prelude::*;
///
/// fn replicas(text: &str) -> Result<u32, Failure> {
///     text.parse().or_terminal("annotation example.com/replicas")
/// }
/// assert_eq!(
///     replicas("two").unwrap_err().to_string(),
///     "annotation example.com/replicas: invalid digit found in string",
/// );
/// ```
pub trait OrFail<T> {
    /// The value, or [`Failure::Retry`] with this text in front of the cause.
    ///
    /// # Errors
    ///
    /// When there is no value.
    fn or_retry(self, what: impl fmt::Display) -> Result<T, Failure>;

    /// The value, or [`Failure::Terminal`] with this text in front of the cause.
    ///
    /// # Errors
    ///
    /// When there is no value.
    fn or_terminal(self, what: impl fmt::Display) -> Result<T, Failure>;

    /// The value, or [`Failure::NotReady`] with this text in front of the cause.
    ///
    /// # Errors
    ///
    /// When there is no value.
    fn or_not_ready(self, what: impl fmt::Display) -> Result<T, Failure>;
}

impl<T, E: fmt::Display> OrFail<T> for Result<T, E> {
    fn or_retry(self, what: impl fmt::Display) -> Result<T, Failure> {
        self.map_err(|error| Failure::Retry(format!("{what}: {error}")))
    }

    fn or_terminal(self, what: impl fmt::Display) -> Result<T, Failure> {
        self.map_err(|error| Failure::Terminal(format!("{what}: {error}")))
    }

    fn or_not_ready(self, what: impl fmt::Display) -> Result<T, Failure> {
        self.map_err(|error| Failure::NotReady(format!("{what}: {error}")))
    }
}

impl<T> OrFail<T> for Option<T> {
    fn or_retry(self, what: impl fmt::Display) -> Result<T, Failure> {
        self.ok_or_else(|| Failure::Retry(what.to_string()))
    }

    fn or_terminal(self, what: impl fmt::Display) -> Result<T, Failure> {
        self.ok_or_else(|| Failure::Terminal(what.to_string()))
    }

    fn or_not_ready(self, what: impl fmt::Display) -> Result<T, Failure> {
        self.ok_or_else(|| Failure::NotReady(what.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_errors_become_the_failure_that_suits_them() {
        let text = || "x".to_owned();
        for (error, failure) in [
            (ReadError::Forbidden(text()), Failure::retry("x")),
            (ReadError::NotSynced(text()), Failure::not_ready("x")),
            (ReadError::Undeclared(text()), Failure::terminal("x")),
            (ReadError::Invalid(text()), Failure::terminal("x")),
        ] {
            assert_eq!(Failure::from(error), failure);
        }
    }

    #[test]
    fn missing_values_become_failures() {
        let none: Option<u8> = None;
        assert_eq!(none.or_retry("x"), Err(Failure::retry("x")));
        assert_eq!(none.or_terminal("x"), Err(Failure::terminal("x")));
        assert_eq!(none.or_not_ready("x"), Err(Failure::not_ready("x")));
        assert_eq!(Some(1).or_retry("x"), Ok(1));

        let bad: Result<u8, &str> = Err("why");
        assert_eq!(bad.or_retry("x"), Err(Failure::retry("x: why")));
        assert_eq!(bad.or_terminal("x"), Err(Failure::terminal("x: why")));
        assert_eq!(bad.or_not_ready("x"), Err(Failure::not_ready("x: why")));
    }

    #[test]
    fn json_errors_are_terminal() {
        let parse = || -> Result<u8, Failure> { Ok(serde_json::from_str("{")?) };
        assert!(matches!(parse(), Err(Failure::Terminal(_))));
    }
}
