//! Units that wait for room outside, in the order in which they came.

use foldhash::HashMap;
use reeve_core::UnitKey;
use std::collections::BTreeMap;

/// Units in line, each once.
#[derive(Debug, Default)]
pub(super) struct Line {
    units: BTreeMap<u64, UnitKey>,
    places: HashMap<UnitKey, u64>,
    /// How many have come so far.
    came: u64,
}

impl Line {
    /// Adds a unit at the end. One that stands in line keeps its place.
    pub(super) fn join(&mut self, unit: &UnitKey) {
        if !self.has(unit) {
            self.came += 1;
            self.units.insert(self.came, unit.clone());
            self.places.insert(unit.clone(), self.came);
        }
    }

    /// Takes a unit out, wherever it stands.
    pub(super) fn leave(&mut self, unit: &UnitKey) {
        if let Some(place) = self.places.remove(unit) {
            self.units.remove(&place);
        }
    }

    pub(super) fn has(&self, unit: &UnitKey) -> bool {
        self.places.contains_key(unit)
    }

    /// Takes the first out.
    pub(super) fn next(&mut self) -> Option<UnitKey> {
        let (_, unit) = self.units.pop_first()?;
        self.places.remove(&unit);
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
        // Who comes again stands at the end.
        line.join(&unit("a"));
        for name in ["b", "d", "a"] {
            assert_eq!(line.next(), Some(unit(name)));
        }
        assert_eq!(line.next(), None);
        assert_eq!((line.units.len(), line.places.len()), (0, 0));
    }
}
