//! Writes the table of built-in types from a server's OpenAPI v3 documents.
//!
//! Usage: `cargo run -p reeve-ssa --example builtin_table FOLDER SHAPES`,
//! where the folder holds the answers of `/openapi/v3/api/v1`,
//! `/openapi/v3/apis/apps/v1` and so on, one a file, any names ending in
//! `.json`; and SHAPES is what the program in `examples/go/shapes` prints of the
//! same version. The table goes to standard output; its grammar is described
//! in `src/schema/table.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;

use serde_json::{Map, Value};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(shapes)) = (arguments.next(), arguments.next()) else {
        return Err("usage: builtin_table FOLDER SHAPES".into());
    };
    let components = read(Path::new(&folder))?;
    let shapes = serde_json::from_slice(&std::fs::read(shapes)?)?;
    print!("{}", render(&components, &shapes)?);
    Ok(())
}

/// The component schemas of all documents. A type that several documents
/// carry is the same in each.
fn read(folder: &Path) -> Result<BTreeMap<String, Value>> {
    let mut components = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let document: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
        let schemas = document
            .pointer("/components/schemas")
            .and_then(Value::as_object)
            .ok_or_else(|| format!("{}: no component schemas", path.display()))?;
        components.extend(schemas.clone());
    }
    Ok(components)
}

fn render(components: &BTreeMap<String, Value>, shapes: &Value) -> Result<String> {
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
        kinds.insert(format!("kind {version} {} {}", part("kind"), short(name)));
        wanted.insert(name);
    }

    let mut definitions = BTreeMap::new();
    let mut queue: Vec<&str> = wanted.into_iter().collect();
    while let Some(name) = queue.pop() {
        if definitions.contains_key(&short(name)) {
            continue;
        }
        let (_, schema) = components
            .get_key_value(name)
            .ok_or_else(|| format!("no schema for {name}"))?;
        definitions.insert(short(name), definition(name, schema, shapes)?);
        let mut names = Vec::new();
        references(schema, &mut names);
        queue.extend(names);
    }

    let mut out = String::from(
        "# Types of built-in kinds; written by examples/builtin_table.rs, do not edit.\n",
    );
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
        "io.k8s.apimachinery.pkg.api.resource.Quantity" => return Ok(" = scalar\n".to_owned()),
        "io.k8s.apimachinery.pkg.runtime.RawExtension" => return Ok(" = opaque\n".to_owned()),
        _ => {}
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(format!(" = {}\n", expression(schema)?));
    };
    if schema.get("additionalProperties").is_some() {
        return Err(format!("{name}: both properties and additionalProperties").into());
    }
    let mark = if map_type(schema)? { " atomic" } else { "" };
    let shape = &shapes[short(name)];
    if shape.is_null() {
        return Err(format!("no shape for {name}").into());
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
                _ => return Err(format!("an inline struct: {schema}").into()),
            }
        }
        Some("array") => {
            let items = schema.get("items").ok_or("array without items")?;
            format!("[{}]{}", list_type(schema)?, expression(items)?)
        }
        Some("integer" | "number") => "number".to_owned(),
        Some("boolean") => "boolean".to_owned(),
        Some("string") if matches!(text("format"), None | Some("byte")) => "string".to_owned(),
        Some("string") => "scalar".to_owned(),
        Some(other) => return Err(format!("unknown type {other}").into()),
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
            .ok_or("map list without keys")?
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(","),
        Some(other) => return Err(format!("unknown list type {other}").into()),
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
        Some(other) => Err(format!("unknown map type {other:?}").into()),
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
