//! Descriptions of buckets: both generations of OPA's data, and the ConfigMap.

use proptest::prelude::*;
use reeve_sdk::prelude::*;

use crate::bucket::{Access, Bucket, Described, Unreadable, Which, of_config_map, of_opa};

fn bucket(name: &str, container: &str, folder: &str) -> Bucket {
    Bucket {
        name: name.to_owned(),
        container: container.to_owned(),
        folder: folder.to_owned(),
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
    let expected = all([bucket("b1", "b1", ""), bucket("b2", "b2", "")]);
    assert_eq!(of_opa(&first.to_string()), expected);
    let second = json!({"result": {
        "b": {"Readers": ["alice"], "WRITERS": [], "SPN": "sp", "Name": "wbd"},
        "b/x/y": {"readers": ["alice"], "writers": [], "spn": "sp", "name": "deep"},
        "httpapi": 1,
    }});
    assert_eq!(
        of_opa(&second.to_string()),
        all([
            named(bucket("b", "b", ""), "wbd"),
            named(bucket("b/x/y", "b", "x/y"), "deep")
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

/// What is told of an entry, with container, folder, label and readers as far as they
/// are known.
fn unreadable(problem: &str, which: [Option<&str>; 3], readers: Option<&[&str]>) -> Unreadable {
    let [container, folder, label] = which.map(|text| text.map(str::to_owned));
    let own = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    Unreadable {
        problem: problem.to_owned(),
        which: Which {
            container,
            folder,
            label,
        },
        readers: readers.map(own),
    }
}

#[test]
fn an_entry_that_cannot_be_read_is_named_and_costs_no_other() {
    let answer = json!({"result": {
        "a/x": 1,
        "b": {"readers": ["alice"]},
        "c": {"readers": "alice", "name": "p"},
        "d": {"writers": [1], "readers": ["alice"]},
        "e": {"spn": true, "READERS": []},
        "f": null,
        "g": {"name": 1, "readers": null},
    }});
    let found = of_opa(&answer.to_string()).unwrap();
    assert_eq!(found.buckets, [bucket("b", "b", "")]);
    let none: &[&str] = &[];
    let alice: &[&str] = &["alice"];
    assert_eq!(
        found.unreadable,
        [
            unreadable("a/x: no object", [Some("a"), Some("x"), Some("a/x")], None),
            unreadable(
                "c: readers is no array of namespaces",
                [Some("c"), Some(""), Some("p")],
                None
            ),
            unreadable(
                "d: writers is no array of namespaces",
                [Some("d"), Some(""), Some("d")],
                Some(alice)
            ),
            unreadable(
                "e: spn is no text",
                [Some("e"), Some(""), Some("e")],
                Some(none)
            ),
            unreadable("f: no object", [Some("f"), Some(""), Some("f")], None),
            unreadable("g: name is no text", [Some("g"), Some(""), None], None),
        ]
    );
    let items = json!([
        1,
        {"pvName": "p", "readers": ["alice"]},
        {"bucketName": "b", "readers": ["alice"]},
        {"bucketName": "c", "subfolder": 1, "spn": 1, "readers": ["alice"]},
        {"bucketName": "d/x", "subfolder": "y", "pvName": 1},
        {"bucketName": 5},
    ]);
    let found = of_config_map(&items.to_string()).unwrap();
    assert_eq!(found.buckets, [bucket("b", "b", "")]);
    assert_eq!(
        found.unreadable,
        [
            unreadable("item 0: no object", [None; 3], None),
            unreadable(
                "item 1: no bucketName",
                [None, None, Some("p")],
                Some(alice)
            ),
            unreadable(
                "item 3: c: subfolder is no text; spn is no text",
                [Some("c"), None, Some("c")],
                Some(alice)
            ),
            unreadable(
                "item 4: d/x: the name says folder x, and subfolder says y; say it once; pvName is no \
                 text",
                [Some("d"), None, None],
                None
            ),
            unreadable("item 5: bucketName is no text", [None; 3], None),
        ]
    );
}

#[test]
fn the_configmap_says_folders_on_their_own() {
    let entry = |name: &str, folder: Value| json!([{"bucketName": name, "pvName": "p", "subfolder": folder, "readers": ["alice"], "spn": "sp"}]);
    for (name, folder, expected) in [
        ("b", json!("s"), "s"),
        ("b", json!(""), ""),
        ("b", json!(null), ""),
        ("b/x/y", json!(""), "x/y"),
        ("b/x", json!("x"), "x"),
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
            ..bucket("b", "b", "")
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
