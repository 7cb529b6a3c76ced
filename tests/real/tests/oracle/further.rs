//! The table of what schemas say beyond fields and types, from a server's OpenAPI v3
//! documents.
//!
//! The grammar of the table is described in `host/sim/src/types/further.rs`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// What is taken from a schema, in this order, as documents name it.
const WORDS: &[&str] = &[
    "required",
    "default",
    "enum",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-unions",
];

/// The text of the table. Lists of objects are all alike, and not in it.
pub(crate) fn render(components: &Map<String, Value>) -> String {
    let mut out = String::from(
        "# What schemas of built-in types say beyond fields and types; written by a test of tests/real, do not edit.\n",
    );
    let sorted: BTreeMap<_, _> = components.iter().collect();
    for (name, schema) in sorted {
        let none = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&none);
        let has = |field: &str| properties.contains_key(field);
        if name.ends_with("List") && has("items") && has("metadata") {
            continue;
        }
        let mut fields = String::new();
        for (field, schema) in properties.iter().collect::<BTreeMap<_, _>>() {
            describe(field, schema, &mut fields);
        }
        let own = words(schema);
        if !own.is_empty() || !fields.is_empty() {
            out.push_str(&format!("{name}{own}\n{fields}"));
        }
    }
    out
}

/// The line of a field, and those of what is in it.
fn describe(place: &str, schema: &Value, out: &mut String) {
    let words = words(schema);
    if !words.is_empty() {
        out.push_str(&format!(" {place}{words}\n"));
    }
    for (below, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(found) = schema.get(below).filter(|found| found.is_object()) {
            describe(&format!("{place}{mark}"), found, out);
        }
    }
}

/// All words of a schema, each after a space.
fn words(schema: &Value) -> String {
    let word = |key: &&&str| {
        let key = **key;
        let mut value = schema.get(key)?.clone();
        if let Some(names) = value.as_array_mut().filter(|_| key == "required") {
            names.sort_by_key(ToString::to_string);
        }
        let short = key.trim_start_matches("x-kubernetes-");
        let value = match value {
            Value::String(text) if !matches!(key, "default" | "enum") => text,
            value => value.to_string().replace(' ', "\\u0020"),
        };
        Some(format!(" {short}={value}"))
    };
    WORDS.iter().filter_map(|key| word(&key)).collect()
}
