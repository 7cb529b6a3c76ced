//! OpenAPI: which requests there are, and what every kind looks like.

mod custom;
mod gnostic;
mod operation;
mod parameter;
mod route;
mod schema;
mod v2;
mod v3;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, ETAG, IF_NONE_MATCH, LOCATION, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use self::v2::Parts;
use super::groups;
use crate::definitions;
use crate::http::query::Query;
use crate::http::response::{self, Answer};
use crate::resource::{Nature, Resource};
use crate::server::Shared;

/// As it is answered: a media type has no `@`.
const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// As older clients ask for it.
const OLD_V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const JSON: &str = "application/json";

/// `/openapi/v2`: all that is served in one document.
pub(super) fn v2(shared: &Shared, headers: &HeaderMap) -> Option<Answer> {
    let vary = HeaderValue::from_static("Accept");
    let Some(media) = wanted(headers) else {
        let mut answer = response::text(StatusCode::NOT_ACCEPTABLE, "");
        answer.headers_mut().clear();
        answer.headers_mut().insert(VARY, vary);
        return Some(answer);
    };
    let mut resources = shared.registry.all();
    resources.retain(|resource| resource.is_custom());
    resources.sort_by(|a, b| {
        let key = |r: &Resource| (r.group.clone(), r.version.clone(), r.plural.clone());
        key(a).cmp(&key(b))
    });
    let hash = hash(shared, &resources);
    let mut answer = if knows(headers, &hash) {
        not_modified()
    } else {
        // Those of one definition one after another, so that it is read once.
        resources.sort_by_key(|resource| name_of_definition(resource).map(str::to_owned));
        let mut custom = Parts::default();
        let mut read: Option<(String, Value)> = None;
        for resource in &resources {
            let name = name_of_definition(resource).unwrap_or_default();
            if read.as_ref().is_none_or(|(before, _)| before != name) {
                read = definition(shared, resource).map(|found| (name.to_owned(), found));
            }
            if let Some((_, definition)) = &read {
                custom.add_custom(resource, definition);
            }
        }
        let document = match media {
            JSON => Bytes::from(v2::json(custom)),
            _ => Bytes::from(v2::protobuf(&custom)),
        };
        response::bytes(StatusCode::OK, media, document)
    };
    let headers = answer.headers_mut();
    headers.insert(ETAG, HeaderValue::try_from(format!("\"{hash}\"")).ok()?);
    headers.insert(VARY, vary);
    Some(answer)
}

/// In which form a document of version 2 is asked for, the most wanted first.
fn wanted(headers: &HeaderMap) -> Option<&'static str> {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let accept = accept.filter(|text| !text.trim().is_empty());
    let mut clauses: Vec<(&str, f64)> = accept
        .unwrap_or("*/*")
        .split(',')
        .map(|clause| {
            let mut words = clause.split(';').map(str::trim);
            let media = words.next().unwrap_or_default();
            let quality = words.find_map(|word| word.strip_prefix("q="));
            (
                media,
                quality.map_or(1.0, |text| text.parse().unwrap_or(0.0)),
            )
        })
        .collect();
    clauses.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    clauses.iter().find_map(|(media, _)| match *media {
        JSON | "*/*" | "application/*" => Some(JSON),
        V2_PROTOBUF | OLD_V2_PROTOBUF => Some(V2_PROTOBUF),
        _ => None,
    })
}

/// Whether the caller has the document of this hash.
fn knows(headers: &HeaderMap, hash: &str) -> bool {
    let asked = headers.get_all(IF_NONE_MATCH).iter();
    asked
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|tag| tag.trim().trim_start_matches("W/"))
        .any(|tag| tag == "*" || tag.trim_matches('"') == hash)
}

fn not_modified() -> Answer {
    let mut answer = response::text(StatusCode::NOT_MODIFIED, "");
    answer.headers_mut().clear();
    answer
}

fn name_of_definition(resource: &Resource) -> Option<&str> {
    match &resource.nature {
        Nature::Custom(custom) => Some(&custom.definition),
        Nature::Builtin(_) => None,
    }
}

/// The definition of a custom resource.
fn definition(shared: &Shared, resource: &Resource) -> Option<Value> {
    let Nature::Custom(custom) = &resource.nature else {
        return None;
    };
    let definition = shared.store.get(definitions::TABLE, &custom.definition)?;
    Some(definition.value())
}

