//! Conditions: their types, their reasons, and how they change.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use std::fmt;

/// Types of conditions that the agent sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionType {
    /// All is well.
    Ready,
    /// On a `Plugin`: the newest component and configuration are the running ones.
    Loaded,
    /// On a `Plugin`: nothing that the manifest asks for is missing.
    Granted,
    /// On a `Plugin`: earlier versions have left no objects that the running one
    /// neither sees nor deletes.
    Pruned,
    /// Work is under way or will be tried again. Present only while that is so, as
    /// kstatus expects of it.
    Reconciling,
    /// On a `Plugin`: deletions wait for a person. Present only while that is so.
    DeletionsHeld,
    /// On a `Unit`: somebody sets a field again and again that is the plugin's.
    /// Present only while that is so.
    Contested,
    /// On a `Plugin`: an outside document cannot be had, or is not what it is now.
    /// Present only while that is so.
    SourcesStale,
    /// On a `Plugin`: the registry does not say whether there is a newer artifact than
    /// the one that is known. Present only while that is so.
    ArtifactStale,
    /// On a `Plugin`: the API server refuses a `Unit` object, and what it holds would not
    /// survive a restart. Present only while that is so.
    UnitsUnwritten,
    /// Nothing more happens until somebody changes something. Present only while
    /// that is so, as kstatus expects of it.
    Stalled,
}

/// Reasons of conditions that the agent sets: the stable, machine-readable half
/// of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// All is well.
    Running,
    /// The component is being read, compiled or asked.
    Loading,
    /// The ConfigMap is gone.
    ConfigMapAbsent,
    /// The ConfigMap has no component.
    ComponentAbsent,
    /// The ConfigMap has more than one component.
    ComponentAmbiguous,
    /// Parts of the component are not there.
    PartsMissing,
    /// The component is in parts, and they are not described as they should be.
    PartsMalformed,
    /// The component is not the one that the policy names.
    DigestMismatch,
    /// The registry does not answer, or says to come back later.
    RegistryUnreachable,
    /// The registry does not let the agent pull, or the login for it cannot be had.
    RegistryDenied,
    /// The registry has no such artifact.
    ArtifactAbsent,
    /// The artifact is no plugin.
    ArtifactInvalid,
    /// What the registry gives is not what its digest says, or breaks the protocol.
    ArtifactCorrupt,
    /// The component has no signature, and must have one.
    Unsigned,
    /// The component has signatures, and none is of it and by a key that counts.
    SignatureInvalid,
    /// A new version asks for more than the one before, and a person has to say
    /// that it may.
    ApprovalRequired,
    /// A new version would do more than an upgrade may, and a person has to say that it
    /// may.
    UpgradeHeld,
    /// A new version traps for every unit that the running one serves.
    UpgradeBroken,
    /// A share of units runs the newest version, and the others will.
    Canary,
    /// Of the units that got a new version first too many failed.
    CanaryReturned,
    /// A version answered twice, on the same inputs, and not the same.
    NotDeterministic,
    /// A version wants something else each time that it sees what it has made.
    NotConvergent,
    /// A person has gone back to the version before.
    RolledBack,
    /// A person wants to go back to the version before, and that cannot be had.
    RollbackFailed,
    /// The component cannot be unpacked.
    DecompressionFailed,
    /// The component is larger than the limit.
    TooLarge,
    /// The bytes are no component.
    NotAComponent,
    /// The component is of another world.
    WrongWorld,
    /// The component does not compile.
    CompileFailed,
    /// The configuration is no YAML, or does not fit the schema.
    ConfigInvalid,
    /// `metadata` failed or makes no sense.
    MetadataFailed,
    /// `describe` failed.
    DescribeFailed,
    /// `describe` returned a manifest that cannot be used.
    ManifestInvalid,
    /// The cluster does not serve a kind of the manifest.
    KindNotServed,
    /// The ServiceAccount is absent or does not name the plugin.
    ServiceAccountUnusable,
    /// RBAC lacks a rule.
    Forbidden,
    /// The policy in the `Plugin` cannot be followed.
    PolicyInvalid,
    /// The policy says to pause.
    Suspended,
    /// Units are in trouble, or have not run yet.
    UnitsNotReady,
    /// Everything asked for is granted.
    AllGranted,
    /// Earlier versions have left no objects.
    NothingLeft,
    /// Earlier versions have left objects that the running one does not declare.
    ObjectsLeft,
    /// The API server does not answer.
    Unreachable,
    /// Not all objects have been seen yet.
    Syncing,
    /// The plugin trapped or panicked.
    Trapped,
    /// A call ran out of one of its limits.
    LimitExceeded,
    /// An outcome was refused.
    OutcomeRefused,
    /// The plugin asked to be run again later.
    Retrying,
    /// The plugin says that it cannot work until something changes.
    Terminal,
    /// The plugin waits for something.
    NotReady,
    /// The API server refused an object.
    ApplyFailed,
    /// Somebody else owns an object or a field.
    Conflict,
    /// Fields are taken from the plugin again and again.
    FieldsContested,
    /// A field cannot be changed, and the object may not be made anew.
    FieldImmutable,
    /// The namespace of an object does not exist, or is going.
    NamespaceAbsent,
    /// A primary stands for a namespace that is the agent's or Kubernetes' own.
    NamespaceReserved,
    /// An object is not healthy yet, or an outside effect finds no room yet: it is waited for.
    Waiting,
    /// A plan waits for a person.
    AwaitingApproval,
    /// The policy says that plans are only shown.
    PlanOnly,
    /// An object has failed by its own account.
    Degraded,
    /// A wave takes longer than it may.
    WaveTimedOut,
    /// A hook has failed, and with it the sync.
    HookFailed,
    /// A deletion was held back.
    DeletionHeld,
    /// An outside document cannot be fetched.
    SourceFailing,
    /// An outside document is not granted.
    SourceForbidden,
    /// An outside effect could not be had, looked at or taken away.
    ActionFailed,
    /// An outside effect is not there any more, and is made again.
    EffectGone,
    /// An outside effect is asked for no more, and stays.
    EffectKept,
    /// The journal could not be written, and so nothing was deleted.
    JournalFailed,
    /// The API server refuses a `Unit` object.
    UnitRefused,
}

