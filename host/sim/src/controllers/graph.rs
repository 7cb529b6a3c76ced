//! Who owns whom, kept up with every write.

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use foldhash::HashSet;

use crate::store::{Change, Object};

/// An object among others, which its UID tells apart.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// The table of the object.
    pub(super) table: Arc<str>,
    object: Arc<Object>,
}

impl Node {
    /// Its key in the table.
    pub(super) fn key(&self) -> &str {
        self.object.key()
    }
}

impl Borrow<str> for Node {
    fn borrow(&self) -> &str {
        self.object.uid()
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.object.uid() == other.object.uid()
    }
}

impl Eq for Node {}

impl Hash for Node {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.object.uid().hash(state);
    }
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
    nodes: HashSet<Node>,
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
        let uid = object.uid();
        let before = self.nodes.take(uid);
        for owner in before.iter().flat_map(|node| node.object.owners()) {
            if let Some(dependents) = self.dependents.get_mut(owner) {
                dependents.remove(uid);
                if dependents.is_empty() {
                    self.dependents.remove(owner);
                }
            }
            // An owner that waits for its dependents may have one less, and of one that is owned
            // it may not have been known what becomes of it. Others need nothing.
            let owner = self.nodes.get(&**owner).map(|node| &node.object);
            if let Some(owner) = owner
                && (owner.is_terminating() || !owner.owners().is_empty())
            {
                dirty.insert(owner.uid().into());
            }
        }
        if change.removed {
            dirty.extend(self.dependents(uid).cloned());
            if self.dependents.contains_key(uid) {
                self.gone.truncate(GONE - 1);
                let (uid, namespace) = (uid.into(), object.namespace().into());
                self.gone.push_front(Gone { uid, namespace });
            }
            return;
        }
        for owner in object.owners() {
            self.dependents
                .entry(owner.clone())
                .or_default()
                .insert(uid.into());
        }
        if object.is_terminating() || !object.owners().is_empty() {
            dirty.insert(uid.into());
        }
        self.nodes.insert(Node {
            table: table.clone(),
            object: object.clone(),
        });
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
