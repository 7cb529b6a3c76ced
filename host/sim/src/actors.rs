//! Actors: what in a real cluster makes workloads run.
//!
//! They play the controllers that a control plane has beside those in
//! `controllers`, its scheduler, its kubelets and a few providers: pods are
//! scheduled and become ready, Deployments roll out, Jobs complete, claims are
//! bound. There are no containers; a pod does what its annotations say, see
//! [`script`]. Actors write through the same path as everybody, under the names
//! of those they play, so managed fields and watches are as in reality.
//!
//! One task follows all writes and knows of each object when it has to be looked
//! at again. It waits for nothing but writes and those times, so that a cluster in
//! which nothing happens costs nothing, however long it lasts.

mod budget;
mod claim;
mod conditions;
mod context;
mod cron_job;
mod custom;
mod daemon_set;
mod delivery;
mod deployment;
mod endpoints;
mod hash;
mod index;
mod job;
mod kubelet;
mod lease;
mod load_balancer;
mod node;
mod pod;
mod replica_set;
mod revision;
mod routes;
mod run;
mod script;
mod settings;
mod stateful_set;
mod tables;
mod template;
mod timers;
mod volume;
mod work;

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

pub use self::settings::{Actors, CustomKind, NotAKind};
use self::work::{Rest, Work};
use crate::clock::Clock;
use crate::server::Shared;

/// The actors of one server: whether there are any, and their task once it runs.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    state: Mutex<State>,
    nudge: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    settings: Option<Arc<Actors>>,
    task: Option<JoinHandle<()>>,
}

impl Stage {
    /// A stage with these actors, or with none.
    pub(crate) fn new(settings: Option<Actors>) -> Self {
        let stage = Stage::default();
        stage.set(settings);
        stage
    }

    /// What the actors were asked to be.
    pub(crate) fn settings(&self) -> Option<Actors> {
        let state = self.state.lock();
        state.settings.as_deref().cloned()
    }

    /// Replaces the actors. What the earlier ones did stays.
    pub(crate) fn set(&self, settings: Option<Actors>) {
        let mut state = self.state.lock();
        if let Some(task) = state.task.take() {
            task.abort();
        }
        state.settings = settings.map(Arc::new);
    }

    /// Makes the actors look at the clock again, after it jumped.
    pub(crate) fn nudge(&self) {
        self.nudge.notify_one();
    }

    /// Starts the task on the present runtime, unless it runs or there are no
    /// actors.
    pub(crate) fn ensure_running(&self, shared: &Arc<Shared>) {
        let mut state = self.state.lock();
        let Some(settings) = state.settings.clone() else {
            return;
        };
        if state.task.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            // The first request sees them already.
            node::set_up(shared, settings.nodes);
            let news = shared.store.follow_all();
            let act = act(Arc::downgrade(shared), settings, news, self.nudge.clone());
            state.task = Some(runtime.spawn(act));
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(task) = self.state.get_mut().task.take() {
            task.abort();
        }
    }
}

async fn act(
    shared: Weak<Shared>,
    settings: Arc<Actors>,
    mut news: watch::Receiver<u64>,
    nudge: Arc<Notify>,
) {
    let mut work = Work::new(settings);
    loop {
        news.mark_unchanged();
        let (rest, clock, looked) = match shared.upgrade() {
            Some(shared) => {
                let clock = shared.clock.clone();
                let looked = clock.passed();
                (work.step(&shared), clock, looked)
            }
            None => return,
        };
        match rest {
            Rest::None => tokio::task::yield_now().await,
            Rest::Until(wait) => {
                tokio::select! {
                    told = news.changed() => {
                        if told.is_err() {
                            return;
                        }
                    }
                    () = nudge.notified() => {}
                    () = pause(&clock, wait.map(|wait| looked + wait)) => work.woken(),
                }
            }
        }
    }
}

async fn pause(clock: &Clock, until: Option<Duration>) {
    match until {
        Some(until) => clock.reaches(until).await,
        None => std::future::pending().await,
    }
}
