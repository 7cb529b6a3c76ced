//! From a CustomResourceDefinition to the resources that it makes served.

use std::sync::Arc;
use std::sync::OnceLock;

use reeve_ssa::Schema;
use serde_json::{Value, json};

use super::custom::{Custom, ScalePaths, Storage};
use crate::conversion::Converter;
use crate::conversion::webhook::Webhook;
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

/// What a definition makes served.
#[derive(Debug, Clone)]
pub(crate) struct Resources {
    /// The served versions, the most preferred first.
    pub(crate) served: Vec<Arc<Resource>>,
    /// The version that the server itself writes objects in: that in which they are stored
    /// where a webhook makes the others, whether it is served or not, and otherwise the most
    /// preferred one. None where no version is served.
    pub(crate) own: Option<Arc<Resource>>,
}

/// What a definition makes served. Its webhook is asked where the server `asks` any.
pub(crate) fn resources(definition: &Value, asks: bool) -> Resources {
    let versions = definition
        .pointer("/spec/versions")
        .and_then(Value::as_array);
    let versions = || versions.into_iter().flatten();
    let is = |version: &Value, what: &str| version.get(what) == Some(&Value::Bool(true));
    let storage = versions().find(|version| is(version, "storage"));
    // Of one version alone nothing is ever converted.
    let storage = storage.filter(|_| versions().nth(1).is_some());
    let webhook = storage
        .and_then(|_| Webhook::of(definition))
        .filter(|_| asks);
    let webhook = webhook.map(Arc::new);
    let of = |version: &Value, storage: Option<Arc<Storage>>| {
        Arc::new(resource(definition, version, storage, webhook.as_ref()))
    };
    let stored_as = storage.map(|version| Arc::new(stored(definition, version)));
    let mut served: Vec<Arc<Resource>> = versions()
        .filter(|version| is(version, "served"))
        .map(|version| {
            of(
                version,
                stored_as.clone().filter(|_| !is(version, "storage")),
            )
        })
        .collect();
    served.sort_by(|a, b| crate::discovery::compare_versions(&b.version, &a.version));
    let own = match storage.filter(|_| webhook.is_some() && !served.is_empty()) {
        Some(version) => {
            let name = text(&version["name"]);
            let found = served.iter().find(|resource| resource.version == name);
            Some(found.cloned().unwrap_or_else(|| of(version, None)))
        }
        None => served.first().cloned(),
    };
    Resources { served, own }
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

fn resource(
    definition: &Value,
    version: &Value,
    storage: Option<Arc<Storage>>,
    webhook: Option<&Arc<Webhook>>,
) -> Resource {
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
            converter: webhook.map(Converter::new),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_itself_writes_what_is_stored_where_a_webhook_makes_the_rest() {
        let client = json!({"url": "https://127.0.0.1:9/x", "caBundle": "AA=="});
        let webhook = json!({"conversionReviewVersions": ["v1"], "clientConfig": client});
        let versions = |stored_is_served: bool| {
            json!([
                {"name": "v1", "served": stored_is_served, "storage": true},
                {"name": "v2", "served": true, "storage": false},
            ])
        };
        let with = |strategy: &str, stored_is_served: bool| {
            json!({"spec": {
                "group": "x.io",
                "names": {"plural": "ws", "kind": "W"},
                "conversion": {"strategy": strategy, "webhook": webhook},
                "versions": versions(stored_is_served),
            }})
        };
        for (strategy, stored_is_served, asks, expected) in [
            ("Webhook", true, true, ("v1", true)),
            ("Webhook", false, true, ("v1", true)),
            ("Webhook", true, false, ("v2", false)),
            ("None", true, true, ("v2", false)),
        ] {
            let found = resources(&with(strategy, stored_is_served), asks);
            let own = found.own.unwrap();
            let of = format!("{strategy} {stored_is_served} {asks}");
            assert_eq!(
                (own.version.as_str(), own.has_converter()),
                expected,
                "{of}"
            );
            let served: Vec<_> = found.served.iter().map(|r| r.version.as_str()).collect();
            let expected = if stored_is_served {
                &["v2", "v1"][..]
            } else {
                &["v2"]
            };
            assert_eq!(served, expected, "{of}");
        }
        // Of one version alone nothing is ever asked.
        let mut alone = with("Webhook", true);
        alone["spec"]["versions"] = json!([versions(true)[0]]);
        assert!(!resources(&alone, true).own.unwrap().has_converter());
    }
}
