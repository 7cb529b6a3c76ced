//! Laws that hold whatever the objects are.

#![expect(clippy::unwrap_used, reason = "tests panic where they fail")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use reeve_ssa::typed::field_set;
use reeve_ssa::{
    Applied, Apply, FieldSet, ManagedFields, ManagerId, Path, PathElement, Prediction, Schema,
    Update, apply, covers, covers_typed, owned_beyond, predict, update,
};
use serde_json::{Value, json};

/// A custom resource with one field of every sort.
fn schema() -> Schema {
    let text = json!({"type": "string"});
    let texts = json!({"type": "object", "additionalProperties": text});
    Schema::from_crd(&json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "properties": {
            "name": text,
            "size": {"type": "integer"},
            "labels": texts,
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic",
                "additionalProperties": text},
            "list": {"type": "array", "items": text},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
            "items": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["id", "kind"],
                "items": {"type": "object", "properties": {
                    "id": {"type": "integer"},
                    "kind": {"type": "string", "default": "x"},
                    "value": text,
                    "labels": texts,
                }},
            },
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    }}}))
    .unwrap()
}

fn text() -> impl Strategy<Value = Value> {
    select(vec!["1", "2", "3"]).prop_map(Value::from)
}

fn texts() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(select(vec!["a", "b", "c"]), text(), 1..3)
        .prop_map(|map| map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
}

fn unique(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
    subsequence(names, 1..=names.len())
        .prop_shuffle()
        .prop_map(Value::from)
}

fn items() -> impl Strategy<Value = Value> {
    let keys = [
        (1, None),
        (2, None),
        (1, Some("y")),
        (2, Some("x")),
        (10, Some("y")),
    ];
    let item = (prop::option::of(text()), prop::option::of(texts()));
    (
        subsequence(keys.to_vec(), 1..=keys.len()).prop_shuffle(),
        prop::collection::vec(item, keys.len()),
    )
        .prop_map(|(keys, fields)| {
            let mut seen = Vec::new();
            let mut items = Vec::new();
            for ((id, kind), (value, labels)) in keys.into_iter().zip(fields) {
                // An absent kind is the default one.
                if seen.contains(&(id, kind.unwrap_or("x"))) {
                    continue;
                }
                seen.push((id, kind.unwrap_or("x")));
                let mut item = json!({"id": id});
                for (name, field) in [
                    ("kind", kind.map(Value::from)),
                    ("value", value),
                    ("labels", labels),
                ] {
                    if let Some(field) = field {
                        item[name] = field;
                    }
                }
                items.push(item);
            }
            items.into()
        })
}

fn some<T: std::fmt::Debug>(value: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    prop::option::of(value)
}

/// A body: some of the fields, none of them empty.
fn body() -> impl Strategy<Value = Value> {
    (
        some(text()),
        some(0..3i64),
        some(texts()),
        some(texts()),
        some(unique(&["a", "b"])),
        some(unique(&["a", "b", "c", "d"])),
        some(items()),
        some(texts()),
        some(texts()),
    )
        .prop_map(|(name, size, labels, whole, list, set, items, free, meta)| {
            let fields = [
                ("name", name),
                ("size", size.map(Value::from)),
                ("labels", labels),
                ("whole", whole),
                ("list", list),
                ("set", set),
                ("items", items),
                ("free", free),
            ];
            let mut body = json!({
                "apiVersion": "test/v1", "kind": "Thing", "metadata": {"name": "x", "namespace": "y"},
            });
            for (name, value) in fields {
                if let Some(value) = value {
                    body["spec"][name] = value;
                }
            }
            if let Some(labels) = meta {
                body["metadata"]["labels"] = labels;
            }
            body
        })
}

fn applied(live: Option<&Value>, config: &Value, manager: &str) -> Applied {
    with_request(live, config, manager, |request| apply(request).unwrap())
}

fn predicted(live: Option<&Value>, config: &Value, manager: &str) -> Prediction {
    with_request(live, config, manager, |request| predict(request).unwrap())
}

