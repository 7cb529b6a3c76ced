//! Laying one object over another.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map as JsonMap, Value};

use super::validate::scalar_error;
use super::{At, Form, TypeErrors, as_list, as_map, items, keys_of};
use crate::path::PathElement;
use crate::schema::{List, Map, Scalar, Schema, TypeRef};

/// Merges `config` into `live`: leaves of `config` win, nothing is removed.
///
/// Sets and keyed lists are joined item by item. The order is that of `config`
/// where both name the items, and items that only `live` has keep their place
/// among them. Fails where neither side fits the type, or an item of a list
/// cannot be named.
pub fn merge(schema: &Schema, live: &Value, config: &Value) -> Result<Value, TypeErrors> {
    let mut walk = Walk {
        schema,
        errors: TypeErrors::default(),
    };
    let out = walk.value(At::Root, schema.root, Some(live), Some(config));
    walk.errors.or(out.unwrap_or(Value::Null))
}

struct Walk<'s> {
    schema: &'s Schema,
    errors: TypeErrors,
}

impl Walk<'_> {
    /// The merged value; none when nothing is left of a map or list.
    fn value(
        &mut self,
        at: At<'_>,
        ty: TypeRef,
        live: Option<&Value>,
        config: Option<&Value>,
    ) -> Option<Value> {
        let atom = self.schema.atom(ty);
        let mut out = None;
        // With forms that disagree, the last one, of the config, stands.
        for form in Form::of_both(atom, live, config) {
            out = match form {
                Form::Scalar(scalar) => self.scalar(at, scalar, live, config),
                Form::List(list) => self.list(at, list, live, config),
                Form::Map(map) => self.map(at, map, live, config),
            };
        }
        out
    }

    fn scalar(
        &mut self,
        at: At<'_>,
        scalar: Scalar,
        live: Option<&Value>,
        config: Option<&Value>,
    ) -> Option<Value> {
        if let (Some(left), Some(right)) = (
            live.and_then(|v| scalar_error(scalar, v)),
            config.and_then(|v| scalar_error(scalar, v)),
        ) {
            self.errors.push(at, format!("lhs: {left}"));
            self.errors.push(at, format!("rhs: {right}"));
            return None;
        }
        config.or(live).cloned()
    }

    fn map(
        &mut self,
        at: At<'_>,
        map: &Map,
        live: Option<&Value>,
        config: Option<&Value>,
    ) -> Option<Value> {
        let (left, right) = (as_map(live), as_map(config));
        let both_empty =
            left.is_none_or(|map| map.is_empty()) && right.is_none_or(|map| map.is_empty());
        if map.atomic || both_empty {
            return config.or(live).cloned();
        }
        let mut out = JsonMap::new();
        for key in keys_of(left, right) {
            let here = At::Field(&at, key);
            match map.type_of(key) {
                Some(ty) => {
                    let item = self.value(
                        here,
                        ty,
                        left.and_then(|map| map.get(key)),
                        right.and_then(|map| map.get(key)),
                    );
                    out.extend(item.map(|item| (key.clone(), item)));
                }
                None => self
                    .errors
                    .push(here, "field not declared in schema".to_owned()),
            }
        }
        (!out.is_empty()).then_some(Value::Object(out))
    }

    fn list(
        &mut self,
        at: At<'_>,
        list: &List,
        live: Option<&Value>,
        config: Option<&Value>,
    ) -> Option<Value> {
        let (left, right) = (as_list(live), as_list(config));
        let both_empty =
            left.is_none_or(|list| list.is_empty()) && right.is_none_or(|list| list.is_empty());
        if list.is_atomic() || both_empty {
            return config.or(live).cloned();
        }
        let left = self.index(at, list, left, true)?;
        let right = self.index(at, list, right, false)?;
        let out = self.join(at, list, &left, &right);
        (!out.is_empty()).then_some(Value::Array(out))
    }

    /// Names the items. Only the live object may name one twice.
    fn index<'v>(
        &mut self,
        at: At<'_>,
        list: &List,
        items: Option<&'v Vec<Value>>,
        duplicates: bool,
    ) -> Option<Items<'v>> {
        let mut out = Items::default();
        let mut fine = true;
        for (position, item) in items.into_iter().flatten().enumerate() {
            let element = match items::element(list, item) {
                Ok(element) => element,
                Err(reason) => {
                    fine = false;
                    self.errors
                        .push(at, format!("element {position}: {reason}"));
                    continue;
                }
            };
            if !out.by_name.contains_key(&element) {
                out.by_name.insert(element.clone(), item);
            } else if duplicates {
                // Which of them to merge with is unknown, so none of them.
                out.by_name.insert(element.clone(), &Value::Null);
            } else {
                fine = false;
                self.errors
                    .push(at, format!("duplicate entries for key {element}"));
                continue;
            }
            out.order.push((element, item));
        }
        fine.then_some(out)
    }

    fn join(
        &mut self,
        at: At<'_>,
        list: &List,
        live: &Items<'_>,
        config: &Items<'_>,
    ) -> Vec<Value> {
        let mut out = Vec::with_capacity(live.order.len().max(config.order.len()));
        // Items of both, in the order of the config: the next of them decides
        // whether live items before it are taken now or later.
        let mut shared = config
            .order
            .iter()
            .map(|(element, _)| element)
            .filter(|element| live.by_name.contains_key(element));
        let mut next = shared.next();
        let mut merged = BTreeSet::new();
        let (mut l, mut r) = (0, 0);
        while l < live.order.len() || r < config.order.len() {
            if let (Some((left, _)), Some((right, _))) = (live.order.get(l), config.order.get(r)) {
                if left == right {
                    merged.insert(left);
                    out.extend(self.item(at, list, left, live.get(left), config.get(left)));
                    l += 1;
                    r += 1;
                    next = shared.next();
                    continue;
                }
                if config.by_name.contains_key(left) && next.is_some_and(|next| next != left) {
                    // It belongs further on.
                    l += 1;
                    continue;
                }
            }
            if let Some((left, item)) = live.order.get(l) {
                if !config.by_name.contains_key(left) {
                    out.extend(self.item(at, list, left, Some(item), None));
                    l += 1;
                    continue;
                }
                if merged.contains(left) {
                    l += 1;
                }
            }
            if let Some((right, _)) = config.order.get(r) {
                merged.insert(right);
                out.extend(self.item(at, list, right, live.get(right), config.get(right)));
                r += 1;
                if next == Some(right) {
                    next = shared.next();
                }
            }
        }
        out
    }

    /// Merges one item. The server forgets errors found inside items, and so
    /// do we: what does not fit is dropped.
    fn item(
        &mut self,
        at: At<'_>,
        list: &List,
        element: &PathElement,
        live: Option<&Value>,
        config: Option<&Value>,
    ) -> Option<Value> {
        let known = self.errors.len();
        let here = At::Item(&at, element);
        let out = self.value(here, list.element, live, config);
        self.errors.truncate(known);
        out
    }
}

