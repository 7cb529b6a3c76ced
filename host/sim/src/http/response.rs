//! Answers: a body of bytes or a stream that ends when it ends.

use std::convert::Infallible;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WARNING};
use http::{HeaderValue, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use serde::Serialize;
use serde_json::Value;

use super::negotiate::Encoding;
use crate::status::ApiError;

/// A failure in the middle of an answer.
pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;
/// The body of every answer.
pub(crate) type Body = UnsyncBoxBody<Bytes, BodyError>;
/// Every answer.
pub(crate) type Answer = Response<Body>;

/// An answer of `bytes` of a media type.
pub(crate) fn bytes(code: StatusCode, media: &'static str, bytes: impl Into<Bytes>) -> Answer {
    with_body(code, media, full(bytes.into()))
}

/// An answer of plain text.
pub(crate) fn text(code: StatusCode, text: impl Into<Bytes>) -> Answer {
    bytes(code, "text/plain; charset=utf-8", text)
}

/// 204: there is nothing to say.
pub(crate) fn nothing() -> Answer {
    let mut answer = text(StatusCode::NO_CONTENT, "");
    answer.headers_mut().remove(CONTENT_TYPE);
    answer
}

/// An answer of a JSON value.
pub(crate) fn json(code: StatusCode, value: &Value) -> Answer {
    json_bytes(code, written(value).into())
}

/// Its JSON, which [`ToString`] makes in twice the time.
pub(crate) fn written(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_else(|_| value.to_string().into_bytes())
}

/// The JSON of what is written without becoming a value first.
pub(crate) fn written_of(value: &impl Serialize) -> Result<Bytes, ApiError> {
    let json = serde_json::to_vec(value).map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(json.into())
}

/// An answer of JSON that is written already.
pub(crate) fn json_bytes(code: StatusCode, json: Bytes) -> Answer {
    bytes(code, "application/json", json)
}

/// An answer of a value in the encoding that was asked for.
pub(crate) fn encoded(code: StatusCode, encoding: Encoding, value: &Value) -> Answer {
    match encoding {
        Encoding::Json => json(code, value),
        Encoding::Yaml => match serde_saphyr::to_string(value) {
            Ok(yaml) => bytes(code, "application/yaml", yaml),
            Err(error) => refusal(&ApiError::internal(error.to_string())),
        },
    }
}

/// An answer of a stream of watch events.
pub(crate) fn stream<S>(media: &'static str, frames: S) -> Answer
where
    S: Stream<Item = Result<Bytes, BodyError>> + Send + 'static,
{
    with_body(StatusCode::OK, media, streamed(frames))
}

/// A body that is a stream.
pub(crate) fn streamed<S>(frames: S) -> Body
where
    S: Stream<Item = Result<Bytes, BodyError>> + Send + 'static,
{
    let body = StreamBody::new(frames.map(|frame| frame.map(Frame::data)));
    BodyExt::boxed_unsync(body)
}

/// A watch that is over at once, with an error.
pub(crate) fn watch_error(error: &ApiError) -> Answer {
    let event = serde_json::json!({"type": "ERROR", "object": error.to_value()});
    bytes(StatusCode::OK, "application/json", format!("{event}\n"))
}

/// The answer to a request that is refused before it is known what it accepts.
pub(crate) fn refusal(error: &ApiError) -> Answer {
    refusal_in(Encoding::Json, error)
}

/// The answer to a refused request.
pub(crate) fn refusal_in(encoding: Encoding, error: &ApiError) -> Answer {
    let code = StatusCode::from_u16(error.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = encoded(code, encoding, &error.to_value());
    if let Some(seconds) = error.retry_after() {
        answer.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    answer
}

/// Adds warnings for the person at the other end.
pub(crate) fn warn(answer: &mut Answer, warnings: &[String]) {
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::try_from(format!("299 - \"{quoted}\"")) {
            answer.headers_mut().append(WARNING, value);
        }
    }
}

fn with_body(code: StatusCode, media: &'static str, body: Body) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = code;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    answer
}

/// No body.
pub(crate) fn empty() -> Body {
    full(Bytes::new())
}

/// A body of bytes.
pub(crate) fn full(bytes: Bytes) -> Body {
    Full::new(bytes)
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}
