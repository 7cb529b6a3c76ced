//! The formats of strings and numbers that the server checks. Unknown formats
//! are not checked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use k8s_openapi::jiff::{Timestamp, civil::Date};
use serde_json::Number;

/// Whether a text is of a format.
pub(super) fn matches(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => text.parse::<Timestamp>().is_ok(),
        "date" => text.len() == 10 && text.parse::<Date>().is_ok(),
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
        "hostname" => is_hostname(text),
        "uri" => is_uri(text),
        "byte" => is_base64(text),
        "duration" => is_duration(text),
        _ => true,
    }
}

/// Whether a whole number is of a format.
pub(super) fn holds(format: &str, number: &Number) -> bool {
    match format {
        "int32" => number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()),
        "int64" => number.as_i64().is_some(),
        "uint32" => number.as_u64().is_some_and(|n| u32::try_from(n).is_ok()),
        "uint64" => number.as_u64().is_some(),
        _ => true,
    }
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

fn is_hostname(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 255
        && text.trim_end_matches('.').split('.').all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-')
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

/// `1h30m`, `1.5s`, and the words of the server's own format (`3 days`).
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 7] = ["ns", "us", "µs", "ms", "s", "m", "h"];
    const WORDS: [&str; 18] = [
        "ns", "nano", "us", "micro", "ms", "milli", "s", "sec", "second", "m", "min", "minute",
        "h", "hr", "hour", "d", "day", "week",
    ];
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if let Some((number, word)) = rest.split_once(' ') {
        let word = word.trim().to_lowercase();
        return number.parse::<u64>().is_ok()
            && WORDS.contains(&word.strip_suffix('s').unwrap_or(&word));
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, tail) = rest.split_at(end);
        if number.is_empty() || number == "." || number.matches('.').count() > 1 {
            return false;
        }
        let unit = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .map_or(tail, |end| &tail[..end]);
        if !UNITS.contains(&unit) && !WORDS.contains(&unit) {
            return false;
        }
        rest = &tail[unit.len()..];
    }
    true
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
            &["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.6+01:00"],
            &["2026-01-02", "yesterday"],
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
        check("hostname", &["a.b-c"], &["", "-a", "a_b"]);
        check("uri", &["http://a/b", "/x"], &["a b", ""]);
        check("byte", &["eA==", ""], &["x"]);
        check("duration", &["1h30m", "1.5s", "3 days"], &["", "1x", "h"]);
        check("whatever", &["anything"], &[]);
    }
}
