//! Documents of version 2, as JSON and as protobuf.
//!
//! What is built in is described once in a process, by whoever asks first; custom
//! resources are added to that at each request.

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

use super::operation::{self, Operation, Route, Shape};
use super::parameter::Parameter;
use super::schema::V2;
use super::{custom, gnostic, route, schema};
use crate::registry;
use crate::resource::Resource;
use crate::types;

/// The parts of a document that grow with what is served.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) paths: Map<String, Value>,
    pub(super) definitions: Map<String, Value>,
    pub(super) parameters: Map<String, Value>,
}

impl Parts {
    fn add(&mut self, route: &Route) {
        let shared = route.shared();
        let mut item = Map::new();
        for operation in &route.operations {
            let own = |parameter: &&Parameter| !shared.contains(parameter);
            let parameters = operation.parameters.iter().filter(own);
            let parameters: Vec<Value> = parameters.map(|p| self.refer(p)).collect();
            let described = self::operation(operation, &parameters);
            item.insert(operation.method.to_owned(), described);
        }
        if !shared.is_empty() {
            let shared: Vec<Value> = shared.iter().map(|p| self.refer(p)).collect();
            item.insert("parameters".to_owned(), json!(shared));
        }
        self.paths.insert(route.path.clone(), Value::Object(item));
    }

    /// A parameter, or where it is said for all paths.
    fn refer(&mut self, parameter: &Parameter) -> Value {
        let (name, value) = parameter.v2();
        if !parameter.is_shared() {
            return value;
        }
        let reference = json!({"$ref": format!("#/parameters/{name}")});
        self.parameters.insert(name, value);
        reference
    }

    /// What is built in.
    fn builtin(resources: &[Arc<Resource>]) -> Self {
        let mut parts = Parts::default();
        let mut versions: Vec<(String, String)> = resources
            .iter()
            .map(|resource| (resource.group.clone(), resource.version.clone()))
            .collect();
        versions.sort();
        versions.dedup();
        for path in ["/api/", "/apis/", "/version/"] {
            parts.add(&operation::discovery(path.to_owned(), "", ""));
        }
        for (group, version) in &versions {
            if group.is_empty() {
                let path = format!("/api/{version}/");
                parts.add(&operation::discovery(path, group, version));
                continue;
            }
            parts.add(&operation::discovery(format!("/apis/{group}/"), group, ""));
            let path = format!("/apis/{group}/{version}/");
            parts.add(&operation::discovery(path, group, version));
        }
        for resource in resources {
            route::of(resource)
                .iter()
                .for_each(|route| parts.add(route));
        }
        parts.definitions = schema::of(resources);
        parts.definitions.extend(types::discovery_schemas());
        schema::shared_kinds(&mut parts.definitions, &versions);
        schema::to_v2(&mut parts.definitions);
        parts
    }

    /// Custom resources, with their definitions.
    pub(super) fn add_custom(&mut self, resource: &Resource, definition: &Value) {
        route::of(resource).iter().for_each(|route| self.add(route));
        let schemas = custom::schemas(resource, definition, true);
        self.definitions.extend(schemas);
    }
}

fn operation(operation: &Operation, parameters: &[Value]) -> Value {
    let mut responses = Map::new();
    for (code, meaning, shape) in &operation.answers {
        let schema = match shape {
            Shape::Schema(name) => json!({"$ref": format!("{V2}{name}")}),
            Shape::Text => json!({"type": "string"}),
        };
        responses.insert(
            (*code).to_owned(),
            json!({"description": meaning, "schema": schema}),
        );
    }
    responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    let mut value = json!({
        "tags": [operation.tag],
        "description": operation.text,
        "operationId": operation.id,
        "consumes": operation.consumes,
        "produces": operation.produces,
        "schemes": ["https"],
        "responses": responses,
    });
    if !parameters.is_empty() {
        value["parameters"] = json!(parameters);
    }
    operation.say_kind(&mut value);
    value
}

/// The inner text of each part.
static JSON: LazyLock<[String; 3]> = LazyLock::new(|| texts(Parts::builtin(registry::builtins())));

/// The entries of each part, encoded.
static PROTOBUF: LazyLock<[Vec<u8>; 3]> =
    LazyLock::new(|| gnostic::parts(&Parts::builtin(registry::builtins())));

fn texts(parts: Parts) -> [String; 3] {
    [parts.paths, parts.definitions, parts.parameters].map(|part| {
        let text = Value::Object(part).to_string();
        let inner = text
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'));
        inner.unwrap_or_default().to_owned()
    })
}

/// The document as JSON.
pub(super) fn json(custom: Parts) -> String {
    let [paths, definitions, parameters] = &*JSON;
    // Its parameters are among those of what is built in.
    let [more_paths, more_definitions, _] = texts(custom);
    let comma = |more: &str| if more.is_empty() { "" } else { "," };
    format!(
        concat!(
            r#"{{"swagger":"2.0","info":{},"paths":{{{}{}{}}},"definitions":{{{}{}{}}},"#,
            r#""parameters":{{{}}},"securityDefinitions":{},"security":[{{"BearerToken":[]}}]}}"#,
        ),
        super::info(),
        paths,
        comma(&more_paths),
        more_paths,
        definitions,
        comma(&more_definitions),
        more_definitions,
        parameters,
        json!({"BearerToken": security()}),
    )
}

/// How callers are known.
fn security() -> Value {
    json!({
        "description": "Bearer Token authentication",
        "type": "apiKey",
        "name": "authorization",
        "in": "header",
    })
}

/// The document as protobuf.
pub(super) fn protobuf(custom: &Parts) -> Vec<u8> {
    gnostic::document(&PROTOBUF, &gnostic::parts(custom), &security())
}
