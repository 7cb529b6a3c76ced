//! Who owns whom, kept up with every write.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use crate::store::Change;

/// An object among others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    /// The table of the object.
    pub(super) table: Arc<str>,
    /// Its key in there.
    pub(super) key: Box<str>,
    /// The UIDs of its owners.
    owners: Vec<Box<str>>,
}

/// Owners that are known to be gone, beyond which the oldest is forgotten, as in the
/// real collector's `absentOwnerCache`.
const GONE: usize = 100;

/// An owner that was seen to go.
#[derive(Debug, Clone)]
struct Gone {
    uid: Box<str>,
    namespace: Box<str>,
}

/// All objects by UID, and the dependents of each.
///
/// An owner need not exist: its dependents are remembered under its UID.
#[derive(Debug, Default, Clone)]
pub(super) struct Graph {
    nodes: HashMap<Box<str>, Node>,
    dependents: HashMap<Box<str>, BTreeSet<Box<str>>>,
    gone: VecDeque<Gone>,
}

impl Graph {
    /// Takes in a change, and adds to `dirty` the UIDs whose objects have to be
    /// looked at because of it.
    pub(super) fn note(
        &mut self,
        table: &Arc<str>,
        change: &Change,
        dirty: &mut BTreeSet<Box<str>>,
    ) {
        let object = &change.after;
        let uid: Box<str> = object.uid().into();
        let before = self.nodes.remove(&uid);
        for owner in before.iter().flat_map(|node| &node.owners) {
            if let Some(dependents) = self.dependents.get_mut(owner) {
                dependents.remove(&uid);
                if dependents.is_empty() {
                    self.dependents.remove(owner);
                }
            }
            // An owner that waits for its dependents may have one less.
            dirty.insert(owner.clone());
        }
        if change.removed {
            dirty.extend(self.dependents(&uid).cloned());
            if self.dependents.contains_key(&uid) {
                self.gone.truncate(GONE - 1);
                let namespace = object.namespace().into();
                self.gone.push_front(Gone { uid, namespace });
            }
            return;
        }
        let owners = object.owners().to_vec();
        for owner in &owners {
            self.dependents
                .entry(owner.clone())
                .or_default()
                .insert(uid.clone());
        }
        if object.is_terminating() || !owners.is_empty() {
            dirty.insert(uid.clone());
        }
        let node = Node {
            table: table.clone(),
            key: object.key().into(),
            owners,
        };
        self.nodes.insert(uid, node);
    }

    /// The object with this UID, if there is one.
    pub(super) fn node(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    /// Whether an owner was seen to go that an object in this namespace can have had.
    /// It is known to be absent even when its kind can no longer be looked up.
    pub(super) fn is_gone(&self, uid: &str, namespace: &str) -> bool {
        let in_reach = |gone: &Gone| gone.namespace.is_empty() || *gone.namespace == *namespace;
        let mut gone = self.gone.iter();
        gone.any(|gone| *gone.uid == *uid && in_reach(gone))
    }

    /// The UIDs of the objects that name this one as an owner.
    pub(super) fn dependents(&self, uid: &str) -> impl Iterator<Item = &Box<str>> {
        self.dependents.get(uid).into_iter().flatten()
    }
}
