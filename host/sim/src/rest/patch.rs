//! Patch: changing parts of an object, in four languages.

pub(super) mod language;
pub(crate) mod operations;

use std::cell::Cell;
use std::collections::BTreeSet;

use http::StatusCode;
use serde_json::Value;

use self::language::{Language, Patch};
use super::precondition::Versioned;
use super::write::Proposal;
use super::{Call, UnknownFields, manage, meta, scale};
use crate::decode::{self, Decoded, Document};
use crate::field::{Errors, FieldError, Path};
use crate::http::negotiate;
use crate::http::response::Answer;
use crate::kinds::METADATA_OF_CLIENTS;
use crate::status::ApiError;
use crate::typed::{SCALE, Typed};

/// Changes the object that the path names as the body says.
pub(super) fn patch(call: &Call) -> Result<Answer, ApiError> {
    let language = language(call)?;
    let mut errors = Errors::new();
    if language == Language::Apply {
        if call.query.get("fieldManager").is_none() {
            let why = "is required for apply patch";
            errors.push(FieldError::required(&Path::new("fieldManager"), why));
        }
    } else if call.query.get("force").is_some() {
        let why = "may not be specified for non-apply patch";
        errors.push(FieldError::forbidden(&Path::new("force"), why));
    }
    call.query.check_write("PatchOptions", errors)?;
    if language == Language::Apply {
        return apply(call);
    }
    let patch = Patch::parse(&call.body, language)?;
    if call.subresource() == Some("scale") {
        return scale::patch(call, |before| {
            let scale = patch.read_typed(SCALE, before, call.unknown_fields())?;
            call.complain(SCALE, &scale.complaints)?;
            Ok(scale.object)
        });
    }
    let writer = call.writer()?;
    let written = writer.update(&call.key(), |live| {
        let Decoded {
            mut object,
            complaints,
            hollow,
            blank,
            shown,
        } = patch.read(call, live, writer.unknown_fields)?;
        super::update::check_name(&mut object, call.name())?;
        // A version that the patch did not name is that of the live object, and
        // no condition.
        let is_of_live =
            meta::text(&object, "resourceVersion") == meta::text(live, "resourceVersion");
        Ok(Proposal {
            object,
            version: if is_of_live {
                Versioned::OfLive
            } else {
                Versioned::ByCaller
            },
            owned: false,
            complaints,
            hollow,
            blank,
            odd: Value::Null,
            shown,
        })
    })?;
    call.answer(StatusCode::OK, written.object)
}

fn language(call: &Call) -> Result<Language, ApiError> {
    const CUSTOM: &str =
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
    let custom = call.resource.is_custom();
    match negotiate::content_type(&call.parts.headers) {
        "application/json-patch+json" => Ok(Language::Json),
        "application/merge-patch+json" => Ok(Language::Merge),
        "application/strategic-merge-patch+json" if !custom => Ok(Language::Strategic),
        "application/apply-patch+yaml" => Ok(Language::Apply),
        "application/strategic-merge-patch+json" => Err(ApiError::unsupported_media_type(CUSTOM)),
        _ => Err(ApiError::no_such_patch()),
    }
}

/// Server-side apply: the body is what the caller wants to own.
fn apply(call: &Call) -> Result<Answer, ApiError> {
    let resource = &call.resource;
    let bad = |why: &str| ApiError::bad_request(format!("error decoding YAML: {why}"));
    let (document, repeated) = decode::yaml(&call.body)
        .map_err(|why| bad(&format!("error converting YAML to JSON: {why}")))?;
    let sort = document.sort();
    let mut config = document.into_value(&mut Vec::new());
    if config.is_null() {
        config = Value::Object(serde_json::Map::new());
    }
    if !config.is_object() {
        return Err(bad(&format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {sort} into Go value of type map[string]interface {{}}"
        )));
    }
    check_config(call, &mut config)?;
    let force = call.query.flag("force");
    let (hollow, blank) = unlike(call, &config);
    let writer = call.writer()?;
    let key = call.key();
    if call.subresource() == Some("scale") {
        tell(call, call.unknown_fields(), repeated.as_deref())?;
        return scale::apply(call, &config, |scale| Ok(convert_to(SCALE, scale)?.object));
    }
    // Whether the object is there may change while we look: try again then.
    loop {
        if call.server.store.get(&resource.table, &key).is_some() {
            let seen = Cell::new(false);
            let written = writer.update(&key, |live| {
                seen.set(true);
                let mut object = manage::apply(&writer, Some(live), &config, force)?;
                tell(call, writer.unknown_fields, repeated.as_deref())?;
                let odd = odd_metadata(call, &config, &object);
                if !odd.is_null() {
                    renew_time(&writer, &mut object);
                }
                let mut object = convert(call, object)?;
                super::update::check_name(&mut object, call.name())?;
                // As above: a version is a condition only where the caller sent it.
                let is_of_live = meta::text(&config, "resourceVersion").is_empty();
                Ok(Proposal {
                    object,
                    version: if is_of_live {
                        Versioned::OfLive
                    } else {
                        Versioned::ByCaller
                    },
                    owned: true,
                    hollow: hollow.clone(),
                    blank: blank.clone(),
                    odd,
                    ..Proposal::default()
                })
            });
            let written = match written {
                Err(error) if error.code() == 404 && !seen.get() => continue,
                other => other?,
            };
            return call.answer(StatusCode::OK, written.object);
        }
        if call.subresource().is_some() {
            return Err(ApiError::not_found(resource.about(call.name())));
        }
        if !meta::text(&config, "uid").is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {}, and no existing object was found",
                meta::text(&config, "uid")
            );
            return Err(ApiError::conflict(resource.about(call.name()), &why));
        }
        let object = manage::apply(&writer, None, &config, force)?;
        tell(call, writer.unknown_fields, repeated.as_deref())?;
        let odd = odd_metadata(call, &config, &object);
        let mut object = convert(call, object)?;
        super::update::check_name(&mut object, call.name())?;
        let proposal = Proposal {
            object,
            owned: true,
            blank: blank.clone(),
            odd,
            ..Proposal::default()
        };
        match writer.create_if(call.namespace(), proposal, || call.may_create()) {
            Err(error) if error.is_raced() && !writer.dry_run => {}
            written => {
                let written = written?;
                return call.answer(StatusCode::CREATED, written.object);
            }
        }
    }
}

