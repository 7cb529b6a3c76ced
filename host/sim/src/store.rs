//! Objects, versions and history: what etcd and the watch cache are together.
//!
//! One counter numbers all writes. Every write is a compare-and-swap on one
//! object, and is kept in the history of its table for watches, for lists that
//! continue at an older version, and for exact reads. The history is bounded, in length
//! and in time; a version older than it is [`Compacted`].

mod aging;
mod fields;
mod form;
mod object;
mod restore;
mod table;

use std::sync::{Arc, OnceLock};

use foldhash::{HashMap, HashMapExt as _};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

use crate::state::{Entry, Journal, Unkept};

use aging::{Aging, Ticks};
pub(crate) use form::Form;
pub(crate) use object::Object;
pub(crate) use restore::Image;
use table::Table;
pub(crate) use table::{Change, Compacted, Page, Range};

/// The version of a store to which nothing was written: as in etcd, no object has it.
const EMPTY: u64 = 1;

/// The table of one resource: `configmaps`, `widgets.example.com`. All versions
/// of a resource share a table.
pub(crate) type TableName = Arc<str>;

/// Changes with their tables, and the version up to which they are complete.
pub(crate) type AllChanges = (u64, Vec<(TableName, Arc<Change>)>);

/// All objects of one server.
#[derive(Debug)]
pub(crate) struct Store {
    state: Mutex<State>,
    /// Announces the version of the latest write to whoever follows everything.
    latest: watch::Sender<u64>,
    history: usize,
    /// By which clock history grows old, where it does.
    aging: OnceLock<Aging>,
    /// Where writes are kept before anybody sees them, where they are.
    journal: OnceLock<Arc<Journal>>,
}

#[derive(Debug)]
struct State {
    version: u64,
    /// What was before is forgotten, in tables that are not there yet, too.
    floor: u64,
    ticks: Ticks,
    tables: HashMap<TableName, Table>,
}

/// Why a compare-and-swap did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// An object of that key is there already.
    Exists,
    /// No object of that key is there.
    Missing,
    /// The object is there in another version than was expected.
    Changed,
    /// The write cannot be kept.
    Unkept,
}

impl From<Unkept> for Refused {
    fn from(_: Unkept) -> Self {
        Refused::Unkept
    }
}

impl Store {
    /// An empty store that keeps the last `history` changes of each table.
    pub(crate) fn new(history: usize) -> Self {
        Store {
            state: Mutex::new(State {
                version: EMPTY,
                floor: 0,
                ticks: Ticks::default(),
                tables: HashMap::new(),
            }),
            latest: watch::Sender::new(EMPTY),
            history: history.max(1),
            aging: OnceLock::new(),
            journal: OnceLock::new(),
        }
    }

    /// A store with the same objects and history, which goes its own way from
    /// here, and does not grow old yet. The objects are shared, so it costs little.
    pub(crate) fn fork(&self) -> Self {
        let state = self.state.lock();
        let tables = state.tables.iter();
        Store {
            state: Mutex::new(State {
                version: state.version,
                floor: state.floor,
                ticks: state.ticks.fork(),
                tables: tables
                    .map(|(name, table)| (name.clone(), table.fork()))
                    .collect(),
            }),
            latest: watch::Sender::new(state.version),
            history: self.history,
            aging: OnceLock::new(),
            journal: OnceLock::new(),
        }
    }

    /// Keeps every write from here on in `journal` before anybody sees it. A fork of
    /// the store does not.
    pub(crate) fn keep_in(&self, journal: Arc<Journal>) {
        // There is one journal, which is set when the server is made.
        let _ = self.journal.set(journal);
    }

    /// The version of the latest write.
    pub(crate) fn version(&self) -> u64 {
        self.state.lock().version
    }

    /// A receiver of the version of each write to any table.
    pub(crate) fn follow_all(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }

    /// Wakes who follows everything, though nothing was written.
    pub(crate) fn nudge(&self) {
        self.latest.send_modify(|_| {});
    }

    /// A receiver of the version of each write to `table`.
    pub(crate) fn follow(&self, table: &TableName) -> watch::Receiver<u64> {
        let mut state = self.state.lock();
        state.table(table).follow()
    }

