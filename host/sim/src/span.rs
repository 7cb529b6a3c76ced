//! Spans of time as people write them: `5s`, `1m30s`, `250ms`, `0s`.

use std::time::Duration;

/// A text that is no span of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no span of time; write numbers with units, such as 5s, 1m30s, 250ms or 0s")]
pub(crate) struct NotASpan(String);

/// The units, with their lengths in milliseconds.
const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
/// The longest span, a hundred years: far from what clocks cannot add any more.
const MAX: u64 = 100 * 366 * 24 * 3_600_000;

/// Reads a span.
///
/// # Errors
///
/// For everything but whole numbers that are followed by units.
pub(crate) fn parse(text: &str) -> Result<Duration, NotASpan> {
    let not = || NotASpan(text.to_owned());
    let mut rest = text.trim();
    let mut millis: u64 = 0;
    if rest.is_empty() {
        return Err(not());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(not)?;
        let (number, after) = rest.split_at(digits);
        let number: u64 = number.parse().map_err(|_| not())?;
        let letters = after.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, after) = after.split_at(letters.unwrap_or(after.len()));
        let (_, length) = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(not)?;
        millis = number
            .checked_mul(*length)
            .and_then(|span| millis.checked_add(span))
            .filter(|millis| *millis <= MAX)
            .ok_or_else(not)?;
        rest = after;
    }
    Ok(Duration::from_millis(millis))
}

/// Writes a span so that [`parse`] reads it; parts of a millisecond are left out.
pub(crate) fn text(span: Duration) -> String {
    let mut millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    if millis == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (name, length) in [UNITS[3], UNITS[2], UNITS[1], UNITS[0]] {
        let count = millis / length;
        millis %= length;
        if count > 0 {
            text.push_str(&format!("{count}{name}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spans_are_read() {
        for (text, millis) in [
            ("0s", 0),
            ("5s", 5000),
            ("1m30s", 90_000),
            ("250ms", 250),
            ("2h", 7_200_000),
            (" 1s ", 1000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "5",
            "s",
            "5 s",
            "-1s",
            "1d",
            "1.5s",
            "99999999999999999999h",
            "9999999h",
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(
                error.contains("is no span of time; write numbers"),
                "{error}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(millis in 0..MAX) {
            let span = Duration::from_millis(millis);
            prop_assert_eq!(parse(&text(span)), Ok(span));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,20}") {
            let _ = parse(&text);
        }
    }
}
