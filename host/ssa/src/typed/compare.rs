//! What changed between two objects.

use std::collections::BTreeMap;

use serde_json::Value;

use super::validate::scalar_error;
use super::{At, Form, TypeErrors, as_list, as_map, items, join, keys_of};
use crate::path::PathElement;
use crate::schema::{List, Map, Scalar, Schema, TypeRef};
use crate::set::FieldSet;
use crate::value;

/// The difference of two objects. No path is in more than one of the sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Fields that only the second object has.
    pub added: FieldSet,
    /// Fields that both have, with different values.
    pub modified: FieldSet,
    /// Fields that only the first object has.
    pub removed: FieldSet,
}

impl Comparison {
    /// The comparison without the given fields and all below them.
    #[must_use]
    pub fn without(&self, fields: &FieldSet) -> Self {
        Self {
            added: self.added.recursive_difference(fields),
            modified: self.modified.recursive_difference(fields),
            removed: self.removed.recursive_difference(fields),
        }
    }

    /// As [`Comparison::without`], at no cost where there are none of these fields.
    pub(crate) fn less(self, fields: &FieldSet) -> Self {
        Self {
            added: self.added.less(fields),
            modified: self.modified.less(fields),
            removed: self.removed.less(fields),
        }
    }

    /// Whether nothing differs.
    pub fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }
}

/// Compares two objects of one type.
///
/// Fails where neither side fits the type, or an item of a list cannot be
/// named. Order within sets, keyed lists and maps makes no difference.
pub fn compare(schema: &Schema, before: &Value, after: &Value) -> Result<Comparison, TypeErrors> {
    let mut walk = Walk {
        schema,
        errors: TypeErrors::default(),
    };
    let mut found = Comparison::default();
    // The root is no member of any set.
    walk.value(At::Root, schema.root, Some(before), Some(after), &mut found);
    walk.errors.or(found)
}

struct Walk<'s> {
    schema: &'s Schema,
    errors: TypeErrors,
}

/// In which of the sets a place is by itself.
#[derive(Clone, Copy, Default)]
struct Is {
    added: bool,
    modified: bool,
    removed: bool,
}

impl Is {
    /// As both say together.
    fn and(self, other: Self) -> Self {
        Self {
            added: self.added || other.added,
            modified: self.modified || other.modified,
            removed: self.removed || other.removed,
        }
    }

    /// What is on one side only.
    fn one_sided(before: Option<&Value>, after: Option<&Value>) -> Self {
        Self {
            added: before.is_none(),
            removed: before.is_some() && after.is_none(),
            modified: false,
        }
    }
}

impl Comparison {
    fn join(&mut self, step: impl Fn() -> PathElement, is: Is, below: Self) {
        join(&mut self.added, &step, is.added, below.added);
        join(&mut self.modified, &step, is.modified, below.modified);
        join(&mut self.removed, &step, is.removed, below.removed);
    }
}

