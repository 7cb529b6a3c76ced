//! When objects have to be looked at again.

use std::collections::{BTreeSet, HashMap};
use std::time::SystemTime;

use super::index::Target;

/// At most one time for each object.
#[derive(Debug, Default)]
pub(super) struct Timers {
    due: BTreeSet<(SystemTime, Target)>,
    times: HashMap<Target, SystemTime>,
}

impl Timers {
    /// Sets the time of an object, in place of the one that it had.
    pub(super) fn set(&mut self, target: &Target, at: Option<SystemTime>) {
        if let Some(before) = self.times.remove(target) {
            self.due.remove(&(before, target.clone()));
        }
        if let Some(at) = at {
            self.times.insert(target.clone(), at);
            self.due.insert((at, target.clone()));
        }
    }

    /// The next time.
    pub(super) fn next(&self) -> Option<SystemTime> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Takes an object whose time has come.
    pub(super) fn pop(&mut self, now: SystemTime) -> Option<Target> {
        if self.next()? > now {
            return None;
        }
        let (_, target) = self.due.pop_first()?;
        self.times.remove(&target);
        Some(target)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn each_object_has_one_time() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let (a, b) = (Target::new("pods", "a"), Target::new("pods", "b"));
        let mut timers = Timers::default();
        timers.set(&a, Some(at(9)));
        timers.set(&b, Some(at(5)));
        timers.set(&a, Some(at(3)));
        assert_eq!(timers.next(), Some(at(3)));
        assert_eq!(timers.pop(at(2)), None);
        assert_eq!(timers.pop(at(5)), Some(a));
        assert_eq!(timers.pop(at(5)), Some(b.clone()));
        timers.set(&b, Some(at(6)));
        timers.set(&b, None);
        assert_eq!((timers.next(), timers.times.len()), (None, 0));
    }
}
