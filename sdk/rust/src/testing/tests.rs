//! The cluster in memory answers as the host does.

use std::time::Duration;

use super::*;
use crate::ReadRule;
use serde_json::json;

const CONFIG_MAP: Kind = Kind::new("v1", "ConfigMap");
const SECRET: Kind = Kind::new("v1", "Secret");

fn map(namespace: &str, name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name, "namespace": namespace, "labels": labels, "uid": "u",
            "resourceVersion": "7", "generation": 2, "managedFields": [],
        },
        "data": {"a": "1", "b": "2"},
        "status": {"x": 1},
    })
}

fn cluster() -> Context {
    Context::test()
        .with_object(map("b", "one", &json!({"app": "x", "tier": "front"})))
        .with_object(map("a", "two", &json!({"app": "y"})))
        .with_object(map("a", "one", &json!({})))
        .with_object(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "a"}}))
}

fn one() -> ObjectReference {
    CONFIG_MAP.object("one").in_namespace("b")
}

#[test]
fn objects_are_seen_without_bookkeeping_and_status() {
    let seen: Option<Value> = cluster().get(&one()).unwrap();
    let expected = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "one", "namespace": "b", "uid": "u", "labels": {"app": "x", "tier": "front"}},
        "data": {"a": "1", "b": "2"},
    });
    assert_eq!(seen, Some(expected));
}

#[test]
fn parts_are_seen_with_what_names_the_object() {
    let seen: Option<Value> = cluster()
        .get_parts(
            &one(),
            ["/data/a", "/metadata/labels/app", "/status", "/no/such"],
        )
        .unwrap();
    let expected = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "one", "namespace": "b", "uid": "u", "labels": {"app": "x"}},
        "data": {"a": "1"},
        "status": {"x": 1},
    });
    assert_eq!(seen, Some(expected));
    let error = cluster()
        .get_parts::<Value, _>(&one(), ["data"])
        .unwrap_err();
    assert!(matches!(error, ReadError::Invalid(_)));
}

#[test]
fn what_is_not_there_is_none() {
    let cx = cluster();
    for object in [
        CONFIG_MAP.object("one"),
        CONFIG_MAP.object("one").in_namespace("c"),
        SECRET.object("one").in_namespace("b"),
    ] {
        assert_eq!(cx.get::<Value>(&object).unwrap(), None, "{object}");
    }
}

#[test]
fn lists_are_filtered_and_ordered() {
    let all = ["ConfigMap a/one", "ConfigMap a/two", "ConfigMap b/one"];
    for (namespace, selector, expected) in [
        (None, "", &all[..]),
        (Some("a"), "", &all[..2]),
        (None, "app", &all[1..]),
        (None, "!app", &all[..1]),
        (None, "app=x", &all[2..]),
        (None, "app == x , tier=front", &all[2..]),
        (None, "app=x,tier=back", &[]),
        (None, "app!=y", &["ConfigMap a/one", "ConfigMap b/one"]),
        (None, "app in (x, y)", &all[1..]),
        (None, "app notin (x),app", &all[1..2]),
    ] {
        let mut query = Query::of(CONFIG_MAP).selector(selector);
        query.namespace = namespace.map(str::to_owned);
        let cx = cluster();
        let found = cx.list_references(&query).unwrap();
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{selector}");
        assert_eq!(cx.list::<Value>(&query).unwrap().len(), expected.len());
    }
    let long = format!("a={}", "x".repeat(64));
    for selector in [
        "a=b,", "a b", "(x)", "a of (b)", "=x", ",", "!", "a=b/c", "a!=_", &long,
    ] {
        let query = Query::of(CONFIG_MAP).selector(selector);
        assert!(
            matches!(cluster().list::<Value>(&query), Err(ReadError::Invalid(_))),
            "{selector}"
        );
    }
}

#[test]
fn a_later_object_replaces_an_earlier_one() {
    let cx = cluster().with_object(map("b", "one", &json!({"new": "yes"})));
    let labels: Value = cx.get(&one()).unwrap().unwrap();
    assert_eq!(labels["metadata"]["labels"], json!({"new": "yes"}));
}

