//! Operations on objects of a known type.
//!
//! All of them walk value and type together. A value that has several possible
//! types takes the one of its own form; where two values disagree in form,
//! both types are walked.

mod atomic;
mod compare;
mod fields;
mod items;
mod merge;
mod owned;
mod reconcile;
mod remove;
#[cfg(test)]
pub(crate) mod testing;
mod validate;

pub use self::atomic::atomics;
pub use self::compare::{Comparison, compare};
pub use self::fields::field_set;
pub use self::merge::merge;
pub use self::remove::remove;
pub use self::validate::{Duplicates, TypeError, TypeErrors, validate};

pub(crate) use self::fields::with_named_fields;
pub(crate) use self::owned::is_plainly_owned;
pub(crate) use self::reconcile::reconcile;

use serde_json::{Map as JsonMap, Value};

use crate::path::PathElement;
use crate::schema::{Atom, List, Map, Scalar};
use crate::set::FieldSet;

/// Where a walk is. It is written out as a path only where somebody is told of it.
#[derive(Clone, Copy)]
enum At<'a> {
    Root,
    /// A field of the map that is there.
    Field(&'a At<'a>, &'a str),
    /// An item of the list that is there.
    Item(&'a At<'a>, &'a PathElement),
}

impl At<'_> {
    fn path(&self) -> Vec<PathElement> {
        let mut path = Vec::new();
        let mut at = self;
        loop {
            at = match at {
                At::Root => break,
                At::Field(holder, name) => {
                    path.push(PathElement::field(*name));
                    holder
                }
                At::Item(list, element) => {
                    path.push((*element).clone());
                    list
                }
            };
        }
        path.reverse();
        path
    }
}

/// Puts what is found at one step and below it into the set of the step before.
fn join(set: &mut FieldSet, step: impl FnOnce() -> PathElement, is_member: bool, below: FieldSet) {
    match (is_member, below.is_bare()) {
        (false, true) => {}
        (true, true) => drop(set.members.insert(step())),
        (false, false) => drop(set.children.insert(step(), below)),
        (true, false) => {
            let step = step();
            set.members.insert(step.clone());
            set.children.insert(step, below);
        }
    }
}

/// The type that applies to a value.
#[derive(Clone, Copy)]
enum Form<'s> {
    Scalar(Scalar),
    List(&'s List),
    Map(&'s Map),
}

impl<'s> Form<'s> {
    /// The form of `value`, or, when it has a form that the type lacks (or is
    /// null or absent), the type's first choice.
    fn of(atom: &'s Atom, value: Option<&Value>) -> Option<Self> {
        let scalar = atom.scalar.map(Form::Scalar);
        let list = atom.list.as_ref().map(Form::List);
        let map = atom.map.as_ref().map(Form::Map);
        let own = match value {
            None | Some(Value::Null) => None,
            Some(Value::Array(_)) => list,
            Some(Value::Object(_)) => map,
            Some(_) => scalar,
        };
        own.or(map).or(scalar).or(list)
    }

    /// The forms under which two values are to be walked, the last one being
    /// that of the right-hand side.
    fn of_both(
        atom: &'s Atom,
        left: Option<&Value>,
        right: Option<&Value>,
    ) -> impl Iterator<Item = Self> {
        let (first, second) = match (left, right) {
            (_, None) => (Form::of(atom, left), None),
            (None, _) => (Form::of(atom, right), None),
            _ => (Form::of(atom, left), Form::of(atom, right)),
        };
        // A type has one form of a sort.
        let sort = |form: &Self| std::mem::discriminant(form);
        let same = first.as_ref().map(sort) == second.as_ref().map(sort);
        first.into_iter().chain(second.filter(|_| !same))
    }
}

/// The map in a value; null and other forms count as none.
fn as_map(value: Option<&Value>) -> Option<&JsonMap<String, Value>> {
    value.and_then(Value::as_object)
}

/// The list in a value; null and other forms count as none.
fn as_list(value: Option<&Value>) -> Option<&Vec<Value>> {
    value.and_then(Value::as_array)
}

/// The keys of two maps, each once.
fn keys_of<'v>(
    left: Option<&'v JsonMap<String, Value>>,
    right: Option<&'v JsonMap<String, Value>>,
) -> impl Iterator<Item = &'v String> {
    let more = right
        .into_iter()
        .flat_map(JsonMap::keys)
        .filter(move |key| left.is_none_or(|left| !left.contains_key(*key)));
    left.into_iter().flat_map(JsonMap::keys).chain(more)
}
