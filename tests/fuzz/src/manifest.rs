//! Manifests, which come from guests.

use reeve_core::grant::{self, Served};
use reeve_core::kind::GroupVersionKind;
use reeve_core::manifest::{
    ActionRule, ConfigMapEntry, Manifest, Origin, RawManifest, RawPrimary, RawRead, RawSource,
    Scope, WriteRule,
};
use serde_json::{Value, json};

/// The input is a manifest as JSON: `primary`, `reads`, `writes`, `sources` and
/// `actions`, a kind being a list of its three parts.
///
/// What is accepted can be granted, by rules without wildcards of which none shows all
/// Secrets, and projects any object to a part of it that projects to itself.
pub fn manifest(input: &[u8]) {
    let Ok(json) = serde_json::from_slice::<Value>(input) else {
        return;
    };
    let Ok(manifest) = Manifest::try_from(raw(&json)) else {
        return;
    };
    let kinds = manifest.kinds();
    assert!(kinds.is_sorted(), "{kinds:?}");
    let served = |kind: &GroupVersionKind| Served {
        plural: format!("{}s", kind.kind.to_lowercase()),
        namespaced: kind.kind.len().is_multiple_of(2),
    };
    for rules in [
        grant::account_rules(&manifest, served),
        grant::agent_rules(&manifest, served),
    ] {
        assert!(!rules.is_empty());
        for rule in rules {
            assert!(!rule.group.contains('*'), "{rule:?}");
            assert!(rule.resource != "*" && rule.verb != "*", "{rule:?}");
            assert_ne!(rule.namespace.as_deref(), Some(""), "{rule:?}");
            let shows_all = rule.name.is_none() && matches!(rule.verb, "list" | "watch");
            let of_secrets = rule.group.is_empty() && rule.resource == "secrets";
            assert!(!(shows_all && of_secrets), "{rule:?}");
        }
    }
    let object = json!({
        "apiVersion": "v1", "kind": "A",
        "metadata": {"name": "n", "namespace": "s", "uid": "u", "resourceVersion": "1",
            "managedFields": [{"manager": "m"}], "labels": {"a": "b", "a/b": "c"}},
        "spec": {"a": [{"b": 1}, 2], "": 3}, "status": {"phase": "x"},
    });
    let projection = &manifest.primary().projection;
    let seen = projection.apply(&object);
    assert_eq!(projection.apply(&seen), seen, "{projection:?}");
    assert!(seen["metadata"]["managedFields"].is_null(), "{seen}");
    assert!(seen["metadata"]["resourceVersion"].is_null(), "{seen}");
}

fn raw(json: &Value) -> RawManifest {
    let primary = &json["primary"];
    RawManifest {
        primary: primary.is_object().then(|| RawPrimary {
            kind: kind(&primary["kind"]),
            selector: text(&primary["selector"]),
            projection: texts(&primary["projection"]),
        }),
        reads: items(&json["reads"])
            .map(|read| RawRead {
                kind: kind(&read["kind"]),
                scope: scope(&read["scope"]),
                names: texts(&read["names"]),
                selector: text(&read["selector"]),
            })
            .collect(),
        writes: items(&json["writes"])
            .map(|write| WriteRule {
                kind: kind(&write["kind"]),
                scope: scope(&write["scope"]),
            })
            .collect(),
        sources: items(&json["sources"])
            .map(|source| RawSource {
                name: text(&source["name"]),
                description: String::new(),
                origin: origin(source),
                interval_seconds: number(&source["interval"]),
            })
            .collect(),
        actions: items(&json["actions"])
            .map(|action| ActionRule {
                name: text(&action["name"]),
                description: String::new(),
                http: texts(&action["http"]),
                sql: texts(&action["sql"]),
                secrets: items(&action["secrets"]).map(scope).collect(),
            })
            .collect(),
    }
}

fn origin(json: &Value) -> Origin {
    match (&json["url"], &json["file"]) {
        (Value::String(url), _) => Origin::Url(url.clone()),
        (_, Value::String(file)) => Origin::File(file.clone()),
        _ => Origin::ConfigMap(ConfigMapEntry {
            namespace: text(&json["namespace"]),
            name: text(&json["map"]),
            key: text(&json["key"]),
        }),
    }
}

fn number(json: &Value) -> u32 {
    let number = json.as_u64().unwrap_or_default();
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn kind(json: &Value) -> GroupVersionKind {
    let [group, version, kind] = [0, 1, 2].map(|part| text(&json[part]));
    GroupVersionKind::new(group, version, kind)
}

fn scope(json: &Value) -> Scope {
    match json {
        Value::Array(_) => Scope::Namespaces(texts(json)),
        Value::String(text) if text == "primary" => Scope::PrimaryNamespace,
        Value::String(text) if text == "named" => Scope::NamespaceNamedLikePrimary,
        _ => Scope::Cluster,
    }
}

fn items(json: &Value) -> impl Iterator<Item = &Value> {
    json.as_array().into_iter().flatten()
}

fn texts(json: &Value) -> Vec<String> {
    items(json).map(text).collect()
}

fn text(json: &Value) -> String {
    json.as_str().unwrap_or_default().to_owned()
}
