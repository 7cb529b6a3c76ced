//! What is wrong with an address or a network, in the words of Go (`net/netip`).

use kube_cel::cel::{ResolveResult, Value};

use super::{NO_OVERLOAD, failed};
use crate::field::quoted;

/// What these functions say of texts that they cannot take; none of others.
pub(super) fn own(name: &str, arguments: &[Value]) -> Option<ResolveResult> {
    let why = match (name, arguments) {
        ("ip" | "ip.isCanonical", [Value::String(text)]) => refused(text)?,
        ("cidr", [Value::String(text)])
        | ("containsCIDR", [Value::Opaque(_), Value::String(text)]) => {
            let why = network(text)?;
            // Written twice by the real server as well.
            format!("network address parse error during conversion from string: {why}")
        }
        ("containsIP", [Value::Opaque(_), Value::String(text)]) => {
            refused(text)?;
            NO_OVERLOAD.to_owned()
        }
        _ => return None,
    };
    Some(Err(failed(name, why)))
}

/// Why a text is no address that functions take.
fn refused(text: &str) -> Option<String> {
    let shown = quoted(text);
    match parse(text) {
        Err(why) => Some(format!(
            "IP Address {shown} parse error during conversion from string: {why}"
        )),
        Ok(Address { zone: true, .. }) => {
            Some(format!("IP address {shown} with zone value is not allowed"))
        }
        Ok(Address { mapped: true, .. }) => {
            Some(format!("IPv4-mapped IPv6 address {shown} is not allowed"))
        }
        Ok(_) => None,
    }
}

/// Why a text is no network.
fn network(text: &str) -> Option<String> {
    match prefix(text) {
        Ok(false) => None,
        Ok(true) => Some(format!(
            "IPv4-mapped IPv6 address {} is not allowed",
            quoted(text)
        )),
        Err(why) => Some(format!(
            "network address parse error during conversion from string: \
             netip.ParsePrefix({}): {why}",
            quoted(text)
        )),
    }
}

/// Whether a network is one of IPv4 in IPv6, or why it is none.
fn prefix(text: &str) -> Result<bool, String> {
    let (address, bits) = text.rsplit_once('/').ok_or("no '/'")?;
    let address = parse(address)?;
    if address.zone {
        return Err("IPv6 zones cannot be present in a prefix".to_owned());
    }
    let bad = || format!("bad bits after slash: {}", quoted(bits));
    let is_padded = bits.len() > 1 && !bits.starts_with(|c: char| ('1'..='9').contains(&c));
    let is_number = !bits.is_empty() && bits.bytes().all(|b| b.is_ascii_digit());
    if is_padded || !is_number {
        return Err(bad());
    }
    // A number that is too large for Go is no number.
    let bits: i64 = bits.parse().map_err(|_| bad())?;
    if bits > if address.wide { 128 } else { 32 } {
        return Err("prefix length out of range".to_owned());
    }
    Ok(address.mapped)
}

/// What there is to know of an address.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Address {
    /// Whether it is one of IPv6.
    pub(super) wide: bool,
    /// Whether that stands for one of IPv4.
    mapped: bool,
    /// Whether it has a zone.
    zone: bool,
}

/// Reads an address.
///
/// # Errors
///
/// Why it is none.
pub(super) fn parse(text: &str) -> Result<Address, String> {
    let parsed = match text.find(['.', ':', '%']).map(|at| text.as_bytes()[at]) {
        Some(b'.') => four(text).map(|_| Address::default()),
        Some(b':') => sixteen(text),
        // The address before the zone is missing.
        Some(_) => Err(("missing IPv6 address", "")),
        None => Err(("unable to parse IP", "")),
    };
    parsed.map_err(|(why, at)| {
        let place = match at {
            "" => String::new(),
            at => format!(" (at {})", quoted(at)),
        };
        format!("ParseAddr({}): {why}{place}", quoted(text))
    })
}

/// A complaint, and where in the text that is.
type Fault<'t> = (&'static str, &'t str);

