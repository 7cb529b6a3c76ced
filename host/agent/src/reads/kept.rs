//! How much memory all takes that units have read.

use super::Read;
use crate::asked;
use crate::problem::Problem;
use foldhash::HashMap;
use parking_lot::Mutex;
use reeve_api::Reason;
use reeve_core::UnitKey;
use std::sync::Arc;

/// Bytes of one read besides its texts: its places in the index, and what tells who has to
/// hear of a change.
const READ_BYTES: usize = 800;

/// Bytes of what a unit may have read whatever the others have: some twenty objects.
const UNIT: usize = 20 * 1024;

/// Bytes of what a plugin may have read whatever the others have.
const PLUGIN: usize = 8 * MEBIBYTE;

/// Bytes of what all units of a plugin have read: ten thousand of them with a score of
/// objects each.
const PLUGIN_AT_MOST: usize = 192 * MEBIBYTE;

/// Bytes of what all units of all plugins have read.
const ALL: usize = 256 * MEBIBYTE;

const MEBIBYTE: usize = 1024 * 1024;

/// How much is kept of what units have read. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept(Arc<Mutex<Held>>);

#[derive(Debug, Default)]
struct Held {
    all: usize,
    of_plugin: HashMap<Arc<str>, usize>,
    of_unit: HashMap<UnitKey, usize>,
}

impl Held {
    fn of_plugin(&self, unit: &UnitKey) -> usize {
        self.of_plugin.get(&unit.plugin).copied().unwrap_or(0)
    }

    fn of_unit(&self, unit: &UnitKey) -> usize {
        self.of_unit.get(unit).copied().unwrap_or(0)
    }
}

impl Kept {
    /// Whether what a unit has read now can be kept in the place of what it read before.
    /// As much as before always can, and what is little: no plugin is stopped by what
    /// another one reads.
    ///
    /// # Errors
    ///
    /// When there is too much of all units of the plugin, or of all plugins, of which this
    /// one has a part.
    pub(crate) fn check<'a>(
        &self,
        unit: &UnitKey,
        reads: impl IntoIterator<Item = &'a Read>,
    ) -> Result<(), Problem> {
        let reads = weight(reads);
        let (plugin, all) = {
            let held = self.0.lock();
            let before = held.of_unit(unit);
            if reads <= before.max(UNIT) {
                return Ok(());
            }
            let with = |held: usize| held.saturating_sub(before) + reads;
            (with(held.of_plugin(unit)), with(held.all))
        };
        if plugin <= PLUGIN || (plugin <= PLUGIN_AT_MOST && all <= ALL) {
            return Ok(());
        }
        let whose = match plugin <= PLUGIN_AT_MOST {
            true => format!(
                "all units of all plugins, which have {} MiB",
                ALL / MEBIBYTE
            ),
            false => format!(
                "all units of the plugin, which have {} MiB",
                PLUGIN_AT_MOST / MEBIBYTE
            ),
        };
        Err(Problem::passing(
            Reason::LimitExceeded,
            format!(
                "reconcile: what the plugin asked about takes {} KiB to remember, and there is no \
                 room for it beside that of {whose}; list what is read instead of reading it one by \
                 one",
                reads.div_ceil(1024),
            ),
        ))
    }

    /// Notes what a unit has read, in the place of what it had.
    pub(super) fn set<'a>(&self, unit: &UnitKey, reads: impl IntoIterator<Item = &'a Read>) {
        let reads = weight(reads);
        self.remove(unit);
        let mut held = self.0.lock();
        held.all += reads;
        *held.of_plugin.entry(unit.plugin.clone()).or_default() += reads;
        held.of_unit.insert(unit.clone(), reads);
    }

    /// Forgets a unit.
    pub(super) fn remove(&self, unit: &UnitKey) {
        let mut held = self.0.lock();
        let Some(reads) = held.of_unit.remove(unit) else {
            return;
        };
        held.all = held.all.saturating_sub(reads);
        let plugin = held.of_plugin(unit).saturating_sub(reads);
        match plugin {
            0 => held.of_plugin.remove(&unit.plugin),
            _ => held.of_plugin.insert(unit.plugin.clone(), plugin),
        };
    }
}

