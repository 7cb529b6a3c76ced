//! Hooks: objects that are not part of what is desired, but of getting there.
//!
//! Phases and policies are Argo CD's; Helm's hooks map to them. Argo CD keeps a
//! finalizer on running hooks so that no time-to-live deletes them before their
//! end is seen (issues 6880, 21055), and leaks it (26180, 29464). Here the end is
//! remembered by uid instead: what is gone after it was seen to succeed has
//! succeeded.

use crate::digest::Digest;
use crate::health::{Context, Health, HealthStatus, outcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// When something is applied. In this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// Before the objects of the sync; a failure stops the sync.
    PreSync,
    /// With them. Everything that is no hook is of this phase.
    Sync,
    /// After all of them are healthy.
    PostSync,
    /// When any of the former has failed. Failures here only add to the message.
    SyncFail,
    /// Before the unit is deleted; a failure blocks the deletion.
    PreDelete,
    /// After it is deleted; a failure leaves the primary with an error.
    PostDelete,
}

impl Phase {
    pub(super) const ALL: [Self; 6] = [
        Self::PreSync,
        Self::Sync,
        Self::PostSync,
        Self::SyncFail,
        Self::PreDelete,
        Self::PostDelete,
    ];

    /// Whether it is one of those that every sync goes through.
    pub fn in_sync(self) -> bool {
        self <= Self::PostSync
    }

    pub(super) fn from_argo(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|phase| phase.to_string() == word)
    }

    /// The phase that a hook of Helm maps to. Rollback and test hooks have none.
    pub(super) fn from_helm(word: &str) -> Option<Self> {
        match word {
            "pre-install" | "pre-upgrade" => Some(Self::PreSync),
            "post-install" | "post-upgrade" => Some(Self::PostSync),
            "pre-delete" => Some(Self::PreDelete),
            "post-delete" => Some(Self::PostDelete),
            _ => None,
        }
    }
}

/// As Argo CD writes it.
impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// When a hook is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookDeletePolicy {
    /// The one of the sync before, before this one is created. The default.
    BeforeHookCreation,
    /// Once it has succeeded.
    HookSucceeded,
    /// Once it has failed.
    HookFailed,
}

impl HookDeletePolicy {
    /// By the word of Argo CD or of Helm.
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "BeforeHookCreation" | "before-hook-creation" => Some(Self::BeforeHookCreation),
            "HookSucceeded" | "hook-succeeded" => Some(Self::HookSucceeded),
            "HookFailed" | "hook-failed" => Some(Self::HookFailed),
            _ => None,
        }
    }
}

/// What makes an object a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// When it runs; at least one.
    pub phases: BTreeSet<Phase>,
    /// When it is deleted; at least one.
    pub delete: BTreeSet<HookDeletePolicy>,
}

impl Hook {
    /// Whether the hook of the sync before is deleted, and waited for to go,
    /// before this one is created.
    pub fn deletes_before_creation(&self) -> bool {
        self.delete.contains(&HookDeletePolicy::BeforeHookCreation)
    }

    /// Whether it is deleted now that it has ended like this.
    pub fn deletes_after(&self, end: &HookState) -> bool {
        match end {
            HookState::Succeeded { .. } => self.delete.contains(&HookDeletePolicy::HookSucceeded),
            HookState::Failed { .. } => self.delete.contains(&HookDeletePolicy::HookFailed),
            HookState::Pending | HookState::Again { .. } | HookState::Running { .. } => false,
        }
    }
}

/// How far a hook of one sync has come. What is kept of it between looks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HookState {
    /// It is not created yet.
    #[default]
    Pending,
    /// It is to be made once more: a person has asked for a new attempt. The object
    /// of the one before makes room for it.
    Again {
        /// Uid of the object of the attempt before.
        uid: String,
    },
    /// It runs.
    Running {
        /// Uid of the object that was created for this sync.
        uid: String,
    },
    /// It has done its work.
    Succeeded {
        /// Uid of the object that did.
        uid: String,
    },
    /// It has failed.
    Failed {
        /// Uid of the object that did.
        uid: String,
        /// Why.
        reason: String,
    },
}

impl HookState {
    /// The state from which a hook that has ended runs once more.
    #[must_use]
    pub fn again(self) -> Self {
        match self {
            Self::Succeeded { uid } | Self::Failed { uid, .. } => Self::Again { uid },
            other => other,
        }
    }

    /// The state of a hook after looking at it once more. `live` is the object as
    /// it is, or as it was last seen when it is just being reported as deleted;
    /// none when it does not exist.
    ///
    /// An end, once seen, stays: a hook runs once per sync, whatever becomes of
    /// the object.
    #[must_use]
    pub fn advance(self, live: Option<&Value>, context: &Context<'_>) -> Self {
        let expected = match &self {
            Self::Succeeded { .. } | Self::Failed { .. } => return self,
            Self::Running { uid } => Some(uid.clone()),
            Self::Pending | Self::Again { .. } => None,
        };
        let seen = live.and_then(|object| {
            let uid = object.pointer("/metadata/uid")?.as_str()?;
            Some((object, uid.to_owned()))
        });
        if let (Self::Again { uid }, Some((_, seen))) = (&self, &seen)
            && uid == seen
        {
            return self;
        }
        match (seen, expected) {
            (None, None) => Self::Pending,
            (Some((_, uid)), Some(expected)) if uid != expected => Self::Failed {
                uid: expected,
                reason: "it was replaced before its end was seen".to_owned(),
            },
            (Some((object, uid)), _) => Self::judged(uid, outcome(object, context)),
            (None, Some(uid)) => Self::Failed {
                uid,
                reason: "it was deleted before its end was seen".to_owned(),
            },
        }
    }

