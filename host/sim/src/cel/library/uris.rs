//! What is wrong with a URL, in the words of Go (`url.ParseRequestURI`).

use super::addresses;
use crate::field::quoted;

/// Why a text is no URL, if it is none.
pub(super) fn refused(text: &str) -> Option<String> {
    let why = parse(text).err()?;
    Some(format!("parse {}: {why}", quoted(text)))
}

fn parse(text: &str) -> Result<(), String> {
    let control = |b: u8| b < b' ' || b == 0x7f;
    if text.bytes().any(control) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    match text {
        "" => return Err("empty url".to_owned()),
        "*" => return Ok(()),
        _ => {}
    }
    let (scheme, rest) = scheme(text)?;
    let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
    if !rest.starts_with('/') {
        // What has a scheme need not be a path.
        return match scheme {
            "" => Err("invalid URI for request".to_owned()),
            _ => Ok(()),
        };
    }
    let mut path = rest;
    if !scheme.is_empty()
        && let Some(authority) = rest.strip_prefix("//")
    {
        let end = authority.find('/').unwrap_or(authority.len());
        let (authority, behind) = authority.split_at(end);
        check_authority(&scheme.to_ascii_lowercase(), authority)?;
        path = behind;
    }
    unescaped(path, Part::Other).map(drop)
}

/// The scheme, and what follows it.
fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (index, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if index > 0 => {}
            ':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => {
                let (scheme, rest) = text.split_at(index);
                return Ok((scheme, rest.get(1..).unwrap_or_default()));
            }
            _ => break,
        }
    }
    Ok(("", text))
}

fn check_authority(scheme: &str, authority: &str) -> Result<(), String> {
    let Some((user, host)) = authority.rsplit_once('@') else {
        return check_host(scheme, authority);
    };
    check_host(scheme, host)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if !user.chars().all(fits) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    for part in user.splitn(2, ':') {
        unescaped(part, Part::Other)?;
    }
    Ok(())
}

fn check_host(scheme: &str, host: &str) -> Result<(), String> {
    let literal = || "invalid IP-literal".to_owned();
    match host.rfind('[') {
        Some(0) => {
            let Some(end) = host.rfind(']') else {
                return Err("missing ']' in host".to_owned());
            };
            check_port(host.get(end + 1..).unwrap_or_default())?;
            let name = host.get(1..end).unwrap_or_default();
            let (name, zone) = name.split_at(name.find("%25").unwrap_or(name.len()));
            let name = unescaped(name, Part::Host)? + &unescaped(zone, Part::Zone)?;
            match addresses::parse(&name) {
                Err(why) => Err(format!("invalid host: {why}")),
                Ok(address) if !address.wide => Err(literal()),
                Ok(_) => Ok(()),
            }
        }
        Some(_) => Err(literal()),
        None => {
            let is_strict = matches!(scheme, "http" | "https");
            let colon = if is_strict {
                host.find(':')
            } else {
                host.rfind(':')
            };
            if let Some(colon) = colon {
                check_port(host.get(colon..).unwrap_or_default())?;
            }
            unescaped(host, Part::Host).map(drop)
        }
    }
}

fn check_port(port: &str) -> Result<(), String> {
    let digits = port.strip_prefix(':');
    if port.is_empty() || digits.is_some_and(|it| it.bytes().all(|b| b.is_ascii_digit())) {
        return Ok(());
    }
    Err(format!("invalid port {} after host", quoted(port)))
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Host,
    Zone,
    Other,
}

/// Whether a character may stand in a host as it is.
fn is_of_hosts(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!\"$&'()*+,;:<=>[]".contains(&byte)
}

/// A part without escapes.
fn unescaped(text: &str, part: Part) -> Result<String, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while let Some(&byte) = bytes.get(index) {
        if byte == b'%' {
            let end = bytes.len().min(index + 3);
            let escape = String::from_utf8_lossy(bytes.get(index..end).unwrap_or_default());
            let bad = || format!("invalid URL escape {}", quoted(&escape));
            let digit = |at: usize| bytes.get(at).and_then(|&b| char::from(b).to_digit(16));
            let code = digit(index + 1).zip(digit(index + 2));
            let code = code.and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
            let code = code.ok_or_else(bad)?;
            let is_wrong = match part {
                Part::Host => code < 0x80,
                Part::Zone => code != b' ' && !is_of_hosts(code),
                Part::Other => false,
            };
            if is_wrong && code != b'%' {
                return Err(bad());
            }
            out.push(code);
            index += 3;
        } else {
            if part != Part::Other && byte.is_ascii() && !is_of_hosts(byte) {
                let shown = quoted(&char::from(byte).to_string());
                return Err(format!("invalid character {shown} in host name"));
            }
            out.push(byte);
            index += 1;
        }
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_refused_as_in_go() {
        for (text, expected) in [
            ("a", "invalid URI for request"),
            ("", "empty url"),
            (":a", "missing protocol scheme"),
            ("/%zz", "invalid URL escape \"%zz\""),
            ("http://a:b/", "invalid port \":b\" after host"),
            ("http://a:1:2/", "invalid port \":1:2\" after host"),
            ("http://[::1", "missing ']' in host"),
            ("http://[::1]x/", "invalid port \"x\" after host"),
            ("http://[1.2.3.4]/", "invalid IP-literal"),
            ("http://a[b/", "invalid IP-literal"),
            (
                "http://[::x]/",
                "invalid host: ParseAddr(\"::x\"): each colon-separated field must have at \
                 least one digit (at \"x\")",
            ),
            (
                "http://[::1%25a b]/",
                "invalid character \" \" in host name",
            ),
            ("http://a b/", "invalid character \" \" in host name"),
            ("http://a\\b/", "invalid character \"\\\\\" in host name"),
            ("http://a#b/c", "invalid character \"#\" in host name"),
            ("1http://a", "invalid URI for request"),
            ("a/b:c", "invalid URI for request"),
            ("http://u ser@a/", "net/url: invalid userinfo"),
            ("http://u%zz@a/", "invalid URL escape \"%zz\""),
            ("http://a%zz/", "invalid URL escape \"%zz\""),
            ("http://a%41/", "invalid URL escape \"%41\""),
            ("http://a%", "invalid URL escape \"%\""),
            ("http://a/#%zz", "invalid URL escape \"%zz\""),
            (
                "http://a\u{7f}/",
                "net/url: invalid control character in URL",
            ),
        ] {
            let expected = format!("parse {}: {expected}", quoted(text));
            assert_eq!(refused(text), Some(expected));
        }
        for text in [
            "a:b",
            "*",
            "//a",
            "/a#b",
            "http://a?b",
            "http://a<b/",
            "http://é/",
            "http://a/ b",
            "x://a:1:2/",
            "http://u:p@[::1]:443/a%20b?c#d",
        ] {
            assert_eq!(refused(text), None, "{text}");
        }
    }
}
