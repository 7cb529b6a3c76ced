//! Ends scenarios that never come to rest.
//!
//! Their virtual time stands still, since something is always to be done; so
//! somebody outside of their runtime has to look at a real clock.

use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// One thread that watches all scenarios which run.
#[derive(Debug)]
pub(crate) struct Watchdog {
    shared: Arc<Shared>,
    patience: Duration,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ended: bool,
    next: u64,
    watched: BTreeMap<u64, (Instant, Arc<Notify>)>,
}

/// One scenario under watch, as long as this is held.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    dog: &'a Watchdog,
    id: u64,
    notify: Arc<Notify>,
}

impl Watchdog {
    /// A watchdog that waits this long.
    pub(crate) fn new(patience: Duration) -> Self {
        let shared = Arc::new(Shared::default());
        let its_own = shared.clone();
        let thread = thread::spawn(move || its_own.look(patience / 10));
        Self {
            shared,
            patience,
            thread: Some(thread),
        }
    }

    /// Watches what begins now.
    pub(crate) fn watch(&self) -> Watch<'_> {
        let notify = Arc::new(Notify::new());
        let mut state = self.shared.state.lock();
        let id = state.next;
        state.next += 1;
        let deadline = Instant::now() + self.patience;
        state.watched.insert(id, (deadline, notify.clone()));
        Watch {
            dog: self,
            id,
            notify,
        }
    }
}

impl Shared {
    fn look(&self, interval: Duration) {
        let mut state = self.state.lock();
        while !state.ended {
            self.ended.wait_for(&mut state, interval);
            let now = Instant::now();
            for (deadline, notify) in state.watched.values() {
                if *deadline <= now {
                    notify.notify_one();
                }
            }
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.state.lock().ended = true;
        self.shared.ended.notify_all();
        if let Some(thread) = self.thread.take() {
            // It cannot panic; and if it did, nothing would be lost by now.
            let _ = thread.join();
        }
    }
}

impl Watch<'_> {
    /// Says that virtual time moves on: waiting begins anew.
    pub(crate) fn pat(&self) {
        let deadline = Instant::now() + self.dog.patience;
        if let Some(watched) = self.dog.shared.state.lock().watched.get_mut(&self.id) {
            watched.0 = deadline;
        }
    }

    /// Ends when time is up.
    pub(crate) async fn barked(&self) {
        self.notify.notified().await;
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.dog.shared.state.lock().watched.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_never_rests_is_ended() {
        let dog = Watchdog::new(Duration::from_millis(20));
        let watch = dog.watch();
        // Virtual time never moves, since there is always something to do.
        let restless = async {
            loop {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = watch.barked() => {}
            () = restless => {}
        }
        drop(watch);
        assert_eq!(dog.shared.state.lock().watched.len(), 0);
    }
}
