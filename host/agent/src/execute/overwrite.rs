//! Writing down what somebody else had set before it is overwritten.

use super::{Executor, Work};
use crate::journal::Deed;
use crate::problem::Problem;
use parking_lot::Mutex;
use reeve_api::Operation;
use reeve_cluster::Object;
use reeve_core::Digest;
use reeve_core::plan::Taken;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Who sets the same fields of the same object again and again within this time is
/// in the journal once: what it wants is known by then, and a fight must not push
/// everything else out.
const QUIET: Duration = Duration::from_secs(60 * 60);

/// Overwrites that are remembered; at more, the oldest are written down anew.
const REMEMBERED: usize = 1024;

/// What was written down lately; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recent(Arc<Mutex<HashMap<Digest, Instant>>>);

impl Recent {
    /// How many are remembered.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }

    fn is_known(&self, overwrite: Digest, now: Instant) -> bool {
        let known = self.0.lock().get(&overwrite).copied();
        known.is_some_and(|at| now.duration_since(at) < QUIET)
    }

    fn note(&self, overwrite: Digest, now: Instant) {
        let mut known = self.0.lock();
        known.retain(|_, at| now.duration_since(*at) < QUIET);
        known.insert(overwrite, now);
        if known.len() > REMEMBERED {
            let oldest = known.iter().min_by_key(|(_, at)| **at).map(|(one, _)| *one);
            oldest.map(|oldest| known.remove(&oldest));
        }
    }
}

impl Executor {
    /// Writes an object down before fields of it that others set are overwritten, or
    /// removed with what of it is `replaced`. Only when this has succeeded may they be.
    pub(super) async fn note_overwrite(
        &self,
        work: &Work<'_>,
        live: &Object,
        taken: &[Taken],
        replaced: &[Taken],
    ) -> Result<(), Problem> {
        let words = |fields: &[Taken]| -> Vec<String> {
            let lost = fields.iter().filter(|one| one.overwrites);
            lost.map(ToString::to_string).collect()
        };
        let (lost, removed) = (words(taken), words(replaced));
        if lost.is_empty() && removed.is_empty() {
            return Ok(());
        }
        let fields = lost.iter().chain(&removed).map(String::as_str);
        let parts = std::iter::once(live.uid()).chain(fields);
        let overwrite = Digest::of_parts(parts.map(str::as_bytes));
        let now = Instant::now();
        if self.recent.is_known(overwrite, now) {
            return Ok(());
        }
        let said = [
            ("set by others and wanted by the plugin", lost),
            (
                "set by others and not wanted by the plugin, which replaces the object",
                removed,
            ),
        ];
        let said = said.iter().filter(|(_, fields)| !fields.is_empty());
        let said = said.map(|(what, fields)| format!("{what}: {}", fields.join(", ")));
        let reason = said.collect::<Vec<_>>().join("; ");
        self.journal
            .write(&Deed {
                operation: Operation::Overwrite,
                unit: &work.owner.unit,
                object: live,
                reason: &reason,
            })
            .await?;
        self.recent.note(overwrite, now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_same_is_known_for_an_hour_and_no_more_than_so_many() {
        let recent = Recent::default();
        let of = |number: usize| Digest::of(&number.to_le_bytes());
        let begin = Instant::now();
        recent.note(of(0), begin);
        assert!(recent.is_known(of(0), begin + QUIET / 2));
        assert!(!recent.is_known(of(0), begin + QUIET));
        assert!(!recent.is_known(of(1), begin));
        for number in 1..=REMEMBERED {
            let later = begin + Duration::from_millis(u64::try_from(number).unwrap());
            recent.note(of(number), later);
        }
        assert_eq!(recent.0.lock().len(), REMEMBERED);
        assert!(!recent.is_known(of(0), begin));
        assert!(recent.is_known(of(1), begin));
    }
}
