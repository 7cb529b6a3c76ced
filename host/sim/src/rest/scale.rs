//! The scale subresource: the replicas of an object, seen as a `Scale`.

use http::StatusCode;
use serde_json::{Value, json};

use super::write::Proposal;
use super::{Call, manage, meta};
use crate::field::{Errors, FieldError, Path};
use crate::http::response::{self, Answer};
use crate::registry::replicas::{self, dotted};
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

/// What a patch finds where an object has no replicas yet, and must not leave.
const NONE: i64 = i32::MIN as i64;

/// The `Scale` of an object.
///
/// # Errors
///
/// 500 for a custom resource without replicas, or with other values than numbers
/// at the places that its definition names.
pub(super) fn read(resource: &Resource, object: &Value) -> Result<Value, ApiError> {
    let pointers = pointers(resource)?;
    let is_custom = resource.is_custom();
    let number = |pointer: &str| match object.pointer(pointer) {
        None => Ok(None),
        Some(value) if !is_custom => Ok(value.as_i64()),
        Some(value) => value
            .as_i64()
            .map(Some)
            .ok_or_else(|| misplaced(pointer, value, "int64")),
    };
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
    let wanted = number(pointers.wanted)?;
    let mut status = json!({"replicas": number(pointers.present)?.unwrap_or(0)});
    if let Some(pointer) = pointers.selector
        && let Some(selector) = object.pointer(pointer)
    {
        let text = match selector {
            Value::String(text) => text.clone(),
            other if is_custom => return Err(misplaced(pointer, other, "string")),
            other => selector_text(other),
        };
        if !text.is_empty() {
            status["selector"] = json!(text);
        }
    }
    if is_custom && wanted.is_none() {
        return Err(ApiError::internal_error(&format!(
            "the spec replicas field {:?} does not exist",
            dotted(pointers.wanted)
        )));
    }
    let mut spec = json!({});
    // Zero is left out.
    if let Some(wanted) = wanted.filter(|wanted| *wanted != 0) {
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

/// The `Scale` that a patch is of: a custom resource may lack the replicas that the
/// patch is to set.
pub(super) fn before(resource: &Resource, object: &Value) -> Result<Value, ApiError> {
    let wanted = pointers(resource)?.wanted;
    if !resource.is_custom() || object.pointer(wanted).is_some() {
        return read(resource, object);
    }
    let mut object = object.clone();
    set(&mut object, wanted, json!(NONE));
    read(resource, &object)
}

/// 500: another value than a custom resource's definition promises.
fn misplaced(pointer: &str, value: &Value, wanted: &str) -> ApiError {
    ApiError::internal(replicas::misplaced(pointer, value, wanted))
}

/// The selector of a built-in kind as one text, its requirements by key.
fn selector_text(selector: &Value) -> String {
    let of = |field: &str| selector.get(field);
    let is_structured = of("matchLabels").is_some() || of("matchExpressions").is_some();
    let labels = if is_structured {
        of("matchLabels")
    } else {
        Some(selector)
    };
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let mut requirements: Vec<(&str, String)> = labels
        .filter_map(|(key, value)| Some((key.as_str(), format!("{key}={}", value.as_str()?))))
        .collect();
    let expressions = of("matchExpressions").and_then(Value::as_array);
    for expression in expressions.into_iter().flatten() {
        let text = |field: &str| expression[field].as_str().unwrap_or_default();
        let values = expression["values"].as_array().into_iter().flatten();
        let mut values: Vec<&str> = values.filter_map(Value::as_str).collect();
        values.sort_unstable();
        let (key, values) = (text("key"), values.join(","));
        let shown = match text("operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => continue,
        };
        requirements.push((key, shown));
    }
    requirements.sort_by_key(|(key, _)| *key);
    let texts: Vec<String> = requirements.into_iter().map(|(_, text)| text).collect();
    texts.join(",")
}

/// Replaces the wanted replicas by those of the `Scale` in the body.
pub(super) fn update(call: &Call, scale: &Value) -> Result<Answer, ApiError> {
    let wanted = call_pointer(call)?;
    let mut named = scale.clone();
    super::update::check_name(&mut named, call.name())?;
    let replicas = scale.pointer("/spec/replicas").cloned().unwrap_or(json!(0));
    if call.resource.is_custom() && replicas == NONE {
        call.live()?;
        return Err(ApiError::bad_request(format!(
            "the spec replicas field {:?} cannot be empty",
            dotted(&wanted)
        )));
    }
    // Custom resources are looked at as a whole.
    if let Some(negative) = replicas.as_i64().filter(|replicas| *replicas < 0)
        && !call.resource.is_custom()
    {
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
            ..Proposal::default()
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
        let mut object = manage::apply(&writer, Some(live), &config, force)?;
        // A version is a condition only where the caller sent it.
        let given = meta::text(scale, "resourceVersion");
        let metadata = meta::of_mut(&mut object);
        metadata.remove("resourceVersion");
        if !given.is_empty() {
            metadata.insert("resourceVersion".to_owned(), json!(given));
        }
        Ok(Proposal {
            object,
            owned: true,
            ..Proposal::default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_one_text_by_key() {
        for (selector, expected) in [
            (json!({"b": "2", "a": "1"}), "a=1,b=2"),
            (json!({"matchLabels": {"a": "1"}}), "a=1"),
            (
                json!({
                    "matchLabels": {"m": "1"},
                    "matchExpressions": [
                        {"key": "z", "operator": "DoesNotExist"},
                        {"key": "b", "operator": "NotIn", "values": ["y", "x"]},
                        {"key": "a", "operator": "In", "values": ["x"]},
                        {"key": "n", "operator": "Exists"},
                    ],
                }),
                "a in (x),b notin (x,y),m=1,n,!z",
            ),
            (json!({}), ""),
        ] {
            assert_eq!(selector_text(&selector), expected);
        }
    }
}
