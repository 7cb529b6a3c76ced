//! What the containers of a pod do at a time after its start.

use std::time::Duration;

use super::script::{Failure, Script};

/// How long an image that cannot be pulled is tried, before the kubelet waits
/// between tries.
const PULL: Duration = Duration::from_secs(10);
/// How long a program runs that ends soon after each start.
const CRASH: Duration = Duration::from_secs(1);
/// The kubelet's pauses between restarts: the first, doubled each time, and the
/// longest.
const BACKOFF: Duration = Duration::from_secs(10);
const BACKOFF_MAX: Duration = Duration::from_secs(300);

/// What the containers do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Their image is being pulled, in vain; whether the kubelet waits between
    /// tries by now.
    Pulling { backing_off: bool },
    /// They run, and are ready or not.
    Running { ready: bool },
    /// They ended, and are started again after a pause.
    BackingOff,
    /// They ended for good.
    Over { failed: bool },
    /// They were ended for good, for the sake of the node.
    Evicted,
}

/// A moment in the life of the containers. Times count from the start of the pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) state: State,
    /// How often they were started again.
    pub(super) restarts: u32,
    /// When the present run began, or the last one where none is on.
    pub(super) began: Duration,
    /// When the run before ended, or this one where it has; and when that run began.
    pub(super) ended: Option<(Duration, Duration)>,
    /// When the next moment comes.
    pub(super) next: Option<Duration>,
}

/// What a pod is to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Duty<'a> {
    pub(super) script: &'a Script,
    /// Whether its programs are to end, and are not started again when they ended
    /// well.
    pub(super) completes: bool,
    /// Whether they are started again when they ended badly.
    pub(super) restarts: bool,
    /// Whether it is one of those that fail, if any do.
    pub(super) fails: bool,
}

impl Duty<'_> {
    /// Whether its programs end badly, rather than that somebody ends them.
    pub(super) fn fails_by_itself(&self) -> bool {
        self.fails
            && match self.script.failure {
                Some(Failure::Exit) => self.completes,
                Some(Failure::CrashLoop) => self.completes || self.restarts,
                _ => false,
            }
    }

    /// What the containers do `elapsed` after the start.
    pub(super) fn at(&self, elapsed: Duration) -> Moment {
        let script = self.script;
        let moment = |state, next| Moment {
            state,
            restarts: 0,
            began: Duration::ZERO,
            ended: None,
            next,
        };
        match script.failure {
            Some(Failure::ImagePull) => {
                let backing_off = elapsed >= PULL;
                moment(
                    State::Pulling { backing_off },
                    (!backing_off).then_some(PULL),
                )
            }
            Some(Failure::CrashLoop) if self.restarts && self.fails => crashing(CRASH, elapsed),
            Some(Failure::Evict) if self.fails => {
                let over = script.complete_after;
                if elapsed >= over {
                    return Moment {
                        ended: Some((Duration::ZERO, over)),
                        ..moment(State::Evicted, None)
                    };
                }
                let (ready, next) = match self.completes {
                    true => (true, None),
                    false => script.readiness(elapsed),
                };
                let next = next.map_or(over, |next| next.min(over));
                moment(State::Running { ready }, Some(next))
            }
            _ if !self.completes => {
                let (ready, next) = script.readiness(elapsed);
                moment(State::Running { ready }, next)
            }
            _ if script.stalled => moment(State::Running { ready: true }, None),
            _ if elapsed < script.complete_after => {
                let next = Some(script.complete_after);
                moment(State::Running { ready: true }, next)
            }
            _ if self.fails && self.restarts => crashing(script.complete_after.max(CRASH), elapsed),
            _ => Moment {
                ended: Some((Duration::ZERO, script.complete_after)),
                ..moment(State::Over { failed: self.fails }, None)
            },
        }
    }
}

