//! The scale subresource: the replicas of an object, seen as a `Scale`.

use std::collections::BTreeMap;

use http::StatusCode;
use reeve_ssa::scale::ScaleFields;
use reeve_ssa::{Apply, FieldSet, ManagedFields, Path as OwnedPath, Update};
use serde_json::{Value, json};

use super::write::Proposal;
use super::{Call, manage, meta};
use crate::admission::policy::Operation;
use crate::field::{Errors, FieldError, Path};
use crate::http::response::{self, Answer};
use crate::registry::replicas::{self, dotted};
use crate::resource::{Nature, Resource};
use crate::status::{About, ApiError};
use crate::typed::SCALE;

/// The name of the subresource.
const SUBRESOURCE: &str = "scale";

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
fn before(resource: &Resource, object: &Value) -> Result<Value, ApiError> {
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
pub(super) fn update(call: &Call, sent: &Value) -> Result<Answer, ApiError> {
    let mut sent = sent.clone();
    super::update::check_name(&mut sent, call.name())?;
    write(call, |before| Ok(owned(call, before, sent.clone())))
}

/// Replaces the wanted replicas by those of the `Scale` that `change` makes of the one
/// that is there.
pub(super) fn patch(
    call: &Call,
    mut change: impl FnMut(&Value) -> Result<Value, ApiError>,
) -> Result<Answer, ApiError> {
    write(call, |before| {
        let mut scale = change(before)?;
        super::update::check_name(&mut scale, call.name())?;
        Ok(owned(call, before, scale))
    })
}

/// Applies the wanted replicas of the `Scale` in the body, which `read` brings into
/// its type once it is merged.
pub(super) fn apply(
    call: &Call,
    config: &Value,
    read: impl Fn(Value) -> Result<Value, ApiError>,
) -> Result<Answer, ApiError> {
    write(call, |before| {
        let applied = reeve_ssa::apply(Apply {
            schema: SCALE.schema(),
            versions: &[],
            live: Some(before),
            config,
            manager: call.manager(),
            force: call.query.flag("force"),
            subresource: SUBRESOURCE,
            now: &call.server.clock.timestamp(),
            reset: &FieldSet::new(),
        });
        let mut scale = read(applied.map_err(manage::refused)?.object)?;
        super::update::check_name(&mut scale, call.name())?;
        Ok(scale)
    })
}

/// Writes the scale that `propose` makes of the one that is there. Both have the
/// owners of the replicas.
fn write(
    call: &Call,
    mut propose: impl FnMut(&Value) -> Result<Value, ApiError>,
) -> Result<Answer, ApiError> {
    let resource = &call.resource;
    let wanted = pointers(resource)?.wanted;
    let written = call.writer()?.update(&call.key(), |live| {
        let owners = ManagedFields::of(live).map_err(|why| ApiError::internal(why.to_string()))?;
        let fields = fields(call, &owners);
        let mut scale = before(resource, live)?;
        fields.to_scale(&owners).write_to(&mut scale);
        let before = scale;
        let mut scale = propose(&before)?;
        call.change_sent(Operation::Update, SCALE, &mut scale, Some(&before))?;
        check(call, &scale, live)?;
        let replicas = scale.pointer("/spec/replicas").cloned();
        let mut object = live.clone();
        set(&mut object, wanted, replicas.unwrap_or(json!(0)));
        let metadata = meta::of_mut(&mut object);
        // A version that is the live one's may be so because nobody named another.
        metadata.remove("resourceVersion");
        let (version, uid) = (
            meta::text(&scale, "resourceVersion"),
            meta::text(&scale, "uid"),
        );
        if !version.is_empty() && version != meta::text(live, "resourceVersion") {
            metadata.insert("resourceVersion".to_owned(), json!(version));
        }
        if !uid.is_empty() && !call.patches {
            metadata.insert("uid".to_owned(), json!(uid));
        }
        let of_scale = ManagedFields::of(&scale).unwrap_or_default();
        fields
            .to_parent(&owners, &of_scale, &resource.api_version)
            .write_to(&mut object);
        Ok(Proposal {
            object,
            owned: true,
            ..Proposal::default()
        })
    })?;
    let shown = match call.query.dry_run() {
        true => resource.shown_anew_now(written.object)?,
        false => resource.shown_now(written.object)?,
    };
    answer(call, &shown.value_as(resource))
}

/// Refuses what no scale may be.
fn check(call: &Call, scale: &Value, live: &Value) -> Result<(), ApiError> {
    let resource = &call.resource;
    let replicas = scale
        .pointer("/spec/replicas")
        .and_then(Value::as_i64)
        .unwrap_or(0);
    if resource.is_custom() {
        if replicas == NONE {
            return Err(ApiError::bad_request(format!(
                "the spec replicas field {:?} cannot be empty",
                dotted(pointers(resource)?.wanted)
            )));
        }
        // They are looked at as a whole.
        return Ok(());
    }
    if replicas < 0 {
        let mut errors = Errors::new();
        let spec = Path::new("spec");
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(
            &spec.child("replicas"),
            &replicas.into(),
            why,
        ));
        let about = About {
            group: "autoscaling",
            resource: "Scale",
            name: call.name(),
        };
        return Err(ApiError::invalid(about, &errors));
    }
    let (given, uid) = (meta::text(scale, "uid"), meta::text(live, "uid"));
    // Of an update it is looked at before.
    if call.patches && !given.is_empty() && given != uid {
        let about = About {
            group: &resource.group,
            resource: &format!("{}/{SUBRESOURCE}", resource.plural),
            name: call.name(),
        };
        let why =
            format!("Precondition failed: UID in precondition: {given}, UID in object meta: {uid}");
        return Err(ApiError::conflict(about, &why));
    }
    Ok(())
}

/// The scale with its owners after a write that is no apply.
fn owned(call: &Call, before: &Value, mut scale: Value) -> Value {
    // Zero is left out, and what is left out is nobody's.
    let spec = scale.get_mut("spec").and_then(Value::as_object_mut);
    if let Some(spec) = spec
        && spec.get("replicas") == Some(&json!(0))
    {
        spec.remove("replicas");
    }
    reeve_ssa::update(Update {
        schema: SCALE.schema(),
        versions: &[],
        live: Some(before),
        object: scale,
        manager: call.manager(),
        subresource: SUBRESOURCE,
        now: &call.server.clock.timestamp(),
        reset: &FieldSet::new(),
    })
}

/// Where the object keeps its replicas, in each version that somebody owns fields in.
fn fields(call: &Call, owners: &ManagedFields) -> ScaleFields {
    let resource = &call.resource;
    if !resource.is_custom() {
        return ScaleFields::spec_replicas(&resource.api_version);
    }
    // A version without the subresource, or one that is not served any more, has none.
    let versions = owners.iter().map(|(_, owned)| owned.api_version.clone());
    let mut replicas: BTreeMap<_, _> = versions.map(|version| (version, None)).collect();
    for version in call.server.registry.customs() {
        if version.table == resource.table {
            let path = pointers(&version).ok().map(|pointers| {
                OwnedPath::fields(pointers.wanted.split('/').filter(|step| !step.is_empty()))
            });
            replicas.insert(version.api_version.clone(), path);
        }
    }
    ScaleFields { replicas }
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
