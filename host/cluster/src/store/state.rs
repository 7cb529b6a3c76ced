//! How a watch is doing.

use std::fmt;
use std::sync::Arc;

/// The state of a watch. Its objects can be relied upon once it was `Synced`,
/// and again when it returns from `Failing`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchState {
    /// The first list is not complete.
    Syncing,
    /// The objects are those of the cluster, as far as it has told.
    Synced,
    /// The agent may not list or watch these objects. They are not answered from.
    Forbidden {
        /// In the API server's words.
        message: Arc<str>,
    },
    /// The API server does not serve the kind, for now. Its objects are not
    /// answered from.
    NotServed,
    /// No news from the cluster. Objects of a watch that was synced before are
    /// still answered from, as they were.
    Failing {
        /// What happened last.
        message: Arc<str>,
        /// How often it was tried in vain, in a row.
        failures: u32,
    },
}

impl WatchState {
    /// Whether both are the same state, whatever its details.
    pub fn same_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// A fragment for conditions: `forbidden: …`.
impl fmt::Display for WatchState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syncing => f.write_str("not listed yet"),
            Self::Synced => f.write_str("synced"),
            Self::Forbidden { message } => write!(f, "forbidden: {message}"),
            Self::NotServed => f.write_str("the api server does not serve this kind"),
            Self::Failing { message, failures } => {
                write!(f, "failing ({failures} times in a row): {message}")
            }
        }
    }
}
