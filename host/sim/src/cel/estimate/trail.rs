//! The way from a variable to a value below it.

use std::cell::RefCell;
use std::rc::Rc;

/// What stands in a trail for any item of a list.
pub(super) const ITEMS: &str = "@items";
/// For any index of a list.
pub(super) const INDICES: &str = "@indices";
/// For any key of a map.
pub(super) const KEYS: &str = "@keys";
/// For any value of a map.
pub(super) const VALUES: &str = "@values";

/// A variable, and the fields that lead from it to a value.
///
/// The real server grows these as Go grows slices: two that are grown from one share its
/// room while there is some, and the later one overwrites the end of the earlier one. What
/// it takes the sizes of values for depends on that, so it is the same here.
#[derive(Debug, Clone, Default)]
pub(super) struct Trail {
    parts: Rc<RefCell<Vec<String>>>,
    length: usize,
    room: usize,
}

impl Trail {
    /// That of a variable itself.
    pub(super) fn of(name: &str) -> Self {
        Trail {
            parts: Rc::new(RefCell::new(vec![name.to_owned()])),
            length: 1,
            room: 1,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The same with no room that others share.
    pub(super) fn copied(&self) -> Self {
        Trail {
            parts: Rc::new(RefCell::new(self.parts())),
            length: self.length,
            room: self.length,
        }
    }

    /// One further.
    pub(super) fn grown(&self, part: &str) -> Self {
        let length = self.length + 1;
        if length <= self.room {
            let mut parts = self.parts.borrow_mut();
            match parts.get_mut(self.length) {
                Some(known) => part.clone_into(known),
                None => parts.push(part.to_owned()),
            }
            let parts = self.parts.clone();
            return Trail {
                parts,
                length,
                ..*self
            };
        }
        let mut parts = self.parts();
        parts.push(part.to_owned());
        Trail {
            parts: Rc::new(RefCell::new(parts)),
            length,
            room: (self.room * 2).max(1),
        }
    }

    /// The variable and the fields.
    pub(super) fn parts(&self) -> Vec<String> {
        let parts = self.parts.borrow();
        parts.iter().take(self.length).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_grown_from_one_shares_its_room() {
        let two = Trail::of("self").grown("a");
        let (b, c) = (two.grown("b"), two.grown("c"));
        assert_eq!(b.parts(), ["self", "a", "b"]);
        assert_eq!(c.parts(), ["self", "a", "c"]);
        let (d, e) = (b.grown("d"), b.grown("e"));
        assert_eq!(d.parts(), ["self", "a", "b", "e"]);
        assert_eq!(e.parts(), ["self", "a", "b", "e"]);
        assert_eq!(b.parts(), ["self", "a", "b"]);
        assert!(Trail::default().is_empty());
    }
}
