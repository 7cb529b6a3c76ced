//! The rules of one version of a custom resource.

use reeve_ssa::Schema;
use serde_json::Value;

use super::replicas;
use crate::field::Errors;
use crate::kinds::{ObjectMetaRules, validate_meta, validate_meta_update};
use crate::names;
use crate::resource::Resource;

/// What a CustomResourceDefinition says of one of its versions.
#[derive(Debug)]
pub(crate) struct Custom {
    /// The name of the definition.
    pub(crate) definition: String,
    /// How objects merge.
    pub(crate) merge: Schema,
    /// What objects may hold.
    pub(crate) structure: Option<crate::crd::Schema>,
    /// Whether the status is written by a path of its own.
    pub(crate) has_status: bool,
    /// Where the numbers of the scale subresource are.
    pub(crate) scale: Option<ScalePaths>,
    /// `additionalPrinterColumns`, as given.
    pub(crate) columns: Vec<Value>,
    /// `deprecationWarning`, where the version is deprecated.
    pub(crate) deprecation: Option<String>,
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

impl Custom {
    /// Prunes and defaults an object. The answer names what was pruned.
    pub(crate) fn decode(&self, object: &mut Value, applied: bool) -> Vec<String> {
        let Some(structure) = &self.structure else {
            return Vec::new();
        };
        let pruned = structure.prune(object);
        if applied {
            structure.default_applied(object);
        } else {
            structure.default(object);
        }
        pruned
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
