//! OpenAPI: which writes take which parameters, and what every kind looks like.
//!
//! The documents are those of version 3. They do not say that patches may be
//! strategic merge patches, since the schemas lack the merge keys of lists, which
//! clients carry themselves. Version 2 is a document without content.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::groups;
use crate::definitions;
use crate::http::query::Query;
use crate::http::response::{self, Answer};
use crate::resource::{Nature, Resource};
use crate::server::Shared;
use crate::types;

/// As clients ask for it.
const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// As it is answered: a media type has no `@`.
const V2_PROTOBUF_ANSWER: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// `/openapi/v2`: a document without content.
pub(super) fn v2(headers: &HeaderMap) -> Answer {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    if accept.is_some_and(|accept| accept.contains(V2_PROTOBUF)) {
        // A protobuf message of which no field is set has no bytes.
        let mut answer = response::bytes(StatusCode::OK, "application/octet-stream", "");
        answer
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static(V2_PROTOBUF_ANSWER));
        return answer;
    }
    let document = json!({
        "swagger": "2.0",
        "info": info(),
        "paths": {},
        "definitions": {},
    });
    response::json(StatusCode::OK, &document)
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
        digest.update(&resource.plural);
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
pub(super) fn v3(shared: &Shared, group: &str, version: &str, query: &Query) -> Option<Answer> {
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
    let document = document(shared, group, version, &resources);
    let mut answer = response::bytes(StatusCode::OK, "application/json", document);
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
    let make = || Bytes::from(describe(shared, group, version, resources).to_string());
    if resources.iter().any(|resource| resource.is_custom()) {
        return make();
    }
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(format!("{group}/{version}"))
        .or_insert_with(make)
        .clone()
}

fn describe(shared: &Shared, group: &str, version: &str, resources: &[Arc<Resource>]) -> Value {
    let (mut paths, mut schemas) = (Map::new(), types::schemas(group, version));
    for resource in resources.iter().filter(|resource| resource.is_stored()) {
        let (many, one) = urls(resource);
        paths.insert(many, collection(resource));
        paths.insert(one, object(resource));
        if let Nature::Custom(custom) = &resource.nature
            && let Some(schema) = shared.definition_schema(&custom.definition, version)
        {
            schemas.extend(types::metadata_schemas());
            schemas.insert(schema_name(resource), with_kind(schema, resource));
        }
    }
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

fn urls(resource: &Resource) -> (String, String) {
    let root = if resource.group.is_empty() {
        format!("/api/{}", resource.version)
    } else {
        format!("/apis/{}/{}", resource.group, resource.version)
    };
    let many = if resource.namespaced {
        format!("{root}/namespaces/{{namespace}}/{}", resource.plural)
    } else {
        format!("{root}/{}", resource.plural)
    };
    let one = format!("{many}/{{name}}");
    (many, one)
}

fn collection(resource: &Resource) -> Value {
    json!({
        "get": operation(resource, "list", &[]),
        "post": operation(resource, "post", WRITE),
        "delete": operation(resource, "deletecollection", &["dryRun"]),
    })
}

fn object(resource: &Resource) -> Value {
    json!({
        "get": operation(resource, "get", &[]),
        "put": operation(resource, "put", WRITE),
        "patch": operation(resource, "patch", PATCH),
        "delete": operation(resource, "delete", &["dryRun"]),
    })
}

const WRITE: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];
const PATCH: &[&str] = &["dryRun", "fieldManager", "fieldValidation", "force"];

fn operation(resource: &Resource, action: &str, parameters: &[&str]) -> Value {
    let parameters: Vec<Value> = parameters
        .iter()
        .map(|name| {
            let kind = if *name == "force" {
                "boolean"
            } else {
                "string"
            };
            json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}})
        })
        .collect();
    json!({
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk(resource),
    })
}

fn gvk(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

/// `com.example.v1.Widget`.
fn schema_name(resource: &Resource) -> String {
    let reversed: Vec<&str> = resource.group.rsplit('.').collect();
    format!(
        "{}.{}.{}",
        reversed.join("."),
        resource.version,
        resource.kind
    )
}

/// Adds what every object has, and says of which kind it is.
fn with_kind(mut schema: Value, resource: &Resource) -> Value {
    schema["x-kubernetes-group-version-kind"] = json!([gvk(resource)]);
    schema["type"] = json!("object");
    for (field, known) in types::object_properties() {
        schema["properties"][field] = known;
    }
    schema
}
