//! Why a call gave no outcome, in the plugin's own words.

use serde::{Deserialize, Serialize};

/// A failure that the guest reported. A trap or a limit is a fault of the call
/// and a different type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// It may work later.
    #[error("{0}")]
    Retry(String),
    /// It cannot work until something that was read changes.
    #[error("{0}")]
    Terminal(String),
    /// Something that was looked for is not there yet.
    #[error("{0}")]
    NotReady(String),
}

impl Failure {
    /// Whether running again without a change could help.
    pub fn retries(&self) -> bool {
        matches!(self, Self::Retry(_))
    }
}
