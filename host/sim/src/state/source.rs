//! Where snapshots come from: what a server keeps.

use std::sync::Arc;

use super::StateError;
use super::snapshot::Snapshot;
use crate::clock::Clock;
use crate::server::Shared;
use crate::store::Store;
use crate::tokens::Tokens;

/// What is kept of a server. Holding it does not hold the server, which ends as if it
/// was not there.
#[derive(Debug)]
pub(super) struct Source {
    store: Arc<Store>,
    tokens: Arc<Tokens>,
    clock: Clock,
}

impl Source {
    pub(super) fn of(shared: &Shared) -> Self {
        Source {
            store: shared.store.clone(),
            tokens: shared.tokens.clone(),
            clock: shared.clock.clone(),
        }
    }

    /// Notes everything that is kept, and does something with its version before
    /// there is another one.
    pub(super) fn image<T>(
        &self,
        then: impl FnOnce(u64) -> Result<T, StateError>,
    ) -> Result<(Snapshot, T), StateError> {
        let now = self.clock.now();
        let (tokens, noted) = self.tokens.image(now, || self.store.image(then));
        let (objects, done) = noted?;
        Ok((Snapshot { objects, tokens }, done))
    }
}
