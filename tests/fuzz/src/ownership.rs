//! Server-side apply and the ownership of updates, over any schema.

use reeve_ssa::typed::{Duplicates, field_set, validate};
use reeve_ssa::{
    Apply, ApplyError, FieldSet, ManagedFields, ManagerId, Path, Schema, Update, apply,
    covers_typed, reset, update,
};
use serde_json::{Map, Value, json};

use crate::choices::Choices;

const MAX_STEPS: usize = 12;
/// How often an apply may be repeated before it does nothing.
const REST: usize = 4;
const NOW: &str = "2026-01-01T00:00:00Z";
/// Fields that nobody owns, of those that are made here.
const IDENTITY: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata",
    "metadata.name",
    "metadata.uid",
];

/// The input decides on the schema of a custom resource and on a sequence of
/// applies and updates by several managers, most of which fit it.
///
/// After every step that succeeds: the same update again changes nothing, and the same apply
/// again and again comes to rest; an applier owns what it applied and nothing else, and what
/// does not fit is refused. That one apply were enough is true of ordinary objects alone, and
/// of the server's library neither, to which the like is put at random: where something was
/// taken away it leaves empty containers, or none, and makes them at the next.
pub fn ownership(input: &[u8]) {
    let mut choices = Choices::new(input);
    let json = resource(&mut choices);
    let schema = Schema::from_crd(&json).expect("only structural schemas are made");
    let mut live: Option<Value> = None;
    for _ in 0..MAX_STEPS {
        let object = object(&mut choices, &json, live.as_ref());
        let next = if choices.one_in(3) {
            Some(updated(&schema, live.as_ref(), &object, &mut choices))
        } else {
            applied(&schema, live.as_ref(), &object, &mut choices)
        };
        if let Some(next) = next {
            check_entries(&next);
            live = Some(next);
        }
        if !choices.has_more() {
            return;
        }
    }
}

fn applied(
    schema: &Schema,
    live: Option<&Value>,
    config: &Value,
    choices: &mut Choices<'_>,
) -> Option<Value> {
    let subresource = choices.pick(&["", "", "", "status"]);
    let manager = choices.pick(&["a", "b", "kubectl"]);
    let reset = reset::custom(choices.one_in(3), subresource);
    let request = Apply {
        schema,
        versions: &[],
        live,
        config,
        manager,
        force: choices.one_in(2),
        subresource,
        now: NOW,
        reset: &reset,
    };
    let fits = validate(schema, config, Duplicates::Refused).is_ok();
    let object = match apply(request) {
        Ok(applied) => applied.object,
        Err(ApplyError::Conflict(conflicts)) => {
            assert!(!request.force, "forced, yet {conflicts}");
            assert_ne!(conflicts.iter().count(), 0);
            let forced = apply(Apply {
                force: true,
                ..request
            });
            assert!(forced.is_ok(), "{forced:?}");
            return None;
        }
        Err(ApplyError::Config { .. }) => {
            assert!(!fits, "{config} fits");
            return None;
        }
        Err(_) => return None,
    };
    assert!(fits, "{config} does not fit");

    let id = ManagerId::apply(manager, subresource);
    let owned = owned_by(&object, &id);
    let wanted = without_identity(&field_set(schema, config)).recursive_difference(&reset);
    assert_eq!(owned, wanted, "{config} made {object}");
    if reset.is_empty() {
        assert!(covers_typed(schema, &owned.to_fields_v1(), config));
    }

    let object = stored(object, live, &reset);
    // Where something is put back afterwards, more than a request decides.
    if reset.is_empty() && !has_nameless_item(config) {
        comes_to_rest(request, object.clone());
    }
    Some(object)
}

/// The same apply again and again does at last nothing.
fn comes_to_rest(request: Apply<'_>, mut object: Value) {
    for _ in 0..REST {
        let live = Some(&object);
        match apply(Apply { live, ..request }) {
            Ok(next) if next.object == object => return,
            Ok(next) => object = next.object,
            // An apply may leave what does not fit, such as null for a container whose
            // items are gone; a server refuses to store that.
            Err(ApplyError::Live { .. } | ApplyError::Conflict(_)) => return,
            Err(error) => panic!("{error}: {} on {object}", request.config),
        }
    }
    panic!("{} never comes to an end: {object}", request.config);
}

