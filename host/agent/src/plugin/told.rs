//! Units that have a `Unit` object for nothing but what is to be said of them.
//!
//! A wrong component, or a kind that is served no more, has all units of a plugin in trouble
//! at once. An object of each would be one more load for an API server that may have enough
//! to bear, and nobody reads ten thousand: so many are written, the others are counted, and
//! one that is well again makes room. An object that remembers something, or in which a
//! person answers, is written however many there are.

use reeve_core::ObjectReference;
use std::collections::BTreeSet;

/// So many `Unit` objects of one plugin only tell. At a few KiB each they are a few MiB in
/// the API server, and more than a person looks at.
pub(crate) const MOST: usize = 1_000;

/// Which units are told of, and which were to be and have no object.
#[derive(Debug, Default)]
pub(crate) struct Told {
    told: BTreeSet<ObjectReference>,
    untold: BTreeSet<ObjectReference>,
}

impl Told {
    /// Whether a unit of which there is something to say gets an object for it. One that it
    /// has already, from an earlier life, stays: its words must not be old ones.
    pub(crate) fn admit(&mut self, primary: &ObjectReference, has_object: bool) -> bool {
        let known = self.told.contains(primary);
        let admitted = known || has_object || self.told.len() < MOST;
        let (into, from) = match admitted {
            true => (&mut self.told, &mut self.untold),
            false => (&mut self.untold, &mut self.told),
        };
        if !into.contains(primary) {
            from.remove(primary);
            into.insert(primary.clone());
        }
        admitted
    }

    /// Notes that a unit needs none any more, or has one for more than words. Returns one that
    /// has waited for its room, which is to say what it has to say.
    pub(crate) fn release(&mut self, primary: &ObjectReference) -> Option<ObjectReference> {
        self.untold.remove(primary);
        self.told.remove(primary);
        // One that was told to come before may have had nothing more to say.
        let has_room = self.told.len() < MOST;
        has_room.then(|| self.untold.pop_first()).flatten()
    }

    /// How many have something to say and no object.
    pub(crate) fn untold(&self) -> usize {
        self.untold.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::GroupVersionKind;

    fn primary(number: usize) -> ObjectReference {
        let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
        ObjectReference::new(kind, None, format!("p{number:05}"))
    }

    #[test]
    fn so_many_are_told_of_and_the_others_follow() {
        let mut told = Told::default();
        for number in 0..MOST + 3 {
            assert_eq!(told.admit(&primary(number), false), number < MOST);
            // It stays as it is.
            assert_eq!(told.admit(&primary(number), false), number < MOST);
        }
        assert_eq!(told.untold(), 3);
        // One of those that are not told of is well again.
        assert_eq!(told.release(&primary(MOST)), None);
        assert_eq!(told.untold(), 2);
        // One that is makes room for one.
        assert_eq!(told.release(&primary(7)), Some(primary(MOST + 1)));
        assert!(told.admit(&primary(MOST + 1), false));
        assert!(!told.admit(&primary(7), false));
        assert_eq!(told.untold(), 2);
        // One that was called and has nothing to say any more calls the next.
        assert_eq!(told.release(&primary(8)), Some(primary(7)));
        assert_eq!(told.release(&primary(7)), Some(primary(MOST + 2)));
        assert!(told.admit(&primary(MOST + 2), false));
        for number in [7, 8] {
            assert!(!told.admit(&primary(number), false));
        }
        assert_eq!(told.untold(), 2);
        // Of whom nothing was said.
        assert_eq!(told.release(&primary(MOST + 9)), None);
        // Some had objects before: they give no room before they are few enough.
        for number in 0..2 {
            assert!(told.admit(&primary(MOST + 20 + number), true));
        }
        assert_eq!(told.release(&primary(1)), None);
        assert_eq!(told.release(&primary(2)), None);
        assert_eq!(told.release(&primary(3)), Some(primary(7)));
    }
}
