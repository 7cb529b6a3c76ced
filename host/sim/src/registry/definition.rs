//! From a CustomResourceDefinition to the resources that it makes served.

use std::sync::Arc;
use std::sync::OnceLock;

use reeve_ssa::Schema;
use serde_json::{Value, json};

use super::custom::{Custom, ScalePaths, Storage};
use crate::crd;
use crate::kinds::{Subresource, Verbs};
use crate::resource::{Nature, Resource};
use crate::selector::FieldLabels;

const READ_WRITE: &[&str] = &["get", "patch", "update"];
const STATUS: Subresource = Subresource {
    name: "status",
    body: None,
    verbs: READ_WRITE,
};
const SCALE: Subresource = Subresource {
    name: "scale",
    body: Some(("autoscaling", "v1", "Scale")),
    verbs: READ_WRITE,
};

/// The served versions of a definition, the most preferred first.
pub(crate) fn resources(definition: &Value) -> Vec<Arc<Resource>> {
    let versions = definition
        .pointer("/spec/versions")
        .and_then(Value::as_array);
    let versions = || versions.into_iter().flatten();
    let is = |version: &Value, what: &str| version.get(what) == Some(&Value::Bool(true));
    let storage = versions().find(|version| is(version, "storage"));
    // Of one version alone nothing is ever converted.
    let storage = storage.filter(|_| versions().nth(1).is_some());
    let storage = storage.map(|version| Arc::new(stored(definition, version)));
    let mut resources: Vec<Arc<Resource>> = versions()
        .filter(|version| is(version, "served"))
        .map(|version| {
            let storage = storage.clone().filter(|_| !is(version, "storage"));
            Arc::new(resource(definition, version, storage))
        })
        .collect();
    resources.sort_by(|a, b| crate::discovery::compare_versions(&b.version, &a.version));
    resources
}

/// The version that objects are stored in.
fn stored(definition: &Value, version: &Value) -> Storage {
    let group = text(&definition["spec"]["group"]);
    let schema = version.pointer("/schema/openAPIV3Schema");
    Storage {
        api_version: format!("{group}/{}", text(&version["name"])),
        structure: schema.and_then(|schema| crd::Schema::parse(schema).ok()),
    }
}

fn resource(definition: &Value, version: &Value, storage: Option<Arc<Storage>>) -> Resource {
    let spec = &definition["spec"];
    let names = &spec["names"];
    let group = text(&spec["group"]);
    let name = text(&version["name"]);
    let plural = text(&names["plural"]);
    let kind = text(&names["kind"]);
    let has_status = version.pointer("/subresources/status").is_some();
    let scale = version.pointer("/subresources/scale").map(scale_paths);
    let subresources = has_status
        .then_some(STATUS)
        .into_iter()
        .chain(scale.as_ref().map(|_| SCALE))
        .collect();
    let namespaced = spec["scope"] == "Namespaced";
    let selectable = version["selectableFields"].as_array();
    let paths = selectable
        .into_iter()
        .flatten()
        .filter_map(|f| f["jsonPath"].as_str());
    let table = crate::status::qualified(&group, &plural);
    let schema = version.pointer("/schema/openAPIV3Schema");
    Resource {
        api_version: format!("{group}/{name}"),
        version: name,
        singular: non_empty(&names["singular"], || kind.to_ascii_lowercase()),
        list_kind: non_empty(&names["listKind"], || format!("{kind}List")),
        namespaced,
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        verbs: Verbs::All,
        subresources,
        fields: Arc::new(FieldLabels::custom(paths, namespaced)),
        nature: Nature::Custom(Box::new(Custom {
            definition: table.clone(),
            merge: schema
                .and_then(|schema| Schema::from_crd(schema).ok())
                .unwrap_or_else(Schema::untyped),
            structure: schema.and_then(|schema| crd::Schema::parse(schema).ok()),
            storage,
            has_status,
            scale,
            columns: version["additionalPrinterColumns"]
                .as_array()
                .cloned()
                .unwrap_or_default(),
            deprecation: (version["deprecated"] == json!(true)).then(|| {
                non_empty(&version["deprecationWarning"], || {
                    deprecation(spec, version)
                })
            }),
        })),
        merging: OnceLock::new(),
        table: table.into(),
        group,
        plural,
        kind,
    }
}

/// What callers of a deprecated version are told to use: the newest one that is
/// served, and is none itself.
fn deprecation(spec: &Value, version: &Value) -> String {
    let named = |version: &Value| {
        let (group, kind) = (text(&spec["group"]), text(&spec["names"]["kind"]));
        format!("{group}/{} {kind}", text(&version["name"]))
    };
    let versions = spec["versions"].as_array().into_iter().flatten();
    let better = versions
        .filter(|other| other["served"] == json!(true) && other["deprecated"] != json!(true))
        .max_by(|a, b| crate::discovery::compare_versions(&text(&a["name"]), &text(&b["name"])));
    match better {
        Some(better) => format!("{} is deprecated; use {}", named(version), named(better)),
        None => format!("{} is deprecated", named(version)),
    }
}

fn scale_paths(scale: &Value) -> ScalePaths {
    let pointer = |field: &str| pointer(scale[field].as_str().unwrap_or_default());
    ScalePaths {
        spec_replicas: pointer("specReplicasPath"),
        status_replicas: pointer("statusReplicasPath"),
        selector: scale["labelSelectorPath"].as_str().map(self::pointer),
    }
}

/// `.spec.replicas` as a JSON pointer.
fn pointer(path: &str) -> String {
    path.replace('.', "/")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn non_empty(value: &Value, default: impl FnOnce() -> String) -> String {
    match value.as_str() {
        Some(text) if !text.is_empty() => text.to_owned(),
        _ => default(),
    }
}