    /// The present object of `key`.
    pub(crate) fn get(&self, table: &str, key: &str) -> Option<Arc<Object>> {
        self.state.lock().tables.get(table)?.get(key)
    }

    /// Whether the table holds anything in `range`.
    pub(crate) fn any(&self, table: &str, range: &Range<'_>) -> bool {
        let state = self.state.lock();
        state.tables.get(table).is_some_and(|t| t.any(range))
    }

    /// The names of the tables that hold at least one object.
    pub(crate) fn tables(&self) -> Vec<TableName> {
        let state = self.state.lock();
        let filled = state.tables.iter().filter(|(_, table)| !table.is_empty());
        filled.map(|(name, _)| name.clone()).collect()
    }

    /// The objects of one namespace as they are now, in key order.
    pub(crate) fn in_namespace(&self, table: &str, namespace: &str) -> Vec<Arc<Object>> {
        let prefix = format!("{namespace}/");
        let range = Range {
            prefix: &prefix,
            ..Range::default()
        };
        let page = self.list(table, &range, None);
        page.map(|page| page.objects).unwrap_or_default()
    }

    /// The objects of `range`, in key order, as they were at `at` (now when
    /// absent). `at` must not lie in the future.
    pub(crate) fn list(
        &self,
        table: &str,
        range: &Range<'_>,
        at: Option<u64>,
    ) -> Result<Page, Compacted> {
        let mut state = self.state.lock();
        if let Some(at) = at {
            state.readable(at, self.aging.get())?;
        }
        let version = at.unwrap_or(state.version);
        let objects = match state.tables.get(table) {
            None => Vec::new(),
            Some(table) if version >= table.version() => table.current(range),
            Some(table) => table.at(range, version)?,
        };
        Ok(Page { version, objects })
    }

    /// The changes of `table` after version `after`, oldest first, with the
    /// version up to which they are complete.
    pub(crate) fn changes(
        &self,
        table: &str,
        after: u64,
    ) -> Result<(u64, Vec<Arc<Change>>), Compacted> {
        let state = self.state.lock();
        let changes = match state.tables.get(table) {
            None if after < state.floor => {
                return Err(Compacted {
                    oldest: state.floor,
                });
            }
            None => Vec::new(),
            Some(table) => table.since(after)?,
        };
        Ok((state.version, changes))
    }

    /// The changes of all tables after version `after`, in order.
    pub(crate) fn all_changes(&self, after: u64) -> Result<AllChanges, Compacted> {
        let state = self.state.lock();
        let mut changes = Vec::new();
        for (name, table) in &state.tables {
            if table.version() > after {
                let since = table.since(after)?;
                changes.extend(since.into_iter().map(|change| (name.clone(), change)));
            }
        }
        changes.sort_by_key(|(_, change)| change.version);
        Ok((state.version, changes))
    }

    /// Stores a new object.
    pub(crate) fn create(
        &self,
        table: &TableName,
        key: &str,
        value: Value,
    ) -> Result<Arc<Object>, Refused> {
        self.create_as(table, key, value, None)
    }

    /// As [`Store::create`], of an object that has [`Object::mark`].
    pub(crate) fn create_as(
        &self,
        table: &TableName,
        key: &str,
        value: Value,
        mark: Option<u64>,
    ) -> Result<Arc<Object>, Refused> {
        self.write(table, key, |present, version| match present {
            Some(_) => Err(Refused::Exists),
            None => Ok(Some(Object::new(key, version, value).marked(mark))),
        })
    }

    /// Stores the new object that a form makes.
    pub(crate) fn create_from(
        &self,
        table: &TableName,
        form: &Form,
        uid: &str,
        created: &str,
    ) -> Result<Arc<Object>, Refused> {
        self.write(table, form.key(), |present, version| match present {
            Some(_) => Err(Refused::Exists),
            None => Ok(Some(form.filled_in(version, uid, created))),
        })
    }

    /// Replaces the object that was read at `expected`.
    pub(crate) fn replace(
        &self,
        table: &TableName,
        key: &str,
        expected: u64,
        value: Value,
    ) -> Result<Arc<Object>, Refused> {
        self.replace_as(table, key, expected, value, None)
    }