impl ConditionType {
    /// The text in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Loaded => "Loaded",
            Self::Granted => "Granted",
            Self::Pruned => "Pruned",
            Self::Reconciling => "Reconciling",
            Self::Stalled => "Stalled",
            Self::DeletionsHeld => "DeletionsHeld",
            Self::Contested => "Contested",
            Self::SourcesStale => "SourcesStale",
            Self::ArtifactStale => "ArtifactStale",
            Self::UnitsUnwritten => "UnitsUnwritten",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The names of the variants are the API.
        fmt::Debug::fmt(self, f)
    }
}

/// A condition as of `now`.
pub fn condition(
    kind: impl Into<String>,
    status: &str,
    reason: impl Into<String>,
    message: impl Into<String>,
    generation: Option<i64>,
    now: Timestamp,
) -> Condition {
    let mut message = message.into();
    truncate(&mut message);
    Condition {
        type_: kind.into(),
        status: status.to_owned(),
        reason: reason.into(),
        message,
        observed_generation: generation,
        last_transition_time: Time(now),
    }
}

/// The API conventions limit a condition's message to 32,768 bytes; what people
/// read ends long before.
pub const MAX_MESSAGE: usize = 4096;

/// Cuts a text for people at [`MAX_MESSAGE`] bytes, between characters, and says so.
pub fn truncate(message: &mut String) {
    if message.len() > MAX_MESSAGE {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE));
        message.push('…');
    }
}

/// What others may put around a message before it is cut: which version runs meanwhile,
/// and how its units are.
const AROUND: usize = 512;

/// A message with a list in it, of which so much is left out, and counted, that its end is
/// there in any case: what is to be done stands there.
pub fn with_list(before: &str, items: &[impl AsRef<str>], after: &str) -> String {
    let more = |left: usize| format!("and {left} more");
    let room = (MAX_MESSAGE - AROUND).saturating_sub(after.len() + more(items.len()).len());
    let mut message = before.to_owned();
    for (index, item) in items.iter().enumerate() {
        let item = item.as_ref();
        if index > 0 {
            message.push_str("; ");
        }
        // With what divides it from the number.
        if message.len() + item.len() + "; ".len() > room {
            message.push_str(&more(items.len() - index));
            break;
        }
        message.push_str(item);
    }
    message.push_str(after);
    message
}

/// Sets a condition. The time of transition changes only with the status.
///
/// Returns whether anything changed.
pub fn set_condition(conditions: &mut Vec<Condition>, mut new: Condition) -> bool {
    let Some(old) = conditions.iter_mut().find(|c| c.type_ == new.type_) else {
        conditions.push(new);
        return true;
    };
    if old.status == new.status {
        new.last_transition_time = old.last_transition_time.clone();
    }
    let changed = *old != new;
    *old = new;
    changed
}

/// Takes a condition away. Returns whether it was there.
pub fn remove_condition(conditions: &mut Vec<Condition>, kind: ConditionType) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != kind.as_str());
    conditions.len() != before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64, status: &str, message: &str) -> Condition {
        let now = Timestamp::from_second(second).unwrap();
        condition("Ready", status, "Running", message, None, now)
    }

    #[test]
    fn the_time_is_that_of_the_last_change_of_status() {
        let mut conditions = vec![];
        assert!(set_condition(&mut conditions, at(1, "True", "a")));
        assert!(!set_condition(&mut conditions, at(2, "True", "a")));
        assert!(set_condition(&mut conditions, at(3, "True", "b")));
        assert_eq!(
            conditions[0].last_transition_time,
            at(1, "True", "").last_transition_time
        );
        assert!(set_condition(&mut conditions, at(4, "False", "b")));
        assert_eq!(
            conditions[0].last_transition_time,
            at(4, "", "").last_transition_time
        );
        assert_eq!(conditions.len(), 1);
    }

    #[test]
    fn what_is_to_be_done_is_never_cut() {
        let items = |number: usize, bytes: usize| vec!["x".repeat(bytes); number];
        assert_eq!(
            with_list("lacks: ", &["a", "b"], "; do it"),
            "lacks: a; b; do it"
        );
        for (number, bytes) in [(1, 1), (75, 60), (1000, 300), (1, 5000), (2, 3500)] {
            let message = with_list("lacks: ", &items(number, bytes), "; do it");
            assert!(message.len() <= MAX_MESSAGE - AROUND, "{}", message.len());
            let list = message.strip_prefix("lacks: ").unwrap();
            let list = list.strip_suffix("; do it").unwrap();
            let shown = list.matches(&"x".repeat(bytes)).count();
            let left = match list.strip_suffix(" more") {
                Some(list) => list.rsplit(' ').next().unwrap().parse().unwrap(),
                None => 0,
            };
            assert_eq!(shown + left, number, "{list}");
        }
        let one = with_list("", &items(3, 5000), ".");
        assert_eq!(one, "and 3 more.");
    }

    #[test]
    fn long_messages_end() {
        let long = at(1, "True", &"é".repeat(MAX_MESSAGE));
        assert!(long.message.len() <= MAX_MESSAGE + '…'.len_utf8());
    }
}
