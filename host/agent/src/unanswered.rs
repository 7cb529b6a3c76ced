//! What a call asked for and could not be shown: its answer may lack something for that.

use crate::problem::Problem;
use reeve_api::Reason;
use reeve_engine::{ReadError, SourceError};

/// So many of what is kept are named; more are counted.
const NAMED: usize = 5;

/// The first question of a call that could not be answered. A question that the manifest
/// does not declare, or that is malformed, is none: no change of the cluster answers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unanswered {
    /// What was told instead, for people.
    text: String,
    /// Whether that is for want of a right.
    forbidden: bool,
}

impl Unanswered {
    /// That of a read of the cluster, if it is one.
    pub(crate) fn read(error: &ReadError) -> Option<Self> {
        let forbidden = match error {
            ReadError::Forbidden(_) => true,
            ReadError::NotSynced(_) => false,
            ReadError::Undeclared(_) | ReadError::Invalid(_) => return None,
        };
        let text = error.to_string();
        Some(Self { text, forbidden })
    }

    /// That of a read of an outside document, if it is one.
    pub(crate) fn source(error: &SourceError) -> Option<Self> {
        let forbidden = match error {
            SourceError::Forbidden(_) => true,
            SourceError::NotSynced(_) => false,
            SourceError::Undeclared(_) => return None,
        };
        let text = error.to_string();
        Some(Self { text, forbidden })
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// That these stay, though the plugin wants them no more. `command` grants the plugin
    /// what it asks for.
    pub(crate) fn keeps(&self, command: &str, kept: &[String]) -> Problem {
        let mut names = kept.iter().take(NAMED).cloned().collect::<Vec<_>>();
        let more = kept.len().saturating_sub(NAMED);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        let mut message = format!(
            "nothing is deleted or taken away, since the plugin was not shown all that it asked \
             for, and may not return for that what it should: {}. What it does not return stays \
             until it can be shown that: {}",
            self.text,
            names.join(", "),
        );
        if self.forbidden {
            message.push_str("; see ");
            message.push_str(command);
        }
        Problem::lasting(Reason::DeletionHeld, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_answered_later_is_unanswered() {
        let text = || "x".to_owned();
        for (error, expected) in [
            (ReadError::Forbidden(text()), Some("forbidden: x")),
            (ReadError::NotSynced(text()), Some("not synced: x")),
            (ReadError::Undeclared(text()), None),
            (ReadError::Invalid(text()), None),
        ] {
            let found = Unanswered::read(&error).map(|one| one.text);
            assert_eq!(found.as_deref(), expected);
        }
        for (error, expected) in [
            (SourceError::Forbidden(text()), Some("forbidden: x")),
            (SourceError::NotSynced(text()), Some("not synced: x")),
            (SourceError::Undeclared(text()), None),
        ] {
            let found = Unanswered::source(&error).map(|one| one.text);
            assert_eq!(found.as_deref(), expected);
        }
    }
}
