//! The kinds of objects that are generated.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Result;
use reeve_ssa::{Schema, Version, builtin};
use serde_json::{Map, Value, json};

use crate::random::Random;

/// A kind of object, with the schemas from which objects are made.
pub(crate) struct Kind {
    /// The oracle's name for it.
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) versions: Vec<KindVersion>,
}

/// One version of a kind.
pub(crate) struct KindVersion {
    pub(crate) api_version: String,
    pub(crate) json: Value,
    pub(crate) schema: Schema,
}

impl Kind {
    pub(crate) fn is_custom(&self) -> bool {
        self.name != BUILT_IN
    }

    /// The version of this name, or the first.
    pub(crate) fn version(&self, api_version: &str) -> &KindVersion {
        let mut versions = self.versions.iter();
        versions
            .find(|version| version.api_version == api_version)
            .unwrap_or(&self.versions[0])
    }

    /// All versions but one.
    pub(crate) fn others(&self, own: &KindVersion) -> Vec<Version<'_>> {
        let versions = self.versions.iter();
        versions
            .filter(|version| version.api_version != own.api_version)
            .map(|version| Version {
                api_version: &version.api_version,
                schema: &version.schema,
                conversion: None,
            })
            .collect()
    }

    /// What the server does to an object that its library leaves alone: metadata
    /// loses empty fields on the way to the store.
    pub(crate) fn store(&self, object: &mut Value) {
        let version = self.version(object["apiVersion"].as_str().unwrap_or_default());
        if object.is_object() {
            version.schema.normalize(object);
        }
    }

    /// `spec.versions` of the definition; null without a schema.
    pub(crate) fn definition(&self) -> Value {
        let one = |(index, version): (usize, &KindVersion)| {
            let (_, name) = version.api_version.rsplit_once('/')?;
            (!version.json.is_null()).then(|| {
                json!({
                    "name": name, "served": true, "storage": index == 0,
                    "schema": {"openAPIV3Schema": version.json},
                })
            })
        };
        let versions: Option<Vec<Value>> = self.versions.iter().enumerate().map(one).collect();
        versions.into()
    }
}

/// The oracle's name for all kinds in a server's documents.
const BUILT_IN: &str = "built-in";

/// Custom resources that have everything in their schema, or nothing.
pub(crate) fn custom() -> Result<Vec<Kind>> {
    let mut kinds: BTreeMap<&str, Kind> = BTreeMap::new();
    for (name, version, json) in schemas() {
        let schema = match &json {
            Value::Null => Schema::untyped(),
            json => Schema::from_crd(json)?,
        };
        let kind = kinds.entry(name).or_insert_with(|| Kind {
            name: name.to_owned(),
            kind: "Thing".to_owned(),
            versions: Vec::new(),
        });
        kind.versions.push(KindVersion {
            api_version: format!("test/{version}"),
            json,
            schema,
        });
    }
    Ok(kinds.into_values().collect())
}

/// Custom resources whose schemas are made at random. They nest what those that are
/// written here have side by side, and a field has few names and values, so that managers
/// meet on it.
pub(crate) fn random(random: &mut Random, count: usize) -> Result<Vec<Kind>> {
    (0..count)
        .map(|number| {
            let json = random.resource();
            Ok(Kind {
                name: format!("random-{number}"),
                kind: "Thing".to_owned(),
                versions: vec![KindVersion {
                    api_version: "test/v1".to_owned(),
                    schema: Schema::from_crd(&json)?,
                    json,
                }],
            })
        })
        .collect()
}

/// Every kind of the table of built-in types that the server has, too.
pub(crate) fn built_in(folder: &Path) -> Result<Vec<Kind>> {
    let mut out = Vec::new();
    for (name, json) in components(folder)? {
        let gvk = &json["x-kubernetes-group-version-kind"][0];
        let text = |key: &str| gvk[key].as_str().unwrap_or_default().to_owned();
        let (group, version, kind) = (text("group"), text("version"), text("kind"));
        let Some(schema) = builtin::schema(&group, &version, &kind) else {
            continue;
        };
        let api_version = match group.as_str() {
            "" => version,
            _ => format!("{group}/{version}"),
        };
        out.push(Kind {
            name: BUILT_IN.to_owned(),
            kind,
            versions: vec![KindVersion {
                api_version,
                json: json!({"$ref": format!("#/components/schemas/{name}")}),
                schema: schema.clone(),
            }],
        });
    }
    Ok(out)
}

/// The component schemas of all documents. A type that several documents carry is
/// the same in each.
pub(crate) fn components(folder: &Path) -> Result<Map<String, Value>> {
    let mut out = Map::new();
    for entry in fs::read_dir(folder)? {
        let document: Value = serde_json::from_slice(&fs::read(entry?.path())?)?;
        if let Some(schemas) = document["components"]["schemas"].as_object() {
            out.extend(schemas.clone());
        }
    }
    Ok(out)
}

fn schemas() -> Vec<(&'static str, &'static str, Value)> {
    let text = json!({"type": "string"});
    let leaf = json!({"type": "object", "properties": {"a": text, "b": {"type": "integer"}}});
    let item = json!({"type": "object", "properties": {
        "id": {"type": "integer"},
        "kind": {"type": "string", "default": "x"},
        "value": text,
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "more": leaf,
        "map": {"type": "object", "additionalProperties": leaf},
    }});
    let fields = json!({
        "text": text,
        "number": {"type": "number"},
        "flag": {"type": "boolean"},
        "either": {"x-kubernetes-int-or-string": true},
        "map": {"type": "object", "additionalProperties": text},
        "structs": {"type": "object", "additionalProperties": leaf},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": text},
        "struct": leaf,
        "list": {"type": "array", "items": leaf},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "numbers": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}},
        "items": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["id", "kind"], "items": item},
        "names": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": text, "value": text}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "half": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"known": leaf}},
        "any": {"x-kubernetes-preserve-unknown-fields": true},
        "atom": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": text, "b": leaf}},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true},
        "template": {"type": "object", "x-kubernetes-embedded-resource": true,
            "properties": {"spec": leaf, "metadata": {"type": "object"}}},
        "nested": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {
                "name": text,
                "ports": {"type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port"],
                    "items": {"type": "object", "properties": {
                        "port": {"type": "integer", "default": 1}, "value": text}}},
            }}},
    });
    let typed = |spec: &Value| {
        json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": spec},
            "status": {"type": "object", "properties": {"phase": text, "items": fields["items"]}},
        }})
    };
    // The same objects, in other terms: what was one field is many, and the other
    // way round.
    let mut other = fields.clone();
    for (name, extension, value) in [
        ("map", "x-kubernetes-map-type", "atomic"),
        ("whole", "x-kubernetes-map-type", "granular"),
        ("set", "x-kubernetes-list-type", "atomic"),
        ("list", "x-kubernetes-list-type", "atomic"),
        ("names", "x-kubernetes-list-type", "atomic"),
        ("struct", "x-kubernetes-map-type", "atomic"),
    ] {
        other[name][extension] = value.into();
    }
    vec![
        ("typed", "v1", typed(&fields)),
        ("versions", "v1", typed(&fields)),
        ("versions", "v2", typed(&other)),
        (
            "flat",
            "v1",
            json!({"type": "object", "properties": fields}),
        ),
        (
            "open",
            "v1",
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"spec": {"type": "object", "properties": {"set": fields["set"], "text": text}}}}),
        ),
        ("untyped", "v1", Value::Null),
    ]
}
