//! The rules that the objects of a resource follow, built-in and custom alike.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::decode::{self, Decoded, Document};
use crate::field::{Errors, FieldError, Path};
use crate::http::negotiate;
use crate::registry::custom::Custom;
use crate::resource::{Nature, Resource};
use crate::status::ApiError;
use crate::typed::Typed;

impl Resource {
    /// Reads an object that was sent for this resource.
    ///
    /// # Errors
    ///
    /// When it is of another type, or a value in it is of the wrong one.
    pub(crate) fn read(&self, document: Document, body: &[u8]) -> Result<Decoded, ApiError> {
        let has_kind = match document.get("kind") {
            Some(Document::Text(kind)) => !kind.is_empty(),
            _ => false,
        };
        if self.is_custom() && !has_kind {
            let (shown, body) = (negotiate::summary(body), String::from_utf8_lossy(body));
            return Err(ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): Object 'Kind' is missing in '{body}' ({shown})",
                self.kind
            )));
        }
        let mut decoded = if self.is_custom() {
            decode::custom(document).map_err(|why| self.typed().unreadable(&why))?
        } else {
            self.typed().read(document)?
        };
        self.check_type(&mut decoded.object)?;
        Ok(decoded)
    }

    /// Checks the type that an object says it has, and sets it where a built-in
    /// kind leaves it out.
    pub(crate) fn check_type(&self, object: &mut Value) -> Result<(), ApiError> {
        let Value::Object(fields) = object else {
            let why = format!(
                "the object provided is unrecognized (must be of type {}): couldn't get version/kind",
                self.kind
            );
            return Err(ApiError::bad_request(why));
        };
        let text = |field: &str| {
            fields
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if self.is_custom() {
            self.check_custom_type(fields, api_version, kind)?;
        } else {
            let typed = self.typed();
            typed
                .check(api_version, kind)
                .map_err(|why| typed.unconvertible(api_version, kind, &why))?;
        }
        fields.insert("apiVersion".to_owned(), json!(self.api_version));
        fields.insert("kind".to_owned(), json!(self.kind));
        Ok(())
    }

    /// The type of its objects, where that is built in.
    pub(crate) fn typed(&self) -> Typed<'_> {
        Typed {
            group: &self.group,
            api_version: &self.api_version,
            kind: &self.kind,
        }
    }

    fn check_custom_type(
        &self,
        fields: &Map<String, Value>,
        api_version: &str,
        kind: &str,
    ) -> Result<(), ApiError> {
        if api_version != self.api_version {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({})",
                self.api_version
            )));
        }
        if kind != self.kind {
            let mut errors = Errors::new();
            let why = format!("must be {}", self.kind);
            errors.push(FieldError::invalid_str(&Path::new("kind"), kind, why));
            let name = fields
                .get("metadata")
                .and_then(|m| m.get("name"))
                .and_then(Value::as_str);
            let about = crate::status::About {
                group: &self.group,
                resource: kind,
                name: name.unwrap_or_default(),
            };
            return Err(ApiError::invalid(about, &errors));
        }
        Ok(())
    }

    /// Brings an object from outside into the form that is stored. The answer is
    /// the paths of the fields that no schema knows and that were removed. What was
    /// `applied` keeps nulls that a custom resource may not have.
    pub(crate) fn decode(
        &self,
        object: &mut Value,
        applied: bool,
    ) -> Result<Vec<String>, ApiError> {
        match &self.nature {
            Nature::Builtin(kind) => {
                kind.normalize(object).map_err(|error| {
                    ApiError::bad_request(format!(
                        "{} in version \"{}\" cannot be handled as a {}: {error}",
                        self.kind, self.version, self.kind
                    ))
                })?;
                kind.default(object);
                Ok(Vec::new())
            }
            Nature::Custom(custom) => Ok(custom.decode(object, applied)),
        }
    }

    /// Brings what waited until it was known who owns it into the form that is stored.
    pub(crate) fn settle(&self, object: &mut Value) -> Result<(), ApiError> {
        match &self.nature {
            Nature::Builtin(kind) => kind
                .settle(object)
                .map_err(|error| ApiError::internal(error.to_string())),
            Nature::Custom(_) => Ok(()),
        }
    }

    /// Whether an object, as it was sent, has a map twice of which the client gave one.
    pub(crate) fn shares(&self, object: &Value) -> bool {
        matches!(&self.nature, Nature::Builtin(kind) if kind.shares(object))
    }

    /// Has both places of a map show what was added in one of them.
    pub(crate) fn share(&self, object: &mut Value) {
        if let Nature::Builtin(kind) = &self.nature {
            kind.share(object);
        }
    }

    /// Sets what is only set when a new object is read from where it is stored. The answer is
    /// what it was, if anything was set: that is stored by the next write of the object.
    pub(crate) fn fill_late(&self, object: &mut Value) -> Option<Value> {
        match &self.nature {
            Nature::Builtin(kind) => kind.fill_late(object),
            Nature::Custom(_) => None,
        }
    }

    /// Brings an object into the form that comes back from the store: the encoding
    /// of most built-in kinds there does not tell an empty list from none, and custom
    /// resources are kept in one version.
    ///
    /// # Errors
    ///
    /// 500 where a webhook is to bring it into that, and does not.
    pub(crate) fn encode(&self, object: &mut Value) -> Result<(), ApiError> {
        const AS_JSON: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];
        match &self.nature {
            Nature::Custom(custom) => custom.store(object)?,
            Nature::Builtin(_) if AS_JSON.contains(&self.group.as_str()) => {}
            Nature::Builtin(_) if self.kind == FREE_FORM => {}
            Nature::Builtin(kind) => {
                kind.store(object);
                empty_lists_are_none(object);
            }
        }
        Ok(())
    }

    /// An object as the server itself has it: of that, it shows the metadata and the
    /// columns, in whatever version they are asked for.
    pub(crate) fn internal(&self, object: &Value) -> Option<Value> {
        match &self.nature {
            Nature::Builtin(kind) => kind.internal(object),
            Nature::Custom(_) => None,
        }
    }

    /// What admission adds to a new object.
    pub(crate) fn admit(&self, object: &mut Value) {
        if let Nature::Builtin(kind) = &self.nature {
            kind.admit(object);
        }
    }

    /// Takes away what a creation cannot set.
    pub(crate) fn prepare_create(&self, object: &mut Value) {
        match &self.nature {
            Nature::Builtin(kind) => kind.prepare_create(object),
            Nature::Custom(custom) => {
                if custom.has_status
                    && let Some(fields) = object.as_object_mut()
                {
                    fields.remove("status");
                }
                set_generation(object, 1);
            }
        }
    }

    /// Puts back what a write of the whole cannot change.
    pub(crate) fn prepare_update(&self, object: &mut Value, old: &Value) {
        match &self.nature {
            Nature::Builtin(kind) => kind.prepare_update(object, old),
            Nature::Custom(custom) => {
                if custom.has_status {
                    copy(object, old, "status");
                }
                let generation = old.pointer("/metadata/generation").and_then(Value::as_i64);
                let changed = content(object, custom) != content(old, custom);
                set_generation(object, generation.unwrap_or(1) + i64::from(changed));
            }
        }
    }

    /// The stored object as an update is compared with it, where that is another one.
    pub(crate) fn as_compared(&self, live: &Value) -> Option<Value> {
        match &self.nature {
            Nature::Builtin(kind) => kind.as_compared(live),
            Nature::Custom(_) => None,
        }
    }

    /// Whether empty lists or maps in what is sent make a difference.
    pub(crate) fn minds_hollow(&self) -> bool {
        matches!(&self.nature, Nature::Builtin(kind) if kind.minds_hollow())
    }

    /// Counts a write with lists or maps that came empty, at the paths `hollow`, where
    /// the kind takes that for a change.
    pub(crate) fn count_hollow(&self, object: &mut Value, old: &Value, hollow: &BTreeSet<String>) {
        if let Nature::Builtin(kind) = &self.nature {
            kind.count_hollow(object, old, hollow);
        }
    }

    /// Puts back what a write through another subresource cannot change. Only
    /// `finalize` may change the finalizers of a Namespace, and nothing else, and only
    /// `approval` the conditions of a request for a certificate.
    pub(crate) fn prepare_other(&self, subresource: &str, object: &mut Value, old: &Value) {
        let finalizers = object.pointer("/spec/finalizers").cloned();
        let conditions = object.pointer("/status/conditions").cloned();
        if let Nature::Builtin(kind) = &self.nature {
            kind.prepare_part(subresource, object, old);
        }
        self.prepare_update(object, old);
        if self.plural == "namespaces" && subresource == "finalize" {
            object["spec"]["finalizers"] = finalizers.unwrap_or_default();
        }
        if self.group == "certificates.k8s.io"
            && subresource == "approval"
            && let Some(status) = object.get_mut("status").and_then(Value::as_object_mut)
        {
            replace(status, "conditions", conditions);
        }
    }

    /// Puts back what a write of the status cannot change.
    pub(crate) fn prepare_status(&self, object: &mut Value, old: &Value) {
        match &self.nature {
            Nature::Builtin(kind) => kind.prepare_status(object, old),
            Nature::Custom(_) => {
                let Some(fields) = object.as_object_mut() else {
                    return;
                };
                let status = fields.remove("status");
                let metadata = fields.get_mut("metadata").and_then(Value::as_object_mut);
                let managed = metadata.and_then(|metadata| metadata.remove("managedFields"));
                *fields = all_but(old, "status", |name, value| match name {
                    "metadata" => all_but(value, "managedFields", |_, value| value.clone()).into(),
                    _ => value.clone(),
                });
                replace(fields, "status", status);
                if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
                    replace(metadata, "managedFields", managed);
                }
            }
        }
    }

    /// What is wrong with a new object.
    pub(crate) fn validate_create(&self, object: &Value) -> Errors {
        match &self.nature {
            Nature::Builtin(kind) => kind.validate_create(object),
            Nature::Custom(custom) => custom.validate(self, object, None, false),
        }
    }

    /// What is wrong with a change of the whole.
    pub(crate) fn validate_update(&self, object: &Value, old: &Value) -> Errors {
        match &self.nature {
            Nature::Builtin(kind) => kind.validate_update(object, old),
            Nature::Custom(custom) => custom.validate(self, object, Some(old), false),
        }
    }

    /// What is wrong with a change that came by the path of a part.
    pub(crate) fn validate_part_update(&self, part: &str, object: &Value, old: &Value) -> Errors {
        match &self.nature {
            Nature::Builtin(kind) => kind.validate_part_update(part, object, old),
            Nature::Custom(_) => self.validate_update(object, old),
        }
    }

    /// What is wrong with a change of the status.
    pub(crate) fn validate_status_update(&self, object: &Value, old: &Value) -> Errors {
        match &self.nature {
            Nature::Builtin(kind) => kind.validate_status_update(object, old),
            Nature::Custom(custom) => custom.validate(self, object, Some(old), true),
        }
    }
}

