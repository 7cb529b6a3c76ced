//! Sets of fields: what a manager owns, what a change touched.

use std::collections::{BTreeMap, BTreeSet};

use crate::path::{Path, PathElement};

/// A set of paths, kept as a tree.
///
/// A path is a *member* by itself: owning `.spec` says nothing about
/// `.spec.replicas`, and the other way round. The root is never a member.
/// Iteration, encoding and conflicts all follow the order of
/// [`PathElement`], members before children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    pub(crate) members: BTreeSet<PathElement>,
    /// Subtrees that hold at least one member.
    pub(crate) children: BTreeMap<PathElement, FieldSet>,
}

impl FieldSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one path. Its parents are not added, and the root is ignored.
    pub fn insert(&mut self, path: &Path) {
        self.insert_elements(&path.0);
    }

    pub(crate) fn insert_elements(&mut self, path: &[PathElement]) {
        match path {
            [] => {}
            [last] => {
                self.members.insert(last.clone());
            }
            [first, rest @ ..] => {
                if let Some(child) = self.children.get_mut(first) {
                    child.insert_elements(rest);
                } else {
                    let mut child = FieldSet::new();
                    child.insert_elements(rest);
                    self.children.insert(first.clone(), child);
                }
            }
        }
    }

    /// Whether this very path is a member.
    pub fn has(&self, path: &Path) -> bool {
        match path.0.split_last() {
            None => false,
            Some((last, parents)) => {
                let mut set = self;
                for element in parents {
                    match set.children.get(element) {
                        Some(child) => set = child,
                        None => return false,
                    }
                }
                set.members.contains(last)
            }
        }
    }

    /// Whether no path is in the set.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.values().all(FieldSet::is_empty)
    }

    /// Whether it has neither members nor subtrees: all that is built holds a member in
    /// each of its subtrees, and is then empty.
    pub(crate) fn is_bare(&self) -> bool {
        self.members.is_empty() && self.children.is_empty()
    }

    /// Whether every path of this set is in the other.
    pub(crate) fn is_subset(&self, other: &FieldSet) -> bool {
        self.members.is_subset(&other.members)
            && self
                .children
                .iter()
                .all(|(element, ours)| match other.children.get(element) {
                    Some(theirs) => ours.is_subset(theirs),
                    None => ours.is_empty(),
                })
    }

    /// How many paths are in the set.
    pub fn len(&self) -> usize {
        self.members.len() + self.children.values().map(FieldSet::len).sum::<usize>()
    }

    /// The members below one element, relative to it.
    pub fn child(&self, element: &PathElement) -> Option<&FieldSet> {
        self.children.get(element)
    }

    /// Paths that are in either set.
    #[must_use]
    pub fn union(&self, other: &FieldSet) -> FieldSet {
        let mut out = self.clone();
        out.extend(other);
        out
    }

    fn extend(&mut self, other: &FieldSet) {
        self.members.extend(other.members.iter().cloned());
        for (element, theirs) in &other.children {
            match self.children.get_mut(element) {
                Some(ours) => ours.extend(theirs),
                None => {
                    self.children.insert(element.clone(), theirs.clone());
                }
            }
        }
    }

    /// As [`FieldSet::union`], of sets that nobody else needs.
    pub(crate) fn joined(mut self, other: FieldSet) -> FieldSet {
        self.members.extend(other.members);
        for (element, theirs) in other.children {
            match self.children.get_mut(&element) {
                Some(ours) => *ours = std::mem::take(ours).joined(theirs),
                None => drop(self.children.insert(element, theirs)),
            }
        }
        self
    }

    /// As [`FieldSet::difference`], in place.
    pub(crate) fn subtract(&mut self, other: &FieldSet) {
        if !self.members.is_empty() {
            for member in &other.members {
                self.members.remove(member);
            }
        }
        if self.children.is_empty() {
            return;
        }
        for (element, theirs) in &other.children {
            if let Some(ours) = self.children.get_mut(element) {
                ours.subtract(theirs);
                if ours.is_empty() {
                    self.children.remove(element);
                }
            }
        }
    }

    /// Paths that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        FieldSet {
            members: self.members.intersection(&other.members).cloned().collect(),
            children: self
                .children
                .iter()
                .filter_map(|(element, ours)| {
                    let both = ours.intersection(other.children.get(element)?);
                    (!both.is_empty()).then(|| (element.clone(), both))
                })
                .collect(),
        }
    }

    /// Paths of this set that are not in the other.
    ///
    /// A parent in `other` does not take its children away; see
    /// [`FieldSet::recursive_difference`].
    #[must_use]
    pub fn difference(&self, other: &FieldSet) -> FieldSet {
        FieldSet {
            members: self.members.difference(&other.members).cloned().collect(),
            children: self
                .children
                .iter()
                .filter_map(|(element, ours)| {
                    let left = match other.children.get(element) {
                        Some(theirs) => ours.difference(theirs),
                        None => ours.clone(),
                    };
                    (!left.is_empty()).then(|| (element.clone(), left))
                })
                .collect(),
        }
    }

    /// Paths of this set that are neither in the other nor below one of its
    /// members.
    #[must_use]
    pub fn recursive_difference(&self, other: &FieldSet) -> FieldSet {
        FieldSet {
            members: self.members.difference(&other.members).cloned().collect(),
            children: self
                .children
                .iter()
                .filter(|(element, _)| !other.members.contains(element))
                .filter_map(|(element, ours)| {
                    let left = match other.children.get(element) {
                        Some(theirs) => ours.recursive_difference(theirs),
                        None => ours.clone(),
                    };
                    (!left.is_empty()).then(|| (element.clone(), left))
                })
                .collect(),
        }
    }

    /// As [`FieldSet::recursive_difference`], at no cost where nothing goes.
    pub(crate) fn less(self, other: &FieldSet) -> FieldSet {
        if self.meets(other) {
            self.recursive_difference(other)
        } else {
            self
        }
    }

    /// Whether a path of this set is in the other or below one of its members.
    fn meets(&self, other: &FieldSet) -> bool {
        if other.is_bare() {
            return false;
        }
        !self.members.is_disjoint(&other.members)
            || self.children.iter().any(|(element, ours)| {
                other.members.contains(element)
                    || other
                        .children
                        .get(element)
                        .is_some_and(|theirs| ours.meets(theirs))
            })
    }

    /// The members that have no members below them.
    #[must_use]
    pub fn leaves(&self) -> FieldSet {
        FieldSet {
            members: self
                .members
                .iter()
                .filter(|element| !self.children.contains_key(element))
                .cloned()
                .collect(),
            children: self
                .children
                .iter()
                .map(|(element, child)| (element.clone(), child.leaves()))
                .collect(),
        }
    }

    /// Every member: those of a level in order, then those below each child.
    pub fn iter(&self) -> impl Iterator<Item = Path> + '_ {
        let mut paths = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut paths);
        paths.into_iter()
    }

    fn collect_paths(&self, prefix: &mut Vec<PathElement>, out: &mut Vec<Path>) {
        for member in &self.members {
            let mut path = prefix.clone();
            path.push(member.clone());
            out.push(Path(path));
        }
        for (element, child) in &self.children {
            prefix.push(element.clone());
            child.collect_paths(prefix, out);
            prefix.pop();
        }
    }
}

