//! The formats of strings and numbers that the server checks. Unknown formats
//! are not checked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;

use k8s_openapi::jiff::civil::Date;
use serde_json::Number;

use super::pattern::Pattern;
use crate::duration;
use crate::names;

/// Formats that are a pattern, with the patterns of the server's library.
const PATTERNS: [(&str, &str); 5] = [
    ("bsonobjectid", "^[0-9a-fA-F]{24}$"),
    ("hexcolor", "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    (
        "hostname",
        r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\p{S}\p{L}-]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$",
    ),
    (
        "rgbcolor",
        r"^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$",
    ),
    ("ssn", r"^\d{3}[- ]?\d{2}[- ]?\d{4}$"),
];
/// Of a time of day with its zone.
const TIME: &str = "^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$";
/// Of the digits of a credit card.
const CARD: &str = r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$";

/// Whether a text matches one of the patterns above. Each is compiled when it is first
/// needed: some take longer than all else that a small cluster does.
fn is_like(pattern: &'static str, text: &str) -> bool {
    static COMPILED: [OnceLock<Option<Pattern>>; PATTERNS.len() + 2] =
        [const { OnceLock::new() }; PATTERNS.len() + 2];
    let mut patterns = PATTERNS.into_iter().map(|(_, pattern)| pattern);
    let place = patterns
        .position(|known| known == pattern)
        .unwrap_or(PATTERNS.len() + usize::from(pattern == CARD));
    let compiled = COMPILED.get(place);
    let compiled = compiled.map(|place| place.get_or_init(|| Pattern::compile(pattern).ok()));
    compiled.is_some_and(|found| found.as_ref().is_some_and(|found| found.matches(text)))
}

/// Whether a text is of a format.
pub(crate) fn matches(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => is_time(text),
        "date" => is_date(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => text.split_once('/').is_some_and(|(ip, bits)| {
            let width = match ip.parse::<IpAddr>() {
                Ok(IpAddr::V4(_)) => 32,
                Ok(IpAddr::V6(_)) => 128,
                Err(_) => return false,
            };
            bits.parse::<u8>().is_ok_and(|bits| bits <= width)
        }),
        "mac" => {
            let parts: Vec<&str> = text.split([':', '-']).collect();
            matches!(parts.len(), 6 | 8 | 20)
                && parts
                    .iter()
                    .all(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit()))
        }
        "uuid" | "uuid3" | "uuid4" | "uuid5" => is_uuid(format, text),
        "email" => is_email(text),
        "creditcard" => is_card(text),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "k8s-short-name" => names::dns1123_label(text).is_empty(),
        "k8s-long-name" => names::dns1123_subdomain(text).is_empty(),
        "uri" => is_uri(text),
        "byte" => is_base64(text),
        "duration" => is_duration(text),
        _ => match PATTERNS.iter().find(|(known, _)| *known == format) {
            Some(("hostname", pattern)) => {
                let is_short = |part: &str| part.len() <= 63;
                is_like(pattern, text) && text.len() <= 255 && text.split('.').all(is_short)
            }
            Some((_, pattern)) => is_like(pattern, text),
            None => true,
        },
    }
}

/// Whether a whole number is of a format.
pub(super) fn holds(format: &str, number: &Number) -> bool {
    match format {
        "int32" => number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()),
        "int64" => number.as_i64().is_some(),
        "uint32" => number.as_u64().is_some_and(|n| u32::try_from(n).is_ok()),
        "uint64" => number.as_u64().is_some(),
        "float" => number
            .as_f64()
            .is_some_and(|n| n.abs() <= f64::from(f32::MAX)),
        _ => true,
    }
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<Date>().is_ok()
}

/// A date and a time of day, with a `T` between them.
fn is_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    let at = |from: usize| time.get(from..from + 2).unwrap_or_default();
    is_date(date) && is_like(TIME, time) && at(0) <= "23" && at(3) <= "59" && at(6) <= "59"
}

fn digits(text: &str) -> Vec<u32> {
    text.chars().filter_map(|c| c.to_digit(10)).collect()
}

/// A card number with a sum of digits as it should be, whatever stands between these.
fn is_card(text: &str) -> bool {
    let digits = digits(text);
    let plain: String = digits.iter().map(ToString::to_string).collect();
    let counted = digits.iter().rev().enumerate().map(|(index, digit)| {
        let doubled = if index % 2 == 1 { digit * 2 } else { *digit };
        if doubled > 9 { doubled - 9 } else { doubled }
    });
    is_like(CARD, &plain) && counted.sum::<u32>().is_multiple_of(10)
}

/// The text without what may stand between the digits of a book's number.
fn without_space(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && *c != '-')
        .collect()
}

fn is_isbn10(text: &str) -> bool {
    let plain = without_space(text);
    let Some((body, last)) = plain.split_at_checked(9).filter(|_| plain.len() == 10) else {
        return false;
    };
    let body = digits(body);
    let last = match last {
        "X" => Some(10),
        other => other.parse::<u32>().ok(),
    };
    let sum: u32 = (1..).zip(&body).map(|(place, digit)| place * digit).sum();
    body.len() == 9 && last.is_some_and(|last| (sum + 10 * last).is_multiple_of(11))
}

fn is_isbn13(text: &str) -> bool {
    let plain = without_space(text);
    let found = digits(&plain);
    let weighed = found.iter().enumerate();
    let sum: u32 = weighed
        .map(|(at, digit)| if at % 2 == 0 { *digit } else { 3 * digit })
        .sum();
    plain.len() == 13 && found.len() == 13 && sum.is_multiple_of(10)
}