/// Refuses or warns of keys that came twice in a configuration.
fn tell(call: &Call, wanted: UnknownFields, repeated: Option<&str>) -> Result<(), ApiError> {
    match (wanted, repeated) {
        (_, None) | (UnknownFields::Ignored, _) => Ok(()),
        (UnknownFields::Refused, Some(repeated)) => Err(ApiError::bad_request(format!(
            "error strict decoding YAML: error converting YAML to JSON: {repeated}"
        ))),
        (UnknownFields::Warned, Some(repeated)) => {
            decode::warnings(repeated).for_each(|warning| call.warn(warning));
            Ok(())
        }
    }
}

/// Refuses a configuration that is not of the object in the path.
fn check_config(call: &Call, config: &mut Value) -> Result<(), ApiError> {
    let resource = &call.resource;
    let text = |field: &str| {
        config
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if api_version.is_empty() || kind.is_empty() {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let why = format!("invalid object type: {group}/{version}, Kind={kind}");
        return Err(ApiError::bad_request(why));
    }
    if config
        .pointer("/metadata/managedFields")
        .is_some_and(|fields| !fields.is_null())
    {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let typed = match call.subresource() {
        Some("scale") => SCALE,
        _ => resource.typed(),
    };
    if api_version != typed.api_version || kind != typed.kind {
        let shown = if api_version.contains('/') { "" } else { "/" };
        let why = format!("invalid object type: {shown}{api_version}, Kind={kind}");
        return Err(ApiError::bad_request(why));
    }
    Ok(())
}

/// Where a configuration has empty lists or maps, and null for bytes. What is there already
/// has none, so they are those of what the apply comes to.
fn unlike(call: &Call, config: &Value) -> (BTreeSet<String>, Vec<(String, String)>) {
    let resource = &call.resource;
    if resource.is_custom() || !(resource.minds_hollow() || has_null(config)) {
        return (BTreeSet::new(), Vec::new());
    }
    let document = Document::from(config.clone());
    // What cannot be read is refused later.
    let decoded = decode::builtin(&resource.api_version, &resource.kind, document);
    let decoded = decoded.unwrap_or_default();
    (decoded.hollow, decoded.blank)
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().any(has_null),
        Value::Array(items) => items.iter().any(has_null),
        _ => false,
    }
}

/// The parts of the metadata of a custom resource that are stored otherwise than they are read
/// again, where the empty and null ones are lost that were applied; null where there are none.
/// Nothing is lost of a part that others have put something into.
fn odd_metadata(call: &Call, config: &Value, object: &Value) -> Value {
    let mut odd = Value::Null;
    let Some(metadata) = config.get("metadata").filter(|_| call.resource.is_custom()) else {
        return odd;
    };
    let mut read = metadata.clone();
    decode::prune_metadata(&mut read, "metadata");
    let is_empty = |part: &Value| match part {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    for field in METADATA_OF_CLIENTS {
        let Some(part) = metadata.get(field) else {
            continue;
        };
        let shown = object["metadata"].get(field);
        let is_lost = !is_empty(part) || shown.is_none_or(is_empty);
        if is_lost && Some(part) != read.get(field) {
            odd[field] = part.clone();
        }
    }
    odd
}

/// Gives the fields that the writer has applied the present time, as the real server does
/// where what it has merged is not what it has read.
fn renew_time(writer: &super::write::Writer<'_>, object: &mut Value) {
    let entries = object.pointer_mut("/metadata/managedFields");
    let entries = entries.and_then(Value::as_array_mut).into_iter().flatten();
    for entry in entries {
        let is_whole = entry.get("subresource").is_none();
        if is_whole && entry["manager"] == *writer.manager && entry["operation"] == "Apply" {
            entry["time"] = writer.server.clock.timestamp().into();
        }
    }
}

/// Reads what an apply came to into the type of its kind.
fn convert(call: &Call, object: Value) -> Result<Value, ApiError> {
    let resource = &call.resource;
    if resource.is_custom() {
        return Ok(object);
    }
    Ok(convert_to(resource.typed(), object)?.object)
}

/// Reads what an apply came to into a built-in type.
fn convert_to(typed: Typed<'_>, object: Value) -> Result<Decoded, ApiError> {
    let described = format!("/{}", meta::text(&object, "name"));
    let document = Document::from(object);
    decode::builtin(typed.api_version, typed.kind, document).map_err(|why| {
        let slash = if typed.group.is_empty() { "/" } else { "" };
        let kind = format!("{slash}{}, Kind={}", typed.api_version, typed.kind);
        let why = language::converted(&why);
        ApiError::internal(format!(
            "failed to convert new object ({described}; {kind}) to proper version: unable to convert unstructured object to {kind}: {why}"
        ))
    })
}
