//! Shared Key of Azure storage.
//!
//! The rules are those of "Authorize with Shared Key" for the Blob, Queue and File
//! services, from version 2015-02-21 of the services on.

use super::{query_pairs, set};
use crate::civil::Civil;
use ::http::header::{AUTHORIZATION, CONTENT_LENGTH, HeaderName, HeaderValue};
use ::http::{HeaderMap, Request};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use ring::hmac;
use std::collections::BTreeMap;
use std::time::SystemTime;

const DATE: HeaderName = HeaderName::from_static("x-ms-date");
const VERSION: HeaderName = HeaderName::from_static("x-ms-version");

/// Version of the service that is asked for when the request does not say: the
/// first with every operation on containers that plugins use.
const DEFAULT_VERSION: HeaderValue = HeaderValue::from_static("2021-08-06");

/// Standard headers that are signed, in their order, after `Content-Length`.
const SIGNED: [&str; 8] = [
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
];

pub(super) fn decode(key: &str) -> Option<Vec<u8>> {
    STANDARD.decode(key).ok().filter(|key| !key.is_empty())
}

pub(super) fn sign(request: &mut Request<Bytes>, account: &str, key: &[u8], now: SystemTime) {
    let date = Civil::of(now).http_date();
    if let Ok(date) = HeaderValue::from_str(&date) {
        request.headers_mut().insert(DATE, date);
    }
    let headers = request.headers_mut();
    headers.entry(VERSION).or_insert(DEFAULT_VERSION);
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let signature = hmac::sign(&key, string_to_sign(request, account).as_bytes());
    let signature = STANDARD.encode(signature.as_ref());
    set(
        request,
        AUTHORIZATION,
        &format!("SharedKey {account}:{signature}"),
    );
}

fn string_to_sign(request: &Request<Bytes>, account: &str) -> String {
    let headers = request.headers();
    let length = match headers.get(CONTENT_LENGTH) {
        Some(length) => length.to_str().unwrap_or_default().to_owned(),
        None => request.body().len().to_string(),
    };
    // From version 2015-02-21 on, no length is an empty line.
    let length = if length == "0" { String::new() } else { length };
    let mut lines = vec![
        request.method().to_string(),
        value(headers, "content-encoding"),
        value(headers, "content-language"),
        length,
    ];
    lines.extend(SIGNED.iter().map(|name| value(headers, name)));
    let mut text = lines.join("\n");
    text.push('\n');
    text.push_str(&canonical_headers(headers));
    text.push_str(&canonical_resource(request, account));
    text
}

fn value(headers: &HeaderMap, name: &str) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().trim().to_owned()
}

fn canonical_headers(headers: &HeaderMap) -> String {
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        if name.as_str().starts_with("x-ms-") {
            let value = value.to_str().unwrap_or_default();
            let folded: Vec<&str> = value.split_ascii_whitespace().collect();
            found
                .entry(name.as_str())
                .or_default()
                .push(folded.join(" "));
        }
    }
    found
        .iter()
        .map(|(name, values)| format!("{name}:{}\n", values.join(",")))
        .collect()
}

fn canonical_resource(request: &Request<Bytes>, account: &str) -> String {
    let mut text = format!("/{account}{}", request.uri().path());
    let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in query_pairs(request.uri().query()) {
        let name = String::from_utf8_lossy(&name).to_lowercase();
        let value = String::from_utf8_lossy(&value).into_owned();
        parameters.entry(name).or_default().push(value);
    }
    for (name, mut values) in parameters {
        values.sort();
        text.push_str(&format!("\n{name}:{}", values.join(",")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the documentation.
    #[test]
    fn the_string_to_sign_is_that_of_the_documentation() {
        let request = Request::get(
            "https://myaccount.blob.core.windows.net/mycontainer?comp=metadata&restype=container&timeout=20",
        )
        .header("x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT")
        .header("x-ms-version", "2015-02-21")
        .body(Bytes::new())
        .unwrap();
        assert_eq!(
            string_to_sign(&request, "myaccount"),
            "GET\n\n\n\n\n\n\n\n\n\n\n\n\
             x-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n\
             /myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20"
        );
    }

    #[test]
    fn a_body_and_repeated_parameters_are_part_of_it() {
        let request = Request::put("http://127.0.0.1:10000/acc/c?include=b&include=a&X=%2F")
            .header("Content-Type", "text/plain")
            .header("x-ms-meta-b", "  two   words ")
            .body(Bytes::from_static(b"12345"))
            .unwrap();
        let text = string_to_sign(&request, "acc");
        assert!(text.starts_with("PUT\n\n\n5\n\ntext/plain\n"), "{text}");
        assert!(text.contains("x-ms-meta-b:two words\n"), "{text}");
        assert!(text.ends_with("/acc/acc/c\ninclude:a,b\nx:/"), "{text}");
    }
}
