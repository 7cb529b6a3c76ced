//! Patch: changing parts of an object, in four languages.

use std::cell::Cell;

use http::StatusCode;
use serde_json::Value;

use super::write::{Proposal, UnknownFields};
use super::{Call, manage, meta, scale};
use crate::field::{Errors, FieldError, Path};
use crate::http::negotiate;
use crate::http::query::invalid_options;
use crate::http::response::{self, Answer};
use crate::status::{About, ApiError};
use crate::strategic;
use crate::types;

/// The language of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Json,
    Merge,
    Strategic,
    Apply,
}

/// Changes the object that the path names as the body says.
pub(super) fn patch(call: &Call) -> Result<Answer, ApiError> {
    let language = language(call)?;
    if language == Language::Apply {
        return apply(call);
    }
    if call.query.get("force").is_some() {
        let mut errors = Errors::new();
        let why = "may not be specified for non-apply patch";
        errors.push(FieldError::forbidden(&Path::new("force"), why));
        return Err(invalid_options("PatchOptions", &errors));
    }
    let patch = Patch::parse(call, language)?;
    if call.subresource() == Some("scale") {
        let live = call.live()?;
        let before = scale::read(&call.resource, &live.value_as(&call.resource.api_version))?;
        return scale::update(call, &patch.apply_to(&before)?);
    }
    let writer = call.writer()?;
    let mut warnings = Vec::new();
    let written = writer.update(&call.key(), |live| {
        let mut object = patch.apply_to(live)?;
        warnings = patch.decode(call, &mut object, writer.unknown_fields)?;
        call.resource.check_type(&mut object)?;
        super::update::check_name(&mut object, call.name())?;
        // A version that the patch did not name is that of the live object, and
        // no condition.
        if meta::text(&object, "resourceVersion") == meta::text(live, "resourceVersion") {
            meta::of_mut(&mut object).remove("resourceVersion");
        }
        Ok(Proposal {
            object,
            owned: false,
        })
    })?;
    let mut answer = call.answer(StatusCode::OK, &written.object);
    response::warn(&mut answer, &warnings);
    response::warn(&mut answer, &written.warnings);
    Ok(answer)
}

fn language(call: &Call) -> Result<Language, ApiError> {
    const CUSTOM: &str =
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
    let custom = call.resource.is_custom();
    match negotiate::content_type(&call.headers) {
        "application/json-patch+json" => Ok(Language::Json),
        "application/merge-patch+json" => Ok(Language::Merge),
        "application/strategic-merge-patch+json" if !custom => Ok(Language::Strategic),
        "application/apply-patch+yaml" => Ok(Language::Apply),
        "application/strategic-merge-patch+json" => Err(ApiError::unsupported_media_type(CUSTOM)),
        _ => Err(ApiError::no_such_patch()),
    }
}

/// A parsed patch that is no apply.
enum Patch {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Value),
}

impl Patch {
    fn parse(call: &Call, language: Language) -> Result<Self, ApiError> {
        let patch = negotiate::json(&call.body);
        let bad = |why: String| ApiError::bad_request(format!("error decoding patch: {why}"));
        let kind = |patch: &Value| types::json_kind(patch);
        match language {
            Language::Json => match patch.map_err(bad)? {
                // What is no operation cannot be carried out.
                patch @ Value::Array(_) => match serde_json::from_value(patch) {
                    Ok(patch) => Ok(Patch::Json(patch)),
                    Err(_) => Err(ApiError::patch_rejected()),
                },
                other => Err(bad(format!(
                    "json: cannot unmarshal {} into Go value of type []handlers.jsonPatchOp",
                    kind(&other)
                ))),
            },
            Language::Strategic => match patch.map_err(ApiError::bad_request)? {
                patch @ Value::Object(_) => Ok(Patch::Strategic(patch)),
                other => Err(ApiError::bad_request(format!(
                    "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                    kind(&other)
                ))),
            },
            _ => match patch.map_err(bad)? {
                patch @ Value::Object(_) => Ok(Patch::Merge(patch)),
                other => Err(bad(format!(
                    "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                    kind(&other)
                ))),
            },
        }
    }

