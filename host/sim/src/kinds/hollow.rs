//! Kinds that tell an empty list from none.

use std::collections::BTreeSet;

use serde_json::Value;

use super::row::{Kind, set_generation};

/// Where a kind tells an empty list from none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hollow {
    /// The field; empty where there is none.
    field: &'static str,
    /// Paths in it that are not left empty, but filled in.
    filled: &'static [&'static str],
}

impl Hollow {
    /// Nowhere.
    pub(super) const NOWHERE: Self = Hollow {
        field: "",
        filled: &[],
    };
}

impl Kind {
    /// In this field, an empty list is another one than none until it is stored: who
    /// writes one changes the generation, each time. At the paths `filled` it gets
    /// defaults before.
    pub(super) const fn hollow(
        mut self,
        field: &'static str,
        filled: &'static [&'static str],
    ) -> Self {
        self.hollow = Hollow { field, filled };
        self
    }

    /// Whether empty lists or maps in what is sent make a difference.
    pub fn minds_hollow(&self) -> bool {
        !self.hollow.field.is_empty()
    }

    /// Counts the generation for lists and maps that came empty, at the paths `hollow`,
    /// where the kind takes that for a change.
    pub fn count_hollow(&self, object: &mut Value, old: &Value, hollow: &BTreeSet<String>) {
        let Hollow { field, filled } = self.hollow;
        let counts = |path: &String| {
            path.split('.').next() == Some(field) && !filled.contains(&path.as_str())
        };
        if !self.minds_hollow() || !hollow.iter().any(counts) {
            return;
        }
        let generation = old.pointer("/metadata/generation").and_then(Value::as_i64);
        set_generation(object, generation.unwrap_or_default() + 1);
    }
}
