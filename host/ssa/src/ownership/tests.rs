//! That what is seen at once is what taking an object apart would have come to.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::typed::testing::{object, schema, spec};

const VERSION: &str = "v1";

fn scope<'a>(schema: &'a Schema, reset: &'a FieldSet) -> Scope<'a> {
    Scope {
        schema,
        api_version: VERSION,
        versions: &[],
        reset,
    }
}

fn owned(set: FieldSet) -> Owned {
    Owned {
        set,
        api_version: VERSION.to_owned(),
        time: None,
    }
}

/// Items that are told apart by a field that has a default, among anything.
fn by_kind() -> Schema {
    Schema::from_crd(&json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"items": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["kind"],
            "items": {"type": "object", "properties": {
                "id": {"type": "integer"},
                "kind": {"type": "string", "default": "x"},
                "value": {"type": "string"},
            }},
        }},
    }}}))
    .unwrap()
}

/// What is left of `live` when a manager that owned `last` applies `config`, and whether
/// that is seen at once; nothing where the two cannot be merged.
fn pruned(
    schema: &Schema,
    live: &Value,
    config: &Value,
    last: FieldSet,
    others: FieldSet,
) -> Option<(Value, Value, bool)> {
    let reset = FieldSet::new();
    let scope = scope(schema, &reset);
    validate(schema, config, Duplicates::Refused).ok()?;
    validate(schema, live, Duplicates::Allowed).ok()?;
    let merged = merge(schema, live, config).ok()?;
    let id = ManagerId::apply("me", "");
    let mut managers = ManagedFields::default();
    managers
        .0
        .insert(id.clone(), owned(field_set(schema, config)));
    managers
        .0
        .insert(ManagerId::apply("others", ""), owned(others));
    let last = owned(last);
    let at_once = scope.gives_up_nothing(config, &merged, &managers, Some(&last), &id);
    let slowly = scope.prune(merged.clone(), &managers, Some(&last)).ok()?;
    Some((merged, slowly, at_once))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// What is not looked into would have stayed as it is.
    #[test]
    fn who_gives_up_nothing_removes_nothing(
        live in object(),
        config in object(),
        before in object(),
        kept in prop::collection::vec(prop::bool::weighted(0.7), 40),
        same in prop::bool::ANY,
    ) {
        for schema in [&schema(), &by_kind(), &Schema::untyped()] {
            let of = |object| field_set(schema, object);
            let last = if same { of(&config) } else { of(&before) };
            let paths = last.iter().zip(kept.iter().cycle());
            let last: FieldSet = paths.filter(|(_, kept)| **kept).map(|(path, _)| path).collect();
            let Some((merged, slowly, at_once)) =
                pruned(schema, &live, &config, last, of(&before))
            else {
                continue;
            };
            prop_assert!(!at_once || slowly == merged, "{merged} became {slowly}");
            let is_filled = !has_empty(&config);
            prop_assert!(at_once || !same || !is_filled, "{config} is looked into");
        }
    }
}

/// An item whose key is a default is told apart from others by what it does not have, and
/// what is put back of it is no item any more where others have left it nothing.
#[test]
fn empty_items_are_looked_into() {
    let live = spec(json!({"items": [{"value": "v"}]}));
    let config = spec(json!({"items": [{}]}));
    let schema = by_kind();
    let last = field_set(&schema, &config);
    let (merged, slowly, at_once) = pruned(&schema, &live, &config, last, FieldSet::new()).unwrap();
    assert_ne!(slowly, merged);
    assert!(!at_once);
}

/// What was applied as empty and is filled by nobody's fields goes with them where no field
/// is left in it.
#[test]
fn what_was_applied_empty_is_looked_into() {
    let live = spec(json!({"set": [], "text": "a"}));
    let config = spec(json!({}));
    let schema = schema();
    let last = field_set(&schema, &config);
    let (merged, slowly, at_once) = pruned(&schema, &live, &config, last, FieldSet::new()).unwrap();
    assert_ne!(slowly, merged);
    assert!(!at_once);
}
