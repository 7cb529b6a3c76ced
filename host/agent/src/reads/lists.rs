//! Which units have listed what, found by what changes.
//!
//! A fleet has thousands of lists of one kind: of each namespace, or of what carries
//! each unit's label. So that a change costs those that it concerns, lists wait under the
//! namespace and one of the labels that they demand, and units that asked the same
//! question under that question.
//!
//! Many lists may wait at one place all the same, if that is what a plugin wants: all that
//! have not one label, each of another value. Then its units are woken by any change there,
//! which costs the plugin and nobody else.

use super::{Read, Side, list_differs};
use foldhash::{HashMap, HashSet};
use reeve_core::{GroupVersionKind, ObjectReference, UnitKey};
use std::sync::Arc;

/// Where a list is looked for: whatever it can match is in this namespace, and has this
/// label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Place {
    /// None for all.
    namespace: Option<String>,
    /// None for any.
    label: Option<(String, String)>,
}

/// Lists of one place that are told apart, of one plugin.
const TOLD_APART: usize = 100;

/// What waits at one place.
#[derive(Debug, Default)]
struct Waiting {
    /// Who asked a question, by plugin.
    askers: HashMap<Read, HashMap<Arc<str>, HashSet<UnitKey>>>,
    /// How many of these questions a plugin asked.
    told_apart: HashMap<Arc<str>, usize>,
    /// Units that asked others, and how many: what those are is not looked at.
    others: HashMap<UnitKey, usize>,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.askers.is_empty() && self.others.is_empty()
    }

    fn add(&mut self, unit: &UnitKey, read: &Read) {
        let plugin = &unit.plugin;
        let asked = self.askers.get_mut(read);
        if let Some(units) = asked.and_then(|plugins| plugins.get_mut(plugin)) {
            units.insert(unit.clone());
            return;
        }
        let told_apart = self.told_apart.entry(plugin.clone()).or_default();
        if *told_apart >= TOLD_APART {
            *self.others.entry(unit.clone()).or_default() += 1;
            return;
        }
        *told_apart += 1;
        let plugins = self.askers.entry(read.clone()).or_default();
        let units = plugins.entry(plugin.clone()).or_default();
        units.insert(unit.clone());
    }

    fn remove(&mut self, unit: &UnitKey, read: &Read) {
        let plugin = &unit.plugin;
        let plugins = self.askers.get_mut(read);
        let units = plugins.and_then(|plugins| plugins.get_mut(plugin));
        if let Some(units) = units
            && units.remove(unit)
        {
            if units.is_empty() {
                self.forget_question(plugin, read);
            }
            return;
        }
        if let Some(others) = self.others.get_mut(unit) {
            *others -= 1;
            if *others == 0 {
                self.others.remove(unit);
            }
        }
    }

    /// Forgets a question of a plugin that no unit of it asks any more.
    fn forget_question(&mut self, plugin: &Arc<str>, read: &Read) {
        if let Some(plugins) = self.askers.get_mut(read) {
            plugins.remove(plugin);
            if plugins.is_empty() {
                self.askers.remove(read);
            }
        }
        if let Some(told_apart) = self.told_apart.get_mut(plugin) {
            *told_apart -= 1;
            if *told_apart == 0 {
                self.told_apart.remove(plugin);
            }
        }
    }
}

/// Lists, and who has read them.
#[derive(Debug, Default)]
pub(super) struct Lists(HashMap<GroupVersionKind, HashMap<Place, Waiting>>);

