//! How a sync is written in a `Unit` object, and read back after a restart.

use crate::run::{Approved, Sync};
use k8s_openapi::jiff::Timestamp;
use reeve_api::{BlockedBy, HookStatus, SyncStatus};
use reeve_core::waves::{HookState, WaveWait};

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
        approved: sync.approved.map(|what| what.as_str().to_owned()),
        used_approval: sync.used_approval.clone(),
        wave_since: sync.wait.as_ref().map(|wait| wait.since.to_string()),
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
        wait: wait(status),
        approved: status.approved.as_deref().and_then(Approved::parse),
        used_approval: status.used_approval.clone(),
        hooks: status
            .hooks
            .iter()
            .map(|hook| Some((hook.name.clone(), state(hook)?)))
            .collect::<Option<_>>()?,
        ..Sync::default()
    })
}

/// The object that was waited for before a restart, and since when.
pub(crate) fn since(status: &SyncStatus) -> Option<(String, Timestamp)> {
    let blocked = status.blocked_by.as_ref()?;
    let since = blocked.since.as_ref()?.parse().ok()?;
    Some((blocked.object.clone(), since))
}

fn wait(status: &SyncStatus) -> Option<WaveWait> {
    let blocked = status.blocked_by.as_ref()?;
    Some(WaveWait {
        phase: serde_json::from_value(blocked.phase.clone().into()).ok()?,
        wave: blocked.wave,
        since: status.wave_since.as_ref()?.parse().ok()?,
    })
}

fn hook(name: &str, state: &HookState) -> HookStatus {
    let (word, uid, reason) = match state {
        HookState::Pending => ("Pending", None, None),
        // What is pending and names an object is to be made once more.
        HookState::Again { uid } => ("Pending", Some(uid), None),
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
        "Pending" => hook
            .uid
            .clone()
            .map_or(HookState::Pending, |uid| HookState::Again { uid }),
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
    use reeve_core::health::HealthStatus;
    use reeve_core::plan::Blocked;
    use reeve_core::waves::Phase;
    use reeve_core::{Digest, ObjectReference};

    #[test]
    fn what_a_restart_needs_survives_it() {
        let uid = || "u".to_owned();
        let states = [
            HookState::Pending,
            HookState::Again { uid: uid() },
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
        assert_eq!(read(&written), Some(sync.clone()));
        // So does what a person has approved.
        let approved = Sync {
            approved: Some(Approved::Sync),
            used_approval: Some("0123".to_owned()),
            ..sync.clone()
        };
        let written = write(&approved, None).unwrap();
        assert_eq!(read(&written), Some(approved));
        assert_eq!(since(&written), None);
        // So does the time that a wave has had already.
        let at = |second| Timestamp::from_second(second).unwrap();
        let kind = reeve_core::GroupVersionKind::new("", "v1", "Pod");
        let waits = Sync {
            wait: Some(WaveWait {
                phase: Phase::PreSync,
                wave: Some(-3),
                since: at(5),
            }),
            blocked: Some(Blocked {
                phase: Phase::PreSync,
                wave: Some(-3),
                object: ObjectReference::new(kind, Some("a".to_owned()), "b"),
                status: HealthStatus::Progressing,
                reason: "it is not ready".to_owned(),
            }),
            ..sync
        };
        let written = write(&waits, Some(at(7))).unwrap();
        assert_eq!(since(&written), Some(("Pod a/b".to_owned(), at(7))));
        let found = read(&written).unwrap();
        assert_eq!((found.wait, found.blocked), (waits.wait, None));
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