fn with_request<T>(
    live: Option<&Value>,
    config: &Value,
    manager: &str,
    ask: impl FnOnce(Apply<'_>) -> T,
) -> T {
    ask(Apply {
        schema: &schema(),
        versions: &[],
        live,
        config,
        manager,
        force: true,
        subresource: "",
        now: "2026-01-01T00:00:00Z",
        reset: &FieldSet::new(),
    })
}

fn updated(live: Option<&Value>, object: &Value, manager: &str) -> Value {
    update(Update {
        schema: &schema(),
        versions: &[],
        live,
        object: object.clone(),
        manager,
        subresource: "",
        now: "2026-01-01T00:00:00Z",
        reset: &FieldSet::new(),
    })
}

/// The fields of an object that can be owned.
fn fields(object: &Value) -> FieldSet {
    let identity = [
        "apiVersion",
        "kind",
        "metadata.name",
        "metadata.namespace",
        "metadata.managedFields",
    ];
    let identity: FieldSet = identity
        .iter()
        .map(|path| Path::fields(path.split('.')))
        .collect();
    field_set(&schema(), object).recursive_difference(&identity)
}

fn owned_by(object: &Value, id: &ManagerId) -> FieldSet {
    let managers = ManagedFields::of(object).unwrap();
    managers
        .get(id)
        .map(|owned| owned.set.clone())
        .unwrap_or_default()
}

/// Removing the last entry of a container leaves null, which the server would
/// refuse to store where the field is not nullable.
fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(map) => map.values().any(has_null),
        _ => false,
    }
}

fn element() -> impl Strategy<Value = PathElement> {
    prop_oneof![
        "[a-z.\"<é/]{0,4}".prop_map(PathElement::Field),
        (0..20i64, "[a-c]{0,2}")
            .prop_map(|(n, s)| PathElement::key([("n", json!(n)), ("s", json!(s))])),
        prop_oneof![
            any::<i32>().prop_map(Value::from),
            "[a-c<\u{2028}\\\\]{0,3}".prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            (-1e6..1e6f64).prop_map(Value::from),
        ]
        .prop_map(PathElement::Value),
        (0..9i64).prop_map(PathElement::Index),
    ]
}

fn set() -> impl Strategy<Value = FieldSet> {
    let path = prop::collection::vec(element(), 1..4).prop_map(Path);
    prop::collection::vec(path, 0..12).prop_map(FieldSet::from_iter)
}

