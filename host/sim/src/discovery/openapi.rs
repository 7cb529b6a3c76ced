//! OpenAPI, as far as clients look: which writes take which parameters, and the
//! schemas of custom resources. Built-in kinds have no schemas here; clients
//! carry those themselves.

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Map, Value, json};

use super::groups;
use crate::http::response::{self, Answer};
use crate::resource::{Nature, Resource};
use crate::server::Shared;

const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// `/openapi/v2`: a document without content.
pub(super) fn v2(headers: &HeaderMap) -> Answer {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    if accept.is_some_and(|accept| accept.contains(V2_PROTOBUF)) {
        // A protobuf message of which no field is set has no bytes.
        let mut answer = response::bytes(StatusCode::OK, "application/octet-stream", "");
        answer
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static(V2_PROTOBUF));
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
    // The hash is what clients cache by; it moves with every write, as the
    // schemas of custom resources may.
    let hash = shared.store.version();
    let mut add = |path: String| {
        let url = format!("/openapi/v3/{path}?hash={hash}");
        paths.insert(path, json!({"serverRelativeURL": url}));
    };
    add("api/v1".to_owned());
    for group in groups::all(shared) {
        for version in &group.versions {
            add(format!("apis/{}/{version}", group.name));
        }
    }
    response::json(StatusCode::OK, &json!({"paths": paths}))
}

/// `/openapi/v3/apis/GROUP/VERSION`.
pub(super) fn v3(shared: &Shared, group: &str, version: &str) -> Option<Answer> {
    let resources = groups::of_version(shared, group, version);
    if resources.is_empty() {
        return None;
    }
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for resource in resources.iter().filter(|resource| resource.is_stored()) {
        let (many, one) = urls(resource);
        paths.insert(many, collection(resource));
        paths.insert(one, object(resource));
        if let Nature::Custom(custom) = &resource.nature
            && let Some(schema) = shared.definition_schema(&custom.definition, version)
        {
            schemas.insert(schema_name(resource), with_kind(schema, resource));
        }
    }
    let document = json!({
        "openapi": "3.0.0",
        "info": info(),
        "paths": paths,
        "components": {"schemas": schemas},
    });
    Some(response::json(StatusCode::OK, &document))
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

fn with_kind(mut schema: Value, resource: &Resource) -> Value {
    schema["x-kubernetes-group-version-kind"] = json!([gvk(resource)]);
    let known = json!({"type": "string"});
    for field in ["apiVersion", "kind"] {
        if schema["properties"].get(field).is_none() {
            schema["properties"][field] = known.clone();
        }
    }
    if schema["properties"].get("metadata").is_none() {
        schema["properties"]["metadata"] = json!({"type": "object"});
    }
    schema
}
