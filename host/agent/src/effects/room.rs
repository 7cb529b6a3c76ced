//! Room for runs that wait for what is outside, beside the room for runs.
//!
//! Such a run computes nothing. If it kept the place of one that could, a few plugins
//! whose outside does not answer would keep all others from their work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

/// Calls of one plugin that may be outside at once: enough to go on while a service or a
/// database takes to answer, few enough not to be a load for it.
pub(crate) const CALLS_AT_ONCE: usize = 4;

/// Runs of all plugins that may be outside at once, or about to be. They are tasks and
/// threads that wait.
pub(crate) const OUTSIDE_AT_ONCE: usize = 32;

/// For how long a run waits until its plugin, and all together, have room for one more
/// call.
const PATIENCE: Duration = Duration::from_secs(2);

/// Room for runs of all plugins that are outside.
#[derive(Debug)]
pub(crate) struct Room {
    size: usize,
    /// Given in the order in which they were asked for, so that no plugin keeps them all.
    places: Semaphore,
    /// Runs that wait for a place, or for calls of their own plugin.
    waiting: AtomicUsize,
    taken: Notify,
}

/// The part of it that one plugin may use.
#[derive(Debug)]
pub(crate) struct PluginRoom {
    all: Arc<Room>,
    /// Runs that are outside, or wait for those to come back: as many again.
    places: Semaphore,
    calls: Semaphore,
}

/// A place outside; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    _call: SemaphorePermit<'a>,
    _place: SemaphorePermit<'a>,
    _own: SemaphorePermit<'a>,
}

impl Room {
    /// Room for so many runs.
    pub(crate) fn new(size: usize) -> Arc<Self> {
        Arc::new(Self {
            size,
            places: Semaphore::new(size),
            waiting: AtomicUsize::new(0),
            taken: Notify::new(),
        })
    }

    /// The part of one plugin.
    pub(crate) fn of_plugin(self: &Arc<Self>) -> PluginRoom {
        PluginRoom {
            all: Arc::clone(self),
            places: Semaphore::new(2 * CALLS_AT_ONCE),
            calls: Semaphore::new(CALLS_AT_ONCE),
        }
    }

    /// How many runs are outside, or wait for it: they do not count among those that
    /// compute.
    pub(crate) fn outside(&self) -> usize {
        let inside = self.places.available_permits();
        self.size.saturating_sub(inside) + self.waiting.load(Ordering::Relaxed)
    }

    fn wait(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.taken.notify_one();
        Waiting(self)
    }

    /// Waits until one more has gone outside since this was asked last.
    pub(crate) async fn one_more(&self) {
        self.taken.notified().await;
    }
}

/// One run waits for as long as this is there.
struct Waiting<'a>(&'a Room);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PluginRoom {
    /// Goes outside, if need be after a short wait for calls of the same plugin and of
    /// others; none when there is no room by then.
    pub(crate) async fn enter(&self) -> Option<Place<'_>> {
        let own = self.places.try_acquire().ok()?;
        let waiting = self.all.wait();
        // Who waits for its own plugin takes no place from others.
        let both = async {
            let call = self.calls.acquire().await.ok()?;
            let place = self.all.places.acquire().await.ok()?;
            Some((call, place))
        };
        let (call, place) = tokio::time::timeout(PATIENCE, both).await.ok()??;
        drop(waiting);
        Some(Place {
            _call: call,
            _place: place,
            _own: own,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_plugin_has_a_part_of_the_room_and_its_runs_do_not_wait_for_long() {
        let room = Room::new(6);
        let (one, other) = (room.of_plugin(), room.of_plugin());
        let mut calls = Vec::new();
        for _ in 0..CALLS_AT_ONCE {
            calls.push(one.enter().await.unwrap());
        }
        assert_eq!(room.outside(), CALLS_AT_ONCE);
        let start = tokio::time::Instant::now();
        assert!(one.enter().await.is_none(), "it has its part");
        assert_eq!(start.elapsed(), PATIENCE);
        // Who waits is outside as well.
        let waiting = async { one.enter().await.is_some() };
        let meanwhile = async {
            room.one_more().await;
            assert_eq!(room.outside(), CALLS_AT_ONCE + 1);
            calls.pop();
        };
        assert!(tokio::join!(waiting, meanwhile).0, "one came back");
        let here = [
            other.enter().await,
            other.enter().await,
            other.enter().await,
        ];
        assert_eq!(here.iter().flatten().count(), 3);
        let start = tokio::time::Instant::now();
        assert!(other.enter().await.is_none(), "all room is taken");
        assert_eq!(start.elapsed(), PATIENCE);
        drop((here, calls));
        assert_eq!(room.outside(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn plugins_that_hang_do_not_keep_all_places_for_themselves() {
        let room = Room::new(CALLS_AT_ONCE);
        let hanging = Arc::new(room.of_plugin());
        // As many as may ask, each of which stays outside for a second.
        let busy: Vec<_> = (0..2 * CALLS_AT_ONCE)
            .map(|_| {
                let hanging = hanging.clone();
                tokio::spawn(async move {
                    loop {
                        let place = hanging.enter().await;
                        tokio::time::sleep(Duration::from_secs(1)).await;
                        drop(place);
                    }
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let other = room.of_plugin();
        for _ in 0..10 {
            assert!(other.enter().await.is_some(), "its turn comes");
        }
        busy.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[tokio::test(start_paused = true)]
    async fn few_wait_for_their_own_plugin() {
        let room = Room::new(usize::from(u8::MAX));
        let one = room.of_plugin();
        let start = tokio::time::Instant::now();
        let enter = || async {
            let place = one.enter().await;
            let waited = start.elapsed();
            tokio::time::sleep(2 * PATIENCE).await;
            (place.is_some(), waited)
        };
        let nine: [_; 9] = std::array::from_fn(|_| Box::pin(enter()));
        let ended = futures::future::join_all(nine).await;
        let count = |what: (bool, Duration)| ended.iter().filter(|one| **one == what).count();
        assert_eq!(count((true, Duration::ZERO)), CALLS_AT_ONCE);
        assert_eq!(count((false, PATIENCE)), CALLS_AT_ONCE);
        assert_eq!(count((false, Duration::ZERO)), 1);
    }
}
