//! Units that wait for room outside, in the order in which they came.

use foldhash::HashMap;
use reeve_core::UnitKey;
use std::collections::BTreeMap;

/// Units in line, each once.
#[derive(Debug, Default)]
pub(super) struct Line {
    units: BTreeMap<i64, UnitKey>,
    places: HashMap<UnitKey, i64>,
    /// Places of those that were asked in and have not come in yet.
    asked: HashMap<UnitKey, i64>,
    /// How many have come so far.
    came: i64,
    /// How many of them were let in front of all others.
    favoured: i64,
}

impl Line {
    /// Adds a unit at the end. One that stands in line keeps its place, and one that was
    /// asked in and found no room after all has it back.
    pub(super) fn join(&mut self, unit: &UnitKey) {
        if self.has(unit) {
            return;
        }
        let place = self.asked.remove(unit).unwrap_or_else(|| {
            self.came += 1;
            self.came
        });
        self.stand(unit, place);
    }

    /// Lets a unit in front of all others but those that were let in front before: a
    /// person waits for it.
    pub(super) fn join_in_front(&mut self, unit: &UnitKey) {
        let asked = self.asked.get(unit).or(self.places.get(unit));
        if asked.is_some_and(|place| *place < 0) {
            return self.join(unit);
        }
        self.leave(unit);
        self.favoured += 1;
        self.stand(unit, i64::MIN + self.favoured);
    }

    fn stand(&mut self, unit: &UnitKey, place: i64) {
        self.units.insert(place, unit.clone());
        self.places.insert(unit.clone(), place);
    }

    /// Takes a unit out, wherever it stands.
    pub(super) fn leave(&mut self, unit: &UnitKey) {
        self.asked.remove(unit);
        if let Some(place) = self.places.remove(unit) {
            self.units.remove(&place);
        }
    }

    pub(super) fn has(&self, unit: &UnitKey) -> bool {
        self.places.contains_key(unit)
    }

    /// Asks the first in.
    pub(super) fn next(&mut self) -> Option<UnitKey> {
        let (place, unit) = self.units.pop_first()?;
        self.places.remove(&unit);
        self.asked.insert(unit.clone(), place);
        Some(unit)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use reeve_core::{GroupVersionKind, ObjectReference};

    pub(in crate::effects) fn unit(name: &str) -> UnitKey {
        let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
        UnitKey::new("envoy", ObjectReference::new(kind, None, name))
    }

    #[test]
    fn first_come_first_served_and_each_once() {
        let mut line = Line::default();
        for name in ["a", "b", "c", "b", "d"] {
            line.join(&unit(name));
        }
        line.leave(&unit("c"));
        line.leave(&unit("none"));
        assert!(line.has(&unit("b")) && !line.has(&unit("c")));
        assert_eq!(line.next(), Some(unit("a")));
        // Who was asked in and found no room has its place back.
        line.join(&unit("a"));
        assert_eq!(line.next(), Some(unit("a")));
        // Who was in and comes again stands at the end.
        line.leave(&unit("a"));
        line.join(&unit("a"));
        for name in ["b", "d", "a"] {
            assert_eq!(line.next(), Some(unit(name)));
            line.leave(&unit(name));
        }
        for name in ["a", "b", "d"] {
            line.join(&unit(name));
        }
        line.join_in_front(&unit("b"));
        line.join_in_front(&unit("c"));
        line.join_in_front(&unit("b"));
        assert_eq!(line.next(), Some(unit("b")));
        line.join_in_front(&unit("b"));
        for name in ["b", "c", "a", "d"] {
            assert_eq!(line.next(), Some(unit(name)));
            line.leave(&unit(name));
        }
        assert_eq!(line.next(), None);
        let left = [line.units.len(), line.places.len(), line.asked.len()];
        assert_eq!(left, [0; 3]);
    }
}