impl Walk<'_> {
    /// In which sets the place is by itself; what differs in it is put into `below`.
    fn value(
        &mut self,
        at: At<'_>,
        ty: TypeRef,
        before: Option<&Value>,
        after: Option<&Value>,
        below: &mut Comparison,
    ) -> Is {
        let atom = self.schema.atom(ty);
        let mut is = Is::default();
        let mut leaf = false;
        for form in Form::of_both(atom, before, after) {
            let found = match form {
                Form::Scalar(scalar) => self.scalar(at, scalar, before, after),
                Form::List(list) => self.list(at, list, before, after, below),
                Form::Map(map) => self.map(at, map, before, after, below),
            };
            leaf = found.is_some();
            is = is.and(found.unwrap_or_default());
        }
        if leaf {
            is
        } else {
            is.and(Is::one_sided(before, after))
        }
    }

    fn leaf(before: Option<&Value>, after: Option<&Value>) -> Is {
        match (before, after) {
            (Some(before), Some(after)) => Is {
                modified: !value::equal(before, after),
                ..Is::default()
            },
            _ => Is::one_sided(before, after),
        }
    }

    /// Nothing where it is no leaf; the same goes for lists and maps.
    fn scalar(
        &mut self,
        at: At<'_>,
        scalar: Scalar,
        before: Option<&Value>,
        after: Option<&Value>,
    ) -> Option<Is> {
        if let (Some(left), Some(right)) = (
            before.and_then(|v| scalar_error(scalar, v)),
            after.and_then(|v| scalar_error(scalar, v)),
        ) {
            self.errors.push(at, format!("lhs: {left}"));
            self.errors.push(at, format!("rhs: {right}"));
            return None;
        }
        Some(Self::leaf(before, after))
    }

    fn map(
        &mut self,
        at: At<'_>,
        map: &Map,
        before: Option<&Value>,
        after: Option<&Value>,
        out: &mut Comparison,
    ) -> Option<Is> {
        let (left, right) = (as_map(before), as_map(after));
        // Nothing on both sides is a leaf, so that null and empty stay apart.
        let both_empty =
            left.is_none_or(|map| map.is_empty()) && right.is_none_or(|map| map.is_empty());
        if map.atomic || both_empty {
            return Some(Self::leaf(before, after));
        }
        for key in keys_of(left, right) {
            let here = At::Field(&at, key);
            let Some(ty) = map.type_of(key) else {
                self.errors
                    .push(here, "field not declared in schema".to_owned());
                continue;
            };
            let mut below = Comparison::default();
            let is = self.value(
                here,
                ty,
                left.and_then(|map| map.get(key)),
                right.and_then(|map| map.get(key)),
                &mut below,
            );
            out.join(|| PathElement::field(key), is, below);
        }
        None
    }

    fn list(
        &mut self,
        at: At<'_>,
        list: &List,
        before: Option<&Value>,
        after: Option<&Value>,
        out: &mut Comparison,
    ) -> Option<Is> {
        let (left, right) = (as_list(before), as_list(after));
        let both_empty =
            left.is_none_or(|list| list.is_empty()) && right.is_none_or(|list| list.is_empty());
        if list.is_atomic() || both_empty {
            return Some(Self::leaf(before, after));
        }
        let left = self.group(at, list, left);
        let mut right = self.group(at, list, right);
        for (element, left) in &left {
            let right = right.remove(element).unwrap_or_default();
            let mut below = Comparison::default();
            let here = At::Item(&at, element);
            let is = self.items(here, list, left, &right, &mut below);
            out.join(|| element.clone(), is, below);
        }
        for (element, right) in &right {
            let mut below = Comparison::default();
            let here = At::Item(&at, element);
            let is = self.items(here, list, &[], right, &mut below);
            out.join(|| element.clone(), is, below);
        }
        None
    }

    fn group<'v>(
        &mut self,
        at: At<'_>,
        list: &List,
        items: Option<&'v Vec<Value>>,
    ) -> BTreeMap<PathElement, Vec<&'v Value>> {
        let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (index, item) in items.into_iter().flatten().enumerate() {
            match items::element(list, item) {
                Ok(element) => groups.entry(element).or_default().push(item),
                Err(reason) => self.errors.push(at, format!("element {index}: {reason}")),
            }
        }
        groups
    }

    /// Compares all items of one name. Several of a name are compared as a
    /// whole, since it cannot be said which is which.
    fn items(
        &mut self,
        at: At<'_>,
        list: &List,
        left: &[&Value],
        right: &[&Value],
        below: &mut Comparison,
    ) -> Is {
        match (left, right) {
            ([], [] | [_]) | ([_], [] | [_]) => {
                let (left, right) = (left.first().copied(), right.first().copied());
                self.value(at, list.element, left, right, below)
            }
            ([_, _, ..], [_, _, ..]) => {
                let same = left.len() == right.len()
                    && left.iter().zip(right).all(|(a, b)| value::equal(a, b));
                Is {
                    modified: !same,
                    ..Is::default()
                }
            }
            ([_, _, ..], _) => {
                let is = right
                    .first()
                    .map(|item| self.value(at, list.element, None, Some(item), below));
                is.unwrap_or_default().and(Is {
                    removed: true,
                    ..Is::default()
                })
            }
            (_, [_, _, ..]) => {
                let is = left
                    .first()
                    .map(|item| self.value(at, list.element, Some(item), None, below));
                is.unwrap_or_default().and(Is {
                    added: true,
                    ..Is::default()
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::typed::testing::{schema, set, spec};

    fn check(before: Value, after: Value, added: &[&str], modified: &[&str], removed: &[&str]) {
        let forth = compare(&schema(), &spec(before.clone()), &spec(after.clone())).unwrap();
        let expected = Comparison {
            added: set(added),
            modified: set(modified),
            removed: set(removed),
        };
        assert_eq!(forth, expected, "{before} to {after}");
        let back = compare(&schema(), &spec(after), &spec(before)).unwrap();
        assert_eq!(
            (back.added, back.removed),
            (expected.removed, expected.added)
        );
    }

    #[test]
    fn changes_are_told_at_the_finest_grain() {
        let item = |value: &str| json!({"items": [{"id": 1, "value": value}]});
        let named = "items k:{\"id\":1,\"kind\":\"x\"}";
        let value = format!("{named} value");
        let id = format!("{named} id");
        check(
            json!({"text": "a"}),
            json!({"text": "b"}),
            &[],
            &["text"],
            &[],
        );
        check(json!({"number": 1}), json!({"number": 1.0}), &[], &[], &[]);
        check(
            json!({}),
            json!({"map": {"a": "1"}}),
            &["map", "map a"],
            &[],
            &[],
        );
        check(
            json!({"map": {}}),
            json!({"map": {"a": "1"}}),
            &["map a"],
            &[],
            &[],
        );
        check(json!({"map": null}), json!({"map": {}}), &[], &["map"], &[]);
        check(
            json!({"whole": {"a": "1"}}),
            json!({"whole": {"b": "1"}}),
            &[],
            &["whole"],
            &[],
        );
        check(
            json!({"set": ["a", "b"]}),
            json!({"set": ["b", "a"]}),
            &[],
            &[],
            &[],
        );
        check(
            json!({"set": ["a"]}),
            json!({"set": ["b"]}),
            &["set v:\"b\""],
            &[],
            &["set v:\"a\""],
        );
        check(
            json!({"list": ["a", "b"]}),
            json!({"list": ["b", "a"]}),
            &[],
            &["list"],
            &[],
        );
        check(item("a"), item("b"), &[], &[&value], &[]);
        check(
            json!({"items": []}),
            item("a"),
            &[named, &id, &value],
            &[],
            &[],
        );
    }

    #[test]
    fn a_change_of_form_is_a_change_and_what_comes_with_it() {
        check(
            json!({"free": {"a": 1}}),
            json!({"free": {"a": {"b": 1}}}),
            &["free a b"],
            &["free a"],
            &[],
        );
    }

    #[test]
    fn duplicates_are_compared_as_one() {
        check(
            json!({"set": ["a", "a"]}),
            json!({"set": ["a", "a", "a"]}),
            &[],
            &["set v:\"a\""],
            &[],
        );
    }

    #[test]
    fn what_fits_on_neither_side_is_an_error() {
        let wrong = spec(json!({"text": 1}));
        let error = compare(&schema(), &wrong, &wrong).unwrap_err();
        assert_eq!(error.iter().count(), 2);
    }
}
