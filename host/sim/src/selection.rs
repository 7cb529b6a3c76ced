//! Which objects of a table a list, a watch or a deletion is about.

use std::sync::Arc;

use crate::names;
use crate::resource::Resource;
use crate::selector::{FieldSelector, LabelSelector};
use crate::status::ApiError;
use crate::store::Object;

/// A namespace and two selectors.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    prefix: String,
    labels: LabelSelector,
    fields: FieldSelector,
    resource: Arc<Resource>,
}

impl Selection {
    /// Reads the selectors of a request in `namespace` (all when absent).
    pub(crate) fn parse(
        namespace: Option<&str>,
        labels: Option<&str>,
        fields: Option<&str>,
        resource: &Arc<Resource>,
    ) -> Result<Self, ApiError> {
        let bad = |error: &dyn std::fmt::Display| ApiError::bad_request(error.to_string());
        Ok(Selection {
            prefix: namespace.map_or_else(String::new, |ns| format!("{ns}/")),
            labels: LabelSelector::parse(labels.unwrap_or_default()).map_err(|e| bad(&e))?,
            fields: FieldSelector::parse(fields.unwrap_or_default(), &resource.fields)
                .map_err(|e| bad(&e))?,
            resource: resource.clone(),
        })
    }

    /// The same, looked for in the one namespace that its fields select, if they do. A
    /// page behind the first is not looked for so, though its token comes of one that was:
    /// the server gives objects twice there, and so does this.
    pub(crate) fn narrowed(mut self) -> Self {
        let namespace = self.fields.namespace().filter(|_| self.resource.namespaced);
        let namespace = namespace.filter(|name| names::dns1123_label(name).is_empty());
        if let Some(namespace) = namespace.filter(|_| self.prefix.is_empty()) {
            self.prefix = format!("{namespace}/");
        }
        self
    }

    /// What the keys of all selected objects start with.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether everything in the namespace is selected.
    pub(crate) fn is_whole(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether at most one object can be selected, by its name.
    pub(crate) fn is_of_one(&self) -> bool {
        let placed = !self.prefix.is_empty() || !self.resource.namespaced;
        placed && self.fields.name().is_some()
    }

    /// Whether the object is selected.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        object.key().starts_with(&self.prefix)
            && self
                .labels
                .requirements()
                .iter()
                .all(|r| r.holds(object.label(r.key())))
            && self.matches_fields(object)
    }

    fn matches_fields(&self, object: &Object) -> bool {
        if self.fields.is_empty() {
            return true;
        }
        // Watches of one object by its name are many; do not parse the others.
        if self.fields.name().is_some_and(|name| name != object.name()) {
            return false;
        }
        let value = object.value_as(&self.resource);
        self.fields.matches(&value, &self.resource.fields)
    }
}
