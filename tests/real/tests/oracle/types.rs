//! The table of the types that requests are read into, against a server's OpenAPI v3
//! documents: the same fields, and the same strategic merging.
//!
//! The grammar of the table is described in `host/sim/src/decode/types.rs`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The fields of a struct, with how each is merged.
type Fields<'t> = BTreeMap<&'t str, String>;

/// Says in what the table and the server differ, and how many types were held against
/// each other.
pub(crate) fn differences(table: &str, components: &Map<String, Value>) -> (Vec<String>, usize) {
    let ours = structs(table);
    let mut differences = Vec::new();
    let mut compared = 0;
    for (name, schema) in components {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            continue;
        };
        let Some(ours) = short(name).and_then(|name| ours.get(name.as_str())) else {
            continue;
        };
        compared += 1;
        let theirs: Fields<'_> = properties
            .iter()
            .map(|(field, schema)| (field.as_str(), merging(schema)))
            .collect();
        for (field, merging) in &theirs {
            match ours.get(field) {
                None => differences.push(format!("{name}.{field} is not in the table")),
                Some(ours) if ours != merging => differences.push(format!(
                    "{name}.{field} merges as {merging:?}, in the table as {ours:?}"
                )),
                Some(_) => {}
            }
        }
        let only_ours = ours.keys().filter(|field| !theirs.contains_key(*field));
        differences.extend(only_ours.map(|field| format!("{name}.{field} is in the table only")));
    }
    (differences, compared)
}

/// `apps/v1.Deployment` for `io.k8s.api.apps.v1.Deployment`.
fn short(name: &str) -> Option<String> {
    let mut parts = name.rsplit('.');
    let (kind, version, group) = (parts.next()?, parts.next()?, parts.next()?);
    Some(format!("{group}/{version}.{kind}"))
}

/// How a field merges, as the table writes it.
fn merging(schema: &Value) -> String {
    let text = |field: &str| schema.get(field).and_then(Value::as_str);
    let strategies = text("x-kubernetes-patch-strategy").unwrap_or_default();
    let has = |strategy: &str| strategies.split(',').any(|one| one == strategy);
    match (has("merge"), has("replace")) {
        (true, _) => format!(
            "+{}",
            text("x-kubernetes-patch-merge-key").unwrap_or_default()
        ),
        (_, true) => "-".to_owned(),
        _ => String::new(),
    }
}

/// The structs of the table, with the fields that they take in from others.
fn structs(table: &str) -> BTreeMap<&str, Fields<'_>> {
    let mut own: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    let mut current = "";
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        if let Some(field) = line.strip_prefix(' ') {
            let field = field.split_once(' ').unwrap_or((field, ""));
            own.entry(current).or_default().push(field);
        } else if !line.contains(" = ") {
            current = line;
            own.entry(current).or_default();
        }
    }
    let names = own.keys().copied();
    names.map(|name| (name, collect(&own, name))).collect()
}

fn collect<'t>(own: &BTreeMap<&'t str, Vec<(&'t str, &'t str)>>, name: &str) -> Fields<'t> {
    let mut fields = Fields::new();
    for (field, rest) in own.get(name).into_iter().flatten() {
        let mut words = rest.split(' ');
        let ty = words.next().unwrap_or_default();
        if *field == "~" {
            fields.extend(collect(own, ty));
        } else {
            let merging = words.find(|word| word.starts_with(['+', '-']));
            fields.insert(field, merging.unwrap_or_default().to_owned());
        }
    }
    fields
}
