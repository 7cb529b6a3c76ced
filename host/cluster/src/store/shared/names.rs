//! What changes in a watch of names.

use super::{Inner, Shared, own};
use crate::object::Object;
use crate::store::change::Change;
use crate::store::named::{Answered, ObjectName, Outcome, Reading};
use crate::store::spec::WatchSpec;
use crate::store::state::WatchState;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::Instant;

/// What is waited for, beside names of which nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Awaited {
    /// Nothing.
    Unknown,
    /// Those that were refused.
    Refused,
    /// Those that have been doubted since they were read.
    Doubted,
}

impl Shared {
    /// Makes these the names of a holder. What is named no more leaves the store.
    pub(in crate::store) fn set_names(
        &self,
        spec: &WatchSpec,
        id: u64,
        holder: &str,
        names: &BTreeSet<ObjectName>,
    ) {
        let mut inner = self.inner.lock();
        let Some(running) = inner.running(spec, id) else {
            return;
        };
        let gone = running.names.set(holder, names, Instant::now());
        running.refresh.send_modify(|count| *count += 1);
        let Some(view) = inner.table.view_mut(spec) else {
            return;
        };
        let changes: Vec<Change> = gone
            .iter()
            .filter_map(|name| view.unname(name))
            .map(own)
            .collect();
        inner.tell(&self.changes, changes);
    }

    /// The names of a holder.
    pub(in crate::store) fn names_of(
        &self,
        spec: &WatchSpec,
        id: u64,
        holder: &str,
    ) -> BTreeSet<ObjectName> {
        let mut inner = self.inner.lock();
        let running = inner.running(spec, id);
        running
            .map(|running| running.names.of(holder))
            .unwrap_or_default()
    }

    /// Doubts the names of a holder: each is to be read anew. Nothing is hidden meanwhile.
    pub(in crate::store) fn doubt_names(&self, spec: &WatchSpec, id: u64, holder: &str) {
        let mut inner = self.inner.lock();
        let Some(running) = inner.running(spec, id) else {
            return;
        };
        running.names.doubt_of(holder, Instant::now());
        running.refresh.send_modify(|count| *count += 1);
    }

    /// Which of these names are to be waited for, and what tells of answers. Those that were
    /// refused are asked for again where they are waited for.
    pub(in crate::store) fn unread(
        &self,
        spec: &WatchSpec,
        id: u64,
        names: &mut BTreeSet<ObjectName>,
        also: Awaited,
    ) -> Option<watch::Receiver<u64>> {
        let now = Instant::now();
        let mut inner = self.inner.lock();
        // Who is not named is never read.
        let running = inner.running(spec, id)?;
        let doubted =
            |name: &ObjectName| also == Awaited::Doubted && running.names.is_doubted(name);
        names.retain(|name| running.names.holds(name));
        let doubted: BTreeSet<ObjectName> = names.iter().filter(|n| doubted(n)).cloned().collect();
        let view = inner.table.view_mut(spec)?;
        let mut refused = Vec::new();
        names.retain(|name| match view.names.get(name) {
            Some(Outcome::Refused(_)) if also == Awaited::Refused => {
                refused.push(name.clone());
                true
            }
            Some(_) => doubted.contains(name),
            None => true,
        });
        for name in &refused {
            view.names.remove(name);
        }
        inner.table.version += u64::from(!refused.is_empty());
        let running = inner.running(spec, id)?;
        for name in &refused {
            running.names.hasten(name, now);
        }
        if !refused.is_empty() {
            running.refresh.send_modify(|count| *count += 1);
        }
        Some(running.reads.subscribe())
    }

    /// Names that are due; or else when the next one is, if there is any. None when the
    /// watch has ended.
    pub(in crate::store) fn take_due(
        &self,
        spec: &Arc<WatchSpec>,
        id: u64,
        most: usize,
    ) -> Option<Result<Vec<Reading>, Option<Instant>>> {
        let mut inner = self.inner.lock();
        let running = inner.running(spec, id)?;
        let due = running.names.take_due(Instant::now(), most);
        if due.is_err() && running.names.all_read() {
            self.all_read(&mut inner, spec, id);
        }
        Some(due)
    }

    /// Notes that nothing of a watch of names is unknown.
    fn all_read(&self, inner: &mut Inner, spec: &Arc<WatchSpec>, id: u64) {
        if let Some(running) = inner.running(spec, id) {
            running.listed = running.fresh_from;
        }
        if let Some(view) = inner.table.view_mut(spec) {
            view.complete = true;
        }
        self.set_state_locked(inner, spec, id, WatchState::Synced);
    }

    /// Takes in the answer to reading a name: an object, none, or that it may not be
    /// read. `fraction`, in 0..1, spreads what was read at once.
    pub(in crate::store) fn read(
        &self,
        spec: &Arc<WatchSpec>,
        id: u64,
        reading: &Reading,
        answer: Result<Option<Arc<Object>>, Arc<str>>,
        fraction: f64,
    ) {
        let mut inner = self.inner.lock();
        let Some(running) = inner.running(spec, id) else {
            return;
        };
        let found = answer.as_ref().ok().and_then(Option::as_ref);
        let going = found.is_some_and(|object| object.is_deleting());
        let answered = running
            .names
            .answered(reading, Instant::now(), going, fraction);
        if answered == Answered::Overtaken {
            return;
        }
        let Some(view) = inner.table.view_mut(spec) else {
            return;
        };
        let outcome = match &answer {
            Ok(_) => Outcome::Read,
            Err(message) => Outcome::Refused(message.clone()),
        };
        let new = view.names.get(&reading.name) != Some(&outcome);
        if new {
            view.names.insert(reading.name.clone(), outcome);
        }
        let change = match answer {
            Ok(Some(object)) if spec.matches(&object) => view.put(object),
            Ok(_) => view.lose(&reading.name),
            // It stays, to be compared with what is read later; it is not answered from.
            Err(_) => None,
        };
        inner.tell(&self.changes, change);
        inner.table.version += u64::from(new);
        if let Some(running) = inner.running(spec, id) {
            running.reads.send_modify(|count| *count += 1);
        }
    }

    /// Ends a reading that was not answered.
    pub(in crate::store) fn not_read(&self, spec: &Arc<WatchSpec>, id: u64, reading: &Reading) {
        let mut inner = self.inner.lock();
        if let Some(running) = inner.running(spec, id) {
            running.names.unanswered(reading, Instant::now());
        }
    }
}
