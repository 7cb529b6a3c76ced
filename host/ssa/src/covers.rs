//! Whether a manager's entry in `managedFields` says that it owns a config.
//!
//! With the schema this is exact. Without it, the set itself shows how the
//! server took the object apart: list items by key, by value, or not at all.
//! That is enough to walk it together with the config that it came from, but
//! not to tell a struct or map that is taken whole from one of which nothing
//! but the name is left to the manager.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::identity;
use crate::ownership::strip;
use crate::path::{Path, PathElement};
use crate::schema::Schema;
use crate::set::FieldSet;
use crate::typed::{field_set, is_plainly_owned};
use crate::value;

/// Whether every field of `desired` is owned in `fields_v1`.
///
/// `desired` is the body of an apply; `fields_v1` is the entry of the manager
/// that applied it. What identifies an object (`apiVersion`, `kind`, name,
/// namespace and the like) is not looked at, since nobody owns it. Malformed
/// sets own nothing.
///
/// Something owned as a leaf counts as owned with all below it. An empty list
/// counts as owned only where the set has it, which it never has when the list
/// is a set or keyed: leave those out, or use [`covers_typed`].
pub fn covers(fields_v1: &Value, desired: &Value) -> bool {
    FieldSet::from_fields_v1(fields_v1).is_ok_and(|set| Walk::of(&set, desired).complete)
}

/// [`covers`] for objects of a known type: exact. What is malformed in a set may be passed
/// over, where all that is looked for is beside it.
pub fn covers_typed(schema: &Schema, fields_v1: &Value, desired: &Value) -> bool {
    // Nearly always so: an object that was applied is as it was applied.
    is_plainly_owned(schema, fields_v1, desired) || covers_exactly(schema, fields_v1, desired)
}

fn covers_exactly(schema: &Schema, fields_v1: &Value, desired: &Value) -> bool {
    FieldSet::from_fields_v1(fields_v1).is_ok_and(|set| {
        strip(field_set(schema, desired))
            .difference(&set)
            .is_empty()
    })
}

/// What `fields_v1` owns and `desired` does not mention: applying it would
/// give these up.
///
/// Empty for malformed sets.
pub fn owned_beyond(fields_v1: &Value, desired: &Value) -> Vec<Path> {
    let Ok(set) = FieldSet::from_fields_v1(fields_v1) else {
        return Vec::new();
    };
    let walk = Walk::of(&set, desired);
    set.iter()
        .filter(|path| !walk.mentioned.contains(path))
        .collect()
}

struct Walk {
    path: Vec<PathElement>,
    /// Whether all that was met is owned.
    complete: bool,
    /// Members that were met.
    mentioned: BTreeSet<Path>,
}

impl Walk {
    fn of(set: &FieldSet, desired: &Value) -> Self {
        let mut walk = Walk {
            path: Vec::new(),
            complete: desired.is_object(),
            mentioned: BTreeSet::new(),
        };
        for (name, item) in desired.as_object().into_iter().flatten() {
            match item {
                Value::Object(metadata) if name == "metadata" => walk.metadata(set, metadata),
                _ if identity::OBJECT.contains(&name.as_str()) => {}
                _ => walk.node(set, PathElement::field(name.as_str()), item),
            }
        }
        walk
    }

    /// `metadata` by itself is not owned either, so it may be empty.
    fn metadata(&mut self, set: &FieldSet, metadata: &Map<String, Value>) {
        let element = PathElement::field("metadata");
        let nothing = FieldSet::new();
        let below = set.child(&element).unwrap_or(&nothing);
        self.path.push(element);
        for (name, item) in metadata {
            if !identity::METADATA.contains(&name.as_str()) {
                self.node(below, PathElement::field(name.as_str()), item);
            }
        }
        self.path.pop();
    }

