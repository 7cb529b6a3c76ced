//! Whether all that an object sets is owned, seen at once.

use std::collections::BTreeSet;

use serde_json::Value;

use super::items;
use super::{Form, as_list, as_map};
use crate::identity;
use crate::path::PathElement;
use crate::schema::{List, Map, Schema, TypeRef};

/// Whether `owned`, a set as fieldsV1, has every field of [`field_set`](super::field_set)
/// but those that nobody owns. No for an answer may be wrong, and only means to look
/// closer: neither of the two sets is built here.
pub(crate) fn is_plainly_owned(schema: &Schema, owned: &Value, object: &Value) -> bool {
    let atom = schema.atom(schema.root);
    let (Some(map), Some(fields)) = (atom.map.as_ref(), object.as_object()) else {
        return false;
    };
    let mut walk = Walk {
        schema,
        key: String::new(),
    };
    let is_metadata = |name: &str| identity::METADATA.contains(&name);
    fields
        .iter()
        .filter(|(name, _)| !identity::OBJECT.contains(&name.as_str()))
        .all(|(name, item)| match (name.as_str(), map.type_of(name)) {
            (_, None) => true,
            ("metadata", Some(ty)) => {
                let below = walk.below(Some(owned), name);
                let atom = schema.atom(ty);
                let Some((map, fields)) = atom.map.as_ref().zip(item.as_object()) else {
                    return false;
                };
                fields.iter().all(|(name, item)| {
                    let nobodys = is_metadata(name) && !item.is_object() && !item.is_array();
                    nobodys || walk.field(map, name, item, below)
                })
            }
            (_, Some(_)) => walk.field(map, name, item, Some(owned)),
        })
}

struct Walk<'s> {
    schema: &'s Schema,
    /// The key that is looked for.
    key: String,
}

impl Walk<'_> {
    /// What a set has below a field.
    fn below<'o>(&mut self, owned: Option<&'o Value>, name: &str) -> Option<&'o Value> {
        self.key.clear();
        self.key.push_str("f:");
        self.key.push_str(name);
        owned?.get(&self.key)
    }

    fn value(&mut self, ty: TypeRef, value: &Value, owned: Option<&Value>) -> bool {
        match Form::of(self.schema.atom(ty), Some(value)) {
            Some(Form::Map(map)) if map.atomic => is_member(owned),
            Some(Form::List(list)) if list.is_atomic() => is_member(owned),
            Some(Form::Scalar(_)) => is_member(owned),
            Some(Form::Map(map)) => {
                let mut fields = as_map(Some(value)).into_iter().flatten();
                fields.all(|(name, item)| self.field(map, name, item, owned))
            }
            Some(Form::List(list)) => self.items(list, value, owned),
            None => true,
        }
    }

    fn field(&mut self, map: &Map, name: &str, item: &Value, owned: Option<&Value>) -> bool {
        let Some(ty) = map.type_of(name) else {
            return true;
        };
        let below = self.below(owned, name);
        let empty = item.is_null() || item.as_object().is_some_and(|map| map.is_empty());
        let by_itself = empty || !map.fields.contains_key(name);
        (!by_itself || is_member(below)) && self.value(ty, item, below)
    }

    fn items(&mut self, list: &List, value: &Value, owned: Option<&Value>) -> bool {
        let mut seen = BTreeSet::new();
        as_list(Some(value)).into_iter().flatten().all(|item| {
            let Ok(element) = items::element(list, item) else {
                return false;
            };
            let key = PathElement::encode(&element);
            let below = owned.and_then(|owned| owned.get(&key));
            // Items of the same name are owned together and without their fields.
            is_member(below) && seen.insert(key) && self.value(list.element, item, below)
        })
    }
}

/// Whether a set that has this for a field has the field itself.
fn is_member(owned: Option<&Value>) -> bool {
    let below = owned.and_then(Value::as_object);
    below.is_some_and(|below| below.is_empty() || below.contains_key("."))
}
