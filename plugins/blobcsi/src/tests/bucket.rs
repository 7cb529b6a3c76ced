//! Descriptions of buckets: both generations of OPA's data, and the ConfigMap.

use proptest::prelude::*;
use reeve_sdk::prelude::*;

use crate::bucket::{Access, Bucket, Described, of_config_map, of_opa};

fn bucket(name: &str, container: &str, folder: Option<&str>) -> Bucket {
    Bucket {
        name: name.to_owned(),
        container: container.to_owned(),
        folder: folder.map(str::to_owned),
        label: None,
        principal: None,
        readers: vec!["alice".to_owned()],
        writers: Vec::new(),
    }
}

fn named(bucket: Bucket, label: &str) -> Bucket {
    Bucket {
        label: Some(label.to_owned()),
        principal: Some("sp".to_owned()),
        ..bucket
    }
}

fn all(buckets: impl IntoIterator<Item = Bucket>) -> Result<Described, String> {
    Ok(Described {
        buckets: buckets.into_iter().collect(),
        unreadable: Vec::new(),
    })
}

#[test]
fn both_generations_of_opas_data_are_read() {
    let first = json!({"result": {
        "b2": {"readers": ["alice"], "writers": null},
        "b1": {"readers": ["alice"]},
        "httpapi": {"authz": {}},
    }, "decision_id": "1"});
    let expected = all([bucket("b1", "b1", None), bucket("b2", "b2", None)]);
    assert_eq!(of_opa(&first.to_string()), expected);
    let second = json!({"result": {
        "b": {"Readers": ["alice"], "WRITERS": [], "SPN": "sp", "Name": "wbd"},
        "b/x/y": {"readers": ["alice"], "writers": [], "spn": "sp", "name": "deep"},
        "httpapi": 1,
    }});
    assert_eq!(
        of_opa(&second.to_string()),
        all([
            named(bucket("b", "b", None), "wbd"),
            named(bucket("b/x/y", "b", Some("x/y")), "deep")
        ])
    );
    assert_eq!(of_opa(r#"{"result": {}}"#), all([]));
}

#[test]
fn a_document_that_is_none_says_why() {
    for (text, error) in [
        ("", "no JSON: "),
        ("<html>", "no JSON: "),
        (
            "[]",
            "no object under `result`; ask for /v1/data of the gateway",
        ),
        (
            "{}",
            "no object under `result`; ask for /v1/data of the gateway",
        ),
        (r#"{"result": null}"#, "no object under `result`"),
        (r#"{"result": [1]}"#, "no object under `result`"),
    ] {
        let found = of_opa(text).unwrap_err();
        assert!(found.starts_with(error), "{text}: {found}");
    }
    for (text, error) in [
        ("{", "no JSON: "),
        ("{}", "no array of buckets"),
        ("null", "no array of buckets"),
    ] {
        let found = of_config_map(text).unwrap_err();
        assert!(found.starts_with(error), "{text}: {found}");
    }
}

#[test]
fn an_entry_that_cannot_be_read_is_named_and_costs_no_other() {
    let answer = json!({"result": {
        "a": 1,
        "b": {"readers": ["alice"]},
        "c": {"readers": "alice"},
        "d": {"writers": [1]},
        "e": {"spn": true},
        "f": null,
    }});
    let found = of_opa(&answer.to_string()).unwrap();
    assert_eq!(found.buckets, [bucket("b", "b", None)]);
    assert_eq!(
        found.unreadable,
        [
            "a: no object",
            "c: readers is no array of namespaces",
            "d: writers is no array of namespaces",
            "e: spn is no text",
            "f: no object",
        ]
    );
    let items = json!([
        1,
        {"pvName": "p"},
        {"bucketName": "b", "readers": ["alice"]},
        {"bucketName": "c", "subfolder": 1},
        {"bucketName": "d/x", "subfolder": "y"},
        {"bucketName": 5},
    ]);
    let found = of_config_map(&items.to_string()).unwrap();
    assert_eq!(found.buckets, [bucket("b", "b", None)]);
    assert_eq!(
        found.unreadable,
        [
            "item 0: no object",
            "item 1: no bucketName",
            "item 3: c: subfolder is no text",
            "item 4: d/x: the name says folder x, and subfolder says y; say it once",
            "item 5: bucketName is no text",
        ]
    );
}

#[test]
fn the_configmap_says_folders_on_their_own() {
    let entry = |name: &str, folder: Value| json!([{"bucketName": name, "pvName": "p", "subfolder": folder, "readers": ["alice"], "spn": "sp"}]);
    for (name, folder, expected) in [
        ("b", json!("s"), Some("s")),
        ("b", json!(""), None),
        ("b", json!(null), None),
        ("b/x/y", json!(""), Some("x/y")),
        ("b/x", json!("x"), Some("x")),
    ] {
        let found = of_config_map(&entry(name, folder).to_string());
        assert_eq!(
            found,
            all([named(bucket(name, "b", expected), "p")]),
            "{name}"
        );
    }
}

#[test]
fn who_may_write_but_not_read_may_nothing() {
    for (readers, writers, access) in [
        (vec!["alice"], vec![], Some(Access::Read)),
        (vec!["alice"], vec!["bob", "alice"], Some(Access::ReadWrite)),
        (vec![], vec!["alice"], None),
        (vec!["bob", "Alice", "alice "], vec!["bob"], None),
    ] {
        let own = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        let bucket = Bucket {
            readers: own(readers),
            writers: own(writers),
            ..bucket("b", "b", None)
        };
        assert_eq!(bucket.access("alice"), access, "{bucket:?}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}") {
        let _ = of_opa(&text);
        let _ = of_config_map(&text);
    }

    #[test]
    fn every_entry_is_a_bucket_or_is_named(
        names in proptest::collection::vec("[a-z/]{0,5}", 0..6),
        readers in "[a-z\"\\[\\]{}:,0-9]{0,12}",
    ) {
        let readers = readers.parse::<Value>().unwrap_or(Value::Null);
        let items: Vec<_> = names
            .iter()
            .map(|name| json!({"bucketName": name, "readers": readers}))
            .collect();
        let found = of_config_map(&json!(items).to_string()).unwrap();
        prop_assert_eq!(found.buckets.len() + found.unreadable.len(), names.len());
    }
}
