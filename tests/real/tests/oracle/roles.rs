//! The roles and bindings that a new cluster has, against those of a live server.
//!
//! The grammar of the table is described in `host/sim/src/bootstrap/roles.rs`.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use reeve_real::{ControlPlane, eventually};
use reeve_sim::Server;
use serde_json::Value;
use tokio::runtime::Runtime;

/// Before the name of the role in the label of those that add their rules to it.
const ADDS_TO: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// Resources, and their kinds.
const KINDS: [(&str, &str); 4] = [
    ("clusterroles", "ClusterRole"),
    ("clusterrolebindings", "ClusterRoleBinding"),
    ("roles", "Role"),
    ("rolebindings", "RoleBinding"),
];

/// Objects by their kind, namespace and name.
type Objects = BTreeMap<String, Value>;

/// The table of what a live server begins with.
pub(crate) fn render(server: &ControlPlane) -> Result<String> {
    let mut lines = vec![
        "# Roles and bindings of a new cluster; written by tests/real with REEVE_UPDATE_TABLE, \
         do not edit."
            .to_owned(),
    ];
    for (resource, kind) in KINDS {
        let objects = server.list(resource, "")?;
        ensure!(!objects.is_empty(), "the server has no {resource}");
        for object in objects {
            lines.push(format!("{kind} {}", head(&object)));
            let gathers = object.get("aggregationRule").is_some();
            let rules = list(&object["rules"]).filter(|_| !gathers).map(rule);
            lines.extend(rules.map(|rule| format!(" {rule}")));
            let subjects = list(&object["subjects"]);
            lines.extend(subjects.map(|it| format!(" {} {}", text(&it["kind"]), place(it))));
        }
    }
    Ok(lines.join("\n") + "\n")
}

/// Waits until the roles of the live server have been aggregated, and compares all
/// that it has with what an embedded one has. What differs between any two servers is
/// left out, and so is who owns the fields.
pub(crate) fn compare(server: &ControlPlane) -> Result<usize> {
    let ours = embedded()?;
    eventually("both have the same roles", || {
        let mut theirs = Objects::new();
        for (resource, kind) in KINDS {
            for object in server.list(resource, "")? {
                theirs.insert(
                    format!("{kind} {}", place(&object["metadata"])),
                    stripped(object),
                );
            }
        }
        let names = ours.keys().chain(theirs.keys());
        let differs = |name: &&String| ours.get(*name) != theirs.get(*name);
        if let Some(name) = names.into_iter().find(differs) {
            let shown = |objects: &Objects| objects.get(name).map(Value::to_string);
            anyhow::bail!(
                "{name} differs:\nserver   {:?}\nembedded {:?}",
                shown(&theirs),
                shown(&ours)
            );
        }
        Ok(theirs.len())
    })
}

fn embedded() -> Result<Objects> {
    let resources = [
        ApiResource::erase::<ClusterRole>(&()),
        ApiResource::erase::<ClusterRoleBinding>(&()),
        ApiResource::erase::<Role>(&()),
        ApiResource::erase::<RoleBinding>(&()),
    ];
    Runtime::new()?.block_on(async {
        let client = Server::default().client();
        let mut objects = Objects::new();
        for resource in resources {
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
            for object in api.list(&ListParams::default()).await? {
                let object = serde_json::to_value(object)?;
                let name = format!("{} {}", resource.kind, place(&object["metadata"]));
                objects.insert(name, stripped(object));
            }
        }
        Ok(objects)
    })
}

fn stripped(mut object: Value) -> Value {
    if let Some(object) = object.as_object_mut() {
        // Items of lists need not say them.
        object.remove("apiVersion");
        object.remove("kind");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in [
            "creationTimestamp",
            "managedFields",
            "resourceVersion",
            "uid",
        ] {
            metadata.remove(field);
        }
    }
    object
}

/// The name, and what is said of the object beside it.
fn head(object: &Value) -> String {
    let metadata = &object["metadata"];
    let mut words = vec![place(metadata)];
    words.extend(object["roleRef"]["name"].as_str().map(str::to_owned));
    let selectors = list(&object["aggregationRule"]["clusterRoleSelectors"]);
    let gathered = selectors.flat_map(|selector| adding(&selector["matchLabels"]));
    words.extend(gathered.map(|role| format!("<{role}")));
    words.extend(adding(&metadata["labels"]).map(|role| format!(">{role}")));
    words.join(" ")
}

/// The roles that labels add to.
fn adding(labels: &Value) -> impl Iterator<Item = &str> {
    let labels = labels.as_object().into_iter().flatten();
    labels.filter_map(|(label, _)| label.strip_prefix(ADDS_TO))
}

fn rule(rule: &Value) -> String {
    let mut words = vec![joined(&rule["verbs"])];
    if rule.get("nonResourceURLs").is_some() {
        words.push(joined(&rule["nonResourceURLs"]));
    } else {
        let groups = list(&rule["apiGroups"]).map(|group| match text(group) {
            "" => "core",
            named => named,
        });
        words.push(groups.collect::<Vec<_>>().join(","));
        words.push(joined(&rule["resources"]));
        words.extend(rule.get("resourceNames").map(joined));
    }
    words.join(" ")
}

fn joined(texts: &Value) -> String {
    list(texts).map(text).collect::<Vec<_>>().join(",")
}

/// `namespace/name`, or `name`.
fn place(object: &Value) -> String {
    let name = text(&object["name"]);
    match object["namespace"].as_str() {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
