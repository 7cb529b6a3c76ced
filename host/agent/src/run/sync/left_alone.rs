//! Objects that are made only where there is nothing of their name.

use super::super::observe;
use super::super::{Run, Runner};
use crate::active::Active;
use crate::problem::Problem;
use futures::{FutureExt as _, StreamExt as _, stream};
use reeve_cluster::Object;
use reeve_core::ObjectReference;
use reeve_core::ownership::{UNIT_LABEL, unit_label};
use reeve_core::plan::Wanted;
use reeve_core::waves::{ApplyMode, Role};
use std::collections::BTreeSet;

/// Objects that one run looks at at once: reads wait for nobody, and a unit with a
/// thousand such objects should not take a thousand round trips.
const LOOKS: usize = 8;

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
        let unseen = wanted.iter().filter(|one| {
            let (reference, options) = (&one.stamped.reference, &one.member.options);
            let is_ours = || {
                let seen = observe::find(active, &snapshot, reference);
                seen.is_some_and(|seen| seen.label(UNIT_LABEL) == Some(label))
            };
            options.apply == ApplyMode::IfNotPresent
                && options.role == Role::Resource
                && !active.unserved.contains(&reference.kind)
                && !is_ours()
        });
        let mut looks = Vec::new();
        for one in unseen {
            looks.push(self.look_at(active, &one.stamped.reference).boxed());
        }
        let mut looks = stream::iter(looks).buffer_unordered(LOOKS);
        let mut left_alone = BTreeSet::new();
        while let Some((reference, live)) = looks.next().await {
            match live {
                Ok(Some(live)) if live.label(UNIT_LABEL) == Some(label) => {
                    self.store.observe_read(live);
                }
                Ok(Some(live)) if !live.is_deleting() => {
                    left_alone.insert(reference);
                }
                Ok(_) => {}
                Err(problem) => tracing::debug!(%reference, %problem, "not looked at"),
            }
        }
        left_alone
    }

    async fn look_at(
        &self,
        active: &Active,
        reference: &ObjectReference,
    ) -> (ObjectReference, Result<Option<Object>, Problem>) {
        let live = self.executor.live(active, reference).await;
        (reference.clone(), live)
    }
}