    fn node(&mut self, set: &FieldSet, element: PathElement, value: &Value) {
        let member = set.members.contains(&element);
        let below = set.children.get(&element);
        self.path.push(element);
        if member {
            self.mentioned.insert(Path(self.path.clone()));
        }
        match (below, value) {
            (Some(set), Value::Object(map)) => {
                for (name, item) in map {
                    self.node(set, PathElement::field(name.as_str()), item);
                }
            }
            (Some(set), Value::Array(items)) => self.items(set, items),
            // Owned as one: a scalar, something atomic, or empty.
            (None, _) => self.complete &= member,
            // The set knows fields inside of what is a scalar or null here.
            (Some(_), _) => self.complete = false,
        }
        self.path.pop();
    }

    fn items(&mut self, set: &FieldSet, items: &[Value]) {
        let mut free: BTreeSet<&PathElement> =
            set.members.iter().chain(set.children.keys()).collect();
        // Items that have all their key fields choose first: what they leave
        // is for those whose key fields were filled in with defaults.
        let mut late = Vec::new();
        for item in items {
            match free.iter().find(|element| names(element, item)).copied() {
                Some(element) => {
                    free.remove(element);
                    self.node(set, element.clone(), item);
                }
                None => late.push(item),
            }
        }
        for item in late {
            let element = free.iter().find(|element| may_name(element, item)).copied();
            match element {
                Some(element) => {
                    free.remove(element);
                    self.node(set, element.clone(), item);
                }
                None => self.complete = false,
            }
        }
    }
}

/// Whether an element of a set names this item.
fn names(element: &PathElement, item: &Value) -> bool {
    match element {
        PathElement::Value(value) => value::equal(value, item),
        PathElement::Key(fields) => fields
            .iter()
            .all(|(name, value)| item.get(name).is_some_and(|own| value::equal(own, value))),
        PathElement::Field(_) | PathElement::Index(_) => false,
    }
}

