//! The fields that an object sets.

use std::collections::BTreeMap;

use serde_json::Value;

use super::items;
use super::{Form, as_list, as_map, join};
use crate::path::PathElement;
use crate::schema::{List, Map, Schema, TypeRef};
use crate::set::FieldSet;

/// Every leaf and item that `object` mentions.
///
/// A leaf is a scalar, an atomic list or map, null, or an empty map. List
/// items and entries of maps are members as well as what they hold; fields of
/// structs are not. An empty set or keyed list is no field at all, so nobody
/// can own it.
pub fn field_set(schema: &Schema, object: &Value) -> FieldSet {
    let mut set = FieldSet::new();
    // The root is no member of any set.
    Walk { schema }.value(schema.root, object, &mut set);
    set
}

struct Walk<'s> {
    schema: &'s Schema,
}

impl Walk<'_> {
    /// Whether the value is a leaf; the fields in it are put into `below`.
    fn value(&self, ty: TypeRef, value: &Value, below: &mut FieldSet) -> bool {
        match Form::of(self.schema.atom(ty), Some(value)) {
            Some(Form::Map(map)) if map.atomic => true,
            Some(Form::List(list)) if list.is_atomic() => true,
            Some(Form::Scalar(_)) => true,
            Some(Form::Map(map)) => {
                self.map(map, value, below);
                false
            }
            Some(Form::List(list)) => {
                self.list(list, value, below);
                false
            }
            None => false,
        }
    }

    fn map(&self, map: &Map, value: &Value, set: &mut FieldSet) {
        for (name, item) in as_map(Some(value)).into_iter().flatten() {
            let Some(ty) = map.type_of(name) else {
                continue;
            };
            let mut below = FieldSet::new();
            let leaf = self.value(ty, item, &mut below);
            let empty = item.is_null() || item.as_object().is_some_and(|map| map.is_empty());
            let is_member = leaf || empty || !map.fields.contains_key(name);
            join(set, || PathElement::field(name), is_member, below);
        }
    }

    fn list(&self, list: &List, value: &Value, set: &mut FieldSet) {
        let items = as_list(Some(value)).into_iter().flatten();
        let mut named: BTreeMap<PathElement, Vec<&Value>> = BTreeMap::new();
        for item in items {
            if let Ok(element) = items::element(list, item) {
                named.entry(element).or_default().push(item);
            }
        }
        for (element, items) in named {
            let mut below = FieldSet::new();
            // Items of the same name cannot be told apart: they are owned together
            // and without their fields.
            if let [item] = items.as_slice() {
                self.value(list.element, item, &mut below);
            }
            join(set, || element, true, below);
        }
    }
}

/// The set with the parents of its members that are fields of structs, so
/// that removing the set removes them as well. Items and map entries are not
/// added: they are members already where they are owned.
pub(crate) fn with_named_fields(schema: &Schema, set: &FieldSet) -> FieldSet {
    named_fields(schema, schema.root, set)
}

fn named_fields(schema: &Schema, ty: TypeRef, set: &FieldSet) -> FieldSet {
    let atom = schema.atom(ty);
    let mut out = FieldSet {
        members: set.members.clone(),
        ..FieldSet::new()
    };
    for (element, child) in &set.children {
        let below = match element {
            PathElement::Field(name) => {
                let map = atom.map.as_ref();
                if map.is_some_and(|map| map.fields.contains_key(name)) {
                    out.members.insert(element.clone());
                }
                map.and_then(|map| map.type_of(name))
            }
            PathElement::Key(_) | PathElement::Value(_) | PathElement::Index(_) => {
                atom.list.as_ref().map(|list| list.element)
            }
        };
        let child = match below {
            Some(ty) => named_fields(schema, ty, child),
            None => child.clone(),
        };
        out.children.insert(element.clone(), child);
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::typed::testing::{schema, set, spec};

    #[test]
    fn leaves_and_items_are_fields() {
        for (object, expected) in [
            (
                json!({"text": "a", "number": null}),
                set(&["text", "number"]),
            ),
            (json!({"map": {"a": "1"}}), set(&["map a"])),
            (json!({"map": {}, "free": null}), set(&["map", "free"])),
            (
                json!({"structs": {"s": {"a": "1"}, "e": {}}}),
                set(&["structs s", "structs s a", "structs e"]),
            ),
            (
                json!({"whole": {"a": "1"}, "list": ["a"]}),
                set(&["whole", "list"]),
            ),
            (
                json!({"set": ["a", "b"]}),
                set(&["set v:\"a\"", "set v:\"b\""]),
            ),
            (json!({"set": [], "items": []}), set(&[])),
            (json!({"list": []}), set(&["list"])),
            (
                json!({"items": [{"id": 1, "value": "v"}]}),
                set(&[
                    "items k:{\"id\":1,\"kind\":\"x\"}",
                    "items k:{\"id\":1,\"kind\":\"x\"} id",
                    "items k:{\"id\":1,\"kind\":\"x\"} value",
                ]),
            ),
            (
                json!({"free": {"a": {"b": [1]}, "c": {}}}),
                set(&["free a", "free a b", "free c"]),
            ),
            (json!({"either": 1}), set(&["either"])),
            (json!({}), set(&[""])),
            (
                json!({"set": ["a", "a", "b"], "items": [{"id": 1}, {"id": 1}]}),
                set(&[
                    "set v:\"a\"",
                    "set v:\"b\"",
                    "items k:{\"id\":1,\"kind\":\"x\"}",
                ]),
            ),
        ] {
            let fields = field_set(&schema(), &spec(object.clone()));
            assert_eq!(fields, expected, "{object}");
        }
    }

    #[test]
    fn only_struct_fields_are_added_as_parents() {
        let fields = set(&["structs s a", "free x y", "items k:{\"id\":1} value"]);
        let named = with_named_fields(&schema(), &fields);
        let added = set(&["", "structs", "free", "items"]);
        assert_eq!(named, fields.union(&added));
    }
}
