//! What custom resources look like, as far as the API server says.

use crate::kind::GroupVersionKind;
use reeve_ssa::{Schema, SchemaError};
use serde_json::Value;
use std::collections::HashMap;

/// Schemas of kinds; those of built-in kinds need not be added.
#[derive(Clone, Debug, Default)]
pub struct Schemas(HashMap<GroupVersionKind, Schema>);

impl Schemas {
    /// Whether nothing is known of a kind yet.
    pub fn lacks(&self, kind: &GroupVersionKind) -> bool {
        self.of(kind).is_none()
    }

    /// Adds the schema of a custom resource (OpenAPI, version 3, as published).
    pub fn add(&mut self, kind: GroupVersionKind, schema: &Value) -> Result<(), SchemaError> {
        self.0.insert(kind, Schema::from_crd(schema)?);
        Ok(())
    }

    /// The schema of a kind.
    pub(super) fn of(&self, kind: &GroupVersionKind) -> Option<&Schema> {
        let known = self.0.get(kind);
        known.or_else(|| reeve_ssa::builtin::schema(&kind.group, &kind.version, &kind.kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn built_in_kinds_are_known_and_others_are_added() {
        let mut schemas = Schemas::default();
        let widget = GroupVersionKind::new("example.com", "v1", "Widget");
        assert!(!schemas.lacks(&GroupVersionKind::new("apps", "v1", "Deployment")));
        assert!(schemas.lacks(&widget));
        let broken = json!({"type": "object", "properties": {"a": {"type": "array"}}});
        assert!(schemas.add(widget.clone(), &broken).is_err());
        assert!(schemas.lacks(&widget));
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object",
            "properties": {"keyed": {"type": "array", "items": {"type": "object",
                "properties": {"name": {"type": "string"}}},
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}}}}});
        schemas.add(widget.clone(), &schema).unwrap();
        let desired = json!({"apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "w"}, "spec": {"keyed": []}});
        let schema = schemas.of(&widget).unwrap();
        assert!(reeve_ssa::covers_typed(schema, &json!({}), &desired));
        assert!(!reeve_ssa::covers(&json!({}), &desired));
    }
}
