//! What changed between two objects.

use std::collections::BTreeMap;

use serde_json::Value;

use super::validate::scalar_error;
use super::{Form, TypeErrors, as_list, as_map, items, keys_of};
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
        path: Vec::new(),
        out: Comparison::default(),
        errors: TypeErrors::default(),
    };
    walk.value(schema.root, Some(before), Some(after));
    walk.errors.or(walk.out)
}

struct Walk<'s> {
    schema: &'s Schema,
    path: Vec<PathElement>,
    out: Comparison,
    errors: TypeErrors,
}

impl Walk<'_> {
    fn value(&mut self, ty: TypeRef, before: Option<&Value>, after: Option<&Value>) {
        let atom = self.schema.atom(ty);
        let mut leaf = false;
        for form in Form::of_both(atom, before, after) {
            leaf = match form {
                Form::Scalar(scalar) => self.scalar(scalar, before, after),
                Form::List(list) => self.list(list, before, after),
                Form::Map(map) => self.map(map, before, after),
            };
        }
        if !leaf {
            match (before, after) {
                (None, _) => self.out.added.insert_elements(&self.path),
                (_, None) => self.out.removed.insert_elements(&self.path),
                _ => {}
            }
        }
    }

    fn leaf(&mut self, before: Option<&Value>, after: Option<&Value>) -> bool {
        match (before, after) {
            (None, _) => self.out.added.insert_elements(&self.path),
            (_, None) => self.out.removed.insert_elements(&self.path),
            (Some(before), Some(after)) if !value::equal(before, after) => {
                self.out.modified.insert_elements(&self.path);
            }
            _ => {}
        }
        true
    }

    fn scalar(&mut self, scalar: Scalar, before: Option<&Value>, after: Option<&Value>) -> bool {
        if let (Some(left), Some(right)) = (
            before.and_then(|v| scalar_error(scalar, v)),
            after.and_then(|v| scalar_error(scalar, v)),
        ) {
            self.errors.push(&self.path, format!("lhs: {left}"));
            self.errors.push(&self.path, format!("rhs: {right}"));
            return false;
        }
        self.leaf(before, after)
    }

    fn map(&mut self, map: &Map, before: Option<&Value>, after: Option<&Value>) -> bool {
        let (left, right) = (as_map(before), as_map(after));
        // Nothing on both sides is a leaf, so that null and empty stay apart.
        let both_empty =
            left.is_none_or(|map| map.is_empty()) && right.is_none_or(|map| map.is_empty());
        if map.atomic || both_empty {
            return self.leaf(before, after);
        }
        for key in keys_of(left, right) {
            let Some(ty) = map.type_of(key) else {
                self.path.push(PathElement::Field(key.clone()));
                self.errors
                    .push(&self.path, "field not declared in schema".to_owned());
                self.path.pop();
                continue;
            };
            self.path.push(PathElement::Field(key.clone()));
            self.value(
                ty,
                left.and_then(|map| map.get(key)),
                right.and_then(|map| map.get(key)),
            );
            self.path.pop();
        }
        false
    }

    fn list(&mut self, list: &List, before: Option<&Value>, after: Option<&Value>) -> bool {
        let (left, right) = (as_list(before), as_list(after));
        let both_empty =
            left.is_none_or(|list| list.is_empty()) && right.is_none_or(|list| list.is_empty());
        if list.is_atomic() || both_empty {
            return self.leaf(before, after);
        }
        let left = self.group(list, left);
        let mut right = self.group(list, right);
        for (element, left) in left {
            let right = right.remove(&element).unwrap_or_default();
            self.items(list, element, &left, &right);
        }
        for (element, right) in right {
            self.items(list, element, &[], &right);
        }
        false
    }

    fn group<'v>(
        &mut self,
        list: &List,
        items: Option<&'v Vec<Value>>,
    ) -> BTreeMap<PathElement, Vec<&'v Value>> {
        let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (index, item) in items.into_iter().flatten().enumerate() {
            match items::element(list, item) {
                Ok(element) => groups.entry(element).or_default().push(item),
                Err(reason) => self
                    .errors
                    .push(&self.path, format!("element {index}: {reason}")),
            }
        }
        groups
    }

    /// Compares all items of one name. Several of a name are compared as a
    /// whole, since it cannot be said which is which.
    fn items(&mut self, list: &List, element: PathElement, left: &[&Value], right: &[&Value]) {
        self.path.push(element);
        match (left, right) {
            ([], [] | [_]) | ([_], [] | [_]) => {
                self.value(list.element, left.first().copied(), right.first().copied());
            }
            ([_, _, ..], [_, _, ..]) => {
                let same = left.len() == right.len()
                    && left.iter().zip(right).all(|(a, b)| value::equal(a, b));
                if !same {
                    self.out.modified.insert_elements(&self.path);
                }
            }
            ([_, _, ..], _) => {
                if let Some(item) = right.first() {
                    self.value(list.element, None, Some(item));
                }
                self.out.removed.insert_elements(&self.path);
            }
            (_, [_, _, ..]) => {
                if let Some(item) = left.first() {
                    self.value(list.element, Some(item), None);
                }
                self.out.added.insert_elements(&self.path);
            }
        }
        self.path.pop();
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
