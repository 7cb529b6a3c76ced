//! Kinds whose objects are stored in another version of theirs, with other fields.

use reeve_ssa::Conversion;
use serde_json::Value;

use super::row::Kind;

/// The version that objects are stored in, where that is another one with other fields:
/// its rules are theirs, once it is known who owns what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stored {
    /// The row of that version.
    pub(super) kind: &'static Kind,
    /// Makes an object one of that version.
    pub(super) there: fn(&Value) -> Value,
    /// Makes it one of this version again.
    pub(super) back: fn(&Value) -> Value,
}

impl Stored {
    /// Does something to an object of the other version.
    pub(super) fn change(&self, object: &mut Value, change: impl FnOnce(&Kind, &mut Value)) {
        let mut stored = (self.there)(object);
        change(self.kind, &mut stored);
        *object = (self.back)(&stored);
    }
}

impl Kind {
    /// Has objects stored in another version.
    pub(super) const fn stored(mut self, stored: Stored) -> Self {
        self.stored = Some(stored);
        self
    }

    /// Makes an object what is stored, where that is of another version; with what was
    /// left out there.
    pub fn store(&self, object: &mut Value) {
        if let Some(Stored { kind, there, .. }) = self.stored {
            *object = there(object);
            kind.default(object);
        }
    }

    /// An object as the server itself has it, where that is another version.
    pub fn internal(&self, object: &Value) -> Option<Value> {
        self.stored.map(|stored| (stored.there)(object))
    }

    /// How objects of this version become those of another one, and back, where the two
    /// differ in their fields.
    pub(crate) fn conversion(&self, other: &Kind) -> Option<Conversion<'static>> {
        let is = |stored: &Stored, kind: &Kind| {
            (stored.kind.group, stored.kind.version) == (kind.group, kind.version)
        };
        match (&self.stored, &other.stored) {
            (Some(stored), _) if is(stored, other) => Some(Conversion::Known {
                there: stored.there,
                back: stored.back,
            }),
            (_, Some(stored)) if is(stored, self) => Some(Conversion::Known {
                there: stored.back,
                back: stored.there,
            }),
            _ => None,
        }
    }
}
