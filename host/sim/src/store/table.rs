//! The objects of one resource, and the changes that made them so.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch;

use super::Object;

/// A history holds no more bytes of objects than this, however few its changes are:
/// some minutes of writes of large ones, as with the real server, which forgets what
/// is older than five minutes.
const MOST_BYTES: usize = 64 << 20;

/// So many changes are kept however old they are, as the real server's cache for watches
/// keeps them (`defaultLowerBoundCapacity`).
const FEW: usize = 100;

/// What is kept of a history.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// So many changes.
    pub(super) most: usize,
    /// Now, in seconds that have passed.
    pub(super) now: u32,
    /// Those that are no more seconds old, and a few others; however old when absent.
    pub(super) age: Option<u32>,
}

/// One resource: its objects in key order and its recent changes.
#[derive(Debug)]
pub(super) struct Table {
    objects: BTreeSet<Row>,
    changes: VecDeque<Arc<Change>>,
    /// When each of them was made, in seconds that had passed.
    times: VecDeque<u32>,
    /// The bytes of the objects that the changes made.
    bytes: usize,
    /// Changes after this version are all in `changes`.
    oldest: u64,
    /// The version of the latest change.
    latest: watch::Sender<u64>,
}

/// An object at its place, which is that of its key.
#[derive(Debug, Clone)]
struct Row(Arc<Object>);

impl Borrow<str> for Row {
    fn borrow(&self) -> &str {
        self.0.key()
    }
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl Eq for Row {}

impl PartialOrd for Row {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Row {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key().cmp(other.0.key())
    }
}

/// One write to one object.
#[derive(Debug, PartialEq)]
pub(crate) struct Change {
    /// The version of the write.
    pub(crate) version: u64,
    /// The object before; absent for a creation.
    pub(crate) before: Option<Arc<Object>>,
    /// The object after; for a removal its last state, stamped with the version
    /// of the removal.
    pub(crate) after: Arc<Object>,
    /// Whether the object is gone.
    pub(crate) removed: bool,
}

/// The asked-for version is older than the history that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// The oldest version that can still be asked for.
    pub(crate) oldest: u64,
}

/// Some objects of a table at one version.
#[derive(Debug)]
pub(crate) struct Page {
    /// The version that the objects are complete at.
    pub(crate) version: u64,
    /// The objects, in key order.
    pub(crate) objects: Vec<Arc<Object>>,
}

/// Which keys of a table.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Range<'a> {
    /// Only keys that start so: `namespace/`, or nothing.
    pub(crate) prefix: &'a str,
    /// Only this key and those after it; empty for all.
    pub(crate) from: &'a str,
}

impl Range<'_> {
    fn contains(&self, key: &str) -> bool {
        key.starts_with(self.prefix) && key >= self.from
    }

    fn bounds(&self) -> (Bound<&str>, Bound<&str>) {
        (
            Bound::Included(self.prefix.max(self.from)),
            Bound::Unbounded,
        )
    }
}

impl Table {
    pub(super) fn new(version: u64) -> Self {
        Table {
            objects: BTreeSet::new(),
            changes: VecDeque::new(),
            times: VecDeque::new(),
            bytes: 0,
            // A table that was never written has no change to have forgotten.
            oldest: 0,
            latest: watch::Sender::new(version),
        }
    }