/// `/openapi/v3`: where the documents are.
pub(super) fn v3_index(shared: &Shared) -> Answer {
    let mut paths = Map::new();
    let mut add = |path: String, group: &str, version: &str| {
        let resources = groups::of_version(shared, group, version);
        let url = format!("/openapi/v3/{path}?hash={}", hash(shared, &resources));
        paths.insert(path, json!({"serverRelativeURL": url}));
    };
    add("api/v1".to_owned(), "", "v1");
    for group in groups::all(shared) {
        for version in &group.versions {
            add(
                format!("apis/{}/{version}", group.name),
                &group.name,
                version,
            );
        }
    }
    response::json(StatusCode::OK, &json!({"paths": paths}))
}

/// What clients cache a document by: it changes with the definitions of the
/// custom resources in it, and with the server.
fn hash(shared: &Shared, resources: &[Arc<Resource>]) -> String {
    let mut digest = Sha256::new();
    digest.update(super::VERSION.2);
    digest.update(env!("CARGO_PKG_VERSION"));
    for resource in resources {
        let Resource {
            group,
            version,
            kind,
            plural,
            namespaced,
            subresources,
            ..
        } = &**resource;
        let served = (group, version, kind, plural, namespaced, subresources);
        digest.update(format!("{served:?}"));
        if let Nature::Custom(custom) = &resource.nature {
            let definition = shared.store.get(definitions::TABLE, &custom.definition);
            let written = definition.map(|d| (d.uid().to_owned(), d.version()));
            digest.update(format!("{written:?}"));
        }
    }
    let digest = digest.finalize();
    digest
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02X}"))
        .collect()
}

/// `/openapi/v3/apis/GROUP/VERSION`. Under its hash a document never changes;
/// who asks for an older one is sent to this one.
pub(super) fn v3(
    shared: &Shared,
    group: &str,
    version: &str,
    query: &Query,
    headers: &HeaderMap,
) -> Option<Answer> {
    let resources = groups::of_version(shared, group, version);
    if resources.is_empty() {
        return None;
    }
    let hash = hash(shared, &resources);
    if let Some(asked) = query.get("hash")
        && asked != hash
    {
        let root = if group.is_empty() {
            "api".to_owned()
        } else {
            format!("apis/{group}")
        };
        let mut answer = response::text(StatusCode::MOVED_PERMANENTLY, "");
        let url = format!("/openapi/v3/{root}/{version}?hash={hash}");
        answer
            .headers_mut()
            .insert(LOCATION, HeaderValue::try_from(url).ok()?);
        return Some(answer);
    }
    let mut answer = if knows(headers, &hash) {
        not_modified()
    } else {
        let document = document(shared, group, version, &resources);
        response::bytes(StatusCode::OK, JSON, document)
    };
    let headers = answer.headers_mut();
    headers.insert(ETAG, HeaderValue::try_from(format!("\"{hash}\"")).ok()?);
    if query.get("hash").is_some() {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
    }
    Some(answer)
}

/// Documents without custom resources are always the same, and made once.
fn document(shared: &Shared, group: &str, version: &str, resources: &[Arc<Resource>]) -> Bytes {
    static MADE: Mutex<BTreeMap<String, Bytes>> = Mutex::new(BTreeMap::new());
    let make = || Bytes::from(describe(shared, resources).to_string());
    if resources.iter().any(|resource| resource.is_custom()) {
        return make();
    }
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(format!("{group}/{version}"))
        .or_insert_with(make)
        .clone()
}

fn describe(shared: &Shared, resources: &[Arc<Resource>]) -> Value {
    let mut schemas = schema::of(resources);
    let mut paths = Map::new();
    let mut versions = vec![(String::new(), "v1".to_owned())];
    if let Some(first) = resources.iter().find(|resource| !resource.is_custom()) {
        let Resource { group, version, .. } = &**first;
        versions.push((group.clone(), version.clone()));
        versions.dedup();
        let path = match group.as_str() {
            "" => format!("/api/{version}/"),
            group => format!("/apis/{group}/{version}/"),
        };
        let route = operation::discovery(path, group, version);
        paths.insert(route.path.clone(), v3::path(&route));
    }
    schema::shared_kinds(&mut schemas, &versions);
    for resource in resources {
        for route in route::of(resource) {
            paths.insert(route.path.clone(), v3::path(&route));
        }
        if let Some(definition) = definition(shared, resource) {
            schemas.extend(custom::schemas(resource, &definition, false));
        }
    }
    schema::keep_used(&mut schemas, &paths);
    json!({
        "openapi": "3.0.0",
        "info": info(),
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

fn info() -> Value {
    json!({"title": "Kubernetes", "version": super::VERSION.2})
}