    /// As [`Store::replace`], by an object that has [`Object::mark`].
    pub(crate) fn replace_as(
        &self,
        table: &TableName,
        key: &str,
        expected: u64,
        value: Value,
        mark: Option<u64>,
    ) -> Result<Arc<Object>, Refused> {
        self.write(table, key, |present, version| match present {
            None => Err(Refused::Missing),
            Some(object) if object.version() != expected => Err(Refused::Changed),
            Some(_) => Ok(Some(Object::new(key, version, value).marked(mark))),
        })
    }

    /// Removes the object that was read at `expected`. The answer is its last
    /// state, with the version of the removal.
    pub(crate) fn remove(
        &self,
        table: &TableName,
        key: &str,
        expected: u64,
    ) -> Result<Arc<Object>, Refused> {
        self.write(table, key, |present, _| match present {
            None => Err(Refused::Missing),
            Some(object) if object.version() != expected => Err(Refused::Changed),
            Some(_) => Ok(None),
        })
    }

    /// Shows the objects of `table` as `show` makes of what was written, which stays as
    /// it is: no version moves, and nobody who watches is told.
    pub(crate) fn show(&self, table: &str, show: impl Fn(&mut Value)) {
        if let Some(table) = self.state.lock().tables.get_mut(table) {
            table.show(show);
        }
    }

    /// Forgets all history: watches and pages at older versions have expired.
    pub(crate) fn compact(&self) {
        let mut state = self.state.lock();
        let version = state.version;
        if let Some(journal) = self.journal.get() {
            // Where it cannot be kept, watches begin where they could have gone on.
            let _ = journal.append(&Entry::Compacted { version });
        }
        state.compact();
    }

    fn write(
        &self,
        table: &TableName,
        key: &str,
        decide: impl FnOnce(Option<&Object>, u64) -> Result<Option<Object>, Refused>,
    ) -> Result<Arc<Object>, Refused> {
        let mut state = self.state.lock();
        state.tick(self.aging.get());
        let bounds = self.bounds();
        let version = state.version + 1;
        let rows = state.table(table);
        let present = rows.get(key);
        let journal = self.journal.get();
        let object = match (decide(present.as_deref(), version)?, present) {
            (Some(object), _) => {
                let object = Arc::new(object);
                if let Some(journal) = journal {
                    journal.append(&Entry::Put {
                        version,
                        table,
                        key,
                        json: object.written(),
                        mark: object.mark(),
                    })?;
                }
                rows.put(object, &bounds)
            }
            (None, Some(last)) => {
                if let Some(journal) = journal {
                    journal.append(&Entry::Removed {
                        version,
                        table,
                        key,
                    })?;
                }
                rows.take(Arc::new(last.restamped(version)), &bounds)
            }
            (None, None) => return Err(Refused::Missing),
        };
        state.version = version;
        // Told under the lock, so that versions are announced in order.
        self.latest.send_replace(version);
        Ok(object)
    }
}

impl State {
    fn table(&mut self, name: &TableName) -> &mut Table {
        let version = self.version;
        self.tables
            .entry(name.clone())
            .or_insert_with(|| Table::new(version))
    }

