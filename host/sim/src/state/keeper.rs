//! Who looks after a state while its server runs: brings the log to the disk, and
//! writes snapshots.

use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use parking_lot::Mutex;

use super::folder::{Folder, Known};
use super::journal::{INTERVAL, Journal, Order};
use super::source::Source;
use super::{StateError, compaction};
use crate::server::Shared;

/// The state of a server that runs. When it is dropped, what was written is on the
/// disk, and the folder is free.
#[derive(Debug)]
pub(crate) struct Kept {
    folder: Folder,
    journal: Arc<Journal>,
    known: Mutex<Known>,
    /// Whether there was a state before.
    pub(super) resumed: bool,
    keeper: Option<JoinHandle<()>>,
}

impl Kept {
    /// Looks after the state of `shared`.
    pub(super) fn start(
        shared: &Arc<Shared>,
        folder: Folder,
        known: Known,
        journal: Arc<Journal>,
        orders: mpsc::Receiver<Order>,
        resumed: bool,
    ) -> Result<Self, StateError> {
        let (source, to) = (Source::of(shared), journal.clone());
        let keeper = thread::Builder::new()
            .name("state".to_owned())
            .spawn(move || run(&source, &to, &orders))
            .map_err(StateError::io("start a thread for", &folder.path))?;
        Ok(Kept {
            folder,
            journal,
            known: Mutex::new(known),
            resumed,
            keeper: Some(keeper),
        })
    }

    /// As whom the server is known over a socket.
    pub(crate) fn known(&self) -> Known {
        self.known.lock().clone()
    }

    /// Keeps where the server listens.
    pub(crate) fn listens(&self, address: std::net::SocketAddr) -> Result<(), StateError> {
        let mut known = self.known.lock();
        if known.address == Some(address) {
            return Ok(());
        }
        known.address = Some(address);
        self.folder.keep(&known)
    }

    /// Brings what was written to the disk.
    pub(crate) fn sync(&self) {
        self.journal.sync();
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.journal.order(Order::Stop);
        // One that panicked has ended, too.
        drop(self.keeper.take().map(JoinHandle::join));
    }
}

fn run(source: &Source, journal: &Journal, orders: &mpsc::Receiver<Order>) {
    while let Ok(order) = orders.recv() {
        match order {
            Order::Stop => return journal.sync(),
            Order::Compact => compact(source, journal),
            Order::Sync => {
                let stopped = gather(source, journal, orders);
                journal.sync();
                if stopped {
                    return;
                }
            }
        }
    }
}

/// Lets more be written, which then goes to the disk together. Says whether the
/// server ends.
fn gather(source: &Source, journal: &Journal, orders: &mpsc::Receiver<Order>) -> bool {
    let until = Instant::now() + INTERVAL;
    loop {
        match orders.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Order::Stop) | Err(mpsc::RecvTimeoutError::Disconnected) => return true,
            Ok(Order::Compact) => compact(source, journal),
            Ok(Order::Sync) => {}
            Err(mpsc::RecvTimeoutError::Timeout) => return false,
        }
    }
}

fn compact(source: &Source, journal: &Journal) {
    if let Err(error) = compaction::compact(source, journal) {
        // Nothing is lost by it: the log is there, and grows.
        let error = &error as &dyn std::error::Error;
        tracing::error!(error, "no snapshot of the state was made; its log grows on");
    }
}