    fn apply_to(&self, live: &Value) -> Result<Value, ApiError> {
        let mut object = live.clone();
        match self {
            Patch::Json(patch) => {
                json_patch::patch(&mut object, patch).map_err(|_| ApiError::patch_rejected())?;
            }
            Patch::Merge(patch) => json_patch::merge(&mut object, patch),
            Patch::Strategic(patch) => strategic::merge(&mut object, patch)
                .map_err(|error| ApiError::bad_request(error.to_string()))?,
        }
        Ok(object)
    }

    /// Decodes a patched object: what is wrong with it is the patch's fault.
    fn decode(
        &self,
        call: &Call,
        object: &mut Value,
        unknown_fields: UnknownFields,
    ) -> Result<Vec<String>, ApiError> {
        let patched = match self {
            Patch::Strategic(patch) => go_value(patch),
            _ => object.to_string(),
        };
        let strategic = matches!(self, Patch::Strategic(_));
        let unknown = call.resource.decode(object);
        let unknown = unknown.map_err(|why| if strategic { why.patch } else { why.json });
        let warnings = unknown.and_then(|unknown| unknown_fields.told(&unknown));
        warnings.map_err(|why| {
            let mut errors = Errors::new();
            errors.push(FieldError::invalid_str(&Path::new("patch"), &patched, why));
            let about = About {
                group: "",
                resource: "",
                name: "",
            };
            ApiError::invalid(about, &errors)
        })
    }
}

/// A value as Go prints it, which is how the server repeats a strategic merge
/// patch.
fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(go_value).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let fields = fields.into_iter();
            let fields: Vec<_> = fields
                .map(|(name, v)| format!("{name}:{}", go_value(v)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
        other => other.to_string(),
    }
}

/// Server-side apply: the body is what the caller wants to own.
fn apply(call: &Call) -> Result<Answer, ApiError> {
    if call.query.get("fieldManager").is_none() {
        let mut errors = Errors::new();
        let why = "is required for apply patch";
        errors.push(FieldError::required(&Path::new("fieldManager"), why));
        return Err(invalid_options("PatchOptions", &errors));
    }
    let resource = &call.resource;
    let mut config = negotiate::yaml(&call.body)
        .map_err(|why| ApiError::bad_request(format!("error decoding YAML: {why}")))?;
    check_config(call, &mut config)?;
    let force = call.query.flag("force");
    let writer = call.writer()?;
    let key = call.key();
    if call.subresource() == Some("scale") {
        return scale::apply(call, &config);
    }
    // Whether the object is there may change while we look: try again then.
    loop {
        if call.server.store.get(&resource.table, &key).is_some() {
            let seen = Cell::new(false);
            let written = writer.update(&key, |live| {
                seen.set(true);
                let mut object = manage::apply(&writer, Some(live), &config, force)?;
                // As above: a version is a condition only where the caller sent it.
                if meta::text(&config, "resourceVersion").is_empty() {
                    meta::of_mut(&mut object).remove("resourceVersion");
                }
                Ok(Proposal {
                    object,
                    owned: true,
                })
            });
            let written = match written {
                Err(error) if error.code() == 404 && !seen.get() => continue,
                other => other?,
            };
            let mut answer = call.answer(StatusCode::OK, &written.object);
            response::warn(&mut answer, &written.warnings);
            return Ok(answer);
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
        match writer.create(
            call.namespace(),
            Proposal {
                object,
                owned: true,
            },
        ) {
            Err(error) if error.reason() == "AlreadyExists" && !writer.dry_run => {}
            written => {
                let written = written?;
                let mut answer = call.answer(StatusCode::CREATED, &written.object);
                response::warn(&mut answer, &written.warnings);
                return Ok(answer);
            }
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
    let named = call.subresource() != Some("scale");
    if named {
        resource.check_type(config)?;
    }
    if meta::text(config, "name").is_empty() {
        super::update::check_name(config, call.name())?;
    }
    meta::place(config, resource, call.namespace())?;
    super::update::check_name(config, call.name())
}
