//! How much the agent keeps in memory.

use super::Controller;

/// How much an agent keeps, counted: what a test holds against growth, and what to look
/// at when an agent takes more memory than it should.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Objects in the store.
    pub objects: usize,
    /// Objects of which it is remembered that they are gone.
    pub gone: usize,
    /// Answers of plugins that are remembered.
    pub answers: usize,
    /// What units have read.
    pub reads: usize,
    /// Units.
    pub units: usize,
    /// What is known of the units' objects.
    pub owned: usize,
    /// What the guards on deletions remember.
    pub guarded: usize,
    /// Units that wait or run.
    pub queued: usize,
    /// What is said of units, or is yet to be.
    pub reports: usize,
    /// Entries of the journal that are known.
    pub journal: usize,
    /// Tasks, overwrites that were written down lately, claims, and whatever else
    /// has an end.
    pub passing: usize,
}

impl Footprint {
    /// All of it with its names, for people.
    pub fn all(&self) -> [(&'static str, usize); 11] {
        [
            ("objects", self.objects),
            ("gone", self.gone),
            ("answers", self.answers),
            ("reads", self.reads),
            ("units", self.units),
            ("owned", self.owned),
            ("guarded", self.guarded),
            ("queued", self.queued),
            ("reports", self.reports),
            ("journal", self.journal),
            ("passing", self.passing),
        ]
    }
}

impl Controller {
    pub(super) fn footprint(&self) -> Footprint {
        let (objects, gone) = self.runner.store.sizes();
        let executor = &self.runner.executor;
        let state = &self.state;
        let mut footprint = Footprint {
            objects,
            gone,
            answers: self.runner.memo.len(),
            reads: state.reads.len(),
            queued: state.queue.len(),
            reports: self.reports.len() + state.unit_objects.len() + state.stale.len(),
            journal: executor.journal.len(),
            passing: executor.recent.len()
                + executor.claims.len()
                + state.jobs.len()
                + state.job_ids.len()
                + state.run_handles.len()
                + state.releases.len()
                + state.takeover.len()
                + state.routes.len(),
            ..Footprint::default()
        };
        for plugin in state.plugins.values() {
            footprint.units += plugin.units.len() + plugin.labels.len();
            let of_units = plugin.units.values().map(|unit| {
                unit.desired.len()
                    + unit.contributing.len()
                    + unit.conditions.len()
                    + unit.events.len()
                    + unit.sync.hooks.len()
                    + unit.sync.stubborn.len()
                    + unit.sync.sent.len()
                    + unit.lost.len()
            });
            let of_labels = plugin.owned.values().map(|owned| 1 + owned.len());
            footprint.owned += of_units.sum::<usize>()
                + of_labels.sum::<usize>()
                + plugin.contributions.len()
                + plugin.strangers.len()
                + plugin.places.len();
            footprint.guarded += plugin.guard.lock().remembered();
        }
        footprint
    }
}
