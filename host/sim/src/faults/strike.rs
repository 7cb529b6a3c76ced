//! What a fault does to a request.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};

use super::Felt;
use super::fault::Effect;
use crate::http::response::{self, Answer, BodyError};
use crate::status::{About, ApiError};

/// What happens to one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Strike {
    /// How long it has to wait.
    pub(crate) delay: Duration,
    /// What becomes of it then; none where it takes its usual way.
    pub(crate) outcome: Option<Outcome>,
    /// Where to note that it is felt, if that is later.
    pub(crate) felt: Option<Felt>,
}

/// What becomes of a request instead of what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    TooManyRequests(u32),
    InternalError,
    Unavailable(u32),
    Conflict,
    Expired,
    Reset,
    /// The connection breaks, and the request is carried out so much later.
    Lost(Duration),
    /// A watch that breaks after so long.
    Truncated(Duration),
}

impl Outcome {
    pub(super) fn of(effect: Effect) -> Option<Self> {
        Some(match effect {
            Effect::TooManyRequests { retry_after } => Outcome::TooManyRequests(retry_after),
            Effect::InternalError => Outcome::InternalError,
            Effect::Unavailable { retry_after } => Outcome::Unavailable(retry_after),
            Effect::Conflict => Outcome::Conflict,
            Effect::Expired => Outcome::Expired,
            Effect::Reset => Outcome::Reset,
            Effect::LostAnswer { delay } => Outcome::Lost(delay),
            Effect::TruncatedWatch { after } => Outcome::Truncated(after),
            // Those are delays, happen at once, or concern open watches.
            Effect::Latency { .. }
            | Effect::SlowAdmission { .. }
            | Effect::SilentWatch
            | Effect::ClockJump { .. } => return None,
        })
    }

    /// The answer, or the break of the connection. None for what is carried out all
    /// the same: a watch that goes on for a while, a request whose answer is lost.
    pub(crate) fn answer(self, about: About<'_>, watch: bool) -> Option<Result<Answer, BodyError>> {
        Some(match self {
            Outcome::Truncated(_) | Outcome::Lost(_) => return None,
            Outcome::Reset => Err(reset()),
            Outcome::TooManyRequests(seconds) => Ok(too_many_requests(seconds)),
            Outcome::InternalError => Ok(response::refusal(&ApiError::internal_error(
                "asked for by a fault",
            ))),
            Outcome::Unavailable(seconds) => {
                Ok(response::refusal(&ApiError::unavailable_for(seconds)))
            }
            Outcome::Conflict => Ok(response::refusal(&ApiError::modified(about))),
            Outcome::Expired => {
                let error = ApiError::expired("too old resource version: asked for by a fault");
                Ok(if watch {
                    response::watch_error(&error)
                } else {
                    response::refusal(&error)
                })
            }
        })
    }
}

/// The real server answers this before it knows of any API, in plain text.
fn too_many_requests(seconds: u32) -> Answer {
    let text = "Too many requests, please try again later.\n";
    let mut answer = response::text(StatusCode::TOO_MANY_REQUESTS, text);
    answer
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from(seconds));
    answer
}

/// The error of a connection that was reset.
pub(crate) fn reset() -> BodyError {
    std::io::Error::new(
        std::io::ErrorKind::ConnectionReset,
        "connection reset by peer",
    )
    .into()
}
