//! What has not been used for a while, so that its memory can be given back.
//!
//! A component that waits for its next event needs none of its machine code in memory. Of a
//! hundred plugins most wait most of the time.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often to look what is no longer used. To give the code of a component back and have it
/// again takes some microseconds, a thousandth of what is waited for it.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

/// Nothing of it is in memory, as far as can be known.
const GIVEN_BACK: u8 = 0;
/// Not used since the last look.
const RESTING: u8 = 1;
/// Used since the last look.
const USED: u8 = 2;

/// Something that can be given back while it is not used.
pub(crate) struct InUse<T> {
    value: T,
    state: AtomicU8,
}

/// All that has not been given back.
pub(crate) struct Idle<T> {
    held: Mutex<Vec<Weak<InUse<T>>>>,
}

impl<T> InUse<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            value,
            state: AtomicU8::new(GIVEN_BACK),
        }
    }

    pub(crate) fn get(&self) -> &T {
        &self.value
    }
}

impl<T> Default for Idle<T> {
    fn default() -> Self {
        Self {
            held: Mutex::default(),
        }
    }
}

impl<T> Idle<T> {
    /// Says that this is used now. True when it had been given back.
    pub(crate) fn using(&self, value: &Arc<InUse<T>>) -> bool {
        // Whoever finds it given back is the one to enter it, so it is there once.
        let is_new = value.state.swap(USED, Ordering::AcqRel) == GIVEN_BACK;
        if is_new {
            self.held.lock().push(Arc::downgrade(value));
        }
        is_new
    }

    /// Whether there is anything to give back, now or later.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.held.lock().is_empty()
    }

    /// Gives back what was not used since the look before this one. What is gone is
    /// forgotten.
    pub(crate) fn look(&self, give_back: impl Fn(&T)) {
        let mut rested = Vec::new();
        self.held.lock().retain(|value| {
            let Some(value) = value.upgrade() else {
                return false;
            };
            let is_used = value.state.load(Ordering::Acquire) == USED;
            let to = if is_used { RESTING } else { GIVEN_BACK };
            let from = if is_used { USED } else { RESTING };
            // Only this function takes a state down, so otherwise it was used just now.
            let is_down = value
                .state
                .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
                .is_ok();
            let stays = is_used || !is_down;
            if !stays {
                rested.push(value);
            }
            stays
        });
        for value in &rested {
            give_back(&value.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given_back(idle: &Idle<&'static str>) -> Vec<&'static str> {
        let seen = Mutex::new(Vec::new());
        idle.look(|name| seen.lock().push(*name));
        seen.into_inner()
    }

    #[test]
    fn what_is_not_used_between_two_looks_is_given_back_once() {
        let idle = Idle::default();
        let (busy, quiet) = (Arc::new(InUse::new("busy")), Arc::new(InUse::new("quiet")));
        assert!(!idle.is_waiting());
        idle.using(&busy);
        idle.using(&quiet);
        assert_eq!(given_back(&idle), [""; 0]);
        idle.using(&busy);
        assert_eq!(given_back(&idle), ["quiet"]);
        idle.using(&busy);
        assert_eq!(given_back(&idle), [""; 0]);
        assert_eq!(given_back(&idle), ["busy"]);
        assert!(!idle.is_waiting());
        assert_eq!(given_back(&idle), [""; 0]);
    }

    #[test]
    fn what_is_used_again_is_given_back_again() {
        let idle = Idle::default();
        let value = Arc::new(InUse::new("value"));
        for _ in 0..3 {
            idle.using(&value);
            idle.using(&value);
            assert_eq!(given_back(&idle), [""; 0]);
            assert_eq!(given_back(&idle), ["value"]);
        }
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let idle = Idle::default();
        idle.using(&Arc::new(InUse::new("gone")));
        assert!(idle.is_waiting());
        assert_eq!(given_back(&idle), [""; 0]);
        assert!(!idle.is_waiting());
    }
}
