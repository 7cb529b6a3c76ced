//! The languages of patches, and what the result of a patch is held to.

use serde_json::{Map, Value};

use super::super::{Call, UnknownFields};
use super::operations;
use crate::decode::{self, Decoded, Document};
use crate::field::{Errors, FieldError, Path, escaped_json};
use crate::resource::Resource;
use crate::status::{About, ApiError};
use crate::strategic::{self, StrategicError};
use crate::typed::Typed;

/// The most operations of one JSON patch.
const MOST_OPERATIONS: usize = 10_000;

/// The language of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Json,
    Merge,
    Strategic,
    Apply,
}

/// A parsed patch that is no apply.
#[derive(Debug)]
pub(super) struct Patch {
    change: Change,
    /// Fields of the patch that came twice.
    complaints: Vec<String>,
}

#[derive(Debug)]
enum Change {
    Json(Vec<Value>),
    Merge(Value),
    Strategic(Map<String, Value>),
}

impl Patch {
    /// Reads a patch.
    pub(super) fn parse(body: &[u8], language: Language) -> Result<Self, ApiError> {
        let bad = |why: &str| ApiError::bad_request(format!("error decoding patch: {why}"));
        let document = decode::json(body).map_err(|why| match language {
            Language::Strategic => ApiError::bad_request(why),
            _ => bad(&why),
        })?;
        let sort = document.sort();
        let mut complaints = Vec::new();
        let value = document.into_value(&mut complaints);
        let change = match (language, value) {
            (Language::Json, Value::Array(operations)) => {
                if operations.len() > MOST_OPERATIONS {
                    return Err(ApiError::too_many_operations(
                        operations.len(),
                        MOST_OPERATIONS,
                    ));
                }
                if let Some(sort) = operations.iter().find_map(no_operation) {
                    return Err(bad(&format!(
                        "json: cannot unmarshal {sort} into Go value of type handlers.jsonPatchOp"
                    )));
                }
                complaints = complaints_of_operations(&operations, &complaints);
                Change::Json(operations)
            }
            (Language::Json, Value::Null) => Change::Json(Vec::new()),
            (Language::Json, _) => {
                return Err(bad(&format!(
                    "json: cannot unmarshal {sort} into Go value of type []handlers.jsonPatchOp"
                )));
            }
            (Language::Strategic, Value::Object(change)) => Change::Strategic(change),
            (Language::Strategic, _) => {
                return Err(ApiError::bad_request(format!(
                    "json: cannot unmarshal {sort} into Go value of type map[string]interface {{}}"
                )));
            }
            (_, change @ Value::Object(_)) => Change::Merge(change),
            (_, Value::Null) => return Err(ApiError::bad_request("Invalid JSON Patch")),
            _ => {
                return Err(bad(&format!(
                    "json: cannot unmarshal {sort} into Go value of type map[string]interface {{}}"
                )));
            }
        };
        Ok(Patch { change, complaints })
    }

    /// The object with the patch. Strategic ones are of built-in types.
    fn apply_to(&self, live: &Value, typed: Typed<'_>) -> Result<Value, ApiError> {
        let mut object = live.clone();
        match &self.change {
            Change::Json(operations) => operations::run(&mut object, operations)?,
            Change::Merge(patch) => json_patch::merge(&mut object, patch),
            Change::Strategic(patch) => {
                let ty = decode::type_of_kind(typed.api_version, typed.kind);
                if let (Some(ty), Value::Object(object)) = (ty, &mut object) {
                    strategic::merge(ty, object, patch.clone()).map_err(|why| impossible(&why))?;
                }
            }
        }
        Ok(object)
    }

    /// The object with the patch, read as one that was sent.
    pub(super) fn read(
        &self,
        call: &Call,
        live: &Value,
        unknown_fields: UnknownFields,
    ) -> Result<Decoded, ApiError> {
        let resource = &call.resource;
        if !resource.is_custom() {
            return self.read_typed(resource.typed(), live, unknown_fields);
        }
        let mut patched = self.apply_to(live, resource.typed())?;
        check_custom(resource, &patched)?;
        resource.check_type(&mut patched)?;
        let decoded = decode::custom(Document::from(patched.clone()));
        let mut decoded = decoded.map_err(|why| refused(&escaped_json(&patched), &why))?;
        decoded.complaints.extend(self.complaints.clone());
        decoded.shown = match unknown_fields {
            UnknownFields::Refused => Some(escaped_json(&patched).into()),
            _ => None,
        };
        Ok(decoded)
    }

