//! What holds of any list.

use std::collections::BTreeMap;

use proptest::prelude::*;
use reeve_sdk::names::check_label_value;
use reeve_sdk::prelude::*;

use super::{deployments, list, listing, made, package, run, sha};

/// Any JSON.
fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let keys = prop_oneof![
            Just("data"),
            Just("totalCount"),
            Just("id"),
            Just("model"),
            Just("predictionEnvironment"),
            Just("x/y")
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keys.prop_map(str::to_owned), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// One of these, or anything.
fn or_odd(values: Vec<Value>) -> impl Strategy<Value = Value> {
    prop_oneof![9 => prop::sample::select(values), 1 => json_values()]
}

fn entries() -> impl Strategy<Value = Value> {
    let texts = |texts: &[&str]| texts.iter().map(|text| json!(text)).collect::<Vec<_>>();
    let id = or_odd(texts(&["a", "A", "b-1", "b_1", "17", "", "a.b", "c"]));
    let status = or_odd(texts(&["active", "stopping", "archived"]));
    let model = or_odd(texts(&["m1", "m2", "m9", "-"]));
    let package = or_odd(vec![
        Value::Null,
        package('1'),
        json!({"url": "https://a/b"}),
        json!({"url": "no", "sha256": sha('1')}),
    ]);
    let environment = or_odd(texts(&["env", "env", "env", "other"]));
    (id, status, model, package, environment).prop_map(
        |(id, status, model, package, environment)| {
            json!({
                "id": id, "status": status, "model": {"id": model}, "package": package,
                "predictionEnvironment": {"id": environment},
            })
        },
    )
}

fn config() -> Value {
    let mut config = super::config();
    config["supervisor"]["fields"] =
        json!({"packageUrl": "/package/url", "packageSha256": "/package/sha256"});
    config
}

/// A cluster with ModelDeployments of these names.
fn there(names: &[&str], page: &Value) -> Context {
    let cx = listing(std::slice::from_ref(page));
    names
        .iter()
        .fold(cx, |cx, name| cx.with_object(made(name, name, '7')))
}

/// Whether the plugin `models` takes it.
fn check(object: &Value) {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap();
    let name = text("/metadata/name");
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    assert!(name.len() <= 52 && name.bytes().all(fits), "{name}");
    assert!(name.starts_with(|char: char| char.is_ascii_lowercase()) && !name.ends_with('-'));
    assert!(check_label_value(text("/spec/deploymentId")).is_ok());
    assert!(!text("/spec/deploymentId").contains('.'));
    assert!(!text("/spec/model/id").starts_with('-'));
    assert_eq!(text("/spec/model/package/sha256").len(), 64);
    assert!(text("/spec/model/package/url").starts_with("http"));
}

proptest! {
    #[test]
    fn any_document_gives_an_answer_or_a_named_error(document in json_values()) {
        match run(&config(), there(&["a"], &document)) {
            Ok(outcome) => deployments(&outcome).iter().for_each(check),
            Err(failure) => {
                let text = failure.to_string();
                prop_assert!(matches!(failure, Failure::Retry(_)), "{text}");
                prop_assert!(text.starts_with("https://app.datarobot.com/api/v2/deployments/: "), "{text}");
            }
        }
    }

    #[test]
    fn any_text_gives_an_answer_or_a_named_error(text in ".{0,40}") {
        let cx = listing(&[]).with_source("deployments-1", text);
        if let Err(failure) = run(&config(), cx) {
            prop_assert!(matches!(failure, Failure::Retry(_)), "{failure}");
        }
    }

    #[test]
    fn any_index_gives_an_answer_or_a_named_error(index in json_values()) {
        let cx = listing(&[list(&[super::entry("id")])]).with_source("packages", index.to_string());
        match run(&config(), cx) {
            Ok(outcome) => deployments(&outcome).iter().for_each(check),
            Err(failure) => prop_assert!(matches!(failure, Failure::Retry(_)), "{failure}"),
        }
    }

    #[test]
    fn what_is_listed_is_made_as_it_should_be_or_stays_as_it_is(
        entries in prop::collection::vec(entries(), 0..8),
        live in prop::sample::subsequence(vec!["a", "b-1", "c", "gone"], 0..=4),
    ) {
        // Each id once, as in a list that is whole.
        let mut whole: BTreeMap<String, Value> = BTreeMap::new();
        for (index, entry) in entries.iter().enumerate() {
            let key = match &entry["id"] {
                Value::String(text) if !text.is_empty() => text.clone(),
                Value::Number(number) if !number.is_f64() => number.to_string(),
                _ => format!("\0{index}"),
            };
            whole.insert(key, entry.clone());
        }
        let whole: Vec<Value> = whole.into_values().collect();
        let outcome = run(&config(), there(&live, &list(&whole))).unwrap();
        let again = run(&config(), there(&live, &list(&whole))).unwrap();
        prop_assert_eq!(&outcome, &again);
        let made = deployments(&outcome);
        made.iter().for_each(check);
        let names: Vec<&str> = made.iter().map(|one| one["metadata"]["name"].as_str().unwrap()).collect();
        prop_assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        // What is there and listed, in whatever state, is never withdrawn.
        for entry in &whole {
            let of_it = entry.pointer("/predictionEnvironment/id") == Some(&json!("env"));
            let id = entry["id"].as_str().unwrap_or_default();
            if of_it && live.contains(&id) {
                prop_assert!(names.contains(&id), "{id}: {names:?}");
            }
        }
    }
}
