//! Kinds whose objects get defaults only when they are read from where they are stored.
//!
//! The real server sets defaults when it reads: what was sent, and what is stored. What it
//! adds in between, such as the labels of the pods of a Job, may call for more of them.
//! Everybody is shown these, though they are not stored until the next write of the object
//! stores them, which is a write then even where it changes nothing.

use serde_json::Value;

use super::row::Kind;

/// What is set late.
#[derive(Debug, Clone, Copy)]
pub(super) struct Late {
    /// Whether anything is.
    fills: bool,
    /// Two JSON pointers: what is left out at the first is not a copy of what is at the
    /// second, but the same, so that it gets what is added there. Both are empty where
    /// nothing is so.
    same: (&'static str, &'static str),
}

impl Late {
    /// Nothing.
    pub(super) const NOTHING: Self = Late {
        fills: false,
        same: ("", ""),
    };
}

impl Kind {
    /// Reading what creation has stored sets more defaults. A map that is left out at the
    /// JSON pointer `same.0` is the very one at `same.1`.
    pub(super) const fn filled_late(mut self, same: (&'static str, &'static str)) -> Self {
        self.late = Late { fills: true, same };
        self
    }

    /// Whether the object, as it was sent, has a map twice of which the client gave one.
    pub fn shares(&self, object: &Value) -> bool {
        let (left_out, given) = self.late.same;
        let has = |pointer| {
            let map = object.pointer(pointer).and_then(Value::as_object);
            map.is_some_and(|map| !map.is_empty())
        };
        self.late.fills && !has(left_out) && has(given)
    }

    /// Has both places of a map show what was added in one of them.
    pub fn share(&self, object: &mut Value) {
        let (left_out, given) = self.late.same;
        if let Some(map) = object.pointer(given).cloned()
            && let Some(slot) = object.pointer_mut(left_out)
        {
            *slot = map;
        }
    }

    /// Makes what is to be stored of a new object what it is when it is read again. The answer
    /// is what it was, where that is something else.
    pub fn fill_late(&self, object: &mut Value) -> Option<Value> {
        if !self.late.fills {
            return None;
        }
        let before = object.clone();
        self.default(object);
        (*object != before).then_some(before)
    }
}