    /// As [`Patch::read`], of an object of a built-in type.
    pub(super) fn read_typed(
        &self,
        typed: Typed<'_>,
        live: &Value,
        unknown_fields: UnknownFields,
    ) -> Result<Decoded, ApiError> {
        let patched = self.apply_to(live, typed)?;
        let refuse = |patched: &Value, why: &str| refused(&self.shown(patched, live), why);
        if !matches!(self.change, Change::Strategic(_)) {
            let text = |field: &str| {
                patched
                    .get(field)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            typed
                .check(text("apiVersion"), text("kind"))
                .map_err(|why| refuse(&patched, &why))?;
        }
        let document = Document::from(patched.clone());
        let mut decoded =
            decode::builtin(typed.api_version, typed.kind, document).map_err(|why| {
                match self.change {
                    Change::Strategic(_) => refuse(&patched, &converted(&why)),
                    _ => refuse(&patched, &why),
                }
            })?;
        decoded.object["apiVersion"] = typed.api_version.into();
        decoded.object["kind"] = typed.kind.into();
        let mut complaints = self.complaints.clone();
        complaints.append(&mut decoded.complaints);
        if unknown_fields == UnknownFields::Refused && !complaints.is_empty() {
            let why = format!("strict decoding error: {}", complaints.join(", "));
            return Err(refuse(&patched, &why));
        }
        Ok(Decoded {
            object: decoded.object,
            complaints,
            hollow: decoded.hollow,
            blank: decoded.blank,
            shown: None,
        })
    }

    /// What a refusal shows: the patched object, or the patch where that is merged
    /// into the object as the server has it.
    fn shown(&self, patched: &Value, live: &Value) -> String {
        match &self.change {
            Change::Strategic(patch) => {
                strategic::printed(&Value::Object(strategic::spent(patch, live)))
            }
            _ => escaped_json(patched),
        }
    }
}

/// Refuses a patch that makes of a custom resource something of another type.
fn check_custom(resource: &Resource, patched: &Value) -> Result<(), ApiError> {
    let text = |field: &str| patched.get(field).and_then(Value::as_str);
    let shown = || escaped_json(patched);
    if text("kind").unwrap_or_default().is_empty() {
        let why = format!("Object 'Kind' is missing in '{}'", shown());
        return Err(refused(&shown(), &why));
    }
    match text("apiVersion") {
        Some(other) if other.matches('/').count() > 1 => {
            let why = format!("unexpected GroupVersion string: {other}");
            Err(refused(&shown(), &why))
        }
        Some(other) if other != resource.api_version => {
            let mut errors = Errors::new();
            let why = format!("must be {}", resource.api_version);
            errors.push(FieldError::invalid_str(
                &Path::new("apiVersion"),
                other,
                why,
            ));
            let name = patched.pointer("/metadata/name").and_then(Value::as_str);
            let about = resource.about_kind(name.unwrap_or_default());
            Err(ApiError::invalid(about, &errors))
        }
        _ => Ok(()),
    }
}

/// Why a strategic patch cannot be done.
fn impossible(why: &StrategicError) -> ApiError {
    match why {
        StrategicError::Format(_) => ApiError::bad_request(why.to_string()),
        StrategicError::Nested => ApiError::patch_rejected(),
        _ => ApiError::internal(why.to_string()),
    }
}

/// What another decoder of the server says, which reads maps instead of texts.
pub(super) fn converted(why: &str) -> String {
    if why.starts_with("illegal base64") {
        return format!("error decoding from json: {why}");
    }
    let Some((sort, rest)) = why
        .strip_prefix("json: cannot unmarshal ")
        .and_then(|rest| rest.split_once(" into "))
    else {
        return why.to_owned();
    };
    let ty = rest.rsplit_once(" of type ").map_or("", |(_, ty)| ty);
    let is_number = sort.starts_with("number");
    match ty {
        _ if ty.starts_with("map[") => format!("cannot restore map from {sort}"),
        _ if ty.starts_with("[]") => format!("cannot restore slice from {sort}"),
        _ if is_number => {
            let from = if sort.contains('.') {
                "float64"
            } else {
                "int64"
            };
            format!("cannot convert {from} to {ty}")
        }
        _ if ty.contains('.') => format!("cannot restore struct from: {sort}"),
        _ => format!("unrecognized type: {ty}"),
    }
}

/// 422 about the outcome of a patch.
pub(in crate::rest) fn refused(shown: &str, why: &str) -> ApiError {
    let nothing = About {
        group: "",
        resource: "",
        name: "",
    };
    let mut errors = Errors::new();
    errors.push(FieldError::invalid_str(&Path::new("patch"), shown, why));
    ApiError::invalid(nothing, &errors)
}

/// What is there in place of an operation, as messages call it; null is an operation
/// without fields.
fn no_operation(value: &Value) -> Option<&'static str> {
    match value {
        Value::Object(_) | Value::Null => None,
        Value::Array(_) => Some("array"),
        Value::String(_) => Some("string"),
        Value::Number(_) => Some("number"),
        Value::Bool(_) => Some("bool"),
    }
}

/// What is wrong with the fields of operations: they are few and known.
fn complaints_of_operations(operations: &[Value], duplicates: &[String]) -> Vec<String> {
    let mut complaints: Vec<String> = duplicates
        .iter()
        .map(|complaint| format!("json patch {complaint}"))
        .collect();
    for (index, operation) in operations.iter().enumerate() {
        for field in operation
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name)
        {
            if !matches!(field.as_str(), "op" | "path" | "from" | "value") {
                complaints.push(format!("json patch unknown field \"[{index}].{field}\""));
            }
        }
    }
    complaints
}
