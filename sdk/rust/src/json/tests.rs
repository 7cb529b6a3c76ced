//! The reader against `serde_json`.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::from_slice;

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Everything {
    text: String,
    flag: bool,
    small: u8,
    signed: Option<i32>,
    real: f64,
    list: Vec<Choice>,
    map: BTreeMap<String, Value>,
    pair: (u8, char),
    wrapped: Wrapped,
    nothing: (),
}

#[derive(Debug, Deserialize, PartialEq)]
struct Wrapped(u64);

#[derive(Debug, Deserialize, PartialEq)]
enum Choice {
    Unit,
    One(u8),
    Two(u8, u8),
    Named { a: u8 },
}

fn everything() -> Value {
    json!({
        "text": "a\"b\\c/d\u{8}\u{c}\n\r\t é \u{1f600}",
        "flag": true,
        "small": 255,
        "signed": -7,
        "real": 1.5e3,
        "list": ["Unit", {"One": 1}, {"Two": [1, 2]}, {"Named": {"a": 3}}],
        "map": {"x": [null, {"y": false}], "": 0},
        "pair": [1, "z"],
        "wrapped": u64::MAX,
        "nothing": null,
    })
}

#[test]
fn every_kind_of_type_reads_like_serde_json() {
    let value = everything();
    for text in [
        value.to_string(),
        serde_json::to_string_pretty(&value).unwrap(),
    ] {
        let read: Everything = from_slice(text.as_bytes()).unwrap();
        assert_eq!(read, serde_json::from_str(&text).unwrap());
    }
}

#[test]
fn errors_name_the_place() {
    for (path, value, expected) in [
        (
            "/small",
            json!(256),
            "/small: invalid value: number 256, expected u8",
        ),
        (
            "/small",
            json!("1"),
            "/small: invalid type: string \"1\", expected u8",
        ),
        (
            "/small",
            json!(1.5),
            "/small: invalid type: number with a fraction or exponent, expected u8",
        ),
        (
            "/signed",
            json!([]),
            "/signed: invalid type: list, expected i32",
        ),
        (
            "/text",
            json!(5),
            "/text: invalid type: number, expected a string",
        ),
        (
            "/text",
            json!(null),
            "/text: invalid type: null, expected a string",
        ),
        (
            "/flag",
            json!({}),
            "/flag: invalid type: object, expected a boolean",
        ),
        (
            "/real",
            json!(false),
            "/real: invalid type: false, expected f64",
        ),
        (
            "/list/0",
            json!(true),
            "/list/0: invalid type: true, expected enum Choice",
        ),
        (
            "/list/3/Named/a",
            json!(-1),
            "/list/3/Named/a: invalid value: number -1, expected u8",
        ),
        (
            "/list/0",
            json!("None"),
            "/list/0: unknown variant `None`, expected one of `Unit`, `One`, `Two`, `Named`",
        ),
        (
            "/map",
            json!([1]),
            "/map: invalid type: list, expected a map",
        ),
    ] {
        let mut object = everything();
        *object.pointer_mut(path).unwrap() = value;
        let error = from_slice::<Everything>(object.to_string().as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn missing_and_unknown_fields_name_the_object() {
    #[derive(Debug, Deserialize)]
    struct Outer {
        #[expect(dead_code, reason = "only read")]
        inner: BTreeMap<String, Inner>,
    }
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[expect(dead_code, reason = "only read")]
        a: u8,
    }
    for (text, expected) in [
        (r#"{}"#, "missing field `inner`"),
        (
            r#"{"inner": {"x/y~": {}}}"#,
            "/inner/x~1y~0: missing field `a`",
        ),
        (
            r#"{"inner": {"x": {"b": 1}}}"#,
            "/inner/x/b: unknown field `b`, expected `a`",
        ),
    ] {
        let error = from_slice::<Outer>(text.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn what_is_no_json_is_refused() {
    for text in [
        "",
        " ",
        "nul",
        "tru",
        "{",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "\"",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"\n\"",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "1 2",
        "--1",
        "1e400",
        "NaN",
    ] {
        assert!(serde_json::from_str::<Value>(text).is_err(), "{text}");
        assert!(from_slice::<Value>(text.as_bytes()).is_err(), "{text}");
    }
    assert!(from_slice::<Value>(b"\"\xff\"").is_err());
    // Also where the value is of no interest.
    for text in ["[1,]", "{\"a\":}", "[01]", "{\"a\" 1}"] {
        assert!(
            from_slice::<serde::de::IgnoredAny>(text.as_bytes()).is_err(),
            "{text}"
        );
    }
}

#[test]
fn deep_nesting_is_an_error_and_no_overflow() {
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(from_slice::<Value>(deep(128).as_bytes()).is_ok());
    for levels in [129, 100_000] {
        assert!(from_slice::<Value>(deep(levels).as_bytes()).is_err());
        assert!(from_slice::<serde::de::IgnoredAny>(deep(levels).as_bytes()).is_err());
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(".*", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

#[test]
fn strings_end_where_they_end() {
    for before in 0..20 {
        for (inside, read) in [
            ("", Some("")),
            ("\u{7f}\u{80}é", Some("\u{7f}\u{80}é")),
            (r#"\""#, Some("\"")),
            (r"\\", Some("\\")),
            (r"\u0041", Some("A")),
            ("\u{1f}", None),
            ("\n", None),
            ("\0", None),
        ] {
            for after in [0, 1, 7, 8, 9] {
                let (before, after) = ("x".repeat(before), "y".repeat(after));
                let json = format!("[\"{before}{inside}{after}\", \"next\"]");
                let found = from_slice::<Vec<String>>(json.as_bytes()).ok();
                let expected = read.map(|read| format!("{before}{read}{after}"));
                assert_eq!(
                    found,
                    expected.map(|text| vec![text, "next".to_owned()]),
                    "{json}"
                );
            }
        }
    }
}

proptest! {
    #[test]
    fn any_value_reads_as_it_was_written(value in values()) {
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            prop_assert_eq!(from_slice::<Value>(text.as_bytes()).unwrap(), value.clone());
            prop_assert!(from_slice::<serde::de::IgnoredAny>(text.as_bytes()).is_ok());
        }
    }

    #[test]
    fn any_text_is_judged_as_serde_json_does(text in r#"[\[\]{},:"\\ue0-9.\-+ntrfals]{0,12}"#) {
        let ours = from_slice::<Value>(text.as_bytes());
        match serde_json::from_str::<Value>(&text) {
            Ok(value) => prop_assert_eq!(ours.unwrap(), value),
            Err(_) => prop_assert!(ours.is_err()),
        }
    }
}