    fn judged(uid: String, health: Health) -> Self {
        match health.status {
            HealthStatus::Healthy => Self::Succeeded { uid },
            HealthStatus::Degraded => Self::Failed {
                uid,
                reason: health.message,
            },
            _ => Self::Running { uid },
        }
    }
}

/// The API server's limit on names of Jobs and Pods, which most hooks are.
const MAX_NAME: usize = 63;

/// The name of a hook that has none, from its `generateName` or kind, its
/// content, the phase and the revision of the sync.
///
/// Argo CD takes the time; this is the same on every look at one sync, and so
/// finds the hook that was created instead of creating it again. At most 63
/// characters, and a valid name if the prefix is.
pub fn hook_name(body: &Value, phase: Phase, revision: &str) -> String {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
    let prefix = match text("/metadata/generateName").filter(|name| !name.is_empty()) {
        Some(name) => name.to_owned(),
        None => format!("{}-", text("/kind").unwrap_or("hook").to_ascii_lowercase()),
    };
    let digest = Digest::of_parts([
        body.to_string().as_bytes(),
        phase.to_string().as_bytes(),
        revision.as_bytes(),
    ]);
    let suffix = digest.short();
    let kept: String = prefix.chars().take(MAX_NAME - suffix.len()).collect();
    format!("{kept}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn context<'a>() -> Context<'a> {
        Context::at("2026-11-21T12:00:00Z".parse().unwrap())
    }

    fn job(uid: &str, condition: Option<&str>) -> Value {
        let conditions: Vec<_> = condition
            .map(|kind| json!({"type": kind, "status": "True", "reason": "R"}))
            .into_iter()
            .collect();
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a", "uid": uid},
            "status": {"conditions": conditions}})
    }

    fn running(uid: &str) -> HookState {
        HookState::Running { uid: uid.into() }
    }

    fn again(uid: &str) -> HookState {
        HookState::Again { uid: uid.into() }
    }

    fn succeeded(uid: &str) -> HookState {
        HookState::Succeeded { uid: uid.into() }
    }

    fn failed(uid: &str, reason: &str) -> HookState {
        HookState::Failed {
            uid: uid.into(),
            reason: reason.into(),
        }
    }

    #[test]
    fn an_end_that_was_seen_stays() {
        let mut going = job("u", Some("Complete"));
        going["metadata"]["deletionTimestamp"] = json!("2026-11-21T11:59:00Z");
        for (state, live, expected) in [
            (HookState::Pending, None, HookState::Pending),
            (HookState::Pending, Some(job("u", None)), running("u")),
            (again("u"), Some(job("u", Some("Complete"))), again("u")),
            (again("u"), Some(job("v", None)), running("v")),
            (again("u"), None, HookState::Pending),
            (
                HookState::Pending,
                Some(job("u", Some("Complete"))),
                succeeded("u"),
            ),
            (running("u"), Some(job("u", None)), running("u")),
            (
                running("u"),
                Some(job("u", Some("Complete"))),
                succeeded("u"),
            ),
            (
                running("u"),
                Some(job("u", Some("Failed"))),
                failed("u", "Failed: R"),
            ),
            // Its time to live has ended it, but it had completed.
            (running("u"), Some(going), succeeded("u")),
            (
                running("u"),
                None,
                failed("u", "it was deleted before its end was seen"),
            ),
            (
                running("u"),
                Some(job("v", Some("Complete"))),
                failed("u", "it was replaced before its end was seen"),
            ),
            (succeeded("u"), None, succeeded("u")),
            (
                succeeded("u"),
                Some(job("v", Some("Failed"))),
                succeeded("u"),
            ),
            (
                failed("u", "x"),
                Some(job("u", Some("Complete"))),
                failed("u", "x"),
            ),
        ] {
            let found = state.clone().advance(live.as_ref(), &context());
            assert_eq!(found, expected, "{state:?} {live:?}");
        }
    }

    #[test]
    fn policies_say_when_a_hook_goes() {
        use HookDeletePolicy::*;
        let ends = [running("u"), succeeded("u"), failed("u", "x")];
        for (policy, before, after) in [
            (BeforeHookCreation, true, [false, false, false]),
            (HookSucceeded, false, [false, true, false]),
            (HookFailed, false, [false, false, true]),
        ] {
            let hook = Hook {
                phases: [Phase::PreSync].into(),
                delete: [policy].into(),
            };
            assert_eq!(hook.deletes_before_creation(), before);
            assert_eq!(ends.each_ref().map(|end| hook.deletes_after(end)), after);
        }
    }

    #[test]
    fn a_name_follows_content_phase_and_revision() {
        let body = json!({"kind": "Job", "metadata": {"generateName": "migrate-"}});
        let name = hook_name(&body, Phase::PreSync, "r1");
        assert!(name.starts_with("migrate-") && name.len() == 18, "{name}");
        assert_eq!(name, hook_name(&body, Phase::PreSync, "r1"));
        let other = json!({"kind": "Job", "metadata": {"generateName": "migrate-"}, "spec": {}});
        for different in [
            hook_name(&body, Phase::PostSync, "r1"),
            hook_name(&body, Phase::PreSync, "r2"),
            hook_name(&other, Phase::PreSync, "r1"),
        ] {
            assert_ne!(name, different);
        }
        let nameless = hook_name(&json!({"kind": "Job"}), Phase::PreSync, "r1");
        assert!(nameless.starts_with("job-"), "{nameless}");
        let long = json!({"metadata": {"generateName": "x".repeat(300)}});
        assert_eq!(hook_name(&long, Phase::PreSync, "r1").len(), 63);
    }
}
