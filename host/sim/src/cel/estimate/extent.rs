//! How large the values of a schema may be.

use std::collections::HashMap;

use super::range::Range;
use super::trail::{ITEMS, KEYS, Trail, VALUES};

/// The largest request that the estimate reckons with, in bytes.
const LARGEST_REQUEST: i64 = 3 * 1024 * 1024;
/// The empty list or object around what a request is full of.
const AROUND: i64 = 2;

/// How large the values of a type may be, and those below them.
#[derive(Debug, Clone)]
pub(crate) struct Extent {
    /// The most characters, items or entries.
    most: i64,
    /// The fewest bytes that a value takes in a request.
    bytes: i64,
    below: Below,
}

#[derive(Debug, Clone)]
enum Below {
    Nothing,
    Items(Box<Extent>),
    Values(Box<Extent>),
    Fields(HashMap<String, Extent>),
}

impl Extent {
    /// That of scalars which take so many bytes, and whose texts have at most so many
    /// characters.
    pub(crate) fn scalar(bytes: i64, most: i64) -> Self {
        Extent {
            most,
            bytes,
            below: Below::Nothing,
        }
    }

    /// That of lists; without a limit, those that fit into a request.
    pub(crate) fn list(items: Extent, most: Option<i64>) -> Self {
        let fitting = || (LARGEST_REQUEST - AROUND) / items.bytes.saturating_add(1);
        Extent {
            most: most.map_or_else(fitting, |most| most.max(0)),
            bytes: AROUND,
            below: Below::Items(Box::new(items)),
        }
    }

    /// That of maps; without a limit, those that fit into a request.
    pub(crate) fn map(values: Extent, most: Option<i64>) -> Self {
        let fitting = || (LARGEST_REQUEST - AROUND) / values.bytes.saturating_add(6);
        Extent {
            most: most.map_or_else(fitting, |most| most.max(0)),
            bytes: AROUND,
            below: Below::Values(Box::new(values)),
        }
    }

    /// That of objects with these fields, as expressions call them, which take so many
    /// bytes besides the braces.
    pub(crate) fn object(fields: HashMap<String, Extent>, bytes: i64) -> Self {
        Extent {
            most: 0,
            bytes: bytes.saturating_add(AROUND),
            below: Below::Fields(fields),
        }
    }

    /// The most characters of a text that nothing but the request limits.
    pub(crate) const fn unlimited() -> i64 {
        LARGEST_REQUEST - 2
    }

    /// The fewest bytes that a value takes in a request.
    pub(crate) fn bytes(&self) -> i64 {
        self.bytes
    }

    /// How many of the values one request may hold.
    pub(crate) fn at_most(&self) -> u64 {
        let most = LARGEST_REQUEST / self.bytes.saturating_add(1).max(1);
        most.cast_unsigned()
    }

    /// How large what a trail leads to may be: whatever the variable is, it is taken for
    /// a value of this type. None where the trail leads nowhere.
    pub(super) fn size(&self, trail: &Trail) -> Option<Range> {
        if trail.is_empty() {
            return None;
        }
        let mut at = self;
        let mut is_key = false;
        for part in trail.parts().iter().skip(1) {
            if is_key {
                return None;
            }
            at = match (part.as_str(), &at.below) {
                (ITEMS | VALUES, Below::Items(below) | Below::Values(below)) => below,
                (KEYS, Below::Values(_)) => {
                    is_key = true;
                    at
                }
                (field, Below::Fields(fields)) => fields.get(field)?,
                _ => return None,
            };
        }
        // Keys are texts whose size is not thought of.
        let most = if is_key { 0 } else { at.most };
        Some(Range::up_to(most.cast_unsigned()))
    }
}
