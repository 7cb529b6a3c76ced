//! Types of objects: what is one field and what is many.
//!
//! Server-side apply needs little of a schema: the shape of structs, which
//! lists and maps are taken whole, how list items are told apart, and which
//! scalars are allowed. Types live in one arena and refer to each other by
//! index, so they may be recursive and cost nothing to share.

mod crd;
mod native;
mod quantity;
pub(crate) mod table;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub use self::crd::SchemaError;

/// A type in the arena of its [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeRef(pub(crate) u32);

/// Anything; lists and maps are taken whole.
pub(crate) const UNTYPED_ATOMIC: TypeRef = TypeRef(0);
/// Anything; maps are taken apart field by field, lists are taken whole.
pub(crate) const DEDUCED: TypeRef = TypeRef(1);

/// The type of a kind of object. Cheap to share behind a reference, immutable.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    pub(crate) types: Vec<Atom>,
    pub(crate) root: TypeRef,
}

/// What a value may be: at most one of each. One that has several (an
/// int-or-string with lists and maps, or no type at all) takes the form of
/// the value at hand.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Atom {
    pub(crate) scalar: Option<Scalar>,
    pub(crate) list: Option<List>,
    pub(crate) map: Option<Map>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Numeric,
    String,
    Boolean,
    Untyped,
    /// Any scalar, of which the server keeps the amount, not the text.
    Quantity,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct List {
    pub(crate) element: TypeRef,
    pub(crate) relation: ListRelation,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ListRelation {
    /// One field, whatever is inside.
    Atomic,
    /// Each item by its value.
    Set,
    /// Each item by these of its fields; the default stands in for an absent
    /// field.
    Keyed(Vec<ListKey>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ListKey {
    pub(crate) name: String,
    pub(crate) default: Option<Value>,
}

/// A struct, a map, or a struct that tolerates more fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Map {
    pub(crate) fields: BTreeMap<String, TypeRef>,
    /// The type of fields that are not named; none are allowed without it.
    pub(crate) element: Option<TypeRef>,
    pub(crate) atomic: bool,
    /// Whether the server keeps such objects as Go structs and maps.
    pub(crate) native: bool,
    /// Fields of a native struct that are never absent, with their zero value.
    pub(crate) zero: BTreeMap<String, Value>,
    /// Scalars of a native struct that are left out when they are zero.
    pub(crate) dropped: BTreeSet<String>,
}

impl Schema {
    /// The schema of objects about which nothing is known: maps are granular,
    /// lists atomic.
    pub fn untyped() -> Self {
        Self {
            types: base_types(),
            root: DEDUCED,
        }
    }

    pub(crate) fn atom(&self, ty: TypeRef) -> &Atom {
        // Builders hand out references only to types they have placed.
        &self.types[ty.0 as usize]
    }

    /// Whether this is the type of a built-in kind.
    pub(crate) fn is_native(&self) -> bool {
        let map = self.atom(self.root).map.as_ref();
        map.is_some_and(|map| map.native)
    }

    /// Whether fields of this type were never declared, so that nothing can be
    /// said about a change of the schema.
    pub(crate) fn is_deduced_map(map: &Map) -> bool {
        map.element == Some(DEDUCED) && map.fields.is_empty()
    }
}

impl Map {
    /// The type of the field of this name, if there may be one.
    pub(crate) fn type_of(&self, name: &str) -> Option<TypeRef> {
        self.fields.get(name).copied().or(self.element)
    }
}

impl List {
    pub(crate) fn is_atomic(&self) -> bool {
        self.relation == ListRelation::Atomic
    }
}

/// The two types that every schema begins with.
pub(crate) fn base_types() -> Vec<Atom> {
    let untyped = |element, atomic| Atom {
        scalar: Some(Scalar::Untyped),
        list: Some(List {
            element: UNTYPED_ATOMIC,
            relation: ListRelation::Atomic,
        }),
        map: Some(Map {
            element: Some(element),
            atomic,
            ..Map::default()
        }),
    };
    vec![untyped(UNTYPED_ATOMIC, true), untyped(DEDUCED, false)]
}