    /// A table with the same objects and history, which nobody follows yet. All of it was
    /// made before any time passed.
    pub(super) fn fork(&self) -> Self {
        Table {
            objects: self.objects.clone(),
            changes: self.changes.clone(),
            times: self.times.iter().map(|_| 0).collect(),
            bytes: self.bytes,
            oldest: self.oldest,
            latest: watch::Sender::new(*self.latest.borrow()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    pub(super) fn version(&self) -> u64 {
        self.changes
            .back()
            .map_or(self.oldest, |change| change.version)
    }

    pub(super) fn follow(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }

    pub(super) fn get(&self, key: &str) -> Option<Arc<Object>> {
        self.objects.get(key).map(|row| row.0.clone())
    }

    pub(super) fn any(&self, range: &Range<'_>) -> bool {
        self.iter(range).next().is_some()
    }

    pub(super) fn current(&self, range: &Range<'_>) -> Vec<Arc<Object>> {
        self.iter(range).cloned().collect()
    }

    fn iter<'t>(&'t self, range: &Range<'t>) -> impl Iterator<Item = &'t Arc<Object>> {
        let prefix = range.prefix;
        self.objects
            .range::<str, _>(range.bounds())
            .map(|row| &row.0)
            .take_while(move |object| object.key().starts_with(prefix))
    }

    /// The objects as they were at `version`: the present ones with the changes
    /// since then taken back.
    pub(super) fn at(
        &self,
        range: &Range<'_>,
        version: u64,
    ) -> Result<Vec<Arc<Object>>, Compacted> {
        if version < self.oldest {
            return Err(Compacted {
                oldest: self.oldest,
            });
        }
        let mut objects: BTreeMap<&str, &Arc<Object>> = self
            .iter(range)
            .map(|object| (object.key(), object))
            .collect();
        let newer = self
            .changes
            .iter()
            .rev()
            .take_while(|c| c.version > version);
        for change in newer.filter(|c| range.contains(c.after.key())) {
            match &change.before {
                Some(before) => objects.insert(before.key(), before),
                None => objects.remove(change.after.key()),
            };
        }
        Ok(objects.into_values().cloned().collect())
    }

    pub(super) fn since(&self, after: u64) -> Result<Vec<Arc<Change>>, Compacted> {
        if after < self.oldest {
            return Err(Compacted {
                oldest: self.oldest,
            });
        }
        let start = self
            .changes
            .partition_point(|change| change.version <= after);
        Ok(self.changes.range(start..).cloned().collect())
    }

    /// Takes all changes for made now.
    pub(super) fn dates(&mut self, now: u32) {
        self.times.iter_mut().for_each(|time| *time = now);
    }

    pub(super) fn put(&mut self, object: Arc<Object>, bounds: &Bounds) -> Arc<Object> {
        let before = self.objects.replace(Row(object.clone()));
        self.record(before.map(|row| row.0), object.clone(), false, bounds);
        object
    }

    pub(super) fn take(&mut self, last: Arc<Object>, bounds: &Bounds) -> Arc<Object> {
        let before = self.objects.take(last.key());
        self.record(before.map(|row| row.0), last.clone(), true, bounds);
        last
    }

    /// Puts an object in its place, which nobody is told of.
    pub(super) fn place(&mut self, object: Arc<Object>) {
        self.objects.replace(Row(object));
    }

    /// Shows the objects that are there otherwise. That is no change of theirs.
    pub(super) fn show(&mut self, show: impl Fn(&mut Value)) {
        let shown = |row: &Row| row.0.shown(&show).map(|shown| Row(Arc::new(shown)));
        let all: Vec<Row> = self.objects.iter().filter_map(shown).collect();
        for row in all {
            self.objects.replace(row);
        }
    }

    pub(super) fn compact(&mut self, version: u64) {
        self.changes.clear();
        self.times.clear();
        self.bytes = 0;
        self.oldest = version;
    }

    fn record(
        &mut self,
        before: Option<Arc<Object>>,
        after: Arc<Object>,
        removed: bool,
        bounds: &Bounds,
    ) {
        let version = after.version();
        self.bytes += after.size();
        self.times.push_back(bounds.now);
        self.changes.push_back(Arc::new(Change {
            version,
            before,
            after,
            removed,
        }));
        // The last change always stays: followers are told of it.
        while self.changes.len() > 1
            && self.has_surplus(bounds)
            && let Some(dropped) = self.changes.pop_front()
        {
            self.times.pop_front();
            self.oldest = dropped.version;
            self.bytes -= dropped.after.size();
        }
        self.latest.send_replace(version);
    }

    /// Whether the oldest change is one too many.
    fn has_surplus(&self, bounds: &Bounds) -> bool {
        let age = self.times.front().map(|at| bounds.now.saturating_sub(*at));
        let is_old = bounds.age.is_some_and(|most| age > Some(most));
        self.changes.len() > bounds.most
            || self.bytes > MOST_BYTES
            || is_old && self.changes.len() > FEW
    }
}
