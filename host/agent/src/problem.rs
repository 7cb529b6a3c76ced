//! What keeps a plugin or a unit from working, in the form in which people and
//! the scheduler need it.

use reeve_api::{Reason, truncate};
pub(crate) use reeve_core::chain;
use reeve_core::outcome::Event;
use std::fmt;

/// Why something does not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The machine-readable half.
    pub(crate) reason: Reason,
    /// For people: what, where, and what to do.
    pub(crate) message: String,
    /// Whether trying again without a change can help.
    pub(crate) retries: bool,
}

impl Problem {
    /// Something that only a change can mend.
    pub(crate) fn lasting(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            retries: false,
        }
    }

    /// Something that may mend itself, or that somebody mends where we do not
    /// watch.
    pub(crate) fn passing(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            retries: true,
        }
    }
}

impl Problem {
    /// An event that tells it.
    pub(crate) fn event(&self) -> Event {
        let mut message = self.message.clone();
        truncate(&mut message);
        Event {
            warning: true,
            reason: self.reason.to_string(),
            message,
        }
    }

    /// Whether the API server, or the account itself, has said no: nothing can be done for
    /// the plugin then. Not to be told is not to be refused.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(
            self.reason,
            Reason::Forbidden | Reason::ServiceAccountUnusable
        )
    }

    /// Whether this is no trouble but the ordinary course of things: something has
    /// to happen first, and goes on by itself when it has.
    pub(crate) fn waits(&self) -> bool {
        matches!(
            self.reason,
            Reason::Waiting
                | Reason::NamespaceAbsent
                | Reason::NamespaceReserved
                | Reason::NotReady
                | Reason::Suspended
                | Reason::AwaitingApproval
                | Reason::PlanOnly
        )
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.message)
    }
}