/// Runs of `run` with growing pauses in between.
fn crashing(run: Duration, elapsed: Duration) -> Moment {
    let mut began = Duration::ZERO;
    let mut pause = BACKOFF;
    let mut before = None;
    let mut restarts = 0;
    // The pauses stop growing after a few runs; from there on runs are alike, and
    // all but the last are skipped at once.
    loop {
        let ended = began + run;
        let again = ended + pause;
        if elapsed < ended {
            return Moment {
                state: State::Running { ready: false },
                restarts,
                began,
                ended: before,
                next: Some(ended),
            };
        }
        if elapsed < again {
            return Moment {
                state: State::BackingOff,
                restarts,
                began,
                ended: Some((began, ended)),
                next: Some(again),
            };
        }
        let mut skipped = 0;
        if pause == BACKOFF_MAX {
            let period = run + pause;
            let whole = (elapsed - began).as_nanos() / period.as_nanos().max(1);
            skipped = u32::try_from(whole).unwrap_or(u32::MAX).saturating_sub(1);
        }
        let period = (run + pause) * skipped;
        before = Some((began + period, ended + period));
        began = again + period;
        restarts += 1 + skipped;
        pause = (pause * 2).min(BACKOFF_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Actors;
    use super::*;

    fn script(failure: Option<Failure>) -> Script {
        Script {
            failure,
            ready_after: Duration::from_secs(2),
            complete_after: Duration::from_secs(5),
            ..Script::of(&Actors::default())
        }
    }

    #[track_caller]
    fn check(
        script: &Script,
        policy: &str,
        at: u64,
        state: State,
        restarts: u32,
        next: Option<u64>,
    ) {
        let duty = Duty {
            script,
            completes: policy != "Always",
            restarts: policy != "Never",
            fails: script.failure.is_some(),
        };
        let moment = duty.at(Duration::from_secs(at));
        let next_in = moment.next.map(|next| next.as_secs());
        assert_eq!(
            (moment.state, moment.restarts, next_in),
            (state, restarts, next),
            "at {at}"
        );
    }

    #[test]
    fn pods_become_ready_and_jobs_complete() {
        let plain = script(None);
        check(
            &plain,
            "Always",
            1,
            State::Running { ready: false },
            0,
            Some(2),
        );
        check(&plain, "Always", 2, State::Running { ready: true }, 0, None);
        check(
            &plain,
            "Never",
            4,
            State::Running { ready: true },
            0,
            Some(5),
        );
        check(&plain, "Never", 5, State::Over { failed: false }, 0, None);
        check(
            &script(Some(Failure::Exit)),
            "Never",
            5,
            State::Over { failed: true },
            0,
            None,
        );
    }

    #[test]
    fn pods_are_evicted_whatever_they_are_for() {
        let evicted = script(Some(Failure::Evict));
        let running = |ready| State::Running { ready };
        check(&evicted, "Always", 1, running(false), 0, Some(2));
        check(&evicted, "Always", 2, running(true), 0, Some(5));
        check(&evicted, "Always", 5, State::Evicted, 0, None);
        check(&evicted, "OnFailure", 4, running(true), 0, Some(5));
        check(&evicted, "OnFailure", 5, State::Evicted, 0, None);
    }

    #[test]
    fn images_cannot_be_pulled() {
        let failing = script(Some(Failure::ImagePull));
        check(
            &failing,
            "Always",
            0,
            State::Pulling { backing_off: false },
            0,
            Some(10),
        );
        check(
            &failing,
            "Never",
            10,
            State::Pulling { backing_off: true },
            0,
            None,
        );
    }

    #[test]
    fn crashes_come_at_growing_intervals() {
        let failing = script(Some(Failure::CrashLoop));
        check(
            &failing,
            "Always",
            0,
            State::Running { ready: false },
            0,
            Some(1),
        );
        check(&failing, "Always", 1, State::BackingOff, 0, Some(11));
        check(
            &failing,
            "Always",
            11,
            State::Running { ready: false },
            1,
            Some(12),
        );
        check(&failing, "Always", 12, State::BackingOff, 1, Some(32));
        // 11 + 21 + 41 + 81 + 161 = 315, and 301 from there on.
        check(
            &failing,
            "Always",
            315,
            State::Running { ready: false },
            5,
            Some(316),
        );
        check(
            &failing,
            "Always",
            616,
            State::Running { ready: false },
            6,
            Some(617),
        );
        check(
            &failing,
            "Always",
            315 + 301 * 1000,
            State::Running { ready: false },
            1005,
            Some(316 + 301 * 1000),
        );
        check(
            &failing,
            "Always",
            316 + 301 * 1000,
            State::BackingOff,
            1005,
            Some(315 + 301 * 1001),
        );
    }
}
