//! Looking at one source again and again.

use super::look::{GivenSource, Looked, SourceFeed, look};
use super::{SourceChange, SourceState};
use crate::granted::Granted;
use crate::metrics::{LookResult, SourceMeter};
use parking_lot::Mutex;
use reeve_core::backoff::Backoff;
use reeve_core::manifest::SourceRule;
use reeve_engine::Document;
use reeve_outside::Validators;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

/// What looks at one source.
pub(super) struct Poller {
    pub(super) plugin: Arc<str>,
    pub(super) rule: SourceRule,
    pub(super) granted: Arc<Granted>,
    pub(super) state: Arc<Mutex<SourceState>>,
    pub(super) changes: mpsc::UnboundedSender<SourceChange>,
    pub(super) looked: watch::Sender<bool>,
    pub(super) hurry: Arc<Notify>,
    pub(super) meter: SourceMeter,
}

/// Delays after failures: a service that is away is not asked more and more, and one
/// that is back is found within five minutes, or within the source's own interval if
/// that is longer.
const FAILING: Backoff = Backoff {
    base: Duration::from_secs(1),
    cap: Duration::from_secs(300),
};

impl Poller {
    /// Looks until it is aborted, or there is nothing to look at.
    pub(super) async fn run(self, feed: SourceFeed) {
        match feed {
            SourceFeed::Outside => self.poll().await,
            SourceFeed::Given(given) => self.follow(given).await,
        }
    }

    async fn poll(self) {
        // Failures from before a person asked: the next ones are as after the first.
        let mut forgiven = 0;
        loop {
            let (known, confirmed) = {
                let state = self.state.lock();
                (state.validators(), state.confirmed())
            };
            // What another version has fetched has an age, too.
            self.meter.confirmed(confirmed);
            let began = Instant::now();
            let looked = look(&self.rule, &self.granted, known).await;
            let forbidden = matches!(looked, Looked::Forbidden(_));
            let failures = self.take(looked, began.elapsed());
            if forbidden {
                // Another grant is another source.
                return;
            }
            forgiven = if failures == 0 { 0 } else { forgiven };
            let pause = self.pause(failures - forgiven.min(failures));
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.hurry.notified() => forgiven = failures,
            }
        }
    }

    fn pause(&self, failures: u32) -> Duration {
        match failures {
            0 => self.rule.interval,
            _ => self.rule.interval.max(FAILING.delay(failures, 1.0)),
        }
    }

    async fn follow(self, mut given: watch::Receiver<super::GivenSources>) {
        loop {
            let found = given.borrow_and_update().get(&self.rule.name).cloned();
            let looked = match found {
                Some(GivenSource::Document { body, media_type }) => {
                    let document = Document { body, media_type };
                    Looked::Document(document, Validators::default())
                }
                Some(GivenSource::Failing(text)) => Looked::Failed(text),
                None => Looked::Failed(
                    "the scenario gives no such source; give it under `sources`".to_owned(),
                ),
            };
            self.take(looked, Duration::ZERO);
            if given.changed().await.is_err() {
                return;
            }
        }
    }

    /// Takes in what a look gave, and tells who has to know. Returns the failures in
    /// a row.
    fn take(&self, looked: Looked, time: Duration) -> u32 {
        let mut state = self.state.lock();
        let interval = self.rule.interval;
        let before = (
            state.problem.clone(),
            state.forbidden.clone(),
            state.age(interval),
        );
        let had_none = state.document.is_none();
        (state.problem, state.forbidden) = (None, None);
        let mut content = false;
        let mut result = LookResult::Unchanged;
        match looked {
            Looked::Unchanged => state.confirm(),
            Looked::Document(document, validators) => {
                content = state.take(document, validators);
                if content {
                    result = LookResult::Changed;
                }
            }
            Looked::Forbidden(text) => {
                state.forbidden = Some(text);
                result = LookResult::Forbidden;
            }
            Looked::Failed(text) => {
                state.problem = Some(text);
                result = LookResult::Failed;
            }
        }
        self.meter.looked(result, time);
        self.meter.confirmed(state.confirmed());
        let failed = state.problem.is_some();
        state.failures = if failed {
            state.failures.saturating_add(1)
        } else {
            0
        };
        // Who reads what is not there is told why.
        let why = (&before.0, &before.1) != (&state.problem, &state.forbidden);
        content |= had_none && state.document.is_none() && why;
        let age = state.age(interval);
        let aged = before.2.is_some() && before.2 != age;
        let failures = state.failures;
        if content || why || aged {
            state.version += 1;
        }
        if why && let Some(problem) = state.problem.as_ref().or(state.forbidden.as_ref()) {
            let (plugin, source) = (&self.plugin, &self.rule.name);
            tracing::warn!(%plugin, source, problem, "source not fetched");
        }
        drop(state);
        self.looked.send_replace(true);
        if content || why || aged {
            // Who listens has ended with the agent.
            let _ = self.changes.send(SourceChange {
                plugin: self.plugin.clone(),
                name: self.rule.name.clone(),
                content,
            });
        }
        failures
    }
}
