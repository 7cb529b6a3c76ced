//! What is not deleted, why, and how to let it.

use super::{Candidate, Token};
use crate::kind::ObjectReference;
use serde::Serialize;
use std::fmt;

/// Deletions that wait for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hold {
    /// Why.
    pub reason: Reason,
    /// How many objects.
    pub count: usize,
    /// The first of them, for people.
    pub sample: Vec<ObjectReference>,
    /// What approves the deletion of exactly these.
    pub token: Token,
}

/// How many objects a hold names. Conditions and events are to be read.
const SAMPLE: usize = 5;

impl Hold {
    pub(super) fn new<'a>(
        reason: Reason,
        token: Token,
        held: impl IntoIterator<Item = &'a Candidate>,
    ) -> Self {
        let mut objects: Vec<_> = held.into_iter().map(|one| &one.reference).collect();
        objects.sort_unstable();
        Self {
            reason,
            count: objects.len(),
            sample: objects.into_iter().take(SAMPLE).cloned().collect(),
            token,
        }
    }
}

/// `3 deletions are held: …: ConfigMap a/b, …; approve these and no others with …`.
impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let deletions = if self.count == 1 {
            "deletion is"
        } else {
            "deletions are"
        };
        write!(f, "{} {deletions} held: {}: ", self.count, self.reason)?;
        for (index, object) in self.sample.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{object}")?;
        }
        if self.count > self.sample.len() {
            write!(f, " and {} more", self.count - self.sample.len())?;
        }
        write!(f, "; approve these and no others with {}", self.token)
    }
}

/// Why deletions wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
pub enum Reason {
    /// The plugin returned nothing, and did not say that nothing is meant.
    #[error(
        "the plugin returned no objects and did not say that an empty set is meant (of objects of \
         others, only what it contributes goes)"
    )]
    Empty,
    /// Deleting these kinds takes data of others with it.
    #[error("deleting them loses data, and they are not annotated `reeve.dev/prune: allow`")]
    Precious,
    /// Their annotations ask for a person.
    #[error("their annotations ask that a person confirms")]
    Confirm,
    /// The unit withdraws too much of what it has.
    #[error("these are more than {percent} % of the {owned} objects of the unit")]
    UnitShare {
        /// The limit.
        percent: u8,
        /// What the unit has.
        owned: usize,
    },
    /// The plugin withdraws too much of what it has.
    #[error(
        "with these the plugin would have withdrawn more than {percent} % of its {owned} objects \
         within {minutes} minutes"
    )]
    PluginShare {
        /// The limit.
        percent: u8,
        /// What the plugin has.
        owned: usize,
        /// The time over which it counts.
        minutes: u64,
    },
    /// The plugin withdraws more than it may.
    #[error("the plugin may withdraw {budget} objects within {minutes} minutes over all its units")]
    Budget {
        /// The limit.
        budget: usize,
        /// The time over which it counts.
        minutes: u64,
    },
    /// Deletions of other units of the plugin are held, so these are too.
    #[error("deletions of other units of the plugin are held")]
    Latched,
}
