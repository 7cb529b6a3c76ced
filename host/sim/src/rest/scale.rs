//! The scale subresource: the replicas of an object, seen as a `Scale`.

use http::StatusCode;
use serde_json::{Value, json};

use super::write::Proposal;
use super::{Call, manage, meta};
use crate::field::{Errors, FieldError, Path};
use crate::http::response::{self, Answer};
use crate::resource::{Nature, Resource};
use crate::status::{About, ApiError};

/// Where the numbers are, as JSON pointers.
struct Pointers<'a> {
    wanted: &'a str,
    present: &'a str,
    selector: Option<&'a str>,
}

fn pointers(resource: &Resource) -> Result<Pointers<'_>, ApiError> {
    match &resource.nature {
        Nature::Builtin(kind) => kind.scale.as_ref().map(|scale| Pointers {
            wanted: scale.spec_replicas,
            present: scale.status_replicas,
            selector: Some(scale.selector),
        }),
        Nature::Custom(custom) => custom.scale.as_ref().map(|scale| Pointers {
            wanted: &scale.spec_replicas,
            present: &scale.status_replicas,
            selector: scale.selector.as_deref(),
        }),
    }
    .ok_or_else(ApiError::no_such_resource)
}

/// The `Scale` of an object.
pub(super) fn read(resource: &Resource, object: &Value) -> Result<Value, ApiError> {
    let pointers = pointers(resource)?;
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let mut metadata = json!({});
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        if let Some(value) = object["metadata"].get(field) {
            metadata[field] = value.clone();
        }
    }
    let mut status = json!({"replicas": number(pointers.present)});
    let selector = pointers
        .selector
        .and_then(|pointer| object.pointer(pointer));
    if let Some(selector) = selector.map(selector_text).filter(|text| !text.is_empty()) {
        status["selector"] = json!(selector);
    }
    let mut spec = json!({});
    // Zero is left out.
    let wanted = number(pointers.wanted);
    if wanted != 0 {
        spec["replicas"] = json!(wanted);
    }
    Ok(json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }))
}

/// A selector as kubectl writes it on the command line.
fn selector_text(selector: &Value) -> String {
    let labels = match selector {
        Value::String(text) => return text.clone(),
        Value::Object(fields) => match fields.get("matchLabels") {
            Some(Value::Object(labels)) => labels,
            _ => fields,
        },
        _ => return String::new(),
    };
    let pairs: Vec<String> = labels
        .iter()
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect();
    pairs.join(",")
}

/// Replaces the wanted replicas by those of the `Scale` in the body.
pub(super) fn update(call: &Call, scale: &Value) -> Result<Answer, ApiError> {
    let wanted = call_pointer(call)?;
    let mut named = scale.clone();
    super::update::check_name(&mut named, call.name())?;
    let replicas = scale.pointer("/spec/replicas").cloned().unwrap_or(json!(0));
    if let Some(negative) = replicas.as_i64().filter(|replicas| *replicas < 0) {
        call.live()?;
        let mut errors = Errors::new();
        let spec = Path::new("spec");
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(
            &spec.child("replicas"),
            &negative.into(),
            why,
        ));
        let about = About {
            group: "autoscaling",
            resource: "Scale",
            name: call.name(),
        };
        return Err(ApiError::invalid(about, &errors));
    }
    let written = call.writer()?.update(&call.key(), |live| {
        let mut object = live.clone();
        set(&mut object, &wanted, replicas.clone());
        let metadata = meta::of_mut(&mut object);
        metadata.remove("resourceVersion");
        for field in ["uid", "resourceVersion"] {
            let given = meta::text(scale, field);
            if !given.is_empty() {
                meta::of_mut(&mut object).insert(field.to_owned(), json!(given));
            }
        }
        Ok(Proposal {
            object,
            owned: false,
            complaints: Vec::new(),
        })
    })?;
    answer(call, &written.object.value_as(&call.resource.api_version))
}

/// Applies the wanted replicas of the `Scale` in the body.
pub(super) fn apply(call: &Call, scale: &Value) -> Result<Answer, ApiError> {
    let wanted = call_pointer(call)?;
    let resource = &call.resource;
    let mut config = json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": call.name()},
    });
    if let Some(replicas) = scale.pointer("/spec/replicas") {
        set(&mut config, &wanted, replicas.clone());
    }
    let writer = call.writer()?;
    let written = writer.update(&call.key(), |live| {
        let force = call.query.flag("force");
        let object = manage::apply(&writer, Some(live), &config, force)?;
        Ok(Proposal {
            object,
            owned: true,
            complaints: Vec::new(),
        })
    })?;
    answer(call, &written.object.value_as(&call.resource.api_version))
}

fn call_pointer(call: &Call) -> Result<String, ApiError> {
    Ok(pointers(&call.resource)?.wanted.to_owned())
}

/// Answers the `Scale` of an object, in the form that was asked for.
pub(super) fn answer(call: &Call, object: &Value) -> Result<Answer, ApiError> {
    let scale = call.rendering().scale(read(&call.resource, object)?);
    Ok(response::encoded(
        StatusCode::OK,
        call.accepted.encoding,
        &scale,
    ))
}

/// Sets the value at a pointer, making the objects on the way.
fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    for step in pointer.split('/').filter(|step| !step.is_empty()) {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[step];
    }
    *at = value;
}
