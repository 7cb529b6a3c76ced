//! How much is loaded at once.

use crate::delivery::MAX_COMPONENT_BYTES;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Plugins that are loaded at once. Most of a load is waiting for the API server.
const LOADS: usize = 32;

/// Components that are unpacked at once: nobody knows before how large one is.
const UNPACKING: usize = 2;

/// KiB of all components that are unpacked for loads which are under way: four of the largest,
/// and hundreds of ordinary ones.
const ROOM: usize = 4 * MAX_COMPONENT_BYTES / 1024;

/// Turns of loads. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    loads: Arc<Semaphore>,
    unpacking: Arc<Semaphore>,
    room: Arc<Semaphore>,
}

/// A turn, until it is dropped. The semaphores are never closed, so there always is one.
pub(crate) type Turn = Option<OwnedSemaphorePermit>;

impl Turns {
    pub(crate) fn new() -> Self {
        let turns = |count| Arc::new(Semaphore::new(count));
        Self {
            loads: turns(LOADS),
            unpacking: turns(UNPACKING),
            room: turns(ROOM),
        }
    }

    /// Waits until a plugin may be loaded.
    pub(crate) async fn load(&self) -> Turn {
        self.loads.clone().acquire_owned().await.ok()
    }

    /// Waits until a component may be unpacked.
    pub(crate) async fn unpack(&self) -> Turn {
        self.unpacking.clone().acquire_owned().await.ok()
    }

    /// Waits until there is room for a component of so many bytes.
    pub(crate) async fn hold(&self, bytes: usize) -> Turn {
        // For more than all of it the wait would have no end.
        let wanted = u32::try_from(bytes.div_ceil(1024).min(ROOM)).ok()?;
        self.room.clone().acquire_many_owned(wanted).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[tokio::test]
    async fn components_of_all_loads_have_a_bound_together() {
        let turns = Turns::new();
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(turns.hold(MAX_COMPONENT_BYTES).now_or_never());
        }
        assert!(held.iter().all(Option::is_some));
        assert!(turns.hold(1).now_or_never().is_none());
        held.pop();
        assert!(turns.hold(1).now_or_never().is_some());
        drop(held);
        // What is larger than it may be has all of it, and waits for no more.
        let largest = turns.hold(usize::MAX).now_or_never();
        assert!(largest.is_some_and(|turn| turn.is_some()));
    }
}
