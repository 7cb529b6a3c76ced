//! What the schemas of built-in types say beyond fields and types: what is required,
//! defaults, the values of enumerations, and how lists and maps merge.
//!
//! `further.txt` is held against a live server, and written, by a test of
//! `tests/real`:
//!
//! ```text
//! io.k8s.api.core.v1.Container required=["name"]
//!  imagePullPolicy enum=["Always","IfNotPresent","Never"]
//!  ports list-map-keys=["containerPort","protocol"] list-type=map
//!  ports[] default={}
//! ```
//!
//! A type is followed by its indented fields. Behind a field, `[]` stands for the items
//! of its list and `{}` for the values of its map. What is said is JSON, in which
//! spaces are escaped, or else a plain text; all but the first three words have the
//! prefix `x-kubernetes-` in documents.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

const TEXT: &str = include_str!("further.txt");

/// What stands behind the name of a type, and the lines of its fields.
#[derive(Debug, Default)]
struct Entry {
    own: &'static str,
    fields: Vec<&'static str>,
}

static TABLE: LazyLock<HashMap<&'static str, Entry>> = LazyLock::new(|| {
    let mut table: HashMap<&'static str, Entry> = HashMap::new();
    let mut current = "";
    for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
        if let Some(field) = line.strip_prefix(' ') {
            table.entry(current).or_default().fields.push(field);
        } else {
            let (name, own) = line.split_once(' ').unwrap_or((line, ""));
            current = name;
            table.entry(current).or_default().own = own;
        }
    }
    table
});

/// Adds to the schema of the type `name` what the table says of it; what it has as
/// required is taken from it.
pub(super) fn extend(name: &str, schema: &mut Value) {
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("required");
    }
    let Some(entry) = TABLE.get(name) else {
        return;
    };
    add(schema, entry.own);
    for line in &entry.fields {
        let (place, words) = line.split_once(' ').unwrap_or((line, ""));
        let field = place.trim_end_matches(['[', ']', '{', '}']);
        let mut found = schema
            .get_mut("properties")
            .and_then(|properties| properties.get_mut(field));
        let mut steps = place.get(field.len()..).unwrap_or_default();
        while let Some(rest) = steps.get(2..) {
            let step = match steps.starts_with('[') {
                true => "items",
                false => "additionalProperties",
            };
            found = found.and_then(|schema| schema.get_mut(step));
            steps = rest;
        }
        if let Some(found) = found {
            add(found, words);
        }
    }
}

fn add(schema: &mut Value, words: &str) {
    let said: Map<String, Value> = words
        .split(' ')
        .filter_map(|word| word.split_once('='))
        .map(|(key, value)| {
            let key = match key {
                "required" | "default" | "enum" => key.to_owned(),
                key => format!("x-kubernetes-{key}"),
            };
            let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
            (key, value)
        })
        .collect();
    let Some(schema) = schema.as_object_mut().filter(|_| !said.is_empty()) else {
        return;
    };
    // Nothing may stand beside a reference.
    if let Some(reference) = schema.remove("$ref") {
        schema.insert("allOf".to_owned(), json!([{"$ref": reference}]));
    }
    schema.extend(said);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_table_says_is_added_where_it_belongs() {
        let mut schema = json!({
            "type": "object",
            "required": ["other"],
            "properties": {
                "name": {"type": "string"},
                "imagePullPolicy": {"type": "string"},
                "ports": {"type": "array", "items": {"$ref": "#/components/schemas/Port"}},
                "unheard-of": {"type": "string"},
            },
        });
        extend("io.k8s.api.core.v1.Container", &mut schema);
        assert_eq!(schema["required"], json!(["name"]));
        let fields = &schema["properties"];
        assert_eq!(
            fields["imagePullPolicy"]["enum"],
            json!(["Always", "IfNotPresent", "Never"])
        );
        assert_eq!(fields["ports"]["x-kubernetes-list-type"], "map");
        assert_eq!(
            fields["ports"]["items"],
            json!({"allOf": [{"$ref": "#/components/schemas/Port"}], "default": {}})
        );
        assert_eq!(fields["unheard-of"], json!({"type": "string"}));
    }

    #[test]
    fn every_line_of_the_table_is_read() {
        for (name, entry) in TABLE.iter() {
            for words in std::iter::once(&entry.own).chain(&entry.fields) {
                let words = words.split(' ').filter(|word| !word.is_empty());
                let odd = words.filter(|word| !word.contains('=')).count();
                // The name of the field.
                assert!(odd <= 1, "{name}: {words:?}", words = entry.fields);
            }
        }
        let key_usages = TEXT.lines().find(|line| line.starts_with(" usages[]"));
        assert!(key_usages.unwrap().contains("cert\\u0020sign"));
    }
}