/// The bytes of an address of IPv4.
fn four(text: &str) -> Result<[u8; 4], Fault<'_>> {
    let (mut bytes, mut place) = ([0_u8; 4], 0_usize);
    let (mut value, mut digits) = (0_u16, 0_usize);
    let all = text.as_bytes();
    for (index, c) in text.char_indices() {
        let here = text.get(index..).unwrap_or_default();
        if let Some(digit) = c.to_digit(10).and_then(|digit| u16::try_from(digit).ok()) {
            if digits == 1 && value == 0 {
                return Err(("IPv4 field has octet with leading zero", ""));
            }
            value = value * 10 + digit;
            digits += 1;
            if value > 255 {
                return Err(("IPv4 field has value >255", ""));
            }
        } else if c == '.' {
            let is_empty = index == 0 || all.get(index - 1) == Some(&b'.');
            if is_empty || index + 1 == all.len() {
                return Err(("IPv4 field must have at least one digit", here));
            }
            if place == 3 {
                return Err(("IPv4 address too long", ""));
            }
            bytes[place] = u8::try_from(value).unwrap_or(u8::MAX);
            place += 1;
            (value, digits) = (0, 0);
        } else {
            return Err(("unexpected character", here));
        }
    }
    if place < 3 {
        return Err(("IPv4 address too short", ""));
    }
    bytes[3] = u8::try_from(value).unwrap_or(u8::MAX);
    Ok(bytes)
}

