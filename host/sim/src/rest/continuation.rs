//! Where the next page of a list starts, as handed to the caller.

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{DecodeError, alphabet};
use serde::Deserialize;
use serde_json::json;

use crate::decode;
use crate::status::ApiError;

/// As Go's `base64.RawURLEncoding`, which does not look at bits that are left over.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

const FORMAT: &str = "meta.k8s.io/v1";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Token {
    v: String,
    rv: i64,
    start: String,
}

/// Where a page starts.
#[derive(Debug)]
pub(super) struct Continuation {
    /// The version of the first page; the latest where there is none.
    pub(super) version: Option<u64>,
    /// Where the keys of the page begin, without the namespace of the request: a key, or
    /// one with a zero byte behind it.
    pub(super) start: String,
}

/// What stands for the latest version in a token: nothing stands for a broken one.
const LATEST: i64 = -1;

/// The token of the page behind the key `last`.
pub(super) fn behind(version: u64, last: &str) -> String {
    // The next key is this one and a zero byte, the smallest that is larger.
    encode(Some(version), &format!("/{last}\0"))
}

/// The token of the page that started there, of the latest version. The server writes it
/// in another place than the others, without a slash.
pub(super) fn again(start: &str) -> String {
    encode(None, start)
}

/// The token of the page that starts there, of a version or of the latest one.
fn encode(version: Option<u64>, start: &str) -> String {
    let version = version.map_or(json!(LATEST), |version| json!(version));
    BASE64.encode(json!({"v": FORMAT, "rv": version, "start": start}).to_string())
}

/// Reads a token.
pub(super) fn decode(text: &str) -> Result<Continuation, ApiError> {
    let bad = |why: &str| {
        ApiError::bad_request(format!(
            "invalid continue token: continue key is not valid: {why}"
        ))
    };
    let bytes = BASE64.decode(text).map_err(|error| {
        let at = match error {
            DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => at,
            DecodeError::InvalidLength(length) => length.saturating_sub(1),
            DecodeError::InvalidPadding => text.find('=').unwrap_or_default(),
        };
        bad(&format!("illegal base64 data at input byte {at}"))
    })?;
    decode::json(&bytes).map_err(|why| bad(&why))?;
    let token: Token = serde_json::from_slice(&bytes).map_err(|error| bad(&error.to_string()))?;
    if token.v != FORMAT {
        let why = format!("server does not recognize this encoded version {}", token.v);
        return Err(bad(&why));
    }
    let version = match token.rv {
        0 => {
            return Err(bad(&format!(
                "incorrect encoded start resourceVersion (version {FORMAT})"
            )));
        }
        version => u64::try_from(version).ok(),
    };
    if token.start.is_empty() {
        return Err(bad(&format!("encoded start key empty (version {FORMAT})")));
    }
    let relative = token.start.strip_prefix('/').unwrap_or(&token.start);
    if !is_clean(relative) {
        return Err(bad(&token.start));
    }
    Ok(Continuation {
        version,
        start: relative.to_owned(),
    })
}

/// Whether a path below the root says where it leads to in the shortest way. Others could
/// lead out of what is listed.
fn is_clean(path: &str) -> bool {
    let is_step = |step: &str| !matches!(step, "" | "." | "..");
    path.is_empty() || path.split('/').all(is_step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_back() {
        for version in [Some(7), None] {
            let read = decode(&encode(version, "ns/a\0")).unwrap();
            assert_eq!((read.version, read.start.as_str()), (version, "ns/a\0"));
        }
        for (start, expected) in [("/", ""), ("a", "a"), ("/a/b", "a/b"), ("..a", "..a")] {
            let token = json!({"v": FORMAT, "rv": 1, "start": start}).to_string();
            let read = decode(&BASE64.encode(token)).unwrap();
            assert_eq!(read.start, expected);
        }
        for (text, at) in [("e30=", 3), ("e3*0", 2), ("e30aa", 4), ("\u{e9}", 0)] {
            let error = decode(text).unwrap_err().to_string();
            let expected = format!("illegal base64 data at input byte {at}");
            assert!(error.ends_with(&expected), "{text}: {error}");
        }
        let refusal = |text: &str| {
            let token = BASE64.encode(text);
            decode(&token).unwrap_err().to_string()
        };
        let prefix = "invalid continue token: continue key is not valid: ";
        for (token, why) in [
            ("{}", "server does not recognize this encoded version "),
            (
                r#"{"v":"meta.k8s.io/v1"}"#,
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ),
            (
                r#"{"v":"meta.k8s.io/v1","rv":1}"#,
                "encoded start key empty (version meta.k8s.io/v1)",
            ),
            (r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../a"}"#, "../a"),
            (r#"{"v":"meta.k8s.io/v1","rv":1,"start":"a//b"}"#, "a//b"),
            (r#"{"v":"meta.k8s.io/v1","rv":1,"start":"//a"}"#, "//a"),
            (r#"{"v":"meta.k8s.io/v1","rv":1,"start":"a/"}"#, "a/"),
            (r#"{"v":"meta.k8s.io/v1","rv":1,"start":"a/."}"#, "a/."),
        ] {
            assert_eq!(refusal(token), format!("{prefix}{why}"));
        }
    }
}