impl FromIterator<Path> for FieldSet {
    fn from_iter<I: IntoIterator<Item = Path>>(paths: I) -> Self {
        let mut set = FieldSet::new();
        for path in paths {
            set.insert(&path);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A set from dotted field names.
    fn set(paths: &[&str]) -> FieldSet {
        paths.iter().map(|p| Path::fields(p.split('.'))).collect()
    }

    #[test]
    fn members_are_exact_paths() {
        let s = set(&["a", "a.b.c"]);
        assert!(s.has(&Path::fields(["a"])));
        assert!(!s.has(&Path::fields(["a", "b"])));
        assert!(s.has(&Path::fields(["a", "b", "c"])));
        assert!(!s.has(&Path::default()));
        assert_eq!(s.len(), 2);
    }

    #[test]
    fn the_root_is_never_a_member() {
        let mut s = FieldSet::new();
        s.insert(&Path::default());
        assert!(s.is_empty());
    }

    #[test]
    fn operations_work_path_by_path() {
        type Op = fn(&FieldSet, &FieldSet) -> FieldSet;
        type Paths = &'static [&'static str];
        let cases: [(&str, Op, Paths, Paths, Paths); 8] = [
            (
                "union",
                FieldSet::union,
                &["a", "b.c"],
                &["b.d", "b"],
                &["a", "b", "b.c", "b.d"],
            ),
            (
                "intersection",
                FieldSet::intersection,
                &["a", "b.c", "d"],
                &["b.c", "d.e"],
                &["b.c"],
            ),
            (
                "parent minus child",
                FieldSet::difference,
                &["a"],
                &["a.b"],
                &["a"],
            ),
            (
                "child minus parent",
                FieldSet::difference,
                &["a.b"],
                &["a"],
                &["a.b"],
            ),
            (
                "same leaf",
                FieldSet::difference,
                &["a.b", "a.c"],
                &["a.b"],
                &["a.c"],
            ),
            (
                "recursive takes subtrees",
                FieldSet::recursive_difference,
                &["a", "a.b.c", "d"],
                &["a.b"],
                &["a", "d"],
            ),
            (
                "recursive keeps parents",
                FieldSet::recursive_difference,
                &["a", "a.b"],
                &["a.b"],
                &["a"],
            ),
            (
                "recursive without children",
                FieldSet::recursive_difference,
                &["a.b", "c"],
                &["a"],
                &["c"],
            ),
        ];
        for (name, op, a, b, expected) in cases {
            assert_eq!(op(&set(a), &set(b)), set(expected), "{name}");
        }
    }

    #[test]
    fn no_operation_leaves_empty_subtrees() {
        let all = set(&["a.b.c"]);
        for emptied in [
            all.difference(&all),
            all.recursive_difference(&set(&["a"])),
            all.intersection(&set(&["a.b"])),
        ] {
            assert_eq!(emptied, FieldSet::new());
        }
    }

    #[test]
    fn what_is_done_in_place_comes_to_the_same() {
        const PATHS: [&str; 6] = ["a", "a.b", "a.b.c", "a.c", "b", "b.c"];
        let some = |bits: usize| -> FieldSet {
            let chosen = (0..PATHS.len()).filter(|at| bits >> at & 1 == 1);
            chosen
                .map(|at| Path::fields(PATHS[at].split('.')))
                .collect()
        };
        for (left, right) in (0..64).flat_map(|left| (0..64).map(move |right| (left, right))) {
            let (left, right) = (some(left), some(right));
            assert_eq!(left.clone().joined(right.clone()), left.union(&right));
            let mut rest = left.clone();
            rest.subtract(&right);
            assert_eq!(rest, left.difference(&right));
        }
    }

    #[test]
    fn of_equal_elements_the_first_stays() {
        let of = |number: serde_json::Value| -> FieldSet {
            let below = Path::fields(["f"]);
            let item = Path(vec![PathElement::Value(number.clone())]);
            let inner = Path([item.0.clone(), below.0].concat());
            [item, inner].into_iter().collect()
        };
        let (whole, float) = (of(1.into()), of(1.0.into()));
        let shown = |set: &FieldSet| set.to_fields_v1_json();
        let joined = whole.clone().joined(float.clone());
        assert_eq!(shown(&joined), shown(&whole.union(&float)));
        assert_eq!(shown(&joined), shown(&whole));
    }

    #[test]
    fn leaves_drop_parents() {
        assert_eq!(set(&["a", "a.b", "c"]).leaves(), set(&["a.b", "c"]));
    }

    #[test]
    fn iteration_gives_members_before_children() {
        let paths: Vec<_> = set(&["a.x", "b", "a"])
            .iter()
            .map(|p| p.to_string())
            .collect();
        assert_eq!(paths, [".a", ".b", ".a.x"]);
    }
}
