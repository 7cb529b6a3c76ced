//! Compression of long answers.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, VARY};
use http::{HeaderMap, HeaderValue};
use http_body::Body as _;
use http_body_util::BodyExt as _;

use super::response::{self, Answer};

/// Shorter answers are sent as they are, as by the real server.
const WORTHWHILE: u64 = 128 * 1024;

/// The answer, compressed where the caller takes that and it is worth it. Streams
/// are left alone.
pub(super) async fn answer(asked: &HeaderMap, answer: Answer) -> Answer {
    let length = answer.body().size_hint().exact();
    if !accepts_gzip(asked) || length.is_none_or(|length| length <= WORTHWHILE) {
        return answer;
    }
    let (mut parts, body) = answer.into_parts();
    // The body is in memory: it neither fails nor waits.
    let bytes = match body.collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(_) => return Answer::from_parts(parts, response::empty()),
    };
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let bytes = match encoder.write_all(&bytes).and_then(|()| encoder.finish()) {
        Ok(zipped) => {
            let gzip = HeaderValue::from_static("gzip");
            parts.headers.insert(CONTENT_ENCODING, gzip);
            let header = HeaderValue::from_static("Accept-Encoding");
            parts.headers.insert(VARY, header);
            zipped.into()
        }
        Err(_) => bytes,
    };
    Answer::from_parts(parts, response::full(bytes))
}

fn accepts_gzip(asked: &HeaderMap) -> bool {
    let values = asked.get_all(ACCEPT_ENCODING).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|coding| coding.split(';').next().is_some_and(|c| c.trim() == "gzip"))
}
