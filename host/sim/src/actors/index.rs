//! Who controls whom, and since when something has been so.

use std::collections::{BTreeSet, HashMap};
use std::net::Ipv4Addr;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::tables;
use crate::kinds::edit::{flag, items, text, text_at};
use crate::store::TableName;

/// One object: its table and its key in there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Target {
    pub(super) table: TableName,
    pub(super) key: Box<str>,
}

impl Target {
    pub(super) fn new(table: &str, key: &str) -> Self {
        Target {
            table: table.into(),
            key: key.into(),
        }
    }
}

/// The controller that an object names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Controller {
    /// Its UID.
    pub(super) uid: Box<str>,
    /// Where it is, if somebody acts for its kind.
    pub(super) target: Option<Target>,
}

/// The controller of an object: at most one of its owners is that.
pub(super) fn controller(object: &Value) -> Option<Controller> {
    let metadata = object.get("metadata")?;
    let owner = items(metadata, "ownerReferences").find(|owner| flag(owner, "controller"))?;
    let table = tables::of_controller(text(owner, "apiVersion"), text(owner, "kind"));
    let namespace = text_at(object, "/metadata/namespace");
    Some(Controller {
        uid: text(owner, "uid").into(),
        target: table
            .map(|table| Target::new(table, &format!("{namespace}/{}", text(owner, "name")))),
    })
}

/// What is true of an object, and since when, by aspect.
type Marks = HashMap<&'static str, (Box<str>, SystemTime)>;

/// What is remembered of all objects.
#[derive(Debug, Default)]
pub(super) struct Index {
    controlled: HashMap<Box<str>, BTreeSet<Target>>,
    controllers: HashMap<Target, Box<str>>,
    /// The UIDs of those that are controlled.
    uids: HashMap<Target, Box<str>>,
    /// By UID.
    since: HashMap<Box<str>, Marks>,
    /// The number of the last address that a pod was given.
    addresses: u32,
}

/// Where the addresses of pods begin: 10.128.0.0/9, which leaves Services theirs.
const PODS: u32 = 0x0a80_0000;
const POD_ADDRESSES: u32 = 1 << 23;

impl Index {
    /// Takes in that an object, by its UID, is controlled by another, or by none.
    pub(super) fn note(&mut self, target: &Target, own: &str, controller: Option<&str>) {
        if controller.is_some() {
            self.uids.insert(target.clone(), own.into());
        } else {
            self.uids.remove(target);
        }
        if self.controllers.get(target).map(|uid| &**uid) == controller {
            return;
        }
        if let Some(before) = self.controllers.remove(target)
            && let Some(targets) = self.controlled.get_mut(&before)
        {
            targets.remove(target);
            if targets.is_empty() {
                self.controlled.remove(&before);
            }
        }
        if let Some(uid) = controller {
            let targets = self.controlled.entry(uid.into()).or_default();
            targets.insert(target.clone());
            self.controllers.insert(target.clone(), uid.into());
        }
    }

    /// Takes in that a pod has this address.
    pub(super) fn note_address(&mut self, address: &str) {
        let number = address.parse::<Ipv4Addr>().ok().map(u32::from);
        if let Some(number) = number.and_then(|number| number.checked_sub(PODS))
            && number < POD_ADDRESSES
        {
            self.addresses = self.addresses.max(number);
        }
    }

    /// An address that no pod has had, until all have been given once.
    pub(super) fn new_address(&mut self) -> Ipv4Addr {
        self.addresses = (self.addresses + 1) % POD_ADDRESSES;
        Ipv4Addr::from(PODS + self.addresses)
    }

    /// All objects that the one with this UID controls, and those that they do.
    pub(super) fn all_controlled(&self, uid: &str) -> Vec<Target> {
        let mut found = Vec::new();
        let mut uids = vec![Box::from(uid)];
        while let Some(uid) = uids.pop() {
            for target in self.controlled.get(&uid).into_iter().flatten() {
                found.push(target.clone());
                uids.extend(self.uids.get(target).cloned());
            }
        }
        found
    }

