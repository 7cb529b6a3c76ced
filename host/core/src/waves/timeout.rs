//! How long a wave may take.
//!
//! A wave that takes longer is told to be stuck, so that somebody looks; it is
//! waited for all the same, since what is late may still come. A newer desired
//! state ends the wait, and a person may ask for a new attempt.

use super::hook::Phase;
use crate::annotations::{Annotations, Warning};
use crate::health::DEFAULT_WAVE_TIMEOUT;
use crate::plan::{Blocked, Wanted};
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

/// Annotation: how long the wave of this object may take, such as `90s`, `15m` or
/// `1h30m`. Of several in one wave the longest counts.
pub const WAVE_TIMEOUT_ANNOTATION: &str = "reeve.dev/wave-timeout";

/// A wave that is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaveWait {
    /// Its phase.
    pub phase: Phase,
    /// The wave; none where waves are not what orders.
    pub wave: Option<i64>,
    /// Since when it is waited for, whichever of its objects it was at first.
    pub since: Timestamp,
}

impl WaveWait {
    /// The wait for what a plan says is waited for. A wave that was waited for
    /// before has been since then.
    pub fn follow(before: Option<Self>, blocked: Option<&Blocked>, now: Timestamp) -> Option<Self> {
        let blocked = blocked?;
        let same = |wait: &Self| (wait.phase, wait.wave) == (blocked.phase, blocked.wave);
        Some(before.filter(same).unwrap_or(Self {
            phase: blocked.phase,
            wave: blocked.wave,
            since: now,
        }))
    }

    /// How long it may go on; none when it has taken too long.
    pub fn left(&self, timeout: Duration, now: Timestamp) -> Option<Duration> {
        // A clock that was set back makes no wave older.
        let elapsed = now.duration_since(self.since).max(SignedDuration::ZERO);
        let elapsed = Duration::try_from(elapsed).unwrap_or_default();
        timeout.checked_sub(elapsed).filter(|left| !left.is_zero())
    }

    /// How long it may take: what its objects say, or the default.
    pub fn timeout(&self, wanted: &[Wanted]) -> Duration {
        let of_wave = wanted.iter().filter(|one| {
            let phase = match &one.member.options.role {
                super::Role::Hook(hook) => hook.phases.contains(&self.phase),
                _ => self.phase == Phase::Sync,
            };
            phase && self.wave.is_none_or(|wave| wave == one.member.options.wave)
        });
        let said = of_wave.filter_map(|one| one.member.timeout);
        said.max().unwrap_or(DEFAULT_WAVE_TIMEOUT)
    }
}

/// How long the wave of an object may take, if it says so, and what is wrong with
/// what it says.
pub(super) fn wave_timeout(annotations: &Annotations<'_>) -> (Option<Duration>, Option<Warning>) {
    let Some(text) = annotations.get(WAVE_TIMEOUT_ANNOTATION) else {
        return (None, None);
    };
    let parsed = text.trim().parse::<SignedDuration>().ok();
    match parsed.and_then(|span| Duration::try_from(span).ok()) {
        Some(timeout) if timeout >= Duration::from_secs(1) => (Some(timeout), None),
        _ => {
            let expected = "a time of at least a second, such as `90s`, `15m` or `1h30m`; \
                            the default is used";
            let warning = Warning::new(WAVE_TIMEOUT_ANNOTATION, text, expected);
            (None, Some(warning))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::HealthStatus;
    use crate::kind::{GroupVersionKind, ObjectReference};

    fn blocked(wave: i64) -> Blocked {
        let kind = GroupVersionKind::new("", "v1", "Pod");
        Blocked {
            phase: Phase::Sync,
            wave: Some(wave),
            object: ObjectReference::new(kind, None, "a"),
            status: HealthStatus::Progressing,
            reason: String::new(),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_wait_lasts_as_long_as_the_wave() {
        let first = WaveWait::follow(None, Some(&blocked(1)), at(10)).unwrap();
        let again = WaveWait::follow(Some(first.clone()), Some(&blocked(1)), at(20));
        assert_eq!(again, Some(first.clone()));
        let next = WaveWait::follow(Some(first.clone()), Some(&blocked(2)), at(30)).unwrap();
        assert_eq!(next.since, at(30));
        assert_eq!(WaveWait::follow(Some(first), None, at(40)), None);
    }

    #[test]
    fn time_runs_out_once() {
        let wait = WaveWait::follow(None, Some(&blocked(1)), at(100)).unwrap();
        let timeout = Duration::from_secs(60);
        for (now, left) in [
            (100, Some(60)),
            (159, Some(1)),
            (160, None),
            (9_999, None),
            (0, Some(60)),
        ] {
            let found = wait.left(timeout, at(now)).map(|left| left.as_secs());
            assert_eq!(found, left, "{now}");
        }
    }

    #[test]
    fn what_is_said_is_checked() {
        for (text, seconds) in [
            ("90s", Some(90)),
            ("15m", Some(900)),
            (" 1h30m ", Some(5400)),
            ("PT5M", Some(300)),
            ("0s", None),
            ("-5m", None),
            ("1ms", None),
            ("soon", None),
            ("", None),
        ] {
            let annotations = [(WAVE_TIMEOUT_ANNOTATION, text)].into_iter().collect();
            let (found, warning) = wave_timeout(&annotations);
            assert_eq!(found.map(|found| found.as_secs()), seconds, "{text}");
            assert_eq!(warning.is_some(), seconds.is_none(), "{text}");
        }
        assert_eq!(wave_timeout(&Annotations::default()), (None, None));
    }
}
