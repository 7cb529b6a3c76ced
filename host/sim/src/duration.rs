//! Durations as Go reads and prints them: `1h30m`, `-1.5s`, `0`.

use std::time::Duration;

/// A text that is no duration, in the words of Go.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotADuration {
    /// It has another form, or is too long.
    #[error("time: invalid duration {}", quoted(.0))]
    Invalid(String),
    /// A number stands alone.
    #[error("time: missing unit in duration {}", quoted(.0))]
    NoUnit(String),
    /// A unit is none.
    #[error("time: unknown unit {} in duration {}", quoted(.unit), quoted(.text))]
    UnknownUnit { unit: String, text: String },
}

/// The units, with their lengths in nanoseconds.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1000),
    ("µs", 1000),
    ("μs", 1000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
/// The longest duration below zero; above, it is one less.
const MAX: u64 = 1 << 63;

/// Reads a duration, in nanoseconds.
///
/// # Errors
///
/// For what is no duration, and for what is longer than some 292 years.
pub(crate) fn parse(text: &str) -> Result<i64, NotADuration> {
    let invalid = || NotADuration::Invalid(text.to_owned());
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut sum: u64 = 0;
    while !rest.is_empty() {
        let (whole, after) = split_digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => split_digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let whole: u64 = match whole {
            "" => 0,
            digits => digits.parse().map_err(|_| invalid())?,
        };
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit());
        let (unit, after) = after.split_at(end.unwrap_or(after.len()));
        if unit.is_empty() {
            return Err(NotADuration::NoUnit(text.to_owned()));
        }
        let Some((_, length)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(NotADuration::UnknownUnit {
                unit: unit.to_owned(),
                text: text.to_owned(),
            });
        };
        sum = whole
            .checked_mul(*length)
            .and_then(|part| part.checked_add(part_of(*length, fraction)))
            .and_then(|part| sum.checked_add(part))
            .filter(|sum| *sum <= MAX)
            .ok_or_else(invalid)?;
        rest = after;
    }
    let signed = if text.starts_with('-') {
        0_i64.checked_sub_unsigned(sum)
    } else {
        0_i64.checked_add_unsigned(sum)
    };
    signed.ok_or_else(invalid)
}

/// Reads a duration that is waited for; none where it is none, or below zero.
pub(crate) fn wait(text: &str) -> Option<Duration> {
    let nanos = u64::try_from(parse(text).ok()?).ok()?;
    Some(Duration::from_nanos(nanos))
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

/// The part of a unit that the digits behind a point tell, computed as Go does: with as
/// many digits as fit, and with floating point.
fn part_of(length: u64, digits: &str) -> u64 {
    let (mut part, mut scale) = (0_u64, 1.0_f64);
    for digit in digits.bytes() {
        let next = (part <= (MAX - 1) / 10).then(|| part * 10 + u64::from(digit - b'0'));
        let Some(next) = next.filter(|next| *next <= MAX) else {
            break;
        };
        part = next;
        scale *= 10.0;
    }
    (part as f64 * (length as f64 / scale)) as u64
}

/// A text in quotes, every byte of it that is not ASCII as a number.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            b' '..=0x7f => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

/// A span of time as Go prints it: `5m0s`.
pub(crate) fn printed(span: Duration) -> String {
    let (seconds, millis) = (span.as_secs(), span.subsec_millis());
    let fraction = match millis {
        0 => String::new(),
        millis => format!(".{millis:03}").trim_end_matches('0').to_owned(),
    };
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0) if millis > 0 => format!("{millis}ms"),
        (0, 0, seconds) => format!("{seconds}{fraction}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}{fraction}s"),
        (hours, minutes, seconds) => format!("{hours}h{minutes}m{seconds}{fraction}s"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read() {
        const SECOND: i64 = 1_000_000_000;
        for (text, expected) in [
            ("0", 0),
            ("-0", 0),
            ("5s", 5 * SECOND),
            ("+5s", 5 * SECOND),
            ("-1.5h", -5400 * SECOND),
            ("1h1m1.5s", 3661 * SECOND + SECOND / 2),
            (".5s", SECOND / 2),
            ("1.s", SECOND),
            ("1µs2ns", 1002),
            ("0.33333333333333333333h", 1_200_000_000_000),
            ("9223372036854775807ns", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn waits_are_not_below_zero() {
        for (text, millis) in [
            ("1.5h", Some(5_400_000)),
            ("1h0.5m", Some(3_630_000)),
            ("250ms", Some(250)),
            ("0", Some(0)),
            ("-1s", None),
            ("5", None),
            ("", None),
        ] {
            assert_eq!(wait(text), millis.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, expected) in [
            ("", "time: invalid duration \"\""),
            ("-", "time: invalid duration \"-\""),
            ("nonsense", "time: invalid duration \"nonsense\""),
            (".s", "time: invalid duration \".s\""),
            ("3000000h", "time: invalid duration \"3000000h\""),
            (
                "9223372036854775808ns",
                "time: invalid duration \"9223372036854775808ns\"",
            ),
            ("5", "time: missing unit in duration \"5\""),
            ("1.5.5s", "time: missing unit in duration \"1.5.5s\""),
            ("1d", "time: unknown unit \"d\" in duration \"1d\""),
            (
                "1é",
                "time: unknown unit \"\\xc3\\xa9\" in duration \"1\\xc3\\xa9\"",
            ),
        ] {
            let found = parse(text).unwrap_err();
            assert_eq!(found.to_string(), expected);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[-+0-9.nuµmsh]{0,30}|.{0,10}") {
            let _ = parse(&text);
        }
    }

    #[test]
    fn spans_are_printed_as_in_go() {
        for (millis, expected) in [
            (0, "0s"),
            (250, "250ms"),
            (1500, "1.5s"),
            (300_000, "5m0s"),
            (3_661_000, "1h1m1s"),
        ] {
            assert_eq!(printed(Duration::from_millis(millis)), expected);
        }
    }
}