fn weight<'a>(reads: impl IntoIterator<Item = &'a Read>) -> usize {
    // The texts are in the index twice: by unit and by object.
    let weights = reads.into_iter();
    weights
        .map(|read| READ_BYTES + 2 * asked::weight(read))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldhash::HashSet;
    use reeve_core::projection::Projection;
    use reeve_core::{GroupVersionKind, ObjectReference};

    fn reference(name: &str) -> ObjectReference {
        ObjectReference::new(GroupVersionKind::new("", "v1", "ConfigMap"), None, name)
    }

    fn unit(plugin: &str, number: usize) -> UnitKey {
        UnitKey::new(plugin, reference(&number.to_string()))
    }

    /// So many questions, each of a name of so many bytes.
    fn reads(count: usize, length: usize) -> HashSet<Read> {
        let names = (0..count).map(|number| format!("{number:0length$}"));
        names
            .map(|name| Read::Object(reference(&name), Projection::default()))
            .collect()
    }

    /// As long as the names can be that are kept of twenty questions.
    const LONG: usize = 24_000;

    /// Fills up a plugin with units that read as much as one call may.
    fn fill(kept: &Kept, plugin: &str, most: usize) -> usize {
        let large = reads(20, LONG);
        let mut units = 0;
        while kept.check(&unit(plugin, units), &large).is_ok() {
            kept.set(&unit(plugin, units), &large);
            units += 1;
        }
        let bytes = kept.0.lock().of_plugin(&unit(plugin, 0));
        let one = weight(&large);
        assert!((most - one..=most + one).contains(&bytes), "{bytes}");
        units
    }

    #[test]
    fn what_units_read_has_a_bound_in_bytes() {
        let kept = Kept::default();
        let units = fill(&kept, "p", PLUGIN_AT_MOST);
        let next = unit("p", units);
        let problem = kept.check(&next, &reads(20, LONG)).unwrap_err();
        assert_eq!(problem.reason, Reason::LimitExceeded);
        assert!(
            problem
                .message
                .contains("of the plugin, which have 192 MiB"),
            "{problem}"
        );
        // Whoever comes last and reads little, or what it read before, goes on.
        kept.check(&next, &reads(20, 8)).unwrap();
        assert!(kept.check(&next, &reads(40, LONG)).is_err());
        kept.check(&unit("p", 0), &reads(20, LONG)).unwrap();
        kept.check(&unit("p", 0), &reads(20, LONG / 2)).unwrap();
        assert!(kept.check(&unit("p", 0), &reads(40, LONG)).is_err());
        // What is given back can be had.
        kept.remove(&unit("p", 0));
        kept.check(&next, &reads(20, LONG)).unwrap();
        kept.set(&unit("p", 0), &reads(20, LONG));
        // What all of them have stops nobody who has little.
        fill(&kept, "q", ALL - PLUGIN_AT_MOST);
        let problem = kept.check(&unit("q", 1_000), &reads(20, LONG)).unwrap_err();
        assert!(
            problem
                .message
                .contains("of all plugins, which have 256 MiB"),
            "{problem}"
        );
        fill(&kept, "r", PLUGIN);
    }

    #[test]
    fn what_is_forgotten_leaves_nothing() {
        let kept = Kept::default();
        for number in 0..3 {
            kept.set(&unit("p", number), &reads(number, 8));
            kept.set(&unit("p", number), &reads(2 * number, 8));
        }
        for number in 0..4 {
            kept.remove(&unit("p", number));
        }
        let held = kept.0.lock();
        assert_eq!(
            (held.all, held.of_plugin.len(), held.of_unit.len()),
            (0, 0, 0)
        );
    }
}