/// The items of a list in order and by name.
#[derive(Default)]
struct Items<'v> {
    order: Vec<(PathElement, &'v Value)>,
    by_name: BTreeMap<PathElement, &'v Value>,
}

impl<'v> Items<'v> {
    fn get(&self, element: &PathElement) -> Option<&'v Value> {
        self.by_name.get(element).copied()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::typed::testing::{schema, spec};

    #[expect(
        clippy::needless_pass_by_value,
        reason = "cases read better as literals"
    )]
    fn check(live: Value, config: Value, expected: Value) {
        let merged = merge(&schema(), &spec(live.clone()), &spec(config.clone())).unwrap();
        assert_eq!(merged, spec(expected), "{live} with {config}");
    }

    #[test]
    fn the_config_wins_leaf_by_leaf() {
        check(
            json!({"text": "a", "number": 1, "map": {"a": "1", "b": "1"}}),
            json!({"text": "b", "map": {"b": "2", "c": "2"}}),
            json!({"text": "b", "number": 1, "map": {"a": "1", "b": "2", "c": "2"}}),
        );
        check(
            json!({"whole": {"a": "1"}}),
            json!({"whole": {"b": "1"}}),
            json!({"whole": {"b": "1"}}),
        );
        check(
            json!({"list": ["a"]}),
            json!({"list": ["b"]}),
            json!({"list": ["b"]}),
        );
        check(
            json!({"map": {"a": "1"}}),
            json!({"map": {}}),
            json!({"map": {"a": "1"}}),
        );
        check(
            json!({"map": {}}),
            json!({"map": null}),
            json!({"map": null}),
        );
        check(
            json!({"either": {"x": 1}}),
            json!({"either": 5}),
            json!({"either": 5}),
        );
    }

    #[test]
    fn items_take_the_order_of_the_config() {
        for (live, config, expected) in [
            (vec!["a", "b"], vec![], vec!["a", "b"]),
            (vec![], vec!["b", "a"], vec!["b", "a"]),
            (vec!["a", "b", "c"], vec!["c", "a"], vec!["b", "c", "a"]),
            (
                vec!["a", "b", "c", "d"],
                vec!["d", "x", "b"],
                vec!["a", "c", "d", "x", "b"],
            ),
            (
                vec!["a", "b"],
                vec!["x", "b", "y"],
                vec!["a", "x", "b", "y"],
            ),
            (vec!["a", "a", "b"], vec!["b", "a"], vec!["b", "a"]),
        ] {
            check(
                json!({"set": live}),
                json!({"set": config}),
                json!({"set": expected}),
            );
        }
    }

    #[test]
    fn keyed_items_are_merged_with_their_like() {
        check(
            json!({"items": [{"id": 1, "kind": "x", "value": "v"}, {"id": 2}]}),
            json!({"items": [{"id": 1}, {"id": 1, "kind": "y"}]}),
            json!({"items": [{"id": 1, "kind": "x", "value": "v"}, {"id": 2}, {"id": 1, "kind": "y"}]}),
        );
    }

    #[test]
    fn a_config_with_duplicates_is_refused() {
        let error = merge(
            &schema(),
            &spec(json!({"set": ["b"]})),
            &spec(json!({"set": ["a", "a"]})),
        )
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            ".spec.set: duplicate entries for key [=\"a\"]"
        );
    }
}
