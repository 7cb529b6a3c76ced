//! A guest's answer as it came, before anything in it is believed.

use crate::kind::ObjectReference;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a `reconcile` call returned. Every generation of the contract is
/// converted to this form; [`crate::desired::Desired`] is its checked form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The desired objects, each one JSON text.
    pub objects: Vec<Vec<u8>>,
    /// What must not exist.
    pub absent: Vec<Absence>,
    /// Conditions about the primary.
    pub conditions: Vec<Condition>,
    /// Events on the primary.
    pub events: Vec<Event>,
    /// A status to apply to the primary.
    pub status: Option<Vec<u8>>,
    /// Outside effects that should be in place.
    pub actions: Vec<Action>,
    /// When to run again although nothing has changed.
    pub next: Next,
    /// Whether an empty set of objects is meant.
    pub empty_is_meant: bool,
}

/// Something that must not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absence {
    /// The object.
    pub object: ObjectReference,
    /// All of these must hold before it is deleted.
    pub preconditions: Vec<Precondition>,
}

/// What must hold before an absence is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// The object has this uid.
    Uid(String),
    /// The object has an ownerReference with this uid.
    OwnedBy(String),
    /// Its `status.phase` is one of these.
    Phase(Vec<String>),
}

/// A condition that the plugin reports about its primary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// Type in CamelCase.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Machine-readable reason.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It cannot be told.
    Unknown,
}

impl ConditionStatus {
    /// The text that the Kubernetes API uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// An event on the primary.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Event {
    /// Whether somebody should look.
    pub warning: bool,
    /// Machine-readable reason.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// An outside effect that should be in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// Identity among the effects of the primary.
    pub key: String,
    /// Which declared effect it is.
    pub name: String,
    /// What it needs to know, one JSON text.
    pub input: Vec<u8>,
}

/// When to run again although nothing that was read has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Next {
    /// Only on a change.
    #[default]
    OnChange,
    /// After this time at the latest.
    After(Duration),
}

impl Next {
    /// The shortest time after which a plugin is run again for nothing but its
    /// wish: one that asks for less would be run without end.
    pub const SHORTEST: Duration = Duration::from_secs(1);

    /// This, but after `limit` at the latest.
    #[must_use]
    pub fn at_the_latest(self, limit: Duration) -> Self {
        match self {
            Self::OnChange => Self::After(limit),
            Self::After(time) => Self::After(time.min(limit)),
        }
    }

    /// This, but not sooner than [`Next::SHORTEST`].
    #[must_use]
    pub fn bounded(self) -> Self {
        match self {
            Self::OnChange => Self::OnChange,
            Self::After(time) => Self::After(time.max(Self::SHORTEST)),
        }
    }
}