/// An address of IPv6.
fn sixteen(text: &str) -> Result<Address, Fault<'_>> {
    let (mut rest, zone) = match text.split_once('%') {
        Some((_, "")) => return Err(("zone must be a non-empty string", "")),
        Some((address, _)) => (address, true),
        None => (text, false),
    };
    let mut groups: Vec<u16> = Vec::with_capacity(8);
    let mut gap = None;
    if let Some(after) = rest.strip_prefix("::") {
        (gap, rest) = (Some(0), after);
    }
    while groups.len() < 8 && !(gap == Some(groups.len()) && rest.is_empty()) {
        let end = rest.find(|c: char| !c.is_ascii_hexdigit());
        let (digits, after) = rest.split_at(end.unwrap_or(rest.len()));
        if digits.len() > 4 {
            return Err(("each group must have 4 or less digits", rest));
        }
        let Ok(group) = u16::from_str_radix(digits, 16) else {
            let why = "each colon-separated field must have at least one digit";
            return Err((why, rest));
        };
        if after.starts_with('.') {
            if gap.is_none() && groups.len() != 6 {
                let why = "embedded IPv4 address must replace the final 2 fields of the address";
                return Err((why, rest));
            }
            if groups.len() > 6 {
                let why = "too many hex fields to fit an embedded IPv4 at the end of the \
                           address";
                return Err((why, rest));
            }
            let [a, b, c, d] = four(rest)?;
            groups.extend([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]);
            rest = "";
            break;
        }
        groups.push(group);
        rest = after;
        if rest.is_empty() {
            break;
        }
        let Some(after) = rest.strip_prefix(':') else {
            return Err(("unexpected character, want colon", rest));
        };
        if after.is_empty() {
            return Err(("colon must be followed by more characters", rest));
        }
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            if gap.is_some() {
                return Err(("multiple :: in address", rest));
            }
            (gap, rest) = (Some(groups.len()), after);
        }
    }
    if !rest.is_empty() {
        return Err(("trailing garbage after address", rest));
    }
    match gap {
        None if groups.len() < 8 => return Err(("address string too short", "")),
        Some(_) if groups.len() == 8 => {
            let why = "the :: must expand to at least one field of zeros";
            return Err((why, ""));
        }
        Some(at) => {
            let zeros = 8 - groups.len();
            groups.splice(at..at, std::iter::repeat_n(0, zeros));
        }
        None => {}
    }
    Ok(Address {
        wide: true,
        mapped: groups.starts_with(&[0, 0, 0, 0, 0, 0xffff]),
        zone,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_refused_as_in_go() {
        for (text, expected) in [
            ("a", "unable to parse IP"),
            ("", "unable to parse IP"),
            ("%a", "missing IPv6 address"),
            ("1.2.3", "IPv4 address too short"),
            ("1.2.3.256", "IPv4 field has value >255"),
            ("1.2.3.04", "IPv4 field has octet with leading zero"),
            ("1.2.3.4.5", "IPv4 address too long"),
            (
                "1..2.3",
                "IPv4 field must have at least one digit (at \".2.3\")",
            ),
            (
                ".1.2.3",
                "IPv4 field must have at least one digit (at \".1.2.3\")",
            ),
            (
                "1.2.3.",
                "IPv4 field must have at least one digit (at \".\")",
            ),
            ("1.2.3.a", "unexpected character (at \"a\")"),
            ("1.2.3.4/24", "unexpected character (at \"/24\")"),
            ("1::2::3", "multiple :: in address (at \":3\")"),
            ("1:2", "address string too short"),
            (
                "x:1",
                "each colon-separated field must have at least one digit (at \"x:1\")",
            ),
            (
                "::g",
                "each colon-separated field must have at least one digit (at \"g\")",
            ),
            (
                ":1",
                "each colon-separated field must have at least one digit (at \":1\")",
            ),
            (
                "12345::",
                "each group must have 4 or less digits (at \"12345::\")",
            ),
            (
                "1:2:3:4:5:6:7:8:9",
                "trailing garbage after address (at \"9\")",
            ),
            (
                "1:2:3:4:5:6:7:",
                "colon must be followed by more characters (at \":\")",
            ),
            ("::1%", "zone must be a non-empty string"),
            ("::1/1", "unexpected character, want colon (at \"/1\")"),
            ("a\"b", "unable to parse IP"),
        ] {
            let shown = quoted(text);
            let expected = format!(
                "IP Address {shown} parse error during conversion from string: \
                 ParseAddr({shown}): {expected}"
            );
            assert_eq!(refused(text), Some(expected));
        }
        for (text, expected) in [
            (
                "::1%a",
                "IP address \"::1%a\" with zone value is not allowed",
            ),
            (
                "::ffff:1.2.3.4",
                "IPv4-mapped IPv6 address \"::ffff:1.2.3.4\" is not allowed",
            ),
        ] {
            assert_eq!(refused(text).as_deref(), Some(expected));
        }
        for text in [
            "1.2.3.4",
            "::",
            "::1",
            "1::",
            "1:2:3:4:5:6:7:8",
            "1::1.2.3.4",
        ] {
            assert_eq!(refused(text), None, "{text}");
        }
    }

    #[test]
    fn networks_are_refused_as_in_go() {
        for (text, expected) in [
            ("a", "no '/'"),
            ("a/1", "ParseAddr(\"a\"): unable to parse IP"),
            ("1.2.3.4/33", "prefix length out of range"),
            ("1.2.3.4/1234", "prefix length out of range"),
            ("::1/129", "prefix length out of range"),
            ("1.2.3.4/a", "bad bits after slash: \"a\""),
            ("1.2.3.4/", "bad bits after slash: \"\""),
            ("1.2.3.4/01", "bad bits after slash: \"01\""),
            ("1.2.3.4/-1", "bad bits after slash: \"-1\""),
            ("::1%a/96", "IPv6 zones cannot be present in a prefix"),
        ] {
            let expected = format!(
                "network address parse error during conversion from string: \
                 netip.ParsePrefix({}): {expected}",
                quoted(text)
            );
            assert_eq!(network(text), Some(expected));
        }
        assert_eq!(
            network("::ffff:1.2.3.4/96").as_deref(),
            Some("IPv4-mapped IPv6 address \"::ffff:1.2.3.4/96\" is not allowed")
        );
        assert_eq!(network("10.0.0.0/8"), None);
        assert_eq!(network("fd00::/8"), None);
    }
}
