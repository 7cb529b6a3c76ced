//! Objects that are made only where there is nothing of their name.

use super::super::observe;
use super::super::{Run, Runner};
use reeve_core::ObjectReference;
use reeve_core::ownership::{UNIT_LABEL, unit_label};
use reeve_core::plan::Wanted;
use reeve_core::waves::{ApplyMode, Role};
use std::collections::BTreeSet;

impl Runner {
    /// The objects that say `IfNotPresent`, and of whose name there is something that is
    /// not the unit's by its labels: whosever it is, it is left alone. No watch tells of
    /// such ones, so each run looks. One that cannot be read keeps nothing else from being
    /// done: it is made where nothing is, and its own step says so otherwise.
    pub(super) async fn left_alone(
        &self,
        run: &Run,
        wanted: &[Wanted],
    ) -> BTreeSet<ObjectReference> {
        let Run { unit, active, .. } = run;
        let label = unit_label(unit);
        let snapshot = self.store.snapshot();
        let mut left_alone = BTreeSet::new();
        for one in wanted {
            let (reference, options) = (&one.stamped.reference, &one.member.options);
            if options.apply != ApplyMode::IfNotPresent
                || options.role != Role::Resource
                || active.unserved.contains(&reference.kind)
            {
                continue;
            }
            let seen = observe::find(active, &snapshot, reference);
            if seen.is_some_and(|seen| seen.label(UNIT_LABEL) == Some(label.as_str())) {
                continue;
            }
            let live = match self.executor.live(active, reference).await {
                Ok(Some(live)) => live,
                Ok(None) => continue,
                Err(problem) => {
                    tracing::debug!(%reference, %problem, "not looked at");
                    continue;
                }
            };
            if live.label(UNIT_LABEL) == Some(label.as_str()) {
                self.store.observe_read(live);
            } else if !live.is_deleting() {
                left_alone.insert(reference.clone());
            }
        }
        left_alone
    }
}
