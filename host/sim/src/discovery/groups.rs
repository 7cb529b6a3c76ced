//! Discovery as separate documents: groups, versions, resources.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::http::response::{self, Answer};
use crate::kinds::Subresource;
use crate::registry;
use crate::resource::Resource;
use crate::server::Shared;
use crate::status::ApiError;

/// A group with its versions, the most preferred first.
pub(super) struct Group {
    pub(super) name: String,
    pub(super) versions: Vec<String>,
}

/// The groups other than core, in the order in which they are served.
pub(super) fn all(shared: &Shared) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for resource in shared.registry.all() {
        if resource.group.is_empty() {
            continue;
        }
        match groups.iter_mut().find(|group| group.name == resource.group) {
            Some(group) if group.versions.contains(&resource.version) => {}
            Some(group) => group.versions.push(resource.version.clone()),
            None => groups.push(Group {
                name: resource.group.clone(),
                versions: vec![resource.version.clone()],
            }),
        }
    }
    for group in &mut groups {
        group.versions.sort_by(|a, b| super::compare_versions(b, a));
    }
    groups
}

/// Those that come first where all groups are listed, as their priorities have it.
const FIRST: [&str; 20] = [
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
];

/// As [`all`], in the order of a list of all groups.
pub(super) fn by_priority(shared: &Shared) -> Vec<Group> {
    let mut groups = all(shared);
    let place = |group: &Group| FIRST.iter().position(|first| *first == group.name);
    groups.sort_by_key(|group| place(group).unwrap_or(FIRST.len()));
    groups
}

/// The resources of one group and version, in order of their names.
pub(super) fn of_version(shared: &Shared, group: &str, version: &str) -> Vec<Arc<Resource>> {
    let mut resources = shared.registry.all();
    resources.retain(|r| r.group == group && r.version == version);
    resources.sort_by(|a, b| a.plural.cmp(&b.plural));
    resources
}

/// `/`: all paths.
pub(super) fn root(shared: &Shared) -> Value {
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
    for group in all(shared) {
        paths.push(format!("/apis/{}", group.name));
        paths.extend(
            group
                .versions
                .iter()
                .map(|v| format!("/apis/{}/{v}", group.name)),
        );
    }
    for path in [
        "/healthz",
        "/livez",
        "/openapi/v2",
        "/openapi/v3",
        "/readyz",
        "/version",
    ] {
        paths.push(path.to_owned());
    }
    json!({"paths": paths})
}

/// `/api`.
pub(super) fn core_versions() -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [],
    })
}

/// `/apis`.
pub(super) fn groups(shared: &Shared) -> Value {
    let groups: Vec<Value> = by_priority(shared).iter().map(describe).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`.
pub(super) fn group(shared: &Shared, name: &str) -> Option<Answer> {
    let groups = all(shared);
    let mut value = describe(groups.iter().find(|group| group.name == name)?);
    value["kind"] = json!("APIGroup");
    value["apiVersion"] = json!("v1");
    Some(response::json(StatusCode::OK, &value))
}

fn describe(group: &Group) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| {
            json!({"groupVersion": format!("{}/{version}", group.name), "version": version})
        })
        .collect();
    json!({"name": group.name, "preferredVersion": versions.first(), "versions": versions})
}

/// An entry of an `APIResourceList`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    name: Cow<'a, str>,
    singular_name: &'a str,
    namespaced: bool,
    /// Of its body, where that is of another kind than its group and version say.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    kind: &'a str,
    verbs: &'a [&'static str],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    short_names: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    categories: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    storage_version_hash: Option<String>,
}

/// All resources of a group and version.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceList<'a> {
    kind: &'static str,
    api_version: &'static str,
    group_version: &'a str,
    resources: Vec<Entry<'a>>,
}

impl<'a> Entry<'a> {
    fn of(resource: &'a Resource) -> Self {
        Self {
            name: resource.plural.as_str().into(),
            singular_name: &resource.singular,
            namespaced: resource.namespaced,
            group: None,
            version: None,
            kind: &resource.kind,
            verbs: verbs(resource),
            short_names: &resource.short_names,
            categories: &resource.categories,
            storage_version_hash: resource.is_stored().then(|| storage_version_hash(resource)),
        }
    }

    fn of_sub(resource: &'a Resource, sub: &'a Subresource) -> Self {
        Self {
            name: format!("{}/{}", resource.plural, sub.name).into(),
            singular_name: "",
            namespaced: resource.namespaced,
            group: sub.body.map(|(group, _, _)| group),
            version: sub.body.map(|(_, version, _)| version),
            kind: sub.body.map_or(&resource.kind, |(_, _, kind)| kind),
            verbs: sub.verbs,
            short_names: &[],
            categories: &[],
            storage_version_hash: None,
        }
    }
}

/// What is built in of each group and version, as it is listed. It is the same in every
/// server, and most clients ask for some of it when they start.
static BUILT_IN: LazyLock<HashMap<(&str, &str), OnceLock<Bytes>>> = LazyLock::new(|| {
    let built_in = registry::builtins().iter();
    let versions = built_in.map(|r| (r.group.as_str(), r.version.as_str()));
    versions.map(|of| (of, OnceLock::new())).collect()
});

/// `/api/v1`, `/apis/GROUP/VERSION`.
pub(super) fn resources(
    shared: &Shared,
    group: &str,
    version: &str,
) -> Option<Result<Answer, ApiError>> {
    let known = BUILT_IN.get(&(group, version));
    let known = known.filter(|_| !shared.registry.has_custom(group, version));
    if let Some(listed) = known.and_then(OnceLock::get) {
        return Some(Ok(response::json_bytes(StatusCode::OK, listed.clone())));
    }
    let found = of_version(shared, group, version);
    let list = ResourceList {
        kind: "APIResourceList",
        api_version: "v1",
        group_version: &found.first()?.api_version,
        resources: found
            .iter()
            .flat_map(|resource| {
                let subs = resource.subresources.iter();
                let subs = subs.map(|sub| Entry::of_sub(resource, sub));
                std::iter::once(Entry::of(resource)).chain(subs)
            })
            .collect(),
    };
    // A custom one may have come just now.
    let known = known.filter(|_| !found.iter().any(|resource| resource.is_custom()));
    Some(response::written_of(&list).map(|json| {
        if let Some(known) = known {
            // Somebody else may have been first, with the same.
            let _ = known.set(json.clone());
        }
        response::json_bytes(StatusCode::OK, json)
    }))
}

/// Custom resources list their verbs in another order.
fn verbs(resource: &Resource) -> &[&'static str] {
    const CUSTOM: &[&str] = &[
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "create",
        "update",
        "watch",
    ];
    if resource.is_custom() {
        CUSTOM
    } else {
        resource.verbs.names()
    }
}

/// By which clients see that objects are stored in another version.
fn storage_version_hash(resource: &Resource) -> String {
    let (group, version, kind) = (&resource.group, &resource.version, &resource.kind);
    let digest = Sha256::digest(format!("{group}/{version}/{kind}"));
    STANDARD.encode(&digest[..8])
}
