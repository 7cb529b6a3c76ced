//! A share in a watch.

use super::named::ObjectName;
use super::shared::Shared;
use super::shared::names::Awaited;
use super::spec::WatchSpec;
use super::state::WatchState;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;

/// A share in a watch, which goes on for as long as one of its handles lives.
#[derive(Clone)]
pub struct WatchHandle {
    pub(super) lease: Arc<Lease>,
    pub(super) state: watch::Receiver<WatchState>,
}

/// What all handles of a watch hold. When it goes, the watch ends.
pub(super) struct Lease {
    pub(super) shared: Arc<Shared>,
    pub(super) spec: Arc<WatchSpec>,
    /// Tells this watch from an earlier one with the same spec.
    pub(super) id: u64,
}

impl WatchHandle {
    /// What is watched.
    pub fn spec(&self) -> &Arc<WatchSpec> {
        &self.lease.spec
    }

    /// How the watch is doing.
    pub fn state(&self) -> WatchState {
        self.state.borrow().clone()
    }

    /// The state and its changes.
    pub fn states(&self) -> watch::Receiver<WatchState> {
        self.state.clone()
    }

    /// Waits until the watch is synced, however long that takes: bound it with a
    /// timeout where somebody waits for the end.
    pub async fn synced(&self) {
        let mut state = self.state.clone();
        let synced = state.wait_for(|state| *state == WatchState::Synced);
        if synced.await.is_err() {
            // Its sender is gone only with the runtime that would wake us.
            std::future::pending::<()>().await;
        }
    }
}

/// Of a watch of names ([`crate::WatchScope::Named`]); any other has none.
impl WatchHandle {
    /// Makes these the names of a holder, in the place of those that it had. A name that
    /// nobody holds any more leaves the store with its object.
    pub fn set_names(&self, holder: &str, names: &BTreeSet<ObjectName>) {
        let Lease { shared, spec, id } = &*self.lease;
        shared.set_names(spec, *id, holder, names);
    }

    /// The names of a holder.
    pub fn names_of(&self, holder: &str) -> BTreeSet<ObjectName> {
        let Lease { shared, spec, id } = &*self.lease;
        shared.names_of(spec, *id, holder)
    }

    /// Has the names of a holder read anew, and waits for that. Until then what is known of them
    /// is answered. Bound it with a timeout: what cannot be read remains in doubt.
    pub async fn read_names_anew(&self, holder: &str) {
        let Lease { shared, spec, id } = &*self.lease;
        shared.doubt_names(spec, *id, holder);
        self.read(self.names_of(holder), Awaited::Doubted).await;
    }

    /// Waits until it is known of each of these names, as far as they are held, what
    /// there is or that it may not be read. What was refused before is asked for once more.
    /// Bound it with a timeout where somebody waits for the end.
    pub async fn read_names(&self, names: BTreeSet<ObjectName>) {
        self.read(names, Awaited::Refused).await;
    }

    async fn read(&self, mut names: BTreeSet<ObjectName>, mut also: Awaited) {
        let Lease { shared, spec, id } = &*self.lease;
        while let Some(mut reads) = shared.unread(spec, *id, &mut names, also) {
            if names.is_empty() {
                return;
            }
            if also == Awaited::Refused {
                also = Awaited::Unknown;
            }
            if reads.changed().await.is_err() {
                return;
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.shared.end(&self.spec, self.id);
    }
}

impl fmt::Debug for WatchHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchHandle")
            .field("spec", &format_args!("{}", self.lease.spec))
            .field("state", &*self.state.borrow())
            .finish()
    }
}
