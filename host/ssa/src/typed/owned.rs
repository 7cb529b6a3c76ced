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
/// closer: neither of the two sets is built here. What is malformed elsewhere in `owned` is
/// not noticed.
pub(crate) fn is_plainly_owned(schema: &Schema, owned: &Value, object: &Value) -> bool {
    let atom = schema.atom(schema.root);
    let (Some(map), Some(fields)) = (atom.map.as_ref(), object.as_object()) else {
        return false;
    };
    let mut walk = Walk {
        schema,
        key: String::new(),
    };
    // These fields themselves, but not what is in them.
    let is_nobodys = |names: &[&str], name: &str, item: &Value| {
        names.contains(&name) && !item.is_object() && !item.is_array()
    };
    owned.is_object()
        && fields
            .iter()
            .filter(|(name, item)| !is_nobodys(&identity::OBJECT, name, item))
            .all(|(name, item)| match (name.as_str(), map.type_of(name)) {
                (_, None) => true,
                ("metadata", Some(ty)) => {
                    let below = walk.below(Some(owned), name);
                    let atom = schema.atom(ty);
                    let Some((map, fields)) = atom.map.as_ref().zip(item.as_object()) else {
                        return false;
                    };
                    fields.iter().all(|(name, item)| {
                        is_nobodys(&identity::METADATA, name, item)
                            || walk.field(map, name, item, below)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::field_set;
    use super::super::testing::{object, schema};
    use super::*;
    use crate::ownership::strip;
    use crate::set::FieldSet;

    /// Whether its items can be told apart, and what identifies it is text.
    fn is_usual(object: &Value) -> bool {
        let differ = |name: &str, key: fn(&Value) -> String| {
            let items = object["spec"][name].as_array().into_iter().flatten();
            let mut seen = BTreeSet::new();
            items.map(key).all(|key| seen.insert(key))
        };
        let key = |item: &Value| format!("{} {}", item["id"], item["kind"].as_str().unwrap_or("x"));
        let metadata = object.get("metadata");
        differ("items", key)
            && differ("set", Value::to_string)
            && !object["kind"].is_object()
            && metadata.is_none_or(|metadata| metadata.is_object() && !metadata["name"].is_object())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Yes is always right, whatever lacks and whatever is there besides; and it is
        /// what is said of an object that is owned as it is, unless items of it cannot be
        /// told apart.
        #[test]
        fn a_yes_is_right(
            object in object(),
            other in object(),
            kept in prop::collection::vec(prop::bool::weighted(0.9), 40),
        ) {
            for schema in [&schema(), &Schema::untyped()] {
                let whole = strip(field_set(schema, &object));
                let paths = whole.iter().zip(kept.iter().cycle());
                let part: FieldSet = paths.filter(|(_, kept)| **kept).map(|(path, _)| path).collect();
                for owned in [whole.clone(), part.clone(), part.union(&field_set(schema, &other))] {
                    let exact = whole.difference(&owned).is_empty();
                    let plain = is_plainly_owned(schema, &owned.to_fields_v1(), &object);
                    prop_assert!(exact || !plain, "{} of {object}", owned.to_fields_v1());
                    if exact && is_usual(&object) {
                        prop_assert!(plain, "{} of {object}", owned.to_fields_v1());
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_no_set_owns_nothing() {
        let object = json!({"metadata": {"name": "n"}});
        for (owned, answer) in [(json!({}), true), (json!("x"), false), (json!([]), false)] {
            assert_eq!(
                is_plainly_owned(&schema(), &owned, &object),
                answer,
                "{owned}"
            );
        }
    }
}
