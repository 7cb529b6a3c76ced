//! The agent's part among its replicas: one leads, the others stand by.
//!
//! A follower watches, loads and queues as the leader does, but runs no unit and
//! reports nothing. Taking over is in this order, so that nothing is ever decided
//! on what was true before:
//!
//! 1. what is left of an earlier term is ended, and its end awaited;
//! 2. every watch lists anew, which is a consistent read: what the leader before
//!    has written is in it. A watch that cannot is not answered from; without the
//!    agent's own nothing goes on;
//! 3. the fence is armed for the term; from here on writes get through;
//! 4. every unit runs, since only running it tells whether it is in place.
//!
//! When the lease is lost the fence is closed already: it goes by the clock. Runs
//! that are under way end by themselves, their next write being refused; what
//! came of them is not heard, and they run again when this replica leads again.

use super::Controller;
use super::reporting::unit_object_name;
use crate::written::{Written, has_effects, is_durable};
use reeve_cluster::Role;
use reeve_core::UnitKey;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// The watches of a new leader have this long to list anew. It is several times
/// what a list of all objects takes; units whose watches need longer say so. For the
/// agent's own, which say what was done, it waits for as long as they take.
const TAKEOVER_PATIENCE: Duration = Duration::from_secs(10);

/// What the agent does at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Part {
    /// It stands by.
    #[default]
    Follows,
    /// It has got the lease, and reads.
    TakesOver {
        term: u64,
        has_read: bool,
        since: Instant,
    },
    /// It runs units.
    Leads { term: u64 },
}

impl Part {
    fn term(self) -> Option<u64> {
        match self {
            Self::Follows => None,
            Self::TakesOver { term, .. } | Self::Leads { term } => Some(term),
        }
    }
}

/// A sole replica has one term, in which it leads from the start.
const ONLY_TERM: u64 = 0;

impl Controller {
    /// Takes in what the election says.
    pub(super) fn on_role(&mut self) {
        let role = self.role.borrow_and_update().clone();
        match role {
            Role::Sole => self.state.part = Part::Leads { term: ONLY_TERM },
            Role::Follower { .. } => self.step_down(),
            Role::Leader { term } => {
                if self.state.part.term() != Some(term) {
                    self.step_down();
                    self.take_over(term);
                }
            }
        }
    }

    /// Whether units may run now.
    pub(super) fn may_run(&self) -> bool {
        self.leads() && !self.state.draining && self.fence.check().is_ok()
    }

    /// Whether this replica is the one that reports.
    pub(super) fn leads(&self) -> bool {
        matches!(self.state.part, Part::Leads { .. })
    }

    fn step_down(&mut self) {
        self.fence.disarm();
        self.reports.mute();
        self.state.takeover.abort_all();
        self.state.part = Part::Follows;
    }

    fn take_over(&mut self, term: u64) {
        self.state.part = Part::TakesOver {
            term,
            has_read: false,
            since: Instant::now(),
        };
        for (run, _) in self.state.run_handles.values() {
            run.abort();
        }
        let read = self.runner.store.refresh();
        self.state.takeover.spawn(async move {
            if tokio::time::timeout(TAKEOVER_PATIENCE, read).await.is_err() {
                let patience = TAKEOVER_PATIENCE.as_secs();
                tracing::warn!(
                    patience,
                    "not everything could be read anew; leading without what is not the agent's own"
                );
            }
            term
        });
    }

    /// Notes that everything has been read in a term.
    pub(super) fn on_read_anew(&mut self, term: u64) {
        if let Part::TakesOver {
            term: current,
            has_read,
            ..
        } = &mut self.state.part
            && *current == term
        {
            *has_read = true;
        }
    }

    /// Leads, if nothing stands against it any more.
    pub(super) fn lead_when_ready(&mut self) {
        let Part::TakesOver {
            term,
            has_read: true,
            since,
        } = self.state.part
        else {
            return;
        };
        // What was done outside, and which hooks have run, is known from these alone:
        // whoever leads without them does it again. However long that takes.
        let snapshot = self.runner.store.snapshot();
        let units = self.own.units.spec().clone();
        let written = |name: &str| Written::seen(name, &snapshot, &units);
        if !self.synced() || written("").is_none() {
            return;
        }
        // Lost again, if it cannot be armed: the election will say so. Who is about to stop
        // gives the lease back, and writes nothing more.
        if self.state.draining || self.state.runs > 0 || self.fence.arm(term).is_err() {
            return;
        }
        self.state.part = Part::Leads { term };
        tracing::info!(term, "leading");
        self.reports.unmute();
        self.runner.executor.journal.learn_anew();
        // Who led before may have heard of nothing since then: others take over when they have
        // seen no renewal for as long as a lease lasts, and notice that a little later.
        let alone = since.checked_sub(self.fence.lease_duration() * 2);
        let alone = alone.unwrap_or(since);
        let names: Vec<Arc<str>> = self.state.plugins.keys().cloned().collect();
        for name in names {
            let Some(plugin) = self.state.plugins.get_mut(&name) else {
                continue;
            };
            plugin.renew_guard();
            plugin.be_quiet();
            // What this replica knew may be of an earlier term.
            plugin.forget_syncs();
            let written = written(&name).unwrap_or_default();
            plugin.resume_syncs(&written);
            // What was still to be recorded of them was given up with the term. What was
            // recorded is found, and stays as it is.
            for unit in plugin.units.values_mut() {
                unit.told_before.append(&mut unit.events);
            }
            // It runs for all, without a cache, since the version before was not at hand here:
            // whatever another replica has said of it.
            let loads = plugin.loading.is_some() || plugin.wants_load || plugin.retry_at.is_some();
            if plugin.active.is_some() && plugin.canary.is_none() && !loads {
                plugin.forget_progress();
            }
            plugin.take_up_requests(alone);
            let units: Vec<UnitKey> = plugin.units.keys().map(|r| plugin.unit(r)).collect();
            let mut keep: BTreeSet<String> = units.iter().map(unit_object_name).collect();
            keep.extend(match plugin.active {
                Some(_) => written.names(has_effects),
                // It may run again.
                None => written.names(is_durable),
            });
            self.drop_unit_objects(&name, &keep);
            for unit in units {
                self.state.queue.add_bulk(unit);
            }
            self.mark_stale(&name);
        }
        self.drop_forgotten_unit_objects();
    }

    /// Stops taking units; `ended` is told when those that run have ended.
    pub(super) fn drain(&mut self, ended: oneshot::Sender<()>) {
        self.state.draining = true;
        self.state.drained = Some(ended);
    }

    pub(super) fn finish_draining(&mut self) {
        if self.state.runs == 0
            && let Some(ended) = self.state.drained.take()
        {
            self.report();
            // Who asked may have waited long enough.
            let _ = ended.send(());
        }
    }
}
