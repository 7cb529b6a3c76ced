//! The rules that the objects of a resource follow, built-in and custom alike.

use serde_json::{Map, Value, json};

use crate::field::{Errors, FieldError, Path};
use crate::registry::custom::Custom;
use crate::resource::{Nature, Resource};
use crate::status::ApiError;
use crate::types::{self, Undecodable};

impl Resource {
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
            self.check_builtin_type(api_version, kind)?;
        }
        fields.insert("apiVersion".to_owned(), json!(self.api_version));
        fields.insert("kind".to_owned(), json!(self.kind));
        Ok(())
    }

    fn check_builtin_type(&self, api_version: &str, kind: &str) -> Result<(), ApiError> {
        let version = api_version
            .rsplit_once('/')
            .map_or(api_version, |(_, version)| version);
        if !kind.is_empty() && kind != self.kind {
            return Err(ApiError::bad_request(format!(
                "{kind} in version \"{version}\" cannot be handled as a {}: converting ({version}.{kind}) to ({}.{}): unknown conversion",
                self.kind,
                if self.group.is_empty() {
                    "core"
                } else {
                    self.group.split('.').next().unwrap_or_default()
                },
                self.kind
            )));
        }
        if !api_version.is_empty() && api_version != self.api_version {
            return Err(ApiError::bad_request(format!(
                "{} in version \"{version}\" cannot be handled as a {}: no kind \"{}\" is registered for version \"{api_version}\" in scheme \"pkg/runtime/scheme.go:111\"",
                self.kind, self.kind, self.kind
            )));
        }
        Ok(())
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
    /// the paths of the fields that no schema knows and that were removed.
    ///
    /// # Errors
    ///
    /// What is wrong with a value, in the words of the real server's decoder.
    pub(crate) fn decode(&self, object: &mut Value) -> Result<Vec<String>, Undecodable> {
        match &self.nature {
            Nature::Builtin(kind) => {
                let unknown = types::decode(kind.group, kind.version, kind.kind, object)?;
                kind.normalize(object).map_err(|error| error.to_string())?;
                kind.default(object);
                Ok(unknown)
            }
            Nature::Custom(custom) => {
                let mut unknown = match object.get_mut("metadata") {
                    Some(metadata) => types::decode_metadata(metadata)?,
                    None => Vec::new(),
                };
                unknown.extend(custom.decode(object));
                Ok(unknown)
            }
        }
    }

    /// The refusal of an object that cannot be decoded, and why.
    pub(crate) fn undecodable(&self, why: &str) -> ApiError {
        let (kind, version) = (&self.kind, &self.version);
        ApiError::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"
        ))
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

    /// Puts back what a write through another subresource cannot change. Only
    /// `finalize` may change the finalizers of a Namespace, and nothing else.
    pub(crate) fn prepare_other(&self, subresource: &str, object: &mut Value, old: &Value) {
        let finalizers = object.pointer("/spec/finalizers").cloned();
        self.prepare_update(object, old);
        if self.plural == "namespaces" && subresource == "finalize" {
            object["spec"]["finalizers"] = finalizers.unwrap_or_default();
        }
    }

    /// Puts back what a write of the status cannot change.
    pub(crate) fn prepare_status(&self, object: &mut Value, old: &Value) {
        match &self.nature {
            Nature::Builtin(kind) => kind.prepare_status(object, old),
            Nature::Custom(_) => {
                let managed = object["metadata"].get("managedFields").cloned();
                let status = object.get("status").cloned();
                *object = old.clone();
                if let Some(fields) = object.as_object_mut() {
                    replace(fields, "status", status);
                    if let Some(metadata) =
                        fields.get_mut("metadata").and_then(Value::as_object_mut)
                    {
                        replace(metadata, "managedFields", managed);
                    }
                }
            }
        }
    }

    /// What is wrong with a new object.
    pub(crate) fn validate_create(&self, object: &Value) -> Errors {
        match &self.nature {
            Nature::Builtin(kind) => kind.validate_create(object),
            Nature::Custom(custom) => custom.validate(self, object, None),
        }
    }

    /// What is wrong with a change of the whole.
    pub(crate) fn validate_update(&self, object: &Value, old: &Value) -> Errors {
        match &self.nature {
            Nature::Builtin(kind) => kind.validate_update(object, old),
            Nature::Custom(custom) => custom.validate(self, object, Some(old)),
        }
    }

    /// What is wrong with a change of the status.
    pub(crate) fn validate_status_update(&self, object: &Value, old: &Value) -> Errors {
        match &self.nature {
            Nature::Builtin(kind) => kind.validate_status_update(object, old),
            Nature::Custom(custom) => custom.validate(self, object, Some(old)),
        }
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

fn replace(fields: &mut Map<String, Value>, field: &str, value: Option<Value>) {
    match value {
        Some(value) => fields.insert(field.to_owned(), value),
        None => fields.remove(field),
    };
}