    fn compact(&mut self) {
        let version = self.version;
        self.floor = version;
        for table in self.tables.values_mut() {
            table.compact(version);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(x: u64) -> Value {
        json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "n"}, "x": x})
    }

    fn names(page: &Page) -> Vec<&str> {
        page.objects.iter().map(|o| o.key()).collect()
    }

    #[test]
    fn one_counter_numbers_the_writes_of_all_tables() {
        let store = Store::new(10);
        assert_eq!(store.version(), EMPTY);
        let (a, b) = (TableName::from("as"), TableName::from("bs"));
        assert_eq!(store.create(&a, "x", object(1)).unwrap().version(), 2);
        assert_eq!(store.create(&b, "x", object(1)).unwrap().version(), 3);
        assert_eq!(store.create(&a, "x", object(1)), Err(Refused::Exists));
        assert_eq!(store.replace(&a, "x", 3, object(2)), Err(Refused::Changed));
        assert_eq!(store.replace(&a, "y", 3, object(2)), Err(Refused::Missing));
        assert_eq!(store.replace(&a, "x", 2, object(2)).unwrap().version(), 4);
        let last = store.remove(&a, "x", 4).unwrap();
        assert_eq!(last.version(), 5);
        assert_eq!(last.value()["metadata"]["resourceVersion"], "5");
        assert_eq!(store.get("as", "x"), None);
        assert_eq!(store.version(), 5);
    }

    #[test]
    fn a_list_can_be_read_as_it_was() {
        let store = Store::new(10);
        let t = TableName::from("as");
        for key in ["ns/a", "ns/b", "ns-2/c"] {
            store.create(&t, key, object(1)).unwrap();
        }
        store.remove(&t, "ns/a", 2).unwrap();
        store.replace(&t, "ns/b", 3, object(2)).unwrap();
        let all = Range::default();
        assert_eq!(
            names(&store.list("as", &all, None).unwrap()),
            ["ns-2/c", "ns/b"]
        );
        let then = store.list("as", &all, Some(3)).unwrap();
        assert_eq!(names(&then), ["ns/a", "ns/b"]);
        assert_eq!(then.objects[1].value()["x"], 1);
        let one = Range {
            prefix: "ns/",
            from: "",
        };
        assert_eq!(names(&store.list("as", &one, None).unwrap()), ["ns/b"]);
        for (from, expected) in [
            ("ns-2/c", &["ns-2/c", "ns/b"][..]),
            ("ns-2/c\0", &["ns/b"]),
            ("ns/b", &["ns/b"]),
        ] {
            let rest = Range { prefix: "", from };
            assert_eq!(names(&store.list("as", &rest, None).unwrap()), expected);
        }
    }

    #[test]
    fn history_is_bounded_and_says_so() {
        let store = Store::new(2);
        let t = TableName::from("as");
        for key in ["a", "b", "c"] {
            store.create(&t, key, object(1)).unwrap();
        }
        let (upto, changes) = store.changes("as", 2).unwrap();
        assert_eq!((upto, changes.len()), (4, 2));
        assert_eq!(store.changes("as", 1).unwrap_err(), Compacted { oldest: 2 });
        store.compact();
        assert_eq!(store.changes("as", 3).unwrap_err(), Compacted { oldest: 4 });
        assert_eq!(store.changes("as", 4).unwrap().1.len(), 0);
        assert!(store.list("as", &Range::default(), Some(3)).is_err());
    }

    #[test]
    fn objects_are_shown_otherwise_without_a_write() {
        let store = Store::new(10);
        let t = TableName::from("as");
        store.create(&t, "x", object(1)).unwrap();
        store.show("as", |object| object["y"] = json!(true));
        let shown = store.get("as", "x").unwrap();
        assert_eq!(shown.version(), 2);
        assert_eq!(shown.value()["y"], true);
        assert!(!shown.is_as_written());
        // Each time it is made of what was written.
        store.show("as", |object| drop(object["x"].take()));
        let shown = store.get("as", "x").unwrap().value();
        assert_eq!((&shown["x"], &shown["y"]), (&Value::Null, &Value::Null));
        store.show("as", |_| {});
        let shown = store.get("as", "x").unwrap();
        assert_eq!(shown.value()["x"], 1);
        assert!(shown.is_as_written());
        assert_eq!(store.changes("as", 2).unwrap().1.len(), 0);
    }

    #[test]
    fn history_holds_no_more_than_so_many_bytes() {
        let store = Store::new(10_000);
        let t = TableName::from("as");
        let large =
            json!({"apiVersion": "v1", "metadata": {"name": "a"}, "x": "x".repeat(4 << 20)});
        store.create(&t, "a", large.clone()).unwrap();
        for version in 2..21 {
            store.replace(&t, "a", version, large.clone()).unwrap();
        }
        let oldest = store.changes("as", 0).unwrap_err().oldest;
        let kept = store.changes("as", oldest).unwrap().1.len();
        assert!((10..=16).contains(&kept), "{kept} changes of 4 MiB");
    }
}
