//! The objects of one watch, ordered by namespace and name.

use crate::object::Object;
use equivalent::{Comparable, Equivalent};
use imbl::OrdSet;
use std::cmp::Ordering;
use std::sync::Arc;

/// An ordered, persistent set of objects with distinct names.
///
/// The index holds nothing but one pointer per object: names are compared where
/// they already are.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects(OrdSet<ByName>);

#[derive(Clone, Debug)]
struct ByName(Arc<Object>);

/// A namespace and a name, to look one up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name<'a> {
    pub(super) namespace: Option<&'a str>,
    pub(super) name: &'a str,
}

impl<'a> Name<'a> {
    pub(super) fn of(object: &'a Object) -> Self {
        Self {
            namespace: object.namespace(),
            name: object.name(),
        }
    }
}

impl ByName {
    fn name(&self) -> Name<'_> {
        Name::of(&self.0)
    }
}

impl PartialEq for ByName {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for ByName {}

impl PartialOrd for ByName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(&other.name())
    }
}

impl Equivalent<ByName> for Name<'_> {
    fn equivalent(&self, object: &ByName) -> bool {
        *self == object.name()
    }
}

impl Comparable<ByName> for Name<'_> {
    fn compare(&self, object: &ByName) -> Ordering {
        self.cmp(&object.name())
    }
}

impl Objects {
    pub(super) fn get(&self, name: Name<'_>) -> Option<&Arc<Object>> {
        self.0.get(&name).map(|entry| &entry.0)
    }

    /// Puts an object in the place of the one with its name.
    pub(super) fn put(&mut self, object: Arc<Object>) {
        self.0.insert(ByName(object));
    }

    pub(super) fn remove(&mut self, name: Name<'_>) {
        self.0.remove(&name);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.0.iter().map(|entry| &entry.0)
    }

    /// Those of one namespace.
    pub(super) fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = &Arc<Object>> {
        let first = Name {
            namespace: Some(namespace),
            name: "",
        };
        self.0
            .range(first..)
            .map(|entry| &entry.0)
            .take_while(move |object| object.namespace() == Some(namespace))
    }
}