/// The built-in kind with content of any form.
const FREE_FORM: &str = "ControllerRevision";

fn empty_lists_are_none(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if name != "managedFields" {
                    empty_lists_are_none(value);
                }
            }
        }
        Value::Array(items) if items.is_empty() => *value = Value::Null,
        Value::Array(items) => items.iter_mut().for_each(empty_lists_are_none),
        _ => {}
    }
}

/// What of a custom resource counts for its generation.
fn content<'a>(object: &'a Value, custom: &Custom) -> Vec<(&'a String, &'a Value)> {
    let fields = object.as_object().into_iter().flatten();
    fields
        .filter(|(key, _)| *key != "metadata" && !(custom.has_status && *key == "status"))
        .collect()
}

fn set_generation(object: &mut Value, generation: i64) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("generation".to_owned(), json!(generation));
    }
}

fn copy(object: &mut Value, old: &Value, field: &str) {
    if let Some(fields) = object.as_object_mut() {
        replace(fields, field, old.get(field).cloned());
    }
}

/// The fields of an object as they are copied, without one of them.
fn all_but(
    object: &Value,
    field: &str,
    copied: impl Fn(&str, &Value) -> Value,
) -> Map<String, Value> {
    let fields = object.as_object().into_iter().flatten();
    fields
        .filter(|(name, _)| *name != field)
        .map(|(name, value)| (name.clone(), copied(name, value)))
        .collect()
}

fn replace(fields: &mut Map<String, Value>, field: &str, value: Option<Value>) {
    match value {
        Some(value) => fields.insert(field.to_owned(), value),
        None => fields.remove(field),
    };
}
