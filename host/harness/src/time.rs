//! Spans of virtual time as people write them: `10m`, `1h30m`, `250ms`.

use serde::Deserialize;
use std::time::Duration;

/// A span of virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Span(pub(crate) Duration);

/// A span of virtual time that may be none: `0s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Wait(pub(crate) Duration);

impl TryFrom<String> for Wait {
    type Error = NotATime;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.trim() {
            "0s" => Ok(Self(Duration::ZERO)),
            _ => Span::try_from(text).map(|span| Self(span.0)),
        }
    }
}

/// Text that is no span of time.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no time; write numbers with units, such as `10m`, `1h30m` or `250ms`")]
pub(crate) struct NotATime(String);

const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];

/// The longest step: more than any backoff or expiry that an agent knows, and far
/// from what clocks cannot add any more.
const MAX: u64 = 1000 * 3_600_000;

impl TryFrom<String> for Span {
    type Error = NotATime;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let not = || NotATime(text.clone());
        let mut rest = text.trim();
        let mut millis: u64 = 0;
        while !rest.is_empty() || millis == 0 {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(not)?;
            let number: u64 = rest[..digits].parse().map_err(|_| not())?;
            rest = &rest[digits..];
            let letters = rest.find(|c: char| !c.is_ascii_alphabetic());
            let (unit, after) = rest.split_at(letters.unwrap_or(rest.len()));
            let (_, factor) = UNITS
                .iter()
                .find(|(name, _)| *name == unit)
                .ok_or_else(not)?;
            millis = number
                .checked_mul(*factor)
                .and_then(|span| millis.checked_add(span))
                .filter(|millis| (1..=MAX).contains(millis))
                .ok_or_else(not)?;
            rest = after;
        }
        Ok(Self(Duration::from_millis(millis)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up() {
        for (text, millis) in [
            ("10m", 600_000),
            ("1h30m", 5_400_000),
            ("250ms", 250),
            ("2s", 2000),
        ] {
            let span = Span::try_from(text.to_owned()).unwrap();
            assert_eq!(span.0, Duration::from_millis(millis), "{text}");
        }
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            "10",
            "m",
            "10 m",
            "-1s",
            "1d",
            "0s",
            "99999999999999999999h",
            "5000h",
        ] {
            assert!(Span::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
