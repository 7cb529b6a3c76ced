//! Ownership told from a set alone, without a schema.
//!
//! A set shows how the server took a list apart: items by key, by value, or
//! not at all. That is enough to walk it together with the config that it came
//! from.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::path::{Path, PathElement};
use crate::set::FieldSet;
use crate::value;

/// Whether every field of `desired` is owned in `fields_v1`.
///
/// `desired` is the body of an apply; `fields_v1` is the entry of the manager
/// that applied it. What identifies an object (`apiVersion`, `kind`, name,
/// namespace and the like) is not looked at, since nobody owns it. Malformed
/// sets own nothing.
pub fn covers(fields_v1: &Value, desired: &Value) -> bool {
    let Ok(set) = FieldSet::from_fields_v1(fields_v1) else {
        return false;
    };
    let mut walk = Walk::default();
    walk.root(&set, desired)
}

/// What `fields_v1` owns and `desired` does not mention: applying it would
/// give these up.
///
/// Empty for malformed sets.
pub fn owned_beyond(fields_v1: &Value, desired: &Value) -> Vec<Path> {
    let Ok(set) = FieldSet::from_fields_v1(fields_v1) else {
        return Vec::new();
    };
    let mut walk = Walk::default();
    walk.root(&set, desired);
    set.iter()
        .filter(|path| !walk.mentioned.contains(path))
        .collect()
}

#[derive(Default)]
struct Walk {
    path: Vec<PathElement>,
    mentioned: BTreeSet<Path>,
}

/// Fields of an apply body that are never owned.
const IDENTITY: [&str; 2] = ["apiVersion", "kind"];
const IDENTITY_IN_METADATA: [&str; 9] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

impl Walk {
    fn root(&mut self, set: &FieldSet, desired: &Value) -> bool {
        let Value::Object(desired) = desired else {
            return false;
        };
        let mut all = true;
        for (name, item) in desired {
            if IDENTITY.contains(&name.as_str()) {
                continue;
            }
            let element = PathElement::field(name.as_str());
            match item {
                // `metadata` by itself is not owned either, so it may be empty.
                Value::Object(metadata) if name == "metadata" => {
                    let empty = FieldSet::new();
                    let set = set.child(&element).unwrap_or(&empty);
                    self.path.push(element);
                    for (name, item) in metadata {
                        if !IDENTITY_IN_METADATA.contains(&name.as_str()) {
                            all &= self.node(set, PathElement::field(name.as_str()), item);
                        }
                    }
                    self.path.pop();
                }
                _ => all &= self.node(set, element, item),
            }
        }
        all
    }

    /// Whether the value at `element` below `set` is owned with all it holds.
    fn node(&mut self, set: &FieldSet, element: PathElement, value: &Value) -> bool {
        let member = set.members.contains(&element);
        let below = set.children.get(&element);
        self.path.push(element);
        if member {
            self.mentioned.insert(Path(self.path.clone()));
        }
        let owned = match (below, value) {
            // Owned as a whole: a scalar, something atomic, or empty.
            (None, _) => member || is_empty_list(value),
            (Some(set), Value::Object(map)) => self.map(set, map),
            (Some(set), Value::Array(items)) => self.items(set, items),
            // The set knows fields inside of what is a scalar or null here.
            (Some(_), _) => false,
        };
        self.path.pop();
        owned
    }

    fn map(&mut self, set: &FieldSet, map: &Map<String, Value>) -> bool {
        let mut all = true;
        for (name, item) in map {
            all &= self.node(set, PathElement::field(name.as_str()), item);
        }
        all
    }

    fn items(&mut self, set: &FieldSet, items: &[Value]) -> bool {
        let names: BTreeSet<&PathElement> = set.members.iter().chain(set.children.keys()).collect();
        let mut all = true;
        for item in items {
            match names.iter().find(|name| selects(name, item)) {
                Some(name) => all &= self.node(set, (*name).clone(), item),
                None => all = false,
            }
        }
        all
    }
}

/// An empty set or keyed list is no field, so it needs no owner.
fn is_empty_list(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

/// Whether an element of a set names this item. A key field that the item
/// leaves out was filled in with its default.
fn selects(element: &PathElement, item: &Value) -> bool {
    match element {
        PathElement::Value(value) => value::equal(value, item),
        PathElement::Key(fields) => {
            let shared = |name: &String| item.get(name);
            item.is_object()
                && fields.iter().any(|(name, _)| shared(name).is_some())
                && fields
                    .iter()
                    .all(|(name, value)| shared(name).is_none_or(|own| value::equal(own, value)))
        }
        PathElement::Field(_) | PathElement::Index(_) => false,
    }
}
