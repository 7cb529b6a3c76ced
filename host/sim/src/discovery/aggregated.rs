//! Discovery in one document for all groups.

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::groups::{self, Group};
use crate::http::response::{self, Answer};
use crate::resource::{Nature, Resource};
use crate::server::Shared;

const MEDIA: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// That the caller takes the aggregated document.
pub(super) struct Wanted;

impl Wanted {
    /// Whether the `Accept` header asks for it. Clients list it before plain JSON.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let accept = headers.get(ACCEPT)?.to_str().ok()?;
        let asks = accept.split(',').any(|clause| {
            let mut parts = clause.split(';').map(str::trim);
            parts.next() == Some("application/json")
                && clause.contains("as=APIGroupDiscoveryList")
                && clause.contains("g=apidiscovery.k8s.io")
                && clause.split(';').any(|part| part.trim() == "v=v2")
        });
        asks.then_some(Wanted)
    }
}

/// The document of core, or of all other groups.
pub(super) fn answer(shared: &Shared, core: bool) -> Answer {
    let groups = if core {
        vec![Group {
            name: String::new(),
            versions: vec!["v1".to_owned()],
        }]
    } else {
        groups::by_priority(shared)
    };
    let items: Vec<Value> = groups.iter().map(|group| describe(shared, group)).collect();
    let list = json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    });
    let mut answer = response::json(StatusCode::OK, &list);
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA));
    answer
}

fn describe(shared: &Shared, group: &Group) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| {
            let resources = groups::of_version(shared, &group.name, version);
            let resources: Vec<Value> = resources.iter().map(|r| entry(r)).collect();
            json!({"version": version, "resources": resources, "freshness": "Current"})
        })
        .collect();
    let mut metadata = json!({});
    if !group.name.is_empty() {
        metadata["name"] = json!(group.name);
    }
    json!({"metadata": metadata, "versions": versions})
}

fn entry(resource: &Resource) -> Value {
    let kind = |(group, version, kind): (&str, &str, &str)| json!({"group": group, "version": version, "kind": kind});
    // Groups that are built in leave out what is said of the list already.
    let says_all = resource.group.is_empty() || matches!(resource.nature, Nature::Custom(_));
    let own = match says_all {
        true => (
            resource.group.as_str(),
            resource.version.as_str(),
            resource.kind.as_str(),
        ),
        false => ("", "", resource.kind.as_str()),
    };
    let mut value = json!({
        "resource": resource.plural,
        "responseKind": kind(own),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs.names(),
    });
    if !resource.short_names.is_empty() {
        value["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        value["categories"] = json!(resource.categories);
    }
    if !resource.subresources.is_empty() {
        let subresources: Vec<Value> = resource
            .subresources
            .iter()
            .map(|sub| {
                json!({
                    "subresource": sub.name,
                    "responseKind": kind(sub.body.unwrap_or(own)),
                    "verbs": sub.verbs,
                })
            })
            .collect();
        value["subresources"] = json!(subresources);
    }
    value
}
