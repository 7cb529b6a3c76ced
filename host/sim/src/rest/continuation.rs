//! Where the next page of a list starts, as handed to the caller.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::json;

use crate::decode;
use crate::status::ApiError;

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
    /// The key before the page, without the namespace of the request.
    pub(super) start: String,
}

/// What stands for the latest version in a token: nothing stands for a broken one.
const LATEST: i64 = -1;

/// The token of the page behind `last`, of a version or of the latest one.
pub(super) fn encode(version: Option<u64>, last: &str) -> String {
    // The next key is this one and a zero byte, the smallest that is larger.
    let start = format!("/{last}\0");
    let version = version.map_or(json!(LATEST), |version| json!(version));
    URL_SAFE_NO_PAD.encode(json!({"v": FORMAT, "rv": version, "start": start}).to_string())
}

/// Reads a token.
pub(super) fn decode(text: &str) -> Result<Continuation, ApiError> {
    let bad = |why: &str| {
        ApiError::bad_request(format!(
            "invalid continue token: continue key is not valid: {why}"
        ))
    };
    let bytes = URL_SAFE_NO_PAD
        .decode(text.trim_end_matches('='))
        .map_err(|error| bad(&error.to_string()))?;
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
    let relative = token.start.trim_start_matches('/');
    if relative.split('/').any(|step| matches!(step, "." | "..")) {
        return Err(bad(&token.start));
    }
    Ok(Continuation {
        version,
        start: relative.trim_end_matches('\0').to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_back() {
        for version in [Some(7), None] {
            let read = decode(&encode(version, "ns/a")).unwrap();
            assert_eq!((read.version, read.start.as_str()), (version, "ns/a"));
        }
        let refusal = |text: &str| {
            let token = URL_SAFE_NO_PAD.encode(text);
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
        ] {
            assert_eq!(refusal(token), format!("{prefix}{why}"));
        }
    }
}
