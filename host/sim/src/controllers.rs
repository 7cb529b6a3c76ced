//! The controllers inside: what a cluster does by itself after a write.
//!
//! One task follows all writes and acts on what they left to do. It waits for
//! nothing but writes, so it stands still when the cluster does, under any clock.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::server::Shared;

/// The task, once it runs.
#[derive(Debug, Default)]
pub(crate) struct Controllers(Mutex<Option<JoinHandle<()>>>);

impl Controllers {
    /// Starts the task on the present runtime, unless it runs. A runtime that
    /// ended took its task with it, and the next request starts another.
    pub(crate) fn ensure_running(&self, shared: &Arc<Shared>) {
        let mut task = self.0.lock();
        if task.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            let news = shared.store.follow_all();
            *task = Some(runtime.spawn(run(Arc::downgrade(shared), news)));
        }
    }
}

impl Drop for Controllers {
    fn drop(&mut self) {
        if let Some(task) = self.0.get_mut().take() {
            task.abort();
        }
    }
}

async fn run(shared: Weak<Shared>, mut news: watch::Receiver<u64>) {
    loop {
        news.mark_unchanged();
        match shared.upgrade() {
            Some(shared) => step(&shared),
            None => return,
        }
        if news.changed().await.is_err() {
            return;
        }
    }
}

fn step(_shared: &Arc<Shared>) {}