    /// Forgets an object that is gone.
    pub(super) fn forget(&mut self, target: &Target, uid: &str) {
        self.note(target, uid, None);
        self.since.remove(uid);
    }

    /// The objects of `table` that the one with this UID controls, in key order.
    pub(super) fn controlled(&self, uid: &str, table: &str) -> impl Iterator<Item = &Target> {
        let targets = self.controlled.get(uid).into_iter().flatten();
        targets.filter(move |target| *target.table == *table)
    }

    /// Since when `mark` has been true of an object. Timestamps are whole seconds;
    /// what is seen within its first second has begun just now.
    pub(super) fn since(
        &mut self,
        uid: &str,
        mark: &str,
        now: SystemTime,
        stamped: Option<SystemTime>,
    ) -> SystemTime {
        self.since_of(uid, "", mark, now, stamped)
    }

    /// As [`Index::since`], of one aspect of an object apart from the others.
    pub(super) fn since_of(
        &mut self,
        uid: &str,
        aspect: &'static str,
        mark: &str,
        now: SystemTime,
        stamped: Option<SystemTime>,
    ) -> SystemTime {
        let marks = self.since.entry(uid.into()).or_default();
        let stamped = match marks.get(aspect) {
            Some((known, since)) if **known == *mark => return *since,
            // Something else was true of it until now.
            Some(_) => None,
            None => stamped,
        };
        let recent = |time: &SystemTime| {
            now.duration_since(*time)
                .is_ok_and(|age| age < Duration::from_secs(1))
        };
        let since = stamped
            .filter(|time| *time <= now && !recent(time))
            .unwrap_or(now);
        marks.insert(aspect, (mark.into(), since));
        since
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn the_controlled_are_found() {
        let mut index = Index::default();
        let (a, b) = (Target::new("pods", "n/a"), Target::new("pods", "n/b"));
        index.note(&b, "b", Some("set"));
        index.note(&a, "a", Some("set"));
        let found =
            |index: &Index, uid: &str| index.controlled(uid, "pods").cloned().collect::<Vec<_>>();
        assert_eq!(found(&index, "set"), [a.clone(), b.clone()]);
        index.note(&a, "a", Some("other"));
        index.forget(&b, "uid");
        assert_eq!(found(&index, "set"), []);
        assert_eq!(found(&index, "other"), [a]);
        assert_eq!((index.controllers.len(), index.uids.len()), (1, 1));
        let leaf = Target::new("pods", "n/c");
        index.note(&leaf, "c", Some("a"));
        assert_eq!(
            index.all_controlled("other"),
            [Target::new("pods", "n/a"), leaf]
        );
    }

    #[test]
    fn addresses_are_given_once() {
        let mut index = Index::default();
        assert_eq!(index.new_address().to_string(), "10.128.0.1");
        index.note_address("10.128.1.0");
        index.note_address("172.18.0.2");
        index.note_address("");
        assert_eq!(index.new_address().to_string(), "10.128.1.1");
    }

    #[test]
    fn times_are_remembered_to_the_millisecond() {
        let at = |millis| UNIX_EPOCH + Duration::from_millis(millis);
        let mut index = Index::default();
        assert_eq!(
            index.since("u", "run", at(10_900), Some(at(10_000))),
            at(10_900)
        );
        assert_eq!(
            index.since("u", "run", at(50_000), Some(at(10_000))),
            at(10_900)
        );
        assert_eq!(
            index.since("u", "next", at(50_000), Some(at(10_000))),
            at(50_000)
        );
        assert_eq!(
            index.since("w", "run", at(50_000), Some(at(10_000))),
            at(10_000)
        );
        assert_eq!(
            index.since("v", "run", at(50_000), Some(at(90_000))),
            at(50_000)
        );
    }
}
