//! How many units of a plugin are how, known at any time without visiting them.

use reeve_api::UnitCounts;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// How a unit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Health {
    /// It has not run yet.
    #[default]
    Unknown,
    /// Its desired state is in place.
    Ready,
    /// Something has to happen first.
    Waiting,
    /// It is in trouble.
    Failing,
}

/// The units of one plugin, counted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    total: AtomicU32,
    ready: AtomicU32,
    waiting: AtomicU32,
    failing: AtomicU32,
    unheard: AtomicU32,
    behind: AtomicU32,
}

impl Tally {
    /// Those whose primaries exist, and those of which something is left that cannot be
    /// taken away.
    pub(crate) fn counts(&self) -> UnitCounts {
        UnitCounts {
            total: self.total.load(Relaxed),
            ready: self.ready.load(Relaxed),
            waiting: self.waiting.load(Relaxed),
            failing: self.failing.load(Relaxed),
            ..UnitCounts::default()
        }
    }

    /// Whether all whose primaries exist have run since the guard was made.
    pub(crate) fn all_heard(&self) -> bool {
        self.unheard.load(Relaxed) == 0
    }

    /// Whether all whose primaries exist have run under the version that runs.
    pub(crate) fn all_caught_up(&self) -> bool {
        self.behind.load(Relaxed) == 0
    }

    /// The counters that one which is like this is in.
    fn of(&self, course: &Course) -> impl Iterator<Item = &AtomicU32> {
        let health = match course.health {
            Health::Unknown => None,
            Health::Ready => Some(&self.ready),
            Health::Waiting => Some(&self.waiting),
            Health::Failing => Some(&self.failing),
        };
        let unheard = (!course.heard && course.present).then_some(&self.unheard);
        let behind = (!course.caught_up && course.present).then_some(&self.behind);
        let counted = course.is_counted();
        let [total, health] = [Some(&self.total), health].map(|one| one.filter(|_| counted));
        [total, health, unheard, behind].into_iter().flatten()
    }
}

/// What is counted of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Course {
    /// Whether the primary exists, as far as is known.
    pub(crate) present: bool,
    pub(crate) health: Health,
    /// Whether it has run since the guard was made.
    pub(crate) heard: bool,
    /// Whether it has run under the version that runs, and does not run once more at once.
    pub(crate) caught_up: bool,
}

impl Course {
    /// Whether it is one of the units that are counted.
    pub(crate) fn is_counted(&self) -> bool {
        self.present || matches!(self.health, Health::Waiting | Health::Failing)
    }
}

/// The course of one unit, which its plugin's tally follows until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    course: Course,
    tally: Arc<Tally>,
}

impl Counted {
    /// One that has no primary yet, and has not run.
    pub(crate) fn new(tally: Arc<Tally>) -> Self {
        let course = Course::default();
        Self { course, tally }
    }

    pub(crate) fn get(&self) -> Course {
        self.course
    }

    pub(crate) fn set(&mut self, course: Course) {
        for counter in self.tally.of(&self.course) {
            counter.fetch_sub(1, Relaxed);
        }
        self.course = course;
        for counter in self.tally.of(&self.course) {
            counter.fetch_add(1, Relaxed);
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.set(Course::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn course() -> impl Strategy<Value = Course> {
        let health = prop_oneof![
            Just(Health::Unknown),
            Just(Health::Ready),
            Just(Health::Waiting),
            Just(Health::Failing)
        ];
        let any = (any::<bool>(), health, any::<bool>(), any::<bool>());
        any.prop_map(|(present, health, heard, caught_up)| Course {
            present,
            health,
            heard,
            caught_up,
        })
    }

    proptest! {
        /// Whatever becomes of units, the tally is what counting them would give.
        #[test]
        fn it_is_what_counting_gives(
            changes in prop::collection::vec((0_usize..4, prop::option::of(course())), 0..40),
        ) {
            let tally = Arc::new(Tally::default());
            let mut units: [Option<Counted>; 4] = [const { None }; 4];
            for (unit, change) in changes {
                match change {
                    None => units[unit] = None,
                    Some(course) => units[unit]
                        .get_or_insert_with(|| Counted::new(tally.clone()))
                        .set(course),
                }
                let all: Vec<Course> = units.iter().flatten().map(Counted::get).collect();
                let in_trouble = [Health::Waiting, Health::Failing];
                let counted = all.iter()
                    .filter(|one| one.present || in_trouble.contains(&one.health));
                let counted: Vec<Course> = counted.copied().collect();
                let count = |health| {
                    counted.iter().filter(|one| one.health == health).count() as u32
                };
                let expected = UnitCounts {
                    total: counted.len() as u32,
                    ready: count(Health::Ready),
                    waiting: count(Health::Waiting),
                    failing: count(Health::Failing),
                    ..UnitCounts::default()
                };
                prop_assert_eq!(tally.counts(), expected);
                let present = || all.iter().filter(|one| one.present);
                prop_assert_eq!(tally.all_heard(), present().all(|one| one.heard));
                prop_assert_eq!(tally.all_caught_up(), present().all(|one| one.caught_up));
            }
        }
    }
}