fn is_uuid(format: &str, text: &str) -> bool {
    let hex: String = text.chars().filter(|c| *c != '-').collect();
    let dashes = text.len() - hex.len();
    let well_formed = hex.len() == 32
        && hex.bytes().all(|b| b.is_ascii_hexdigit())
        && (dashes == 0
            || text
                .char_indices()
                .all(|(at, c)| (c == '-') == matches!(at, 8 | 13 | 18 | 23)));
    let version = hex.chars().nth(12);
    well_formed
        && match format.strip_prefix("uuid") {
            Some(wanted) if !wanted.is_empty() => version == wanted.chars().next(),
            _ => true,
        }
}

fn is_email(text: &str) -> bool {
    text.rsplit_once('@').is_some_and(|(user, host)| {
        !user.is_empty()
            && !host.is_empty()
            && !text.chars().any(|c| c.is_whitespace() || c.is_control())
            && !user.starts_with('.')
            && !user.ends_with('.')
            && !user.contains("..")
    })
}

fn is_uri(text: &str) -> bool {
    // The server asks for something that can stand in a request line.
    text.starts_with('/')
        || text.split_once(':').is_some_and(|(scheme, rest)| {
            scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
                && !rest.is_empty()
                && !text.contains(char::is_whitespace)
        })
}

fn is_base64(text: &str) -> bool {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .is_ok()
}

/// `1h30m`, `1.5s`; or a number and a unit somewhere in the text, as the server's library
/// looks for them (`3 days`).
fn is_duration(text: &str) -> bool {
    duration::parse(text).is_ok() || has_duration(text)
}

fn has_duration(text: &str) -> bool {
    /// Units by all their names; what begins with the last of them is one, too.
    const UNITS: [(&[&str], &str); 8] = [
        (&["ns"], "nano"),
        (&["us", "µs"], "micro"),
        (&["ms"], "milli"),
        (&["s"], "sec"),
        (&["m"], "min"),
        (&["h", "hr"], "hour"),
        (&["d"], "day"),
        (&["w", "wk"], "week"),
    ];
    let is_digit = |c: char| c.is_ascii_digit();
    let mut rest = text;
    while let Some(start) = rest.find(is_digit) {
        let number = rest.get(start..).unwrap_or_default();
        let behind = number.trim_start_matches(is_digit);
        let unit = behind.trim_start();
        let is_letter = |c: char| c.is_ascii_alphabetic() || c == 'µ';
        let end = unit.find(|c| !is_letter(c)).unwrap_or(unit.len());
        let (unit, after) = unit.split_at(end);
        let word = unit.to_lowercase();
        let is_unit = |(short, long): &(&[&str], &str)| {
            short.contains(&word.as_str()) || word.starts_with(long)
        };
        if UNITS.iter().any(is_unit) {
            return true;
        }
        rest = if unit.is_empty() { behind } else { after };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        let check = |format: &str, good: &[&str], bad: &[&str]| {
            for text in good {
                assert!(matches(format, text), "{format} {text}");
            }
            for text in bad {
                assert!(!matches(format, text), "{format} {text}");
            }
        };
        check(
            "date-time",
            &[
                "2026-01-02T03:04:05Z",
                "2026-01-02T03:04:05.6+01:00",
                "2026-01-02t03:04:05z",
            ],
            &[
                "2026-01-02",
                "yesterday",
                "2020-01-01 00:00:00Z",
                "2020-01-01T24:00:00Z",
                "2020-13-01T00:00:00Z",
            ],
        );
        check("date", &["2026-01-02"], &["2026-13-02", "x"]);
        check("ipv4", &["10.0.0.1"], &["10.0.0", "::1"]);
        check("ipv6", &["::1"], &["10.0.0.1"]);
        check("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0/33", "x"]);
        check(
            "uuid",
            &["b26b0a3c-1111-4d3f-9c1b-1c1b1c1b1c1b"],
            &["x", "b26b0a3c1-111-4d3f-9c1b-1c1b1c1b1c1b"],
        );
        check(
            "uuid4",
            &["b26b0a3c-1111-4d3f-9c1b-1c1b1c1b1c1b"],
            &["b26b0a3c-1111-1d3f-9c1b-1c1b1c1b1c1b"],
        );
        check("email", &["a@b.c"], &["a", "@b", "a b@c"]);
        check(
            "hostname",
            &["a", "a.bc", "a-b.example"],
            &["", "-a", "a_b", "a.b"],
        );
        check("bsonobjectid", &["507f1f77bcf86cd799439011"], &["x"]);
        check(
            "creditcard",
            &["4111 1111-1111 1111"],
            &["1", "4111111111111112"],
        );
        check("ssn", &["111-22-3333"], &["x"]);
        check("hexcolor", &["#fff", "A0b1C2"], &["x", "#ffff"]);
        check("rgbcolor", &["rgb(1, 20,255)"], &["rgb(256,0,0)"]);
        check(
            "isbn",
            &["0321751043", "978-0321751041"],
            &["x", "0321751044"],
        );
        check("isbn10", &["0321751043"], &["9780321751041"]);
        check("k8s-short-name", &["a"], &["A_", "a.b"]);
        check("k8s-long-name", &["a.b"], &["A_"]);
        check("uri", &["http://a/b", "/x"], &["a b", ""]);
        check("byte", &["eA==", ""], &["x"]);
        check(
            "duration",
            &[
                "1h30m", "1.5s", "3 days", "1d", "-1h", "PT1H", "1 week", "0",
            ],
            &["", "1x", "h", "1", "1 mo"],
        );
        check("whatever", &["anything"], &[]);
    }
}
