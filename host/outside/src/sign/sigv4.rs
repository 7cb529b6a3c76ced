//! Version 4 of the signature of AWS.
//!
//! The rules are those of "Create a signed AWS API request" in the reference of AWS
//! Identity and Access Management.

use super::{decode, encode, query_pairs, set};
use crate::civil::Civil;
use ::http::header::{AUTHORIZATION, HOST, HeaderName, HeaderValue};
use ::http::{HeaderMap, Request};
use bytes::Bytes;
use reeve_core::Digest;
use ring::hmac;
use std::collections::BTreeMap;
use std::time::SystemTime;

const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");
const CONTENT: HeaderName = HeaderName::from_static("x-amz-content-sha256");

/// What a signature is good for.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) region: &'a str,
    pub(super) service: &'a str,
}

pub(super) fn sign(
    request: &mut Request<Bytes>,
    id: &str,
    secret: &str,
    session: Option<&str>,
    scope: Scope<'_>,
    now: SystemTime,
) {
    let civil = Civil::of(now);
    let (date, time) = (civil.basic_date(), civil.basic_time());
    request.headers_mut().remove(AUTHORIZATION);
    insert(request, DATE, &time);
    match session {
        Some(token) => set(request, TOKEN, token),
        None => {
            request.headers_mut().remove(TOKEN);
        }
    }
    let payload = Digest::of(request.body()).hex();
    // S3 wants it as a header; elsewhere it is not part of the request.
    if scope.service == "s3" {
        insert(request, CONTENT, &payload);
    }
    if !request.headers().contains_key(HOST) {
        let authority = request.uri().authority().map(ToString::to_string);
        insert(request, HOST, &authority.unwrap_or_default());
    }
    let (headers, names) = canonical_headers(request.headers());
    let canonical = [
        request.method().as_str(),
        &canonical_path(request.uri().path(), scope.service),
        &canonical_query(request.uri().query()),
        &headers,
        &names,
        &payload,
    ]
    .join("\n");
    let credential = format!("{date}/{}/{}/aws4_request", scope.region, scope.service);
    let digest = Digest::of(canonical.as_bytes()).hex();
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{credential}\n{digest}");
    let mut key = format!("AWS4{secret}").into_bytes();
    for part in [&date, scope.region, scope.service, "aws4_request"] {
        key = mac(&key, part);
    }
    let signature = hex(&mac(&key, &text));
    let value = format!(
        "AWS4-HMAC-SHA256 Credential={id}/{credential}, SignedHeaders={names}, Signature={signature}"
    );
    set(request, AUTHORIZATION, &value);
}

fn insert(request: &mut Request<Bytes>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        request.headers_mut().insert(name, value);
    }
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Each part is encoded twice, once for S3.
fn canonical_path(path: &str, service: &str) -> String {
    if path.is_empty() {
        return "/".to_owned();
    }
    let once = encode(&decode(path), b"/");
    match service {
        "s3" => once,
        _ => encode(once.as_bytes(), b"/"),
    }
}

fn canonical_query(query: Option<&str>) -> String {
    let mut pairs: Vec<(String, String)> = query_pairs(query)
        .into_iter()
        .map(|(name, value)| (encode(&name, b""), encode(&value, b"")))
        .collect();
    pairs.sort();
    let pairs: Vec<String> = pairs
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join("&")
}

/// The headers that are signed, and their names: those that no proxy on the way
/// changes.
fn canonical_headers(headers: &HeaderMap) -> (String, String) {
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        let name = name.as_str();
        let signed =
            name.starts_with("x-amz-") || matches!(name, "host" | "content-type" | "range");
        if signed {
            let value = value.to_str().unwrap_or_default();
            let folded: Vec<&str> = value.split_ascii_whitespace().collect();
            found.entry(name).or_default().push(folded.join(" "));
        }
    }
    let lines: String = found
        .iter()
        .map(|(name, values)| format!("{name}:{}\n", values.join(",")))
        .collect();
    let names: Vec<&str> = found.into_keys().collect();
    (lines, names.join(";"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    fn check(
        mut request: Request<Bytes>,
        key: (&str, &str),
        scope: Scope<'_>,
        at: u64,
        expected: &str,
    ) {
        let now = UNIX_EPOCH + Duration::from_secs(at);
        sign(&mut request, key.0, key.1, None, scope, now);
        let found = request.headers()[AUTHORIZATION].to_str().unwrap();
        assert!(found.ends_with(expected), "{found}");
    }

    /// From the test suite of the signature.
    #[test]
    fn a_plain_request_is_signed_as_in_the_suite() {
        let request = Request::get("https://example.amazonaws.com/").body(Bytes::new());
        check(
            request.unwrap(),
            ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
            Scope {
                region: "us-east-1",
                service: "service",
            },
            1_440_938_160,
            "SignedHeaders=host;x-amz-date, Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        );
    }

    /// From the documentation of S3.
    #[test]
    fn a_request_to_s3_is_signed_as_documented() {
        let request = Request::get("https://examplebucket.s3.amazonaws.com/test.txt")
            .header("Range", "bytes=0-9")
            .body(Bytes::new());
        check(
            request.unwrap(),
            (
                "AKIAIOSFODNN7EXAMPLE",
                "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            ),
            Scope {
                region: "us-east-1",
                service: "s3",
            },
            1_369_353_600,
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        );
    }

    #[test]
    fn paths_and_queries_have_one_form() {
        for (path, service, expected) in [
            ("", "s3", "/"),
            ("/a b", "s3", "/a%20b"),
            ("/a%20b", "s3", "/a%20b"),
            ("/a%20b", "iam", "/a%2520b"),
            ("/ü", "s3", "/%C3%BC"),
        ] {
            assert_eq!(canonical_path(path, service), expected);
        }
        assert_eq!(canonical_query(Some("b=2&a=%2f&c")), "a=%2F&b=2&c=");
    }
}
