//! What calls have read, and which units a change therefore concerns.
//!
//! Nobody writes watch mappings: each call leaves behind the list of what it
//! read, also of what it looked for in vain, and this index turns a change into
//! the units that it touches and no others.

mod kept;
mod lists;

use foldhash::{HashMap, HashSet};
pub(crate) use kept::Kept;
use lists::Lists;
use reeve_core::projection::Projection;
use reeve_core::selector::Selector;
use reeve_core::{GroupVersionKind, ObjectReference, UnitKey};
use serde_json::Value;

/// One question that a call asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Read {
    /// One object, there or not.
    Object(ObjectReference, Projection),
    /// All objects that match.
    List {
        /// Their kind.
        kind: GroupVersionKind,
        /// Their namespace; none for all.
        namespace: Option<String>,
        /// Which of them.
        selector: Selector,
        /// What of them; none when only names were asked for.
        projection: Option<Projection>,
    },
    /// The time.
    Clock,
    /// An outside document of the plugin.
    Source(String),
    /// How old that is.
    SourceAge(String),
}

impl Read {
    /// Whether it is a list that any change of its kind may concern.
    pub(crate) fn is_wide(&self) -> bool {
        lists::is_wide(self)
    }
}

/// One side of a change: what an object was, or is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side<'a> {
    /// The whole object.
    pub(crate) value: &'a Value,
}

impl<'a> Side<'a> {
    fn label(&self, key: &str) -> Option<&'a str> {
        self.value
            .get("metadata")?
            .get("labels")?
            .get(key)?
            .as_str()
    }

    fn labels(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let labels = self.value.get("metadata").and_then(|all| all.get("labels"));
        let labels = labels.and_then(Value::as_object).into_iter().flatten();
        labels.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }
}

/// Which units have read what.
#[derive(Debug, Default)]
pub(crate) struct ReadIndex {
    objects: HashMap<ObjectReference, HashMap<UnitKey, HashSet<Projection>>>,
    lists: Lists,
    /// Units that have read an outside document or its age, by the document's name,
    /// whichever plugin's it is.
    sources: HashMap<Read, HashSet<UnitKey>>,
    of_unit: HashMap<UnitKey, HashSet<Read>>,
    kept: Kept,
}

impl ReadIndex {
    /// What all of it comes to.
    pub(crate) fn kept(&self) -> Kept {
        self.kept.clone()
    }

    /// How many reads of units are in it, and how many objects and lists were read.
    pub(crate) fn len(&self) -> usize {
        let reads: usize = self.of_unit.values().map(HashSet::len).sum();
        reads + self.objects.len() + self.lists.len()
    }

    /// Replaces what a unit has read. Returns whether there is anything in it
    /// that changes can be heard of and that the unit had not read before.
    pub(crate) fn set(&mut self, unit: &UnitKey, reads: HashSet<Read>) -> bool {
        let old = self.of_unit.get(unit);
        if old == Some(&reads) {
            return false;
        }
        let known = |read: &Read| old.is_some_and(|old| old.contains(read));
        let new = reads
            .iter()
            .any(|read| *read != Read::Clock && !known(read));
        self.remove(unit);
        if reads.is_empty() {
            return false;
        }
        for read in &reads {
            match read {
                Read::Object(reference, projection) => {
                    let units = self.objects.entry(reference.clone()).or_default();
                    let projections = units.entry(unit.clone()).or_default();
                    projections.insert(projection.clone());
                }
                Read::List { .. } => self.lists.add(unit, read),
                Read::Source(_) | Read::SourceAge(_) => {
                    let units = self.sources.entry(read.clone()).or_default();
                    units.insert(unit.clone());
                }
                Read::Clock => {}
            }
        }
        self.kept.set(unit, &reads);
        self.of_unit.insert(unit.clone(), reads);
        new
    }

    /// Forgets a unit.
    pub(crate) fn remove(&mut self, unit: &UnitKey) {
        let reads = self.of_unit.remove(unit).unwrap_or_default();
        self.kept.remove(unit);
        for read in reads {
            match read {
                Read::Object(reference, _) => {
                    if let Some(units) = self.objects.get_mut(&reference) {
                        units.remove(unit);
                        if units.is_empty() {
                            self.objects.remove(&reference);
                        }
                    }
                }
                Read::List { .. } => self.lists.remove(unit, &read),
                Read::Source(_) | Read::SourceAge(_) => {
                    if let Some(units) = self.sources.get_mut(&read) {
                        units.remove(unit);
                        if units.is_empty() {
                            self.sources.remove(&read);
                        }
                    }
                }
                Read::Clock => {}
            }
        }
    }

    /// The units of a plugin that have read an outside document, or its age.
    pub(crate) fn source_readers(&self, plugin: &str, read: &Read) -> Vec<UnitKey> {
        let readers = self.sources.get(read).into_iter().flatten();
        let mut readers: Vec<UnitKey> = readers
            .filter(|unit| *unit.plugin == *plugin)
            .cloned()
            .collect();
        readers.sort();
        readers
    }

    /// Whether anybody has read anything of this kind.
    pub(crate) fn concerns(&self, reference: &ObjectReference) -> bool {
        self.objects.contains_key(reference) || self.lists.concern(&reference.kind)
    }

