//! Room for runs that wait for what is outside, beside the room for runs.
//!
//! Such a run computes nothing. If it kept the place of one that could, a few plugins
//! whose outside does not answer would keep all others from their work.

use super::line::Line;
use parking_lot::Mutex;
use reeve_core::UnitKey;
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

/// Who stands in line is asked in when another run of the same version ends. Should that
/// be missed, as when the others have gone over to another version, it asks again after
/// this time or up to twice as long: of a thousand units that wait, some twenty a second.
const OVERLOOKED: Duration = Duration::from_secs(30);

/// Who waited as long as may be, for calls of its own plugin or of all, asks again after
/// this time or up to twice as long, if it is not asked in before: soon enough for whoever
/// waits for an effect.
const BUSY: Duration = Duration::from_secs(3);

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
    /// Units that found no room.
    line: Mutex<Line>,
}

/// There is no room just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom {
    /// After which time to ask again, or up to twice as long, unless asked in before.
    pub(crate) again: Duration,
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
            line: Mutex::default(),
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
    /// Goes outside with a unit, if need be after a short wait for calls of the same
    /// plugin and of others.
    ///
    /// # Errors
    ///
    /// When there is no room by then. The unit stands in line from then on: in front, if
    /// a person waits for it.
    pub(crate) async fn enter(
        &self,
        unit: &UnitKey,
        a_person_waits: bool,
    ) -> Result<Place<'_>, NoRoom> {
        let entered = self.enter_if_free().await;
        let mut line = self.line.lock();
        match &entered {
            Ok(_) => line.leave(unit),
            Err(_) if a_person_waits => line.join_in_front(unit),
            Err(_) => line.join(unit),
        }
        drop(line);
        entered
    }

    async fn enter_if_free(&self) -> Result<Place<'_>, NoRoom> {
        let full = |_| NoRoom { again: OVERLOOKED };
        let own = self.places.try_acquire().map_err(full)?;
        let waiting = self.all.wait();
        // Who waits for its own plugin takes no place from others.
        let both = async {
            let call = self.calls.acquire().await.ok()?;
            let place = self.all.places.acquire().await.ok()?;
            Some((call, place))
        };
        let found = tokio::time::timeout(PATIENCE, both).await;
        let (call, place) = found.ok().flatten().ok_or(NoRoom { again: BUSY })?;
        drop(waiting);
        Ok(Place {
            _call: call,
            _place: place,
            _own: own,
        })
    }

    /// Whether a unit stands in line: nobody has asked it in yet.
    pub(crate) fn awaits(&self, unit: &UnitKey) -> bool {
        self.line.lock().has(unit)
    }

    /// Takes a unit that is no more out of the line.
    pub(crate) fn forget(&self, unit: &UnitKey) {
        self.line.lock().leave(unit);
    }

    /// Asks the next in line in, if there is room for one more: it is to run.
    pub(crate) fn next(&self) -> Option<UnitKey> {
        match self.places.available_permits() {
            0 => None,
            _ => self.line.lock().next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effects::line::tests::unit;

    #[tokio::test(start_paused = true)]
    async fn a_plugin_has_a_part_of_the_room_and_its_runs_do_not_wait_for_long() {
        let room = Room::new(6);
        let (one, other) = (room.of_plugin(), room.of_plugin());
        let mut calls = Vec::new();
        for _ in 0..CALLS_AT_ONCE {
            calls.push(one.enter(&unit("a"), false).await.unwrap());
        }
        assert_eq!(room.outside(), CALLS_AT_ONCE);
        let start = tokio::time::Instant::now();
        let full = NoRoom { again: BUSY };
        assert_eq!(
            one.enter(&unit("a"), false).await.unwrap_err(),
            full,
            "it has its part"
        );
        assert_eq!(start.elapsed(), PATIENCE);
        // Who waits is outside as well.
        let waiting = async { one.enter(&unit("a"), false).await.is_ok() };
        let meanwhile = async {
            room.one_more().await;
            assert_eq!(room.outside(), CALLS_AT_ONCE + 1);
            calls.pop();
        };
        assert!(tokio::join!(waiting, meanwhile).0, "one came back");
        let here = [
            other.enter(&unit("a"), false).await,
            other.enter(&unit("b"), false).await,
            other.enter(&unit("c"), false).await,
        ];
        assert_eq!(here.iter().flatten().count(), 3);
        let start = tokio::time::Instant::now();
        assert_eq!(
            other.enter(&unit("d"), false).await.unwrap_err(),
            full,
            "all room is taken"
        );
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
                        let place = hanging.enter(&unit("a"), false).await;
                        tokio::time::sleep(Duration::from_secs(1)).await;
                        drop(place);
                    }
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let other = room.of_plugin();
        for _ in 0..10 {
            assert!(
                other.enter(&unit("a"), false).await.is_ok(),
                "its turn comes"
            );
        }
        busy.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[tokio::test(start_paused = true)]
    async fn few_wait_for_their_own_plugin() {
        let room = Room::new(usize::from(u8::MAX));
        let one = room.of_plugin();
        let start = tokio::time::Instant::now();
        let enter = || async {
            let place = one.enter(&unit("a"), false).await;
            let waited = start.elapsed();
            tokio::time::sleep(2 * PATIENCE).await;
            (place.map_or_else(|no| Some(no.again), |_| None), waited)
        };
        let nine: [_; 9] = std::array::from_fn(|_| Box::pin(enter()));
        let ended = futures::future::join_all(nine).await;
        let count =
            |what: (Option<Duration>, Duration)| ended.iter().filter(|one| **one == what).count();
        assert_eq!(count((None, Duration::ZERO)), CALLS_AT_ONCE);
        assert_eq!(count((Some(BUSY), PATIENCE)), CALLS_AT_ONCE);
        assert_eq!(count((Some(OVERLOOKED), Duration::ZERO)), 1);
    }
    #[tokio::test(start_paused = true)]
    async fn the_next_in_line_is_asked_in_when_there_is_room() {
        let room = Room::new(usize::from(u8::MAX));
        let one = room.of_plugin();
        let all = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"].map(unit);
        let ended = futures::future::join_all(all.iter().map(|unit| one.enter(unit, false))).await;
        assert!(ended[..CALLS_AT_ONCE].iter().all(Result::is_ok));
        // Those that waited for a call, and those that did not even find room for that.
        assert!(ended[CALLS_AT_ONCE..].iter().all(Result::is_err));
        let in_line = |one: &PluginRoom| {
            let names = all.iter().filter(|unit| one.awaits(unit));
            names
                .map(|unit| unit.primary.name.clone())
                .collect::<String>()
        };
        assert_eq!(in_line(&one), "efghij");
        // The first that was turned away is the first that is asked in.
        assert_eq!(one.next().unwrap(), all[8]);
        assert_eq!(one.next().unwrap(), all[9]);
        drop(ended);
        assert!(one.enter(&all[4], false).await.is_ok());
        assert_eq!(in_line(&one), "fgh");
        for expected in &all[5..8] {
            assert_eq!(one.next().as_ref(), Some(expected));
        }
        assert_eq!(one.next(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_asked_in_while_there_is_no_room() {
        let room = Room::new(usize::from(u8::MAX));
        let one = room.of_plugin();
        let _all = one
            .places
            .try_acquire_many(2 * CALLS_AT_ONCE as u32)
            .unwrap();
        assert!(one.enter(&unit("a"), false).await.is_err());
        assert_eq!(one.next(), None);
        assert!(one.awaits(&unit("a")));
    }
}