/// The same when key fields that the item leaves out count as equal.
fn may_name(element: &PathElement, item: &Value) -> bool {
    let PathElement::Key(fields) = element else {
        return false;
    };
    item.is_object()
        && fields
            .iter()
            .all(|(name, value)| item.get(name).is_none_or(|own| value::equal(own, value)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "cases read better as literals"
    )]
    fn check(fields: Value, desired: Value, covered: bool, beyond: &[&str]) {
        assert_eq!(covers(&fields, &desired), covered, "{fields} of {desired}");
        let paths: Vec<_> = owned_beyond(&fields, &desired)
            .iter()
            .map(Path::to_string)
            .collect();
        assert_eq!(paths, beyond, "{fields} beyond {desired}");
    }

    fn ports() -> Value {
        json!({"f:spec": {"f:ports": {
            "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}},
            "k:{\"port\":80,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}, "f:protocol": {}},
        }}})
    }

    #[test]
    fn maps_are_walked_field_by_field() {
        let fields =
            json!({"f:data": {"f:a": {}, "f:b": {}}, "f:metadata": {"f:labels": {"f:l": {}}}});
        let whole = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "n", "namespace": "s", "labels": {"l": "1"}},
            "data": {"a": "1", "b": "2"},
        });
        check(fields.clone(), whole, true, &[]);
        check(
            fields.clone(),
            json!({"data": {"a": "x"}}),
            true,
            &[".data.b", ".metadata.labels.l"],
        );
        check(
            fields.clone(),
            json!({"data": {"a": "x", "c": "y"}, "metadata": {"labels": {"l": ""}}}),
            false,
            &[".data.b"],
        );
        check(
            fields,
            json!({"data": {"a": "1", "b": "2"}, "metadata": {"labels": "x"}}),
            false,
            &[".metadata.labels.l"],
        );
    }

    #[test]
    fn keyed_items_are_found_by_their_keys() {
        let udp = json!({"port": 80, "protocol": "UDP"});
        check(
            ports(),
            json!({"spec": {"ports": [{"port": 80, "name": "n"}, udp.clone()]}}),
            true,
            &[],
        );
        check(
            ports(),
            json!({"spec": {"ports": [udp.clone()]}}),
            true,
            &[
                ".spec.ports[port=80,protocol=\"TCP\"]",
                ".spec.ports[port=80,protocol=\"TCP\"].name",
                ".spec.ports[port=80,protocol=\"TCP\"].port",
            ],
        );
        check(
            ports(),
            json!({"spec": {"ports": [udp.clone(), {"port": 80, "name": "n"}, {"port": 81}]}}),
            false,
            &[],
        );
        check(
            ports(),
            json!({"spec": {"ports": [udp, {"port": 80, "name": "n", "targetPort": 1}]}}),
            false,
            &[],
        );
    }

    #[test]
    fn one_owned_item_does_not_cover_two() {
        let fields = json!({"f:ports": {
            "k:{\"port\":80,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}, "f:protocol": {}},
        }});
        let desired = json!({"ports": [{"port": 80}, {"port": 80, "protocol": "UDP"}]});
        check(fields, desired, false, &[]);
    }

    #[test]
    fn sets_are_matched_by_value() {
        let fields = json!({"f:set": {"v:\"a\"": {}, "v:1": {}}});
        check(fields.clone(), json!({"set": [1, "a"]}), true, &[]);
        check(fields.clone(), json!({"set": ["a"]}), true, &[".set[=1]"]);
        check(fields, json!({"set": ["1", "a"]}), false, &[".set[=1]"]);
    }

    #[test]
    fn a_leaf_covers_what_is_below_it() {
        let fields = json!({"f:spec": {"f:limits": {}, "f:selector": {}}});
        check(
            fields.clone(),
            json!({"spec": {"limits": [{"type": "Pod"}], "selector": {"a": "b"}}}),
            true,
            &[],
        );
        check(
            fields,
            json!({"spec": {"limits": []}}),
            true,
            &[".spec.selector"],
        );
    }

    #[test]
    fn an_empty_list_needs_an_owner_unless_the_type_is_known() {
        let desired = json!({"metadata": {"finalizers": []}, "data": {"a": "1"}});
        let fields = json!({"f:data": {"f:a": {}}});
        check(fields.clone(), desired.clone(), false, &[]);
        let schema = crate::builtin::schema("", "v1", "ConfigMap").unwrap();
        assert!(covers_typed(schema, &fields, &desired));
        assert!(!covers_typed(schema, &json!({"f:data": {}}), &desired));
    }

    #[test]
    fn what_is_seen_at_once_is_what_is_so() {
        let schema = crate::builtin::schema("", "v1", "Pod").unwrap();
        let desired = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "n", "uid": "u", "labels": {"a": "1", "b": "2"}, "annotations": {},
                "ownerReferences": [{"uid": "o", "name": "n", "controller": true}],
                "finalizers": ["x/y"],
            },
            "spec": {
                "nodeSelector": {"a": "b"},
                "containers": [{
                    "name": "c", "args": ["1"],
                    "ports": [{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP"}],
                }],
                "securityContext": {},
            },
        });
        let whole = strip(field_set(schema, &desired));
        let as_v1 = |set: &FieldSet| set.to_fields_v1();
        let owned = as_v1(&whole);
        assert!(is_plainly_owned(schema, &owned, &desired), "{owned}");
        let paths: Vec<Path> = whole.iter().collect();
        assert!(paths.len() > 12, "{paths:?}");
        for path in paths {
            let lacking = as_v1(&whole.difference(&[path.clone()].into_iter().collect()));
            assert!(!is_plainly_owned(schema, &lacking, &desired), "{path}");
            assert!(!covers_exactly(schema, &lacking, &desired), "{path}");
        }
        // Items that cannot be told apart are looked at closer.
        let twice = json!({"spec": {"containers": [{"name": "c"}, {"name": "c"}]}});
        let owned =
            json!({"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}}}}});
        assert!(!is_plainly_owned(schema, &owned, &twice));
        assert!(covers_typed(schema, &owned, &twice));
    }

    #[test]
    fn metadata_alone_needs_no_owner() {
        check(json!({}), json!({"metadata": {"name": "x"}}), true, &[]);
        check(json!({}), json!({"metadata": {"labels": {}}}), false, &[]);
    }

    #[test]
    fn nonsense_owns_nothing() {
        check(json!("x"), json!({}), false, &[]);
        check(json!({"a": {}}), json!({}), false, &[]);
        check(json!({"f:a": {}}), json!([]), false, &[".a"]);
    }
}