#[test]
fn reads_fail_as_on_the_host() {
    let query = Query::of(CONFIG_MAP);
    let cx = cluster().without_grant(CONFIG_MAP).without_sync(SECRET);
    assert!(matches!(
        cx.list::<Value>(&query),
        Err(ReadError::Forbidden(_))
    ));
    let secret = SECRET.object("s").in_namespace("a");
    assert!(matches!(
        cx.get::<Value>(&secret),
        Err(ReadError::NotSynced(_))
    ));
    let error = cluster().get::<u8>(&one()).unwrap_err().to_string();
    assert_eq!(
        error,
        "unexpected content of ConfigMap: invalid type: object, expected u8"
    );
}

#[test]
fn a_manifest_bounds_what_may_be_read() {
    let manifest = |rule: ReadRule| Manifest::controller(SECRET).reads(rule);
    let rule = |scope| ReadRule::new(CONFIG_MAP, scope);
    let narrow = Scope::Namespaces(vec!["b".to_owned()]);
    for (declared, get, list_b, list_all) in [
        (manifest(rule(Scope::Cluster)), true, true, true),
        (manifest(rule(narrow)), true, true, false),
        (manifest(rule(Scope::PrimaryNamespace)), true, true, false),
        (
            manifest(rule(Scope::Cluster).names(["one"])),
            true,
            false,
            false,
        ),
        (
            manifest(rule(Scope::Cluster).names(["two"])),
            false,
            false,
            false,
        ),
        (
            manifest(ReadRule::new(SECRET, Scope::Cluster)),
            false,
            false,
            false,
        ),
        (Manifest::controller(CONFIG_MAP), false, false, false),
    ] {
        let cx = cluster().declaring(declared.clone());
        let declares = |error: Option<ReadError>| match error {
            None => true,
            Some(ReadError::Undeclared(_)) => false,
            Some(other) => panic!("{other}"),
        };
        let all = Query::of(CONFIG_MAP);
        assert_eq!(declares(cx.get::<Value>(&one()).err()), get, "{declared:?}");
        assert_eq!(
            declares(cx.list::<Value>(&all.clone().in_namespace("b")).err()),
            list_b,
            "{declared:?}"
        );
        assert_eq!(
            declares(cx.list_references(&all).err()),
            list_all,
            "{declared:?}"
        );
    }
}

/// As the host tells it; see `Selector::is_within` of `reeve-core`.
#[test]
fn a_rule_with_a_selector_covers_narrower_lists() {
    for (selector, declared, expected) in [
        ("app=x", "", true),
        ("", "app=x", false),
        ("app=x", "app", true),
        ("app", "app=x", false),
        ("app in (x,y)", "app", true),
        ("app=x", "app in (x,y)", true),
        ("app in (x,y)", "app=x", false),
        ("app=x", "app!=y", true),
        ("app=x", "app!=x", false),
        ("!app", "app!=x", true),
        ("!app", "!app", true),
        ("app!=x", "!app", false),
        ("app", "!app", false),
        ("app notin (x,y)", "app!=y", true),
        ("app!=y", "app notin (x,y)", false),
        ("app=x,tier=front", "tier,app", true),
        ("app=x", "app,tier", false),
        ("tier=x", "app=x", false),
    ] {
        let rule = ReadRule::new(CONFIG_MAP, Scope::Cluster).selector(declared);
        let cx = cluster().declaring(Manifest::controller(SECRET).reads(rule));
        let found = cx.list_references(&Query::of(CONFIG_MAP).selector(selector));
        assert_eq!(found.is_ok(), expected, "{selector} within {declared}");
    }
}

#[test]
fn the_clock_stands_where_it_was_set() {
    let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
    assert_eq!(Context::test().now(), SystemTime::UNIX_EPOCH);
    assert_eq!(Context::test().at(time).now(), time);
}

#[test]
#[should_panic(expected = "it needs apiVersion, kind and metadata.name")]
fn what_is_no_object_is_refused() {
    let _ = Context::test().with_object(json!({"kind": "ConfigMap"}));
}