    /// The units whose answers this change may change.
    pub(crate) fn touched(
        &self,
        reference: &ObjectReference,
        old: Option<Side<'_>>,
        new: Option<Side<'_>>,
    ) -> Vec<UnitKey> {
        let mut touched = Vec::new();
        if let Some(units) = self.objects.get(reference) {
            for (unit, projections) in units {
                let mut projections = projections.iter();
                if projections.any(|projection| differs(projection, old, new)) {
                    touched.push(unit.clone());
                }
            }
        }
        self.lists.touched(reference, old, new, &mut touched);
        touched.sort();
        touched.dedup();
        touched
    }
}

fn differs(projection: &Projection, old: Option<Side<'_>>, new: Option<Side<'_>>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => projection.differs(old.value, new.value),
        (None, None) => false,
        _ => true,
    }
}

fn list_differs(
    read: &Read,
    reference: &ObjectReference,
    old: Option<Side<'_>>,
    new: Option<Side<'_>>,
) -> bool {
    let Read::List {
        namespace,
        selector,
        projection,
        ..
    } = read
    else {
        return false;
    };
    if namespace.is_some() && *namespace != reference.namespace {
        return false;
    }
    let selected =
        |side: Option<Side<'_>>| side.is_some_and(|side| selector.matches(|key| side.label(key)));
    match (selected(old), selected(new), projection) {
        (false, false, _) => false,
        (true, true, None) => false,
        (true, true, Some(projection)) => differs(projection, old, new),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kind() -> GroupVersionKind {
        GroupVersionKind::new("", "v1", "ConfigMap")
    }

    fn reference(name: &str) -> ObjectReference {
        ObjectReference::new(kind(), Some("ns".into()), name)
    }

    fn unit() -> UnitKey {
        UnitKey::new("p", reference("primary"))
    }

    fn object(label: &str, data: &str, status: &str) -> Value {
        json!({
            "metadata": {"name": "a", "labels": {"app": label}, "resourceVersion": status},
            "data": {"a": data},
            "status": status,
        })
    }

    fn list(selector: &str, projection: Option<&[&str]>) -> Read {
        Read::List {
            kind: kind(),
            namespace: Some("ns".into()),
            selector: selector.parse().unwrap(),
            projection: projection
                .map(|p| Projection::new(p.iter().map(|p| (*p).to_owned()).collect()).unwrap()),
        }
    }

    #[test]
    fn a_change_touches_those_who_read_it_and_no_others() {
        let all = Projection::default;
        let data = || Projection::new(vec!["/data".into()]).unwrap();
        let base = object("x", "1", "1");
        let other_data = object("x", "2", "1");
        let other_status = object("x", "1", "2");
        let other_label = object("y", "1", "1");
        let get = |name: &str, projection| Read::Object(reference(name), projection);
        for (read, old, new, touched) in [
            (get("a", all()), Some(&base), Some(&other_data), true),
            (get("a", all()), Some(&base), Some(&other_status), false),
            (get("a", data()), Some(&base), Some(&other_label), false),
            (get("a", data()), None, Some(&base), true),
            (get("a", data()), Some(&base), None, true),
            (get("b", all()), Some(&base), None, false),
            (
                list("app=x", Some(&[])),
                Some(&base),
                Some(&other_data),
                true,
            ),
            (
                list("app=x", Some(&[])),
                Some(&base),
                Some(&other_status),
                false,
            ),
            (
                list("app=x", Some(&["/data"])),
                Some(&base),
                Some(&other_label),
                true,
            ),
            (
                list("app=y", Some(&[])),
                Some(&base),
                Some(&other_data),
                false,
            ),
            (list("app=x", None), Some(&base), Some(&other_data), false),
            (list("app=x", None), Some(&base), Some(&other_label), true),
            (Read::Clock, Some(&base), None, false),
        ] {
            let mut index = ReadIndex::default();
            index.set(&unit(), HashSet::from_iter([read.clone()]));
            let side = |value: Option<&'static Value>| value.map(|value| Side { value });
            let leak = |value: Option<&Value>| -> Option<&'static Value> {
                value.map(|value| &*Box::leak(Box::new(value.clone())))
            };
            let found = index.touched(&reference("a"), side(leak(old)), side(leak(new)));
            assert_eq!(!found.is_empty(), touched, "{read:?}");
        }
    }

    #[test]
    fn a_document_wakes_those_of_its_plugin_who_read_it() {
        let mut index = ReadIndex::default();
        let (mine, others) = (unit(), UnitKey::new("q", reference("primary")));
        let read = || Read::Source("prices".into());
        index.set(&mine, HashSet::from_iter([read()]));
        index.set(
            &others,
            HashSet::from_iter([read(), Read::SourceAge("prices".into())]),
        );
        assert_eq!(
            index.source_readers("p", &read()),
            std::slice::from_ref(&mine)
        );
        assert_eq!(
            index.source_readers("q", &read()),
            std::slice::from_ref(&others)
        );
        assert!(
            index
                .source_readers("p", &Read::SourceAge("prices".into()))
                .is_empty()
        );
        index.remove(&mine);
        index.remove(&others);
        assert!(index.sources.is_empty());
    }

    #[test]
    fn new_reads_replace_old_ones_without_a_trace() {
        let mut index = ReadIndex::default();
        index.set(&unit(), HashSet::from_iter([list("", None)]));
        index.set(
            &unit(),
            HashSet::from_iter([Read::Object(reference("a"), Projection::default())]),
        );
        assert!(index.lists.is_empty());
        assert!(index.concerns(&reference("a")));
        index.remove(&unit());
        assert!(!index.concerns(&reference("a")));
        assert!(index.of_unit.is_empty());
    }
}