/// An object as a server stores it: what a request cannot set, it merges, and puts what was
/// there before in its place.
fn stored(mut object: Value, before: Option<&Value>, reset: &FieldSet) -> Value {
    for name in ["spec", "status"] {
        if !reset.iter().any(|path| path == Path::fields([name])) {
            continue;
        }
        match (&mut object, before.and_then(|before| before.get(name))) {
            (Value::Object(fields), Some(value)) => {
                fields.insert(name.to_owned(), value.clone());
            }
            (Value::Object(fields), None) => {
                fields.remove(name);
            }
            _ => {}
        }
    }
    object
}

fn updated(
    schema: &Schema,
    live: Option<&Value>,
    object: &Value,
    choices: &mut Choices<'_>,
) -> Value {
    let subresource = choices.pick(&["", "", "", "status"]);
    let reset = reset::custom(choices.one_in(3), subresource);
    let request = Update {
        schema,
        versions: &[],
        live,
        object: object.clone(),
        manager: choices.pick(&["a", "b", "kubectl"]),
        subresource,
        now: NOW,
        reset: &reset,
    };
    let mut written = update(request.clone());
    // The server gives it one at creation; without, an object is not tracked.
    written["metadata"]["uid"] = "1".into();
    let again = update(Update {
        live: Some(&written),
        object: written.clone(),
        ..request
    });
    if !has_long_integer(&written) {
        assert_eq!(again, written, "an update without a change is one");
    }
    written
}

/// An item of a list with keys may leave all of them to their defaults. The server's library
/// owns nothing in it then, and takes away the item that it named at the next apply.
fn has_nameless_item(value: &Value) -> bool {
    match value {
        Value::Array(items) => items
            .iter()
            .any(|item| *item == json!({}) || has_nameless_item(item)),
        Value::Object(fields) => fields.values().any(has_nameless_item),
        _ => false,
    }
}

/// The server's library reads an integer that no float is from managedFields as a float,
/// so that the name of such an item of a set changes once.
fn has_long_integer(object: &Value) -> bool {
    object.to_string().contains(&i64::MAX.to_string())
}

fn owned_by(object: &Value, id: &ManagerId) -> FieldSet {
    let managers = ManagedFields::of(object).unwrap_or_default();
    managers
        .get(id)
        .map(|owned| owned.set.clone())
        .unwrap_or_default()
}

fn without_identity(set: &FieldSet) -> FieldSet {
    let identity = IDENTITY
        .iter()
        .map(|path| Path::fields(path.split('.')))
        .collect();
    set.difference(&identity)
}

/// What is written can be read, and nobody owns nothing.
fn check_entries(object: &Value) {
    let managers = ManagedFields::of(object);
    assert!(managers.is_ok(), "{managers:?} of {object}");
    for (id, owned) in managers.unwrap_or_default().iter() {
        assert!(!owned.set.is_empty(), "{id} owns nothing of {object}");
    }
}

/// The schema of a custom resource: structural, with every extension that
/// server-side apply knows.
fn resource(choices: &mut Choices<'_>) -> Value {
    let mut properties = Map::new();
    for name in ["spec", "status", "data"] {
        if choices.below(4) < 3 {
            properties.insert(name.to_owned(), schema(choices, 3));
        }
    }
    let mut root = json!({"type": "object", "properties": properties});
    if choices.one_in(8) {
        root["x-kubernetes-preserve-unknown-fields"] = true.into();
    }
    root
}

