//! Paths as documents of version 3 have them.

use serde_json::{Map, Value, json};

use super::operation::{Operation, Route, Shape};
use super::parameter::{Parameter, Place};
use super::schema::V3;

/// What can be asked for at a path.
pub(super) fn path(route: &Route) -> Value {
    let shared = route.shared();
    let mut item = Map::new();
    for operation in &route.operations {
        let own = |parameter: &&Parameter| !shared.contains(parameter);
        let mut parameters = operation.parameters.iter().filter(own);
        let body = parameters.clone().find(|p| p.place == Place::Body);
        let parameters: Vec<Value> = parameters
            .by_ref()
            .filter(|p| p.place != Place::Body)
            .map(Parameter::v3)
            .collect();
        item.insert(
            operation.method.to_owned(),
            self::operation(operation, &parameters, body),
        );
    }
    if !shared.is_empty() {
        let shared: Vec<Value> = shared.iter().map(|parameter| parameter.v3()).collect();
        item.insert("parameters".to_owned(), json!(shared));
    }
    Value::Object(item)
}

fn operation(operation: &Operation, parameters: &[Value], body: Option<&Parameter>) -> Value {
    let content = |media: &[&str], shape: &Shape| {
        let schema = match shape {
            Shape::Schema(name) => json!({"$ref": format!("{V3}{name}")}),
            Shape::Text => json!({"type": "string"}),
        };
        let content: Map<String, Value> = media
            .iter()
            .map(|media| ((*media).to_owned(), json!({"schema": schema})))
            .collect();
        Value::Object(content)
    };
    let mut responses = Map::new();
    for (code, meaning, shape) in &operation.answers {
        let content = content(operation.produces, shape);
        responses.insert(
            (*code).to_owned(),
            json!({"description": meaning, "content": content}),
        );
    }
    responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    let mut value = json!({
        "tags": [operation.tag],
        "description": operation.text,
        "operationId": operation.id,
        "responses": responses,
    });
    if !parameters.is_empty() {
        value["parameters"] = json!(parameters);
    }
    if let Some((parameter, schema)) = body.and_then(|body| Some((body, body.schema.clone()?))) {
        let mut sent = json!({"content": content(operation.consumes, &Shape::Schema(schema))});
        if parameter.required {
            sent["required"] = json!(true);
        }
        value["requestBody"] = sent;
    }
    operation.say_kind(&mut value);
    value
}
