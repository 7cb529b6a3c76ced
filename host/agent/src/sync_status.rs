//! How a sync is written in a `Unit` object, and read back after a restart.

use crate::run::Sync;
use k8s_openapi::jiff::Timestamp;
use reeve_api::{BlockedBy, HookStatus, SyncStatus};
use reeve_core::waves::HookState;

/// How far a sync is, for a `Unit` object. `since` is since when the same object
/// is waited for.
pub(crate) fn write(sync: &Sync, since: Option<Timestamp>) -> Option<SyncStatus> {
    let revision = sync.revision?;
    Some(SyncStatus {
        revision: revision.to_string(),
        progress: format!("{:?}", sync.progress),
        settled: sync.settled,
        blocked_by: sync.blocked.as_ref().map(|blocked| BlockedBy {
            phase: blocked.phase.to_string(),
            wave: blocked.wave,
            object: blocked.object.to_string(),
            status: blocked.status.to_string(),
            reason: blocked.reason.clone(),
            since: since.map(|since| since.to_string()),
        }),
        hooks: sync
            .hooks
            .iter()
            .map(|(name, state)| hook(name, state))
            .collect(),
    })
}

/// What of a sync must be known again after a restart. What cannot be read is as
/// good as absent: the hooks of a revision then run once more.
pub(crate) fn read(status: &SyncStatus) -> Option<Sync> {
    Some(Sync {
        revision: Some(status.revision.parse().ok()?),
        settled: status.settled,
        hooks: status
            .hooks
            .iter()
            .map(|hook| Some((hook.name.clone(), state(hook)?)))
            .collect::<Option<_>>()?,
        ..Sync::default()
    })
}

fn hook(name: &str, state: &HookState) -> HookStatus {
    let (word, uid, reason) = match state {
        HookState::Pending => ("Pending", None, None),
        HookState::Running { uid } => ("Running", Some(uid), None),
        HookState::Succeeded { uid } => ("Succeeded", Some(uid), None),
        HookState::Failed { uid, reason } => ("Failed", Some(uid), Some(reason)),
    };
    HookStatus {
        name: name.to_owned(),
        state: word.to_owned(),
        uid: uid.cloned(),
        reason: reason.cloned(),
    }
}

fn state(hook: &HookStatus) -> Option<HookState> {
    let uid = || hook.uid.clone();
    Some(match hook.state.as_str() {
        "Pending" => HookState::Pending,
        "Running" => HookState::Running { uid: uid()? },
        "Succeeded" => HookState::Succeeded { uid: uid()? },
        "Failed" => HookState::Failed {
            uid: uid()?,
            reason: hook.reason.clone().unwrap_or_default(),
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::Digest;

    #[test]
    fn what_a_restart_needs_survives_it() {
        let uid = || "u".to_owned();
        let states = [
            HookState::Pending,
            HookState::Running { uid: uid() },
            HookState::Succeeded { uid: uid() },
            HookState::Failed {
                uid: uid(),
                reason: "exit 1".to_owned(),
            },
        ];
        let hooks = states.into_iter().enumerate();
        let sync = Sync {
            revision: Some(Digest::of(b"1")),
            settled: true,
            hooks: hooks
                .map(|(i, state)| (format!("PreSync Job a/{i}"), state))
                .collect(),
            ..Sync::default()
        };
        let written = write(&sync, None).unwrap();
        assert_eq!(read(&written), Some(sync));
        assert_eq!(write(&Sync::default(), None), None);
    }

    #[test]
    fn what_cannot_be_read_is_absent() {
        let good = SyncStatus {
            revision: Digest::of(b"1").to_string(),
            ..SyncStatus::default()
        };
        assert!(read(&good).is_some());
        let bad_revision = SyncStatus {
            revision: "1".to_owned(),
            ..good.clone()
        };
        let bad_hook = SyncStatus {
            hooks: vec![HookStatus {
                state: "Dancing".to_owned(),
                ..HookStatus::default()
            }],
            ..good
        };
        assert_eq!((read(&bad_revision), read(&bad_hook)), (None, None));
    }
}
