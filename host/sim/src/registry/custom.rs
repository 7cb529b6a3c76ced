//! The rules of one version of a custom resource.

use std::sync::Arc;

use reeve_ssa::Schema;
use serde_json::{Value, json};

use super::replicas;
use crate::conversion::Converter;
use crate::field::Errors;
use crate::kinds::{ObjectMetaRules, validate_meta, validate_meta_update};
use crate::names;
use crate::resource::Resource;
use crate::rest::meta;
use crate::status::ApiError;

/// What a CustomResourceDefinition says of one of its versions.
#[derive(Debug)]
pub(crate) struct Custom {
    /// The name of the definition.
    pub(crate) definition: String,
    /// How objects merge.
    pub(crate) merge: Schema,
    /// What objects may hold.
    pub(crate) structure: Option<crate::crd::Schema>,
    /// The version that objects are stored in, where that is another one.
    pub(crate) storage: Option<Arc<Storage>>,
    /// Who makes objects of other versions those of this one, where that is a webhook.
    pub(crate) converter: Option<Converter>,
    /// Whether the status is written by a path of its own.
    pub(crate) has_status: bool,
    /// Where the numbers of the scale subresource are.
    pub(crate) scale: Option<ScalePaths>,
    /// `additionalPrinterColumns`, as given.
    pub(crate) columns: Vec<Value>,
    /// `deprecationWarning`, where the version is deprecated.
    pub(crate) deprecation: Option<String>,
}

/// The version of a definition that its objects are stored in.
#[derive(Debug)]
pub(crate) struct Storage {
    /// `apiVersion` of what is stored.
    pub(crate) api_version: String,
    /// What it may hold.
    pub(crate) structure: Option<crate::crd::Schema>,
}

/// JSON pointers to the numbers of a scale subresource.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScalePaths {
    /// The wanted replicas.
    pub(crate) spec_replicas: String,
    /// The present replicas.
    pub(crate) status_replicas: String,
    /// The selector, as text.
    pub(crate) selector: Option<String>,
}

impl Storage {
    /// Removes from an object what this version has no field for, and sets its defaults.
    pub(crate) fn fit(&self, object: &mut Value) {
        if let Some(structure) = &self.structure {
            structure.prune(object);
            structure.default(object);
        }
    }
}

impl Custom {
    /// Prunes and defaults an object. The answer names what was pruned.
    pub(crate) fn decode(&self, object: &mut Value, applied: bool) -> Vec<String> {
        let Some(structure) = &self.structure else {
            return Vec::new();
        };
        let pruned = structure.prune(object);
        if applied && self.storage.is_some() {
            // They are set in what is stored alone.
        } else if applied {
            structure.default_applied(object);
        } else {
            structure.default(object);
        }
        pruned
    }

    /// Removes what this version has no field for from an object of another one. What it
    /// would have by default is not set: of what is read, the storage version says that.
    pub(crate) fn trim(&self, object: &mut Value) {
        if let Some(structure) = &self.structure {
            structure.prune(object);
        }
    }

    /// Removes the nulls of an object that this version does not allow, but for those that
    /// stand for a default.
    pub(crate) fn drop_nulls(&self, object: &mut Value) {
        if let Some(structure) = &self.structure {
            structure.drop_nulls(object);
        }
    }

    /// Makes of an object of this version what is stored of it: one of the storage
    /// version, which loses what that has no field for and gets its defaults. A status that
    /// was taken from who wrote the rest has the default of one that was never written.
    ///
    /// # Errors
    ///
    /// 500 where a webhook is to make it, and does not.
    pub(crate) fn store(&self, object: &mut Value) -> Result<(), ApiError> {
        let Some(storage) = &self.storage else {
            if self.has_status
                && object.get("status").is_none()
                && let Some(structure) = &self.structure
            {
                let mut new = json!({});
                structure.default(&mut new);
                if let Some(status) = new.get_mut("status") {
                    object["status"] = status.take();
                }
            }
            return Ok(());
        };
        match &self.converter {
            None => object["apiVersion"] = json!(storage.api_version),
            Some(converter) => {
                // The version is no part of what is stored.
                let version = meta::of_mut(object).remove("resourceVersion");
                let converted = converter.webhook.convert_now(object, &storage.api_version);
                *object = converted.map_err(ApiError::internal)?;
                if let Some(version) = version {
                    meta::of_mut(object).insert("resourceVersion".to_owned(), version);
                }
            }
        }
        storage.fit(object);
        Ok(())
    }

    /// What is wrong with an object, or with the change of it or of its `status`.
    pub(crate) fn validate(
        &self,
        resource: &Resource,
        object: &Value,
        old: Option<&Value>,
        status: bool,
    ) -> Errors {
        let mut errors = Errors::new();
        match old {
            None => {
                let rules = ObjectMetaRules {
                    namespaced: resource.namespaced,
                    name: names::dns1123_subdomain,
                };
                validate_meta(object, &rules, &mut errors);
            }
            Some(old) => {
                // Once as for all kinds, once as for custom resources.
                let rules = ObjectMetaRules {
                    namespaced: resource.namespaced,
                    name: names::path_segment,
                };
                validate_meta(object, &rules, &mut errors);
                validate_meta_update(object, old, &mut errors);
                validate_meta_update(object, old, &mut errors);
            }
        }
        let scale = self.scale.as_ref();
        let beside = scale.map_or_else(Errors::new, |paths| replicas::check(object, paths, status));
        match &self.structure {
            Some(structure) if status => {
                structure.validate_status(object, old, beside, &mut errors);
            }
            Some(structure) => structure.validate_beside(object, old, beside, &mut errors),
            None => errors.extend(beside),
        }
        errors
    }
}
