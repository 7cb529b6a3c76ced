//! Failures on request: what a client sees when the server is not well.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

/// How the server fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Outage {
    /// Not at all.
    #[default]
    None,
    /// Every request is answered 503.
    Unavailable,
    /// Nobody listens: in-process clients see a refused connection. Over a
    /// socket, where the listener is still there, the answer is 503.
    Refused,
}

/// The switches of one server; clones share them.
#[derive(Debug, Clone)]
pub struct Faults(Arc<State>);

#[derive(Debug)]
struct State {
    outage: Mutex<Outage>,
    watches: watch::Sender<u64>,
}

impl Faults {
    pub(crate) fn new() -> Self {
        Faults(Arc::new(State {
            outage: Mutex::default(),
            watches: watch::Sender::new(0),
        }))
    }

    /// Starts or ends an outage. Its start breaks every open watch.
    pub fn set_outage(&self, outage: Outage) {
        *self.0.outage.lock() = outage;
        if outage != Outage::None {
            self.drop_watches();
        }
    }

    /// The present outage.
    pub fn outage(&self) -> Outage {
        *self.0.outage.lock()
    }

    /// Breaks every open watch in the middle, as a lost connection does.
    pub fn drop_watches(&self) {
        self.0.watches.send_modify(|generation| *generation += 1);
    }

    /// Moves each time the watches are dropped.
    pub(crate) fn watches(&self) -> watch::Receiver<u64> {
        self.0.watches.subscribe()
    }
}
