//! One thing that goes wrong, and for whom.
//!
//! People write it `latency: delay=200ms, verb=list|watch`.

mod error;
mod read;
mod show;

use std::time::Duration;

pub use self::error::FaultError;
use self::read::JUMP;
use super::matching::{Asked, Matcher};
use crate::http::route::Verb;

/// One thing that goes wrong, and for whom.
///
/// Read from a text such as `unavailable: resource=pods|secrets, probability=0.5`,
/// or from a map of the same fields with the name under `fault`. Shown as such a
/// text.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    pub(super) effect: Effect,
    pub(super) matcher: Matcher,
    /// Which part of the requests is struck.
    pub(super) probability: f64,
    /// How many are.
    pub(super) count: Option<u64>,
    /// For how long.
    pub(super) lasts: Option<Duration>,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Effect {
    Latency { delay: Duration, jitter: Duration },
    SlowAdmission { delay: Duration, jitter: Duration },
    TooManyRequests { retry_after: u32 },
    InternalError,
    Unavailable { retry_after: u32 },
    Conflict,
    Reset,
    LostAnswer { delay: Duration },
    TruncatedWatch { after: Duration },
    SilentWatch,
    Expired,
    ClockJump { by: i64 },
}

impl Fault {
    /// By how many milliseconds the clock is to jump, if that is what it is about.
    pub(crate) fn jump(&self) -> Option<i64> {
        match self.effect {
            Effect::ClockJump { by } => Some(by),
            _ => None,
        }
    }

    /// Whether a request is one of those that can be struck.
    pub(super) fn concerns(&self, asked: &Asked<'_>) -> bool {
        let possible = match self.effect {
            Effect::SlowAdmission { .. } | Effect::LostAnswer { .. } => {
                asked.verb.is_some_and(Verb::is_write)
            }
            Effect::Conflict => {
                matches!(asked.verb, Some(Verb::Update | Verb::Patch | Verb::Delete))
            }
            // Who asks for no version cannot be told that it is too old.
            Effect::Expired => {
                asked.versioned && matches!(asked.verb, Some(Verb::List | Verb::Watch))
            }
            Effect::TruncatedWatch { .. } | Effect::SilentWatch => asked.verb == Some(Verb::Watch),
            Effect::ClockJump { .. } => false,
            _ => true,
        };
        possible && self.matcher.matches(asked)
    }
}

impl Effect {
    pub(super) fn is_delay(self) -> bool {
        matches!(self, Effect::Latency { .. } | Effect::SlowAdmission { .. })
    }

    fn name(self) -> &'static str {
        match self {
            Effect::Latency { .. } => "latency",
            Effect::SlowAdmission { .. } => "slow-admission",
            Effect::TooManyRequests { .. } => "too-many-requests",
            Effect::InternalError => "internal-error",
            Effect::Unavailable { .. } => "unavailable",
            Effect::Conflict => "conflict",
            Effect::Reset => "reset",
            Effect::LostAnswer { .. } => "lost-answer",
            Effect::TruncatedWatch { .. } => "truncated-watch",
            Effect::SilentWatch => "silent-watch",
            Effect::Expired => "expired",
            Effect::ClockJump { .. } => JUMP,
        }
    }
}

#[cfg(test)]
mod tests;