impl Lists {
    /// How many different ones there are.
    pub(super) fn len(&self) -> usize {
        let places = self.0.values().flat_map(HashMap::values);
        places.map(|place| place.askers.len()).sum()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is any of this kind.
    pub(super) fn concern(&self, kind: &GroupVersionKind) -> bool {
        self.0.contains_key(kind)
    }

    /// Notes that a unit has read a list. Other reads are not noted.
    pub(super) fn add(&mut self, unit: &UnitKey, read: &Read) {
        let Some((kind, place)) = place(read) else {
            return;
        };
        let places = self.0.entry(kind.clone()).or_default();
        places.entry(place).or_default().add(unit, read);
    }

    /// Forgets that a unit has read a list.
    pub(super) fn remove(&mut self, unit: &UnitKey, read: &Read) {
        let Some((kind, place)) = place(read) else {
            return;
        };
        let Some(places) = self.0.get_mut(kind) else {
            return;
        };
        if let Some(waiting) = places.get_mut(&place) {
            waiting.remove(unit, read);
            if waiting.is_empty() {
                places.remove(&place);
            }
        }
        if places.is_empty() {
            self.0.remove(kind);
        }
    }

    /// Adds the units for which this change makes another list, or may make one.
    pub(super) fn touched(
        &self,
        reference: &ObjectReference,
        old: Option<Side<'_>>,
        new: Option<Side<'_>>,
        touched: &mut Vec<UnitKey>,
    ) {
        let Some(places) = self.0.get(&reference.kind) else {
            return;
        };
        let sides = [old, new].into_iter().flatten();
        let mut labels: Vec<Option<(String, String)>> = sides
            .flat_map(|side| side.labels())
            .map(|(key, value)| Some((key.to_owned(), value.to_owned())))
            .collect();
        labels.push(None);
        labels.sort();
        labels.dedup();
        let mut namespaces = vec![None];
        namespaces.extend(reference.namespace.as_ref().map(|name| Some(name.clone())));
        for namespace in namespaces {
            for label in &labels {
                let (namespace, label) = (namespace.clone(), label.clone());
                let Some(waiting) = places.get(&Place { namespace, label }) else {
                    continue;
                };
                for (read, plugins) in &waiting.askers {
                    if list_differs(read, reference, old, new) {
                        touched.extend(plugins.values().flatten().cloned());
                    }
                }
                touched.extend(waiting.others.keys().cloned());
            }
        }
    }
}

/// Whether a list is looked at for each change of its kind.
pub(super) fn is_wide(read: &Read) -> bool {
    place(read).is_some_and(|(_, place)| place == Place::default())
}

fn place(read: &Read) -> Option<(&GroupVersionKind, Place)> {
    let Read::List {
        kind,
        namespace,
        selector,
        ..
    } = read
    else {
        return None;
    };
    let label = selector.demands().next();
    let label = label.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let namespace = namespace.clone();
    Some((kind, Place { namespace, label }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn kind() -> GroupVersionKind {
        GroupVersionKind::new("", "v1", "ConfigMap")
    }

    fn unit(number: usize) -> UnitKey {
        let primary = ObjectReference::new(kind(), None, number.to_string());
        UnitKey::new("p", primary)
    }

    fn list() -> impl Strategy<Value = Read> {
        let namespace = prop_oneof![Just(None), Just(Some("a")), Just(Some("b"))];
        let selectors = [
            "",
            "x=1",
            "x=2",
            "x",
            "!x",
            "x!=1",
            "x in (1,2)",
            "x=1,y=1",
            "y=1,x!=2",
            "y in (1)",
        ];
        let projected = prop_oneof![
            Just(None),
            Just(Some("/data")),
            Just(Some("/metadata/labels"))
        ];
        let parts = (
            namespace,
            prop::sample::select(selectors.to_vec()),
            projected,
        );
        parts.prop_map(|(namespace, selector, projected)| Read::List {
            kind: kind(),
            namespace: namespace.map(str::to_owned),
            selector: selector.parse().unwrap(),
            projection: projected.map(|path| {
                reeve_core::projection::Projection::new(vec![path.to_owned()]).unwrap()
            }),
        })
    }

    fn object() -> impl Strategy<Value = Option<Value>> {
        let label = || prop_oneof![Just(None), Just(Some("1")), Just(Some("2"))];
        let object = (label(), label(), 0_u8..2).prop_map(|(x, y, data)| {
            let mut labels = serde_json::Map::new();
            for (key, value) in [("x", x), ("y", y)] {
                labels.extend(value.map(|value| (key.to_owned(), json!(value))));
            }
            json!({"metadata": {"labels": labels}, "data": data})
        });
        prop::option::of(object)
    }

    proptest! {
        /// What is looked at is all that there is to find, and what was removed leaves
        /// no trace.
        #[test]
        fn nobody_is_missed_or_woken_in_vain(
            reads in prop::collection::vec(list(), 0..12),
            (old, new) in (object(), object()),
            namespace in prop_oneof![Just(None), Just(Some("a")), Just(Some("b"))],
        ) {
            let mut lists = Lists::default();
            for (number, read) in reads.iter().enumerate() {
                lists.add(&unit(number), read);
            }
            let reference = ObjectReference::new(kind(), namespace.map(str::to_owned), "o");
            let side = |value: &'static Option<Value>| value.as_ref().map(|value| Side { value });
            let leak = |value: &Option<Value>| -> &'static Option<Value> {
                Box::leak(Box::new(value.clone()))
            };
            let (old, new) = (side(leak(&old)), side(leak(&new)));
            let mut found = Vec::new();
            lists.touched(&reference, old, new, &mut found);
            found.sort();
            let mut expected: Vec<UnitKey> = reads.iter().enumerate()
                .filter(|(_, read)| list_differs(read, &reference, old, new))
                .map(|(number, _)| unit(number))
                .collect();
            expected.sort();
            prop_assert_eq!(found, expected);
            for (number, read) in reads.iter().enumerate() {
                lists.remove(&unit(number), read);
            }
            prop_assert!(lists.is_empty());
        }
    }

    fn list_without(value: usize) -> Read {
        Read::List {
            kind: kind(),
            namespace: Some("a".to_owned()),
            selector: format!("x!={value}").parse().unwrap(),
            projection: None,
        }
    }

    /// One plugin asks more of a place than is told apart: its units hear of all that
    /// changes there, and those of another one of what they asked about.
    #[test]
    fn who_asks_too_much_of_a_place_is_told_of_all_of_it() {
        let mut lists = Lists::default();
        let other = UnitKey::new("q", ObjectReference::new(kind(), None, "q"));
        for number in 0..2 * TOLD_APART {
            lists.add(&unit(number), &list_without(number));
            lists.add(&unit(number), &list_without(number + 1));
        }
        lists.add(&other, &list_without(TOLD_APART + 5));
        let object = json!({"metadata": {"labels": {"x": "1"}}});
        let touched = |lists: &Lists, namespace: &str| {
            let mut touched = Vec::new();
            let reference = ObjectReference::new(kind(), Some(namespace.to_owned()), "o");
            let new = Side { value: &object };
            lists.touched(&reference, None, Some(new), &mut touched);
            touched.sort();
            touched.dedup();
            touched
        };
        let all = touched(&lists, "a");
        assert!(all.contains(&other));
        assert_eq!(all.len(), 2 * TOLD_APART + 1);
        assert!(touched(&lists, "b").is_empty());
        assert!(lists.len() <= TOLD_APART + 1, "{}", lists.len());
        for number in 0..2 * TOLD_APART {
            lists.remove(&unit(number), &list_without(number + 1));
            lists.remove(&unit(number), &list_without(number));
        }
        assert_eq!(touched(&lists, "a"), std::slice::from_ref(&other));
        // There is room again for what is told apart.
        lists.add(&unit(0), &list_without(1));
        assert_eq!(touched(&lists, "a"), std::slice::from_ref(&other));
        lists.remove(&unit(0), &list_without(1));
        lists.remove(&other, &list_without(TOLD_APART + 5));
        assert!(lists.is_empty());
    }
}
