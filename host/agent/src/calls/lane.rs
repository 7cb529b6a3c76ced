//! The calls of one plugin, in the turns of the threads that make them.

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// For how long a thread goes on with calls of one plugin before another may have it, so
/// that not each of many short calls waits for a thread to wake up.
const TURN: Duration = Duration::from_millis(5);

/// How many times as long as it computed a plugin's threads rest after a call that fails soon
/// after another: an instance that is thrown away is memory that all processors have to forget,
/// a trap is a signal of the kernel's besides, and memory that is filled for nothing is taken
/// from the processors' caches. Beside guests that do nothing else honest ones would notice. So
/// such calls compute for a third of the time at most, unless each does for longer than half of
/// the longest rest: were it half, every second call of others would still be beside one of
/// these, since a call lasts for longer than it computes.
const RESTS: u32 = 2;

/// No rest is shorter.
pub(super) const REST: Duration = Duration::from_millis(1);

/// No rest is longer, however long the call computed: few calls that end at their time limit
/// are noticed by nobody, and other units of the plugin wait meanwhile.
const LONGEST_REST: Duration = Duration::from_millis(200);

/// A call that fails is left alone when it began later than this after another that failed,
/// and later than it would rest: at this rate nobody notices them.
pub(super) const APART: Duration = Duration::from_millis(5);

/// Calls of one plugin, which wait for its threads.
pub(super) struct Lane {
    threads: usize,
    pub(super) state: Mutex<LaneState>,
}

#[derive(Default)]
pub(super) struct LaneState {
    waiting: VecDeque<Call>,
    /// Threads that serve the lane, or are about to.
    pub(super) serving: usize,
    /// When a call has last failed.
    failed: Option<Instant>,
    /// Until when none of its threads makes a call.
    pub(super) rests: Option<Instant>,
}

pub(super) type Call = Box<dyn FnOnce() -> Ended + Send>;

/// How a call ended, for its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Answered,
    /// By a fault that is the guest's, a panic, or an answer that says so.
    Failed,
}

/// What becomes of a lane when a turn at it is over.
pub(super) enum Next {
    /// There is nothing more to do.
    Nothing,
    /// Another turn, when it comes to it.
    Turn(Turn),
    /// Another turn, after this time.
    Rest(Turn, Duration),
}

/// One thread's turn at a lane, which then counts as served by it.
pub(super) struct Turn {
    lane: Arc<Lane>,
    over: bool,
}

/// For how long this thread has used a processor. What others do to it meanwhile, and what it
/// waits for, is not in it.
pub(super) fn computed() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
}

/// For how long a plugin rests after a failure that took so long of a processor, and began so
/// long after the one before and after what that one rested.
pub(super) fn rest_after(between: Duration, used: Duration) -> Option<Duration> {
    let rest = used.saturating_mul(RESTS);
    let follows = between < APART.max(rest);
    follows.then(|| rest.clamp(REST, LONGEST_REST))
}

impl Lane {
    /// One that so many threads serve at once.
    pub(super) fn new(threads: usize) -> Self {
        Self {
            threads,
            state: Mutex::default(),
        }
    }

    /// Adds a call. Returns a turn for one more thread, if the lane may have it.
    pub(super) fn put(self: &Arc<Self>, call: Call) -> Option<Turn> {
        let mut state = self.state.lock();
        state.waiting.push_back(call);
        let more = state.serving < self.threads;
        state.serving += usize::from(more);
        more.then(|| Turn {
            lane: Arc::clone(self),
            over: false,
        })
    }
}

impl Turn {
    /// Makes calls until there are none, the lane rests, or the turn is over.
    pub(super) fn take(mut self) -> Next {
        let end = Instant::now() + TURN;
        // To ask for it is a system call, so it is asked for when it matters: what calls
        // computed before one that fails counts for that as well, where it is not worth a rest.
        let (mut known, mut known_at) = (computed(), Instant::now());
        loop {
            let mut state = self.lane.state.lock();
            let rest = state
                .rests
                .map(|until| until.duration_since(Instant::now()));
            if let Some(rest) = rest.filter(|rest| !rest.is_zero() && !state.waiting.is_empty()) {
                drop(state);
                return Next::Rest(self, rest);
            }
            let Some(call) = state.waiting.pop_front() else {
                // Under the same lock: who adds a call now sees that nobody serves.
                state.serving -= 1;
                self.over = true;
                return Next::Nothing;
            };
            drop(state);
            let begun = Instant::now();
            let failed = call() == Ended::Failed;
            let now = Instant::now();
            let mut used = Duration::ZERO;
            if failed || now.duration_since(known_at) > REST {
                let before = std::mem::replace(&mut known, computed());
                used = known.saturating_sub(before).min(now.duration_since(begun));
                known_at = now;
            }
            if failed {
                let mut state = self.lane.state.lock();
                // A rest does not set them apart.
                let rested = state.rests;
                let before = state.failed.replace(now).max(rested);
                // Nothing, where they overlap.
                let between = before.map(|before| begun.duration_since(before));
                if let Some(rest) = between.and_then(|between| rest_after(between, used)) {
                    // Another of its threads may have to rest for longer.
                    state.rests = state.rests.max(Some(now + rest));
                }
            }
            if now >= end {
                return Next::Turn(self);
            }
        }
    }
}

impl Drop for Turn {
    /// The runtime may end before the turn comes.
    fn drop(&mut self) {
        if !self.over {
            self.lane.state.lock().serving -= 1;
        }
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("Lane")
            .field("threads", &self.threads)
            .field("waiting", &state.waiting.len())
            .field("serving", &state.serving)
            .finish()
    }
}
