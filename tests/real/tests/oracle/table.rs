//! The table of built-in types, from a server's OpenAPI v3 documents.
//!
//! Which fields an object always has, and which are left out when they are zero, is
//! in no document: the program in `parts/ssa/shapes` prints it of the same version.
//! The grammar of the table is described in `host/ssa/src/schema/table.rs`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

/// The text of the table, with all kinds of these versions.
pub(crate) fn render(
    components: &Map<String, Value>,
    shapes: &Value,
    versions: &BTreeSet<&str>,
) -> Result<String> {
    let mut kinds = BTreeSet::new();
    let mut wanted: BTreeSet<&str> = BTreeSet::from([OBJECT_META]);
    for (name, schema) in components {
        let Some([gvk]) = schema
            .get("x-kubernetes-group-version-kind")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
        else {
            continue;
        };
        let part = |key| gvk.get(key).and_then(Value::as_str).unwrap_or_default();
        let metadata = schema.pointer("/properties/metadata").and_then(reference);
        if metadata != Some(OBJECT_META) {
            continue;
        }
        let version = match part("group") {
            "" => part("version").to_owned(),
            group => format!("{group}/{}", part("version")),
        };
        if !versions.contains(version.as_str()) {
            continue;
        }
        kinds.insert(format!("kind {version} {} {}", part("kind"), short(name)));
        wanted.insert(name);
    }

    let mut definitions = BTreeMap::new();
    let mut queue: Vec<&str> = wanted.into_iter().collect();
    while let Some(name) = queue.pop() {
        if definitions.contains_key(&short(name)) {
            continue;
        }
        let schema = components
            .get(name)
            .with_context(|| format!("no schema for {name}"))?;
        definitions.insert(short(name), definition(name, schema, shapes)?);
        let mut names = Vec::new();
        references(schema, &mut names);
        queue.extend(names);
    }

    let mut out =
        String::from("# Types of built-in kinds; written by a test of tests/real, do not edit.\n");
    for kind in kinds {
        out.push_str(&kind);
        out.push('\n');
    }
    for (name, text) in definitions {
        out.push_str(&name);
        out.push_str(&text);
    }
    Ok(out)
}

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// All that follows the name of a type.
fn definition(name: &str, schema: &Value, shapes: &Value) -> Result<String> {
    // The server knows these two by name, whatever their schema says.
    match name {
        "io.k8s.apimachinery.pkg.api.resource.Quantity" => return Ok(" = quantity\n".to_owned()),
        "io.k8s.apimachinery.pkg.runtime.RawExtension" => return Ok(" = opaque\n".to_owned()),
        _ => {}
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(format!(" = {}\n", expression(schema)?));
    };
    if schema.get("additionalProperties").is_some() {
        bail!("{name}: both properties and additionalProperties");
    }
    let mark = if map_type(schema)? { " atomic" } else { "" };
    let shape = &shapes[short(name)];
    if shape.is_null() {
        bail!("no shape for {name}");
    }
    let mut out = format!("{mark}\n");
    for (field, schema) in sorted(properties) {
        out.push_str(&format!("  {field} {}", expression(schema)?));
        match shape["present"].get(field) {
            // What is inside follows from the type of the field.
            Some(zero) if zero.is_object() => out.push_str(" +{}"),
            Some(zero) => out.push_str(&format!(" +{zero}")),
            None => {}
        }
        let dropped = shape["dropped"].as_array();
        if dropped.is_some_and(|names| names.iter().any(|name| name == field)) {
            out.push_str(" -");
        }
        // Only defaults of key fields matter, and those are scalars.
        if let Some(default) = schema.get("default").filter(|default| !default.is_object()) {
            out.push_str(&format!(" ={default}"));
        }
        out.push('\n');
    }
    Ok(out)
}

fn expression(schema: &Value) -> Result<String> {
    if let Some(name) = reference(schema) {
        // A field may take a type whole that is not, and the other way round.
        let mark = match (schema.get("x-kubernetes-map-type"), map_type(schema)?) {
            (None, _) => "",
            (_, true) => "!",
            (_, false) => "~",
        };
        return Ok(format!("{}{mark}", short(name)));
    }
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    Ok(match text("type") {
        None => "any".to_owned(),
        Some("object") => {
            let mark = if map_type(schema)? { "!" } else { "" };
            match schema.get("additionalProperties") {
                None if schema.get("properties").is_none() => format!("{{{mark}}}any"),
                Some(item) if item.is_object() => format!("{{{mark}}}{}", expression(item)?),
                _ => bail!("an inline struct: {schema}"),
            }
        }
        Some("array") => {
            let items = schema.get("items").context("array without items")?;
            format!("[{}]{}", list_type(schema)?, expression(items)?)
        }
        Some("integer" | "number") => "number".to_owned(),
        Some("boolean") => "boolean".to_owned(),
        Some("string") if matches!(text("format"), None | Some("byte")) => "string".to_owned(),
        Some("string") => "scalar".to_owned(),
        Some(other) => bail!("unknown type {other}"),
    })
}

/// What stands between the brackets of a list. Without a list type, the older
/// patch strategy decides.
fn list_type(schema: &Value) -> Result<String> {
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    Ok(match text("x-kubernetes-list-type") {
        Some("atomic") => String::new(),
        Some("set") => "=".to_owned(),
        Some("map") => schema
            .get("x-kubernetes-list-map-keys")
            .and_then(Value::as_array)
            .context("map list without keys")?
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(","),
        Some(other) => bail!("unknown list type {other}"),
        None => match text("x-kubernetes-patch-strategy") {
            Some("merge" | "merge,retainKeys") => text("x-kubernetes-patch-merge-key")
                .unwrap_or("=")
                .to_owned(),
            _ => String::new(),
        },
    })
}

/// Whether a map or struct is taken whole.
fn map_type(schema: &Value) -> Result<bool> {
    match schema.get("x-kubernetes-map-type").map(Value::as_str) {
        None | Some(Some("granular")) => Ok(false),
        Some(Some("atomic")) => Ok(true),
        Some(other) => bail!("unknown map type {other:?}"),
    }
}

fn reference(schema: &Value) -> Option<&str> {
    let target = schema.get("$ref").or_else(|| {
        let all = schema.get("allOf")?.as_array()?;
        all.first().filter(|_| all.len() == 1)?.get("$ref")
    })?;
    target.as_str()?.strip_prefix("#/components/schemas/")
}

fn references<'s>(schema: &'s Value, out: &mut Vec<&'s str>) {
    match schema {
        Value::Object(map) => {
            out.extend(reference(schema));
            map.values().for_each(|value| references(value, out));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, out)),
        _ => {}
    }
}

/// `io.k8s.api.apps.v1.Deployment` as `apps.v1.Deployment`: the last three
/// parts tell all types apart.
fn short(name: &str) -> String {
    let parts: Vec<&str> = name.rsplitn(4, '.').take(3).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join(".")
}

fn sorted(map: &Map<String, Value>) -> BTreeMap<&String, &Value> {
    map.iter().collect()
}
