//! The schema says what the reader accepts.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::{config, json as reader};

/// All that a configuration may hold.
#[config]
#[derive(Default)]
struct Everything {
    /// The "name".
    ///
    /// More\about it.
    display_name: String,
    flag: bool,
    small: u8,
    signed: i16,
    big: u64,
    real: f64,
    maybe: Option<String>,
    list: Vec<Inner>,
    map: BTreeMap<String, Option<u32>>,
    /// Where it stands.
    inner: Inner,
    mode: Mode,
    r#type: Mode,
}

/// What it is.
#[config]
#[derive(Default)]
struct Inner {
    cpu: String,
}

/// How it goes.
#[config]
#[derive(Default)]
enum Mode {
    #[default]
    OnRequest,
    /// Always.
    Auto,
}

fn schema() -> Value {
    serde_json::from_slice(&Everything::SCHEMA.to_json()).unwrap()
}

#[test]
fn the_schema_names_and_describes_every_field() {
    let mode = json!({"description": "How it goes.", "enum": ["OnRequest", "Auto"]});
    let inner = |description: &str| {
        json!({
            "description": description,
            "type": "object",
            "additionalProperties": false,
            "properties": {"cpu": {"type": "string"}},
        })
    };
    let expected = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "description": "All that a configuration may hold.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "displayName": {"description": "The \"name\".\nMore\\about it.", "type": "string"},
            "flag": {"type": "boolean"},
            "small": {"type": "integer", "minimum": 0, "maximum": 255},
            "signed": {"type": "integer", "minimum": -32768, "maximum": 32767},
            "big": {"type": "integer", "minimum": 0, "maximum": u64::MAX},
            "real": {"type": "number"},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "list": {"type": "array", "items": inner("What it is.")},
            "map": {"type": "object", "additionalProperties": {
                "anyOf": [{"type": "integer", "minimum": 0, "maximum": u32::MAX}, {"type": "null"}],
            }},
            "inner": inner("Where it stands."),
            "mode": mode,
            "type": mode,
        },
    });
    assert_eq!(schema(), expected);
}

#[test]
fn the_schema_accepts_what_the_reader_accepts() {
    let schema = jsonschema::validator_for(&schema()).unwrap();
    for (config, accepted) in [
        (json!({}), true),
        (
            json!({"displayName": "x", "flag": true, "small": 255, "signed": -32768}),
            true,
        ),
        (
            json!({"big": u64::MAX, "real": -1.5e3, "maybe": null}),
            true,
        ),
        (json!({"real": 2}), true),
        (
            json!({"maybe": "x", "list": [{"cpu": "1"}, {}], "map": {"a": 1, "b": null}}),
            true,
        ),
        (
            json!({"inner": {}, "mode": "Auto", "type": "OnRequest"}),
            true,
        ),
        (json!([]), false),
        (json!(null), false),
        (json!({"display_name": "x"}), false),
        (json!({"displayName": 1}), false),
        (json!({"displayName": null}), false),
        (json!({"flag": "true"}), false),
        (json!({"small": 256}), false),
        (json!({"small": -1}), false),
        (json!({"small": 1.5}), false),
        (json!({"small": "1"}), false),
        (json!({"signed": 40000}), false),
        (json!({"maybe": 1}), false),
        (json!({"list": {}}), false),
        (json!({"list": [{"cpu": 1}]}), false),
        (json!({"map": {"a": -1}}), false),
        (json!({"inner": {"memory": "1"}}), false),
        (json!({"mode": "auto"}), false),
        (json!({"mode": {"Auto": 1}}), false),
        (json!({"type": null}), false),
    ] {
        assert_eq!(schema.is_valid(&config), accepted, "schema: {config}");
        let read = reader::from_slice::<Everything>(config.to_string().as_bytes());
        assert_eq!(read.is_ok(), accepted, "reader: {config}");
    }
}

/// A choice that is written in lower case.
#[config(lowercase)]
#[derive(Default, Debug, PartialEq)]
enum Preset {
    #[default]
    Readme,
    Main,
}

#[test]
fn a_choice_may_be_written_in_lower_case() {
    let schema: Value = serde_json::from_slice(&Preset::SCHEMA.to_json()).unwrap();
    assert_eq!(schema["enum"], json!(["readme", "main"]));
    assert_eq!(
        reader::from_slice::<Preset>(b"\"main\"").unwrap(),
        Preset::Main
    );
    assert!(reader::from_slice::<Preset>(b"\"Main\"").is_err());
}

#[test]
fn any_json_is_accepted_as_it_is() {
    #[config]
    #[derive(Default)]
    struct Free {
        /// What another program reads.
        any: Value,
        list: Vec<Value>,
    }
    let schema: Value = serde_json::from_slice(&Free::SCHEMA.to_json()).unwrap();
    assert_eq!(
        schema["properties"],
        json!({
            "any": {"description": "What another program reads."},
            "list": {"type": "array", "items": {}},
        })
    );
    let text = br#"{"any": {"a": [1, null, "b"]}, "list": [true, {}]}"#;
    let free: Free = reader::from_slice(text).unwrap();
    assert_eq!(free.any, json!({"a": [1, null, "b"]}));
    assert_eq!(free.list, [json!(true), json!({})]);
}
