//! The schemas of built-in kinds, of lists and of what all share, in both versions.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::resource::{Nature, Resource};
use crate::types::{self, META};

/// Where schemas are in documents of version 3, and of version 2.
pub(super) const V3: &str = "#/components/schemas/";
pub(super) const V2: &str = "#/definitions/";

/// The name of the schema of a built-in kind.
pub(super) fn builtin(group: &str, version: &str, kind: &str) -> Option<String> {
    types::schema_name(group, version, kind)
}

/// `com.example.v1.Widget`, or the name of a built-in type.
pub(super) fn name(resource: &Resource) -> String {
    let Resource {
        group,
        version,
        kind,
        ..
    } = resource;
    let known = match resource.nature {
        Nature::Builtin(_) => builtin(group, version, kind),
        Nature::Custom(_) => None,
    };
    known.unwrap_or_else(|| {
        let reversed: Vec<&str> = group.rsplit('.').collect();
        format!("{}.{version}.{kind}", reversed.join("."))
    })
}

/// The name of the schema of a list of them.
pub(super) fn list_name(resource: &Resource) -> String {
    let name = name(resource);
    let package = name.strip_suffix(&resource.kind).unwrap_or(&name);
    format!("{package}{}", resource.list_kind)
}

/// Of which group, version and kind a schema is.
pub(super) fn gvk(group: &str, version: &str, kind: &str) -> Value {
    json!([{"group": group, "version": version, "kind": kind}])
}

/// The schema of a list.
pub(super) fn list(resource: &Resource) -> Value {
    let Resource {
        group,
        version,
        kind,
        list_kind,
        plural,
        ..
    } = resource;
    let own = json!({"$ref": format!("{V3}{}", name(resource))});
    let meta = json!([{"$ref": format!("{V3}{META}.ListMeta")}]);
    let mut metadata = json!({
        "description": "Standard list metadata: the version, and where the list goes on.",
        "allOf": meta,
    });
    let items = if resource.is_custom() {
        own
    } else {
        metadata["default"] = json!({});
        json!({"allOf": [own], "default": {}})
    };
    let mut properties = types::object_properties();
    properties.insert("metadata".to_owned(), metadata);
    properties.insert(
        "items".to_owned(),
        json!({"description": format!("List of {plural}."), "type": "array", "items": items}),
    );
    json!({
        "description": format!("{list_kind} is a list of {kind}"),
        "type": "object",
        "required": ["items"],
        "properties": properties,
        "x-kubernetes-group-version-kind": gvk(group, version, list_kind),
    })
}

/// All schemas that these resources, their lists and their subresources consist of. Of
/// custom ones the schemas themselves are left out.
pub(super) fn of(resources: &[Arc<Resource>]) -> Map<String, Value> {
    let mut kinds: Vec<(&str, &str, &str)> = Vec::new();
    for resource in resources {
        if !resource.is_custom() {
            kinds.push((&resource.group, &resource.version, &resource.kind));
        }
        kinds.extend(resource.subresources.iter().filter_map(|sub| sub.body));
    }
    let mut schemas = types::schemas(&kinds);
    for resource in resources.iter().filter(|resource| !resource.is_custom()) {
        if resource.verbs.names().contains(&"list") {
            schemas.insert(list_name(resource), list(resource));
        }
    }
    if resources.iter().any(|resource| resource.is_custom()) {
        schemas.extend(types::metadata_schemas());
    }
    schemas
}

/// What every group has in its own version: how objects are deleted, and what a watch
/// tells.
pub(super) fn shared_kinds(schemas: &mut Map<String, Value>, versions: &[(String, String)]) {
    for kind in ["DeleteOptions", "WatchEvent"] {
        let all: Vec<Value> = versions
            .iter()
            .map(|(group, version)| json!({"group": group, "version": version, "kind": kind}))
            .collect();
        if let Some(schema) = schemas.get_mut(&format!("{META}.{kind}")) {
            schema["x-kubernetes-group-version-kind"] = json!(all);
        }
    }
}

/// Leaves out the schemas that no request needs.
pub(super) fn keep_used(schemas: &mut Map<String, Value>, paths: &Map<String, Value>) {
    let mut wanted = Vec::new();
    for path in paths.values() {
        references(path, &mut wanted);
    }
    let mut used = BTreeSet::new();
    while let Some(name) = wanted.pop() {
        if let Some(schema) = schemas.get(&name)
            && used.insert(name)
        {
            references(schema, &mut wanted);
        }
    }
    schemas.retain(|name, _| used.contains(name));
}

/// Adds the names of the schemas that are referred to.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let name = fields.get("$ref").and_then(Value::as_str);
            let name = name.and_then(|name| name.strip_prefix(V3));
            found.extend(name.map(str::to_owned));
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

/// Types that are described otherwise in version 2, which knows no alternatives.
const OTHERWISE: &[(&str, &str)] = &[
    ("io.k8s.apimachinery.pkg.util.intstr.IntOrString", "string"),
    ("io.k8s.apimachinery.pkg.api.resource.Quantity", "string"),
];

/// Makes of schemas of version 3 those of version 2.
pub(super) fn to_v2(schemas: &mut Map<String, Value>) {
    for schema in schemas.values_mut() {
        lower(schema);
    }
    for (name, ty) in OTHERWISE {
        if let Some(schema) = schemas.get_mut(*name) {
            schema["type"] = json!(ty);
        }
    }
}

/// Takes out what version 2 does not know, here and below.
pub(super) fn lower(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    schema.remove("default");
    schema.remove("oneOf");
    let reference = schema.remove("allOf");
    let reference = reference.as_ref().and_then(|all| all.pointer("/0/$ref"));
    let reference = reference.or_else(|| schema.get("$ref"));
    let name = reference.and_then(Value::as_str);
    let name = name.and_then(|name| name.strip_prefix(V3));
    if let Some(reference) = name.map(|name| format!("{V2}{name}")) {
        schema.insert("$ref".to_owned(), json!(reference));
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().for_each(lower);
    }
    for below in ["items", "additionalProperties"] {
        if let Some(found) = schema.get_mut(below) {
            lower(found);
        }
    }
}
