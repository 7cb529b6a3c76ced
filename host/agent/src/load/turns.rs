//! How much is loaded at once.
//!
//! Components are as large as their authors like, up to a bound, and are in memory from
//! when they are unpacked or pulled until they are compiled. What they take has room in the
//! meantime, and gives it back when their bytes are dropped. Each way on which they come has
//! room of its own, and registries have turns of their own: slow ones keep nobody waiting who
//! delivers by a ConfigMap.

use crate::delivery::MAX_COMPONENT_BYTES;
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Plugins that are loaded at once, of those in ConfigMaps and of those in registries. Most
/// of a load is waiting for the API server.
const LOADS: usize = 32;

/// Components of which the parts are read at once.
const PARTS: usize = 2;

/// Components that are unpacked at once: nobody knows before how large one is.
const UNPACKING: usize = 2;

/// KiB of the largest component.
const LARGEST: usize = MAX_COMPONENT_BYTES / 1024;

/// What components are in memory for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// To be compiled, as ConfigMaps deliver them: four of the largest, and hundreds of
    /// ordinary ones.
    Delivered,
    /// The same, as registries have them.
    Pulled,
    /// The same, as the cache has what was pulled: two of the largest.
    Cached,
    /// To be loaded again, as the cache has them: two of the largest.
    Again,
    /// To be kept in the cache once the gates are passed, which takes as long as the plugin
    /// likes. Nobody waits for such room: without it nothing is kept.
    ToKeep,
}

/// Turns of loads. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    delivered: Arc<Semaphore>,
    pulled: Arc<Semaphore>,
    parts: Arc<Semaphore>,
    unpacking: Arc<Semaphore>,
    /// In KiB.
    rooms: [Arc<Semaphore>; 5],
}

/// A turn, until it is dropped. The semaphores are never closed, so there always is one.
pub(crate) type Turn = Option<OwnedSemaphorePermit>;

impl Turns {
    pub(crate) fn new() -> Self {
        let turns = |count| Arc::new(Semaphore::new(count));
        Self {
            delivered: turns(LOADS),
            pulled: turns(LOADS),
            parts: turns(PARTS),
            unpacking: turns(UNPACKING),
            rooms: [4, 4, 2, 2, 4].map(|components| turns(components * LARGEST)),
        }
    }

    /// Waits until a plugin may be loaded, which is in a registry or is not.
    pub(crate) async fn load(&self, in_registry: bool) -> Turn {
        let loads = match in_registry {
            true => &self.pulled,
            false => &self.delivered,
        };
        loads.clone().acquire_owned().await.ok()
    }

    /// Waits until the parts of a component may be read.
    pub(crate) async fn parts(&self) -> Turn {
        self.parts.clone().acquire_owned().await.ok()
    }

    /// Waits until a component may be unpacked.
    pub(crate) async fn unpack(&self) -> Turn {
        self.unpacking.clone().acquire_owned().await.ok()
    }

    /// Waits until there is room for a component of so many bytes.
    pub(crate) async fn room(&self, purpose: Purpose, bytes: usize) -> Turn {
        let room = self.rooms[purpose as usize].clone();
        room.acquire_many_owned(wanted(bytes)).await.ok()
    }

    /// As much of a room as a component takes that turns out to be smaller; the rest is
    /// given back.
    pub(crate) fn fit(room: Turn, bytes: usize) -> Turn {
        let mut room = room?;
        let surplus = room.num_permits().saturating_sub(wanted(bytes) as usize);
        drop(room.split(surplus));
        Some(room)
    }

    /// A component that has room, if there is some now.
    pub(crate) fn try_hold(&self, purpose: Purpose, component: &Bytes) -> Option<Bytes> {
        let room = self.rooms[purpose as usize].clone();
        let turn = room.try_acquire_many_owned(wanted(component.len())).ok()?;
        Some(holding(component.clone(), Some(turn)))
    }
}

/// KiB of so many bytes. What is larger than it may be has the room of the largest: for more
/// than there is the wait would have no end.
fn wanted(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1024).min(LARGEST)).unwrap_or(u32::MAX)
}

/// A component that gives back its room when the last of its clones is dropped.
pub(crate) fn holding(component: Bytes, room: Turn) -> Bytes {
    struct Holding {
        component: Bytes,
        _room: Turn,
    }

    impl AsRef<[u8]> for Holding {
        fn as_ref(&self) -> &[u8] {
            &self.component
        }
    }

    Bytes::from_owner(Holding {
        component,
        _room: room,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[tokio::test]
    async fn components_of_all_loads_have_a_bound_together() {
        let turns = Turns::new();
        let room = |purpose, bytes| turns.room(purpose, bytes).now_or_never().flatten();
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(room(Purpose::Delivered, MAX_COMPONENT_BYTES));
        }
        // What is larger than it may be has the room of the largest, and waits for no more.
        held.push(room(Purpose::Delivered, usize::MAX));
        assert!(held.iter().all(Option::is_some));
        assert!(room(Purpose::Delivered, 1).is_none());
        assert!(room(Purpose::Pulled, MAX_COMPONENT_BYTES).is_some());
        let _smaller = Turns::fit(held.pop().flatten(), 10 * 1024 + 1);
        let rest = turns.rooms[Purpose::Delivered as usize].available_permits();
        assert_eq!(rest, LARGEST - 11);
    }

    #[tokio::test]
    async fn a_component_holds_its_room_as_long_as_it_is_there() {
        let turns = Turns::new();
        let largest = Bytes::from(vec![1; MAX_COMPONENT_BYTES]);
        let rooms = || turns.rooms[Purpose::ToKeep as usize].available_permits();
        let before = rooms();
        let held = turns.try_hold(Purpose::ToKeep, &largest).unwrap();
        assert_eq!(held, largest);
        let (clone, part) = (held.clone(), held.slice(..10));
        drop(held);
        assert_eq!(rooms(), before - LARGEST);
        drop((clone, part));
        assert_eq!(rooms(), before);
        let all: Vec<_> = (0..4)
            .map(|_| turns.try_hold(Purpose::ToKeep, &largest).unwrap())
            .collect();
        assert!(turns.try_hold(Purpose::ToKeep, &largest).is_none());
        drop(all);
        assert!(turns.try_hold(Purpose::ToKeep, &largest).is_some());
    }
}
