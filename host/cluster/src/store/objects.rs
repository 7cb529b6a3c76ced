//! The objects of one watch, ordered by namespace and name.

use crate::object::{Glance, Object};
use equivalent::{Comparable, Equivalent};
use imbl::OrdSet;
use reeve_core::selector::Selector;
use std::cmp::Ordering;
use std::sync::Arc;

/// An ordered, persistent set of objects with distinct names.
///
/// The index holds nothing but one pointer per object, with its labels at a glance: names are
/// compared where they already are, and a list by labels looks at few objects that it does
/// not select.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects(OrdSet<ByName>);

#[derive(Clone, Debug)]
struct ByName(Arc<Object>, Glance);

/// A namespace and a name, to look one up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name<'a> {
    pub(super) namespace: Option<&'a str>,
    pub(super) name: &'a str,
}

/// What no name comes behind: names are of ASCII.
const BEHIND: &str = "\u{10ffff}";

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
        let glance = object.glance();
        self.0.insert(ByName(object, glance));
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

    /// Those of one namespace, or all, that a selector selects.
    pub(super) fn selected(
        &self,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Vec<Arc<Object>> {
        let demanded = Glance::of(selector.demands());
        let selected =
            |entry: &&ByName| entry.1.may_have(demanded) && entry.0.is_selected(selector);
        let cloned = |entry: &ByName| entry.0.clone();
        match namespace {
            // Both ends are looked up, so that no object between them is asked for its
            // namespace.
            Some(namespace) => {
                let namespace = Some(namespace);
                let first = Name {
                    namespace,
                    name: "",
                };
                let last = Name {
                    namespace,
                    name: BEHIND,
                };
                let entries = self.0.range(first..last);
                entries.filter(selected).map(cloned).collect()
            }
            None => self.0.iter().filter(selected).map(cloned).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::Resource;
    use proptest::prelude::*;
    use reeve_core::GroupVersionKind;
    use serde_json::json;

    fn object(namespace: Option<&str>, name: &str, label: Option<&str>) -> Arc<Object> {
        let resource = Resource {
            kind: GroupVersionKind::new("", "v1", "ConfigMap"),
            plural: "configmaps".into(),
            namespaced: namespace.is_some(),
        };
        let labels = label.map(|value| json!({"app": value}));
        let json = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": namespace, "name": name, "labels": labels},
        });
        let json = json.to_string();
        Arc::new(Object::parse_shared(&Arc::new(resource), &json).unwrap())
    }

    proptest! {
        #[test]
        fn what_is_selected_is_found_where_it_is(
            all in prop::collection::vec(
                (prop::option::of("[ab]{1,2}"), "[a-c]{1,2}", prop::option::of("[xy]")),
                0..40,
            ),
            namespace in prop::option::of("[ab]{1,3}"),
            selector in prop::sample::select(vec!["", "app=x", "app!=x", "!app", "app in (x,y)"]),
        ) {
            let mut objects = Objects::default();
            for (namespace, name, label) in &all {
                objects.put(object(namespace.as_deref(), name, label.as_deref()));
            }
            let selector: Selector = selector.parse().unwrap();
            let here = |object: &&Arc<Object>| {
                namespace.is_none() || object.namespace() == namespace.as_deref()
            };
            let expected = objects.iter().filter(here).filter(|object| object.is_selected(&selector));
            let expected: Vec<Name<'_>> = expected.map(|object| Name::of(object)).collect();
            let found = objects.selected(namespace.as_deref(), &selector);
            let found: Vec<Name<'_>> = found.iter().map(|object| Name::of(object)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
