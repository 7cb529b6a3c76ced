//! Functions of URLs, as Go reads these: with the port that is written, and the path as
//! it is.

use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::cel::objects::{Key, Map, Opaque};
use kube_cel::cel::{ResolveResult, Value};

use super::{failed, uris};

/// A URL, which was found to be one.
#[derive(Debug, PartialEq, Eq)]
struct Url(String);

impl Opaque for Url {
    fn runtime_type_name(&self) -> &str {
        "kubernetes.URL"
    }
}

/// What these functions make of their arguments; none of others.
pub(super) fn own(name: &str, arguments: &[Value]) -> Option<ResolveResult> {
    let made = match (name, arguments) {
        ("url", [Value::String(text)]) => {
            if let Some(why) = uris::refused(text) {
                let why = format!("URL parse error during conversion from string: {why}");
                return Some(Err(failed(name, why)));
            }
            Value::Opaque(Arc::new(Url(text.to_string())))
        }
        ("isURL", [Value::String(text)]) => Value::Bool(uris::refused(text).is_none()),
        (_, [Value::Opaque(opaque)]) => {
            let url = opaque.downcast_ref::<Url>()?;
            let parts = Parts::of(&url.0);
            let text = match name {
                "getScheme" => parts.scheme.to_ascii_lowercase(),
                "getHost" => parts.host.to_owned(),
                "getHostname" => parts.host_and_port().0.to_owned(),
                "getPort" => parts.host_and_port().1.to_owned(),
                "getEscapedPath" => parts.path.to_owned(),
                "getQuery" => return Some(Ok(queried(parts.query))),
                _ => return None,
            };
            Value::String(Arc::new(text))
        }
        _ => return None,
    };
    Some(Ok(made))
}

#[derive(Debug, Default, PartialEq)]
struct Parts<'u> {
    scheme: &'u str,
    /// With the port.
    host: &'u str,
    path: &'u str,
    query: &'u str,
}

impl<'u> Parts<'u> {
    fn of(text: &'u str) -> Self {
        let (rest, query) = text.split_once('?').unwrap_or((text, ""));
        let is_path = rest.starts_with('/');
        let scheme = rest.split_once(':').filter(|_| !is_path);
        let (scheme, rest) = scheme.unwrap_or(("", rest));
        let (host, path) = match rest.strip_prefix("//").filter(|_| !is_path) {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None if is_path || rest.starts_with('/') => ("", rest),
            // What is no path has none.
            None => ("", ""),
        };
        Parts {
            scheme,
            host: host.rsplit_once('@').map_or(host, |(_, host)| host),
            path,
            query,
        }
    }

    fn host_and_port(&self) -> (&'u str, &'u str) {
        let end = self.host.rfind(']').unwrap_or(0);
        let port = self.host.rfind(':').filter(|colon| *colon >= end);
        let (host, port) = match port {
            Some(colon) => self.host.split_at(colon),
            None => (self.host, ""),
        };
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        (bare.unwrap_or(host), port.trim_start_matches(':'))
    }
}

/// The values of a query by their names.
fn queried(query: &str) -> Value {
    let mut named: HashMap<Key, Vec<Value>> = HashMap::new();
    // As in Go, a pair with a semicolon is none.
    let pairs = query
        .split('&')
        .filter(|pair| !pair.is_empty() && !pair.contains(';'));
    for pair in pairs {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if let (Some(name), Some(value)) = (unescaped(name), unescaped(value)) {
            let values = named.entry(Key::String(Arc::new(name))).or_default();
            values.push(Value::String(Arc::new(value)));
        }
    }
    let listed = named
        .into_iter()
        .map(|(name, values)| (name, Value::List(Arc::new(values))));
    Value::Map(Map {
        map: Arc::new(listed.collect()),
    })
}

/// A part of a query without escapes; none where these are wrong.
fn unescaped(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                u8::try_from(high * 16 + low).ok()?
            }
            plain => plain,
        });
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_parts() {
        for (text, scheme, host, hostname, port, path) in [
            ("http://a:80/p?q=1", "http", "a:80", "a", "80", "/p"),
            ("http://a", "http", "a", "a", "", ""),
            (
                "https://u:p@[::1]:443/a%20b",
                "https",
                "[::1]:443",
                "::1",
                "443",
                "/a%20b",
            ),
            ("/path/a:b?x", "", "", "", "", "/path/a:b"),
            ("mailto:a@b.c", "mailto", "", "", "", ""),
        ] {
            let parts = Parts::of(text);
            let found = (parts.scheme, parts.host, parts.host_and_port(), parts.path);
            assert_eq!(found, (scheme, host, (hostname, port), path), "{text}");
        }
    }
}
