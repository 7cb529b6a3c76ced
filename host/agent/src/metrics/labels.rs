//! What is told apart.

use prometheus_client::encoding::EncodeLabelSet;
use reeve_cluster::WriteError;
use std::sync::Arc;

/// How a run went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunResult {
    /// The desired state is in place.
    Success,
    /// It is, and the plugin wants to be called again after some time.
    RequeueAfter,
    /// Something is in the way.
    Error,
}

impl RunResult {
    pub(super) const ALL: [Self; 3] = [Self::Success, Self::RequeueAfter, Self::Error];

    /// In controller-runtime's words.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::RequeueAfter => "requeue_after",
            Self::Error => "error",
        }
    }
}

/// What was done for a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// A server-side apply.
    Apply,
    /// A creation, of a namespace for what is to be in it.
    Create,
    /// A deletion.
    Delete,
}

impl Verb {
    pub(super) const ALL: [Self; 3] = [Self::Apply, Self::Create, Self::Delete];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Create => "create",
            Self::Delete => "delete",
        }
    }
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteResult {
    /// It was done.
    Success,
    /// A right was missing, or admission said no.
    Forbidden,
    /// Somebody else's object or field, or another version.
    Conflict,
    /// The object was not acceptable.
    Invalid,
    /// No answer, or too much to do.
    Unreachable,
    /// Another replica leads.
    NotLeader,
    /// Anything else.
    Error,
}

impl WriteResult {
    /// What an error counts as.
    pub(crate) fn of(error: &WriteError) -> Self {
        if error.is_not_leader() {
            return Self::NotLeader;
        }
        match error {
            WriteError::Forbidden { .. }
            | WriteError::MayNotImpersonate { .. }
            | WriteError::Denied { .. } => Self::Forbidden,
            WriteError::Conflict { .. } | WriteError::Precondition { .. } => Self::Conflict,
            WriteError::Invalid { .. } => Self::Invalid,
            WriteError::Unreachable { .. } | WriteError::Throttled { .. } => Self::Unreachable,
            _ => Self::Error,
        }
    }

    pub(super) const ALL: [Self; 7] = [
        Self::Success,
        Self::Forbidden,
        Self::Conflict,
        Self::Invalid,
        Self::Unreachable,
        Self::NotLeader,
        Self::Error,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Forbidden => "forbidden",
            Self::Conflict => "conflict",
            Self::Invalid => "invalid",
            Self::Unreachable => "unreachable",
            Self::NotLeader => "not_leader",
            Self::Error => "error",
        }
    }
}

/// States of units.
pub(super) const UNIT_STATES: [&str; 4] = ["ready", "waiting", "failing", "unknown"];

/// A plugin, where controller-runtime has a controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Controller {
    pub(super) controller: Arc<str>,
}

/// A plugin's part of the queue: client-go calls it by name, and
/// controller-runtime adds the controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Queue {
    pub(super) name: Arc<str>,
    pub(super) controller: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Reconcile {
    pub(super) controller: Arc<str>,
    pub(super) result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Plugin {
    pub(super) plugin: Arc<str>,
}

/// A plugin, and what runs of it; empty when nothing does.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Info {
    pub(super) plugin: Arc<str>,
    pub(super) digest: String,
    pub(super) version: String,
}

/// A limit, by its name in `Plugin.spec.limits`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Exceeded {
    pub(super) plugin: Arc<str>,
    pub(super) limit: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Units {
    pub(super) plugin: Arc<str>,
    pub(super) state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Write {
    pub(super) plugin: Arc<str>,
    pub(super) verb: &'static str,
    pub(super) result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Request {
    pub(super) code: String,
    pub(super) method: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Watched {
    pub(super) resource: String,
}