fn schema(choices: &mut Choices<'_>, depth: usize) -> Value {
    match choices.below(if depth == 0 { 6 } else { 12 }) {
        0 => json!({"type": "string"}),
        1 => json!({"type": "integer"}),
        2 => json!({"type": "boolean"}),
        3 => json!({"type": "number"}),
        4 => json!({"x-kubernetes-int-or-string": true}),
        5 => json!({"x-kubernetes-preserve-unknown-fields": true}),
        6 | 7 => structure(choices, depth),
        8 => map(choices, depth),
        9 => json!({"type": "array", "items": schema(choices, depth - 1)}),
        10 => json!({
            "type": "array", "x-kubernetes-list-type": "set",
            "items": choices.pick(&[&json!({"type": "string"}), &json!({"type": "number"})]),
        }),
        _ => keyed(choices, depth),
    }
}

fn structure(choices: &mut Choices<'_>, depth: usize) -> Value {
    let mut properties = Map::new();
    for name in ["a", "b", "c"] {
        if choices.below(3) > 0 {
            properties.insert(name.to_owned(), schema(choices, depth - 1));
        }
    }
    let mut out = json!({"type": "object", "properties": properties});
    match choices.below(8) {
        5 => out["x-kubernetes-map-type"] = "atomic".into(),
        6 => out["x-kubernetes-preserve-unknown-fields"] = true.into(),
        7 => {
            out["x-kubernetes-embedded-resource"] = true.into();
            out["x-kubernetes-preserve-unknown-fields"] = true.into();
        }
        _ => {}
    }
    out
}

fn map(choices: &mut Choices<'_>, depth: usize) -> Value {
    let mut out = json!({"type": "object", "additionalProperties": schema(choices, depth - 1)});
    if choices.one_in(4) {
        out["x-kubernetes-map-type"] = "atomic".into();
    }
    out
}

fn keyed(choices: &mut Choices<'_>, depth: usize) -> Value {
    let mut item = json!({"type": "object", "properties": {
        "id": {"type": "integer"}, "name": {"type": "string"},
    }});
    item["properties"]["value"] = schema(choices, depth - 1);
    let keys = choices.pick(&[&["name"][..], &["id"], &["id", "name"]]);
    if choices.one_in(2) {
        item["properties"][keys[keys.len() - 1]]["default"] = match keys[keys.len() - 1] {
            "id" => 1.into(),
            _ => "a".into(),
        };
    }
    json!({
        "type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": keys, "items": item,
    })
}

fn object(choices: &mut Choices<'_>, schema: &Value, live: Option<&Value>) -> Value {
    let mut object = match live {
        // A small edit of what is there.
        Some(live) if choices.one_in(4) => live.clone(),
        _ => value(choices, schema),
    };
    if !object.is_object() {
        object = json!({});
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    } else {
        object["metadata"] = json!({});
    }
    object["apiVersion"] = "fuzz.dev/v1".into();
    object["kind"] = "Thing".into();
    object["metadata"]["name"] = "x".into();
    if choices.one_in(4) {
        object["metadata"]["finalizers"] = json!([choices.text()]);
    }
    if choices.one_in(4) {
        object["spec"] = value(choices, &schema["properties"]["spec"]);
    }
    object
}

/// A value of a type; now and then of any other.
fn value(choices: &mut Choices<'_>, schema: &Value) -> Value {
    if choices.one_in(32) {
        return choices.json(2);
    }
    match schema["type"].as_str() {
        Some("string") => choices.text().into(),
        Some("integer") => choices.below(3).into(),
        Some("number") => choices.pick(&[&json!(1), &json!(1.5), &json!(2.0)]).clone(),
        Some("boolean") => (choices.below(2) == 0).into(),
        Some("array") => (0..choices.below(4))
            .map(|_| value(choices, &schema["items"]))
            .collect(),
        Some("object") => {
            let mut out = Map::new();
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                if choices.below(3) > 0 {
                    out.insert(name.clone(), value(choices, property));
                }
            }
            let additional = &schema["additionalProperties"];
            if !additional.is_null() {
                for _ in 0..choices.below(3) {
                    let name = choices.text();
                    out.insert(name.to_owned(), value(choices, additional));
                }
            }
            if schema["x-kubernetes-preserve-unknown-fields"] == true {
                for _ in 0..choices.below(3) {
                    let name = choices.text();
                    out.insert(name.to_owned(), choices.json(2));
                }
            }
            out.into()
        }
        _ => choices.json(2),
    }
}
