//! What the evaluation of expressions may cost, in the units of the real server: one for
//! each variable, field and call, and more for those that go through what they are given.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// What one evaluation may cost (`PerCallLimit` of the real server).
const OF_CALL: u64 = 1_000_000;
/// What all evaluations for one object may cost (`RuntimeCELCostBudget` of the real
/// server).
const OF_OBJECT: u64 = 10_000_000;
/// So many values one evaluation may put into others, each counted as often as it is put
/// somewhere: what that costs does not depend on their sizes in the real server, which
/// shares them. With what the evaluator copies on the way, that is some hundreds of
/// megabytes; an object of the largest size, all of small values, has fewer.
pub(super) const HELD: usize = 2 << 20;
/// All evaluations for one object end after they have used a processor for this time,
/// whatever they cost: copies of large values are free of cost and take their time here.
/// The real server reckons with a second.
const LONGEST: Duration = Duration::from_secs(5);

/// What is left for the expressions of one object.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Nothing once it was said that it is used up.
    left: Option<u64>,
    /// For how long evaluations have used a processor.
    used: Duration,
}

/// Why no further expression is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exceeded {
    /// One evaluation costs too much.
    Call,
    /// All of the object together do.
    Object,
}

impl Budget {
    /// That of one object.
    pub(crate) fn of_object() -> Self {
        Budget {
            left: Some(OF_OBJECT),
            used: Duration::ZERO,
        }
    }

    /// Whether nothing more is evaluated, nor said.
    pub(crate) fn is_over(&self) -> bool {
        self.left.is_none()
    }

    /// Evaluates something, in which the costs are counted by [`spend`].
    ///
    /// # Errors
    ///
    /// When it would cost too much. Then nothing is left.
    pub(crate) fn pay<T>(&mut self, evaluate: impl FnOnce() -> T) -> Result<T, Exceeded> {
        let Some(left) = self.left.take().filter(|left| *left > 0) else {
            return Err(Exceeded::Object);
        };
        let meter = Meter {
            left: OF_CALL,
            room: HELD,
            time: Time::within(LONGEST.saturating_sub(self.used)),
            is_exceeded: false,
        };
        let outer = Outer(METER.replace(Some(meter)));
        let made = evaluate();
        let meter = METER.take();
        drop(outer);
        let Some(meter) = meter else {
            return Err(Exceeded::Call);
        };
        self.used += meter.time.used();
        let cost = OF_CALL - meter.left;
        if cost > left {
            return Err(Exceeded::Object);
        }
        if meter.is_exceeded {
            return Err(Exceeded::Call);
        }
        self.left = Some(left - cost);
        Ok(made)
    }
}

/// The meter of an evaluation that runs.
#[derive(Debug, Clone, Copy)]
struct Meter {
    left: u64,
    /// How many values may still be put into others.
    room: usize,
    time: Time,
    is_exceeded: bool,
}

/// For how long an evaluation may use a processor. What others do to it meanwhile does not
/// count: an answer does not depend on how busy the machine is.
#[derive(Debug, Clone, Copy)]
struct Time {
    limit: Duration,
    /// What the thread had used before.
    before: Duration,
    /// When to look again: it cannot be over earlier, and to ask for the time is cheaper.
    look: Instant,
}

impl Time {
    fn within(limit: Duration) -> Self {
        Time {
            limit,
            before: computed(),
            look: Instant::now() + limit,
        }
    }

    fn used(&self) -> Duration {
        computed().saturating_sub(self.before)
    }

    fn is_over(&mut self) -> bool {
        let now = Instant::now();
        if now < self.look {
            return false;
        }
        let left = self.limit.saturating_sub(self.used());
        self.look = now + left;
        left.is_zero()
    }
}

/// For how long this thread has used a processor.
fn computed() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
}

/// The meter of the evaluation around one, which goes on however that ends.
struct Outer(Option<Meter>);

impl Drop for Outer {
    fn drop(&mut self) {
        METER.set(self.0.take());
    }
}

/// Ends the evaluation, which takes more than it may.
pub(super) fn exceed() {
    METER.with_borrow_mut(|meter| {
        if let Some(meter) = meter {
            meter.is_exceeded = true;
            meter.left = 0;
        }
    });
}

thread_local! {
    /// Functions of expressions get nothing from who evaluates these: what counts for
    /// them is found by the thread.
    static METER: RefCell<Option<Meter>> = const { RefCell::new(None) };
}

/// Counts a cost, and says whether the evaluation may go on. Without an evaluation that
/// is paid for, all may.
pub(super) fn spend(cost: u64) -> bool {
    METER.with_borrow_mut(|meter| {
        let Some(meter) = meter else { return true };
        let left = meter.left.checked_sub(cost);
        if left.is_none() || meter.time.is_over() {
            meter.is_exceeded = true;
        }
        meter.left = left.unwrap_or(0);
        !meter.is_exceeded
    })
}

/// Counts values that are put into others, and says whether they may be. Without an
/// evaluation that is paid for, all may.
pub(super) fn hold(values: usize) -> bool {
    METER.with_borrow_mut(|meter| {
        let Some(meter) = meter else { return true };
        let left = meter.room.checked_sub(values);
        meter.room = left.unwrap_or(0);
        left.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_too_much_ends_all() {
        let mut budget = Budget::of_object();
        assert_eq!(budget.pay(|| spend(OF_CALL)), Ok(true));
        assert_eq!(budget.pay(|| spend(OF_CALL + 1)), Err(Exceeded::Call));
        assert!(budget.is_over());
        assert_eq!(budget.pay(|| spend(1)), Err(Exceeded::Object));
        assert!(spend(u64::MAX));
    }

    #[test]
    fn an_evaluation_holds_so_much() {
        let mut budget = Budget::of_object();
        for _ in 0..2 {
            let held = budget.pay(|| (hold(HELD), hold(1), hold(0)));
            assert_eq!(held, Ok((true, false, true)));
        }
        assert!(hold(usize::MAX));
    }

    #[test]
    fn an_object_has_a_budget_of_its_own() {
        let mut budget = Budget::of_object();
        for _ in 0..10 {
            assert_eq!(budget.pay(|| spend(OF_CALL)), Ok(true));
        }
        assert!(!budget.is_over());
        assert_eq!(budget.pay(|| spend(1)), Err(Exceeded::Object));
        assert!(budget.is_over());
    }

    #[test]
    fn time_is_limited_as_well() {
        let mut budget = Budget::of_object();
        budget.used = LONGEST;
        assert_eq!(budget.pay(|| spend(1)), Err(Exceeded::Call));
        assert!(budget.is_over());
    }

    #[test]
    fn only_time_of_a_processor_counts() {
        let limit = Duration::from_millis(20);
        let mut time = Time::within(limit);
        std::thread::sleep(2 * limit);
        assert!(!time.is_over(), "{time:?}");
        let mut budget = Budget::of_object();
        let computes = || {
            let began = computed();
            while computed() < began + limit {}
            spend(1)
        };
        assert_eq!(budget.pay(computes), Ok(true));
        assert!(budget.used >= limit, "{budget:?}");
        while !time.is_over() {}
        assert!(time.used() >= limit, "{time:?}");
    }
}
