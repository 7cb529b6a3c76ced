//! A watch of names: each object is read by itself, and from time to time again.

use super::named::Reading;
use super::shared::Shared;
use super::spec::WatchSpec;
use super::state::WatchState;
use crate::identity::Identity;
use crate::jitter::Jitter;
use crate::read::ReadError;
use futures::future::join_all;
use reeve_core::backoff::Backoff;
use reeve_core::chain;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::{sleep, sleep_until};

/// Objects that are read at once.
const READS_AT_ONCE: usize = 8;

/// The task behind a watch of names.
pub(super) struct Poller {
    shared: Arc<Shared>,
    spec: Arc<WatchSpec>,
    id: u64,
    /// As whom it reads.
    identity: Option<Identity>,
    /// Attempts in vain, in a row.
    failures: u32,
    /// Readings so far.
    turns: u64,
    jitter: Jitter,
}

impl Poller {
    pub(super) fn new(
        shared: Arc<Shared>,
        spec: Arc<WatchSpec>,
        id: u64,
        identity: Option<Identity>,
    ) -> Self {
        let jitter = shared
            .cluster
            .jitter
            .of(&(&spec.resource.kind.group, &*spec));
        Self {
            shared,
            spec,
            id,
            identity,
            failures: 0,
            turns: 0,
            jitter,
        }
    }

    /// Runs until the task is aborted. When `wake` changes, other names may be due.
    pub(super) async fn run(mut self, mut wake: watch::Receiver<u64>) {
        loop {
            wake.borrow_and_update();
            match self.shared.take_due(&self.spec, self.id, READS_AT_ONCE) {
                Some(Ok(readings)) => self.read_all(readings).await,
                Some(Err(Some(at))) => tokio::select! {
                    () = sleep_until(at) => {}
                    changed = wake.changed() => if changed.is_err() { return },
                },
                Some(Err(None)) => {
                    if wake.changed().await.is_err() {
                        return;
                    }
                }
                None => return,
            }
        }
    }

    async fn read_all(&mut self, readings: Vec<Reading>) {
        let this = &*self;
        let reads = readings.iter().map(|reading| this.read(reading));
        let failed = join_all(reads).await;
        self.turns += 1;
        let Some(state) = failed.into_iter().flatten().next() else {
            self.failures = 0;
            return;
        };
        self.failures = self.failures.saturating_add(1);
        let observer = &self.shared.cluster.observer;
        observer.watch_restarted(&self.spec.resource);
        let state = match state {
            WatchState::Failing { message, .. } => WatchState::Failing {
                message,
                failures: self.failures,
            },
            state => state,
        };
        tracing::debug!(watch = %self.spec, %state, "not read");
        self.shared.set_state(&self.spec, self.id, state);
        let jitter = self.jitter.fraction(self.failures.into());
        sleep(Backoff::CONNECTION.delay(self.failures, jitter)).await;
    }

    /// Reads an object, and returns how the watch is when there was no answer.
    async fn read(&self, reading: &Reading) -> Option<WatchState> {
        let (namespace, name) = (reading.name.namespace.as_deref(), &*reading.name.name);
        let resource = &self.spec.resource;
        let cluster = &self.shared.cluster;
        let identity = self.identity.as_ref();
        let read = cluster.get_as(resource, namespace, name, identity).await;
        let answer = match read {
            Ok(found) => Ok(found.map(Arc::new)),
            // That of one name says nothing about those of other namespaces.
            Err(error @ ReadError::Forbidden { .. }) => Err(chain(&error).into()),
            Err(error) => {
                self.shared.not_read(&self.spec, self.id, reading);
                return Some(match error {
                    ReadError::NotServed { .. } => WatchState::NotServed,
                    error => WatchState::Failing {
                        message: chain(&error).into(),
                        failures: 0,
                    },
                });
            }
        };
        let fraction = self.jitter.of(&reading.name).fraction(self.turns);
        let (shared, spec) = (&self.shared, &self.spec);
        shared.read(spec, self.id, reading, answer, fraction);
        None
    }
}
