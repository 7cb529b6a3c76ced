//! What the actors still have to do.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::context::Context;
use super::index::{Index, Target, controller};
use super::timers::Timers;
use super::{Actors, routes, script};
use crate::kinds::edit::text_at;
use crate::server::Shared;
use crate::store::{Change, Range, TableName};

/// How many objects are looked at before other tasks get their turn.
const BATCH: usize = 64;

/// Everything that the actors know.
#[derive(Debug)]
pub(super) struct Work {
    settings: Arc<Actors>,
    /// The version up to which the changes have been read; none before the first
    /// look.
    seen: Option<u64>,
    index: Index,
    dirty: BTreeSet<Target>,
    timers: Timers,
    /// What the clock said when the last wait began, and whether it ended by
    /// itself.
    waited: Option<(SystemTime, bool)>,
}

/// What comes after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// Another step.
    None,
    /// Nothing, until something is written or this time has passed.
    Until(Option<Duration>),
}

impl Work {
    pub(super) fn new(settings: Arc<Actors>) -> Self {
        Work {
            settings,
            seen: None,
            index: Index::default(),
            dirty: BTreeSet::new(),
            timers: Timers::default(),
            waited: None,
        }
    }

    /// Does a part of what is to be done.
    pub(super) fn step(&mut self, shared: &Arc<Shared>) -> Rest {
        self.read(shared);
        let now = shared.clock.now();
        while let Some(target) = self.timers.pop(now) {
            self.dirty.insert(target);
        }
        for _ in 0..BATCH {
            let Some(target) = self.dirty.pop_first() else {
                break;
            };
            let mut context = Context::new(shared, &self.settings, &mut self.index);
            if let Err(error) = routes::reconcile(&mut context, &target) {
                // The object changed or went meanwhile, which will be noted and
                // looked at again; or the API says no, and no again next time.
                tracing::debug!(%error, table = %target.table, key = %target.key, "actor's write refused");
            }
            let wake = context.into_wake();
            self.timers.set(&target, wake);
        }
        if !self.dirty.is_empty() || shared.store.version() != self.seen.unwrap_or(0) {
            return Rest::None;
        }
        Rest::Until(self.wait(shared))
    }

    /// A wait ended by itself.
    pub(super) fn woken(&mut self) {
        if let Some((_, ended)) = &mut self.waited {
            *ended = true;
        }
    }

    /// How long to wait for the next time that is due.
    fn wait(&mut self, shared: &Shared) -> Option<Duration> {
        let now = shared.clock.now();
        let stands_still = self.waited.take() == Some((now, true));
        let due = self.timers.next()?;
        // On a clock that stands still nothing ever becomes due; waiting for it
        // again and again would keep everybody else's virtual time running.
        if stands_still {
            return None;
        }
        self.waited = Some((now, false));
        let wait = due.duration_since(now).unwrap_or_default();
        Some(wait.max(Duration::from_millis(1)))
    }

    fn read(&mut self, shared: &Arc<Shared>) {
        let Some(seen) = self.seen else {
            return self.start_over(shared);
        };
        match shared.store.all_changes(seen) {
            Ok((upto, changes)) => {
                for (table, change) in &changes {
                    self.note(shared, table, change);
                }
                self.seen = Some(upto);
            }
            Err(_) => self.start_over(shared),
        }
    }

    /// Takes in everything: at the start, and after falling behind the history.
    fn start_over(&mut self, shared: &Arc<Shared>) {
        self.seen = Some(shared.store.version());
        for table in shared.store.tables() {
            let page = shared.store.list(&table, &Range::default(), None);
            for object in page.map(|page| page.objects).unwrap_or_default() {
                let change = Change {
                    version: object.version(),
                    before: None,
                    after: object,
                    removed: false,
                };
                self.note(shared, &table, &change);
            }
        }
    }

    fn note(&mut self, shared: &Arc<Shared>, table: &TableName, change: &Change) {
        if !routes::concerns(shared, table) {
            return;
        }
        let after = change.after.value();
        let target = Target {
            table: table.clone(),
            key: change.after.key().into(),
        };
        let controller = controller(&after);
        if change.removed {
            self.index.forget(&target, change.after.uid());
            self.timers.set(&target, None);
        } else {
            let uid = controller.as_ref().map(|controller| &*controller.uid);
            self.index.note(&target, change.after.uid(), uid);
            self.index.note_address(text_at(&after, "/status/podIP"));
            self.dirty.insert(target.clone());
            // What an object is asked to do, those behind it are asked, too.
            let before = change.before.as_ref().map(|before| before.value());
            if before.is_some_and(|before| script::differs(&before, &after)) {
                self.dirty
                    .extend(self.index.all_controlled(change.after.uid()));
            }
        }
        routes::touched(
            shared,
            &target,
            change,
            &after,
            controller.as_ref(),
            &mut self.dirty,
        );
    }
}