#[derive(Clone, Debug)]
enum Step {
    Apply(&'static str, Value),
    Update(&'static str, Value),
}

fn step() -> impl Strategy<Value = Step> {
    let manager = || select(vec!["a", "b"]);
    prop_oneof![
        (manager(), body()).prop_map(|(manager, body)| Step::Apply(manager, body)),
        (manager(), body()).prop_map(|(manager, body)| Step::Update(manager, body)),
    ]
}

/// Whether each item of the keyed list names both fields of its key.
fn says_whole_keys(body: &Value) -> bool {
    let items = body.pointer("/spec/items").and_then(Value::as_array);
    let mut items = items.into_iter().flatten();
    items.all(|item| item.get("id").is_some() && item.get("kind").is_some())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn apply_is_idempotent(before in prop::option::of(body()), config in body()) {
        let live = before.map(|body| updated(None, &body, "u"));
        let once = applied(live.as_ref(), &config, "a").object;
        let twice = applied(Some(&once), &config, "a");
        prop_assert!(!twice.changed);
        prop_assert_eq!(twice.object, once);
    }

    #[test]
    fn what_is_applied_is_owned_and_covered(before in body(), config in body()) {
        let live = updated(None, &before, "u");
        let object = applied(Some(&live), &config, "a").object;
        let owned = owned_by(&object, &ManagerId::apply("a", ""));
        prop_assert_eq!(&owned, &fields(&config));
        let encoded = owned.to_fields_v1();
        prop_assert!(covers(&encoded, &config));
        prop_assert!(covers_typed(&schema(), &encoded, &config));
        prop_assert_eq!(owned_beyond(&encoded, &config), Vec::<Path>::new());
    }

    #[test]
    fn covers_agrees_with_the_typed_answer(owned in body(), desired in body()) {
        let set = fields(&owned);
        let owned = set.to_fields_v1();
        let exact = covers_typed(&schema(), &owned, &desired);
        prop_assert_eq!(exact, fields(&desired).difference(&set).is_empty());
        let found = covers(&owned, &desired);
        // Only a schema knows which items leave out a part of their key.
        if says_whole_keys(&desired) {
            prop_assert_eq!(found, exact);
        } else {
            prop_assert!(found || !exact);
        }
    }

    #[test]
    fn applying_nothing_removes_exactly_what_was_owned(before in body(), config in body()) {
        let live = updated(None, &before, "u");
        let full = applied(Some(&live), &config, "a").object;
        let nothing = json!({"apiVersion": "test/v1", "kind": "Thing", "metadata": {"name": "x", "namespace": "y"}});
        let left = applied(Some(&full), &nothing, "a").object;
        prop_assume!(!has_null(&left));
        let id = ManagerId::apply("a", "");
        let others = owned_by(&full, &ManagerId::update("u", "test/v1", ""));
        let own = owned_by(&full, &id).difference(&others);
        prop_assert_eq!(fields(&left), fields(&full).difference(&own));
        prop_assert!(owned_by(&left, &id).is_empty());
    }

    #[test]
    fn together_the_managers_own_the_object(steps in prop::collection::vec(step(), 1..6)) {
        let mut live: Option<Value> = None;
        for step in steps {
            let next = match step {
                Step::Apply(manager, config) => applied(live.as_ref(), &config, manager).object,
                Step::Update(manager, object) => updated(live.as_ref(), &object, manager),
            };
            prop_assume!(!has_null(&next));
            let owned = ManagedFields::of(&next).unwrap().union();
            let unowned = fields(&next).leaves().difference(&owned);
            prop_assert!(unowned.is_empty(), "{} of {next}", unowned.to_fields_v1());
            live = Some(next);
        }
    }

    #[test]
    fn an_update_that_changes_nothing_changes_nothing(first in body(), config in body()) {
        let live = applied(Some(&updated(None, &first, "u")), &config, "a").object;
        prop_assert_eq!(updated(Some(&live), &live, "v"), live);
    }

    #[test]
    fn fields_round_trip(set in set()) {
        prop_assert_eq!(&FieldSet::from_fields_v1(&set.to_fields_v1()).unwrap(), &set);
        let text = set.to_fields_v1_json();
        let parsed: Value = serde_json::from_str(&text).unwrap();
        let read = FieldSet::from_fields_v1(&parsed).unwrap();
        prop_assert_eq!(read.to_fields_v1_json(), text);
        prop_assert_eq!(&read, &set);
    }

    #[test]
    fn the_text_of_a_set_has_one_order((set, paths) in set().prop_flat_map(|set| {
        let paths: Vec<Path> = set.iter().collect();
        (Just(set), Just(paths).prop_shuffle())
    })) {
        let text = set.to_fields_v1_json();
        prop_assert_eq!(FieldSet::from_iter(paths.clone()).to_fields_v1_json(), &*text);
        let (front, back) = paths.split_at(paths.len() / 2);
        let [front, back] = [front, back].map(|half| half.iter().cloned().collect::<FieldSet>());
        prop_assert_eq!(back.union(&front).to_fields_v1_json(), text);
    }

    #[test]
    fn what_is_predicted_happens(steps in prop::collection::vec(step(), 0..4), config in body()) {
        let mut live: Option<Value> = None;
        for step in steps {
            live = Some(match step {
                Step::Apply(manager, config) => applied(live.as_ref(), &config, manager).object,
                Step::Update(manager, object) => updated(live.as_ref(), &object, manager),
            });
            prop_assume!(!live.as_ref().is_some_and(has_null));
        }
        let id = ManagerId::apply("a", "");
        let own = |object: &Value| owned_by(object, &id);
        let before = live.as_ref().map(own).unwrap_or_default();
        let done = applied(live.as_ref(), &config, "a");
        match predicted(live.as_ref(), &config, "a") {
            Prediction::NoChange => prop_assert!(!done.changed),
            Prediction::Settled(_) => {
                prop_assert!(done.changed);
                prop_assert_eq!(own(&done.object), before);
            }
            Prediction::Change(change) => {
                prop_assert!(done.changed);
                prop_assert_eq!(change.created, live.is_none());
                let after = before.difference(&change.released).union(&change.gained);
                prop_assert_eq!(own(&done.object), after);
            }
        }
        let again = predicted(Some(&done.object), &config, "a");
        prop_assert!(again.is_no_change() || has_null(&done.object), "{again:?}");
    }

    #[test]
    fn sets_obey_the_laws_of_sets(a in set(), b in set()) {
        let both = a.intersection(&b);
        prop_assert_eq!(&a.difference(&b).union(&both), &a);
        prop_assert_eq!(&both, &b.intersection(&a));
        prop_assert_eq!(&a.union(&b), &b.union(&a));
        prop_assert!(a.difference(&b).intersection(&b).is_empty());
        prop_assert_eq!(a.union(&b).len(), a.len() + b.len() - both.len());
        let paths: BTreeMap<Path, ()> = a.iter().map(|path| (path, ())).collect();
        prop_assert_eq!(paths.len(), a.len());
        prop_assert!(paths.keys().all(|path| a.has(path)));
        for path in a.recursive_difference(&b).iter() {
            prop_assert!((1..=path.0.len()).all(|n| !b.has(&Path(path.0[..n].to_vec()))));
        }
    }
}
