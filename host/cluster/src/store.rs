//! The object store: what the cluster holds, as far as it is watched.
//!
//! One watch per [`WatchSpec`], shared by all who ask for it. The whole store is
//! a persistent map: a [`Snapshot`] is a reference to one version of it and costs
//! nothing to take or keep.

mod change;
mod handle;
mod named;
mod objects;
mod poller;
mod reflector;
mod shared;
mod snapshot;
mod spec;
mod state;
mod table;
mod view;
mod wire;

pub use change::{Change, ObjectChange};
pub use handle::WatchHandle;
pub use named::{ObjectName, REREAD};
pub use snapshot::{Answer, Snapshot};
pub use spec::{WatchScope, WatchSpec};
pub use state::WatchState;

use crate::cluster::Cluster;
use crate::object::Object;
use reeve_core::ObjectReference;
use shared::Shared;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Objects of a cluster, kept up to date by watches. Clones are the same store.
///
/// A watch that fails keeps its objects and says so in its state; it is tried
/// again with growing delays. Deletions that happened meanwhile are found when it
/// comes back.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

impl Store {
    /// An empty store, and the stream of its changes.
    ///
    /// The stream is unbounded: its consumer must keep reading it, or drop it if
    /// it is not interested. A bound would have to stop the watches, and with
    /// them every reader's view, for one slow consumer.
    pub fn new(cluster: Cluster) -> (Self, mpsc::UnboundedReceiver<Change>) {
        let (changes, receiver) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared::new(cluster, changes));
        (Self { shared }, receiver)
    }

    /// Watches these objects for as long as a handle lives.
    ///
    /// Equal specs share one watch. With the last handle the watch ends and its
    /// objects leave the store, without a [`Change`]. Must be called within a
    /// tokio runtime.
    pub fn watch(&self, spec: WatchSpec) -> WatchHandle {
        Shared::watch(&self.shared, spec, [])
    }

    /// As [`Store::watch`], for a [`WatchScope::Named`]: it is synced when these names
    /// have been read. Each is held by somebody, as [`WatchHandle::set_names`] has it.
    pub fn watch_names(
        &self,
        spec: WatchSpec,
        names: impl IntoIterator<Item = (String, BTreeSet<ObjectName>)>,
    ) -> WatchHandle {
        Shared::watch(&self.shared, spec, names)
    }

    /// The store as it is now: one version of it, which never changes again.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot()
    }

    /// Reads everything anew: from now on nothing is answered from what was read
    /// before. The future ends when each watch has listed, or has been refused; bound
    /// it with a timeout, since an API server that is not there ends it never.
    ///
    /// Lists are consistent reads, so that what they hold is no older than this
    /// call. Who has just become the leader needs this: a watch may lag, and what
    /// the leader before has written need not have arrived.
    pub fn refresh(&self) -> impl Future<Output = ()> + Send + use<> {
        let states = self.shared.refresh();
        async move {
            for mut state in states {
                let answered = |state: &WatchState| {
                    !matches!(state, WatchState::Syncing | WatchState::Failing { .. })
                };
                // One that has ended need not list.
                let _ = state.wait_for(answered).await;
            }
        }
    }

    /// Takes in the answer to a write of our own, into each watch that it
    /// belongs to, unless the watch already has this or a newer version.
    ///
    /// The watch itself brings it later; until then nobody acts on a state older
    /// than our own last write.
    pub fn observe(&self, object: impl Into<Arc<Object>>) {
        self.shared.observe(&object.into(), true);
    }

    /// Takes in the answer to a read, as [`Store::observe`] does. What has changed is
    /// told as somebody's change.
    pub fn observe_read(&self, object: Object) {
        self.shared.observe(&Arc::new(object), false);
    }

    /// Takes in that an object with this uid is gone for good (a
    /// [`crate::Deletion::Gone`], not one that is only marked).
    pub fn observe_deleted(&self, reference: &ObjectReference, uid: &str) {
        self.shared.observe_deleted(reference, uid);
    }
}

impl Store {
    /// How many objects the watches hold, and of how many it is remembered that they
    /// are gone although their watches have not said so.
    pub fn sizes(&self) -> (usize, usize) {
        self.shared.sizes()
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}
