//! Pruning: what a schema does not name is removed.

use serde_json::Value;

use super::structural::{Additional, Schema};
use crate::decode::{self, Place};

impl Schema {
    /// Removes from an object what the schema does not name. The fields that
    /// every object has (`apiVersion`, `kind`, `metadata`) stay. The answer is
    /// the paths that were removed, in the order of the real server.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut removed = Vec::new();
        self.prune_at(object, Place::Root, true, &mut removed);
        self.prune_metadata_at(object, Place::Root, &mut removed);
        removed
    }

    /// As [`Schema::prune`], for a value that is no object of its own.
    pub(super) fn prune_value(&self, value: &mut Value) {
        self.prune_at(value, Place::Root, false, &mut Vec::new());
        self.prune_metadata_at(value, Place::Root, &mut Vec::new());
    }

    fn prune_at(
        &self,
        value: &mut Value,
        place: Place<'_>,
        resource: bool,
        removed: &mut Vec<String>,
    ) {
        match value {
            Value::Object(fields) => {
                let resource = resource || self.embedded;
                let keeps_all = self.preserve_unknown || matches!(self.additional, Additional::Any);
                fields.retain(|name, value| {
                    let at = Place::Field(&place, name);
                    if resource && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                        return true;
                    }
                    match self.field(name) {
                        Some(schema) => {
                            schema.prune_at(value, at, false, removed);
                            true
                        }
                        None if keeps_all => true,
                        None => {
                            removed.push(at.to_string());
                            false
                        }
                    }
                });
            }
            Value::Array(list) => {
                if let Some(schema) = &self.items {
                    for (index, item) in list.iter_mut().enumerate() {
                        schema.prune_at(item, Place::Item(&place, index), false, removed);
                    }
                }
            }
            _ => {}
        }
    }

    /// Removes from the metadata of resources inside an object what metadata cannot
    /// hold. That is told after everything else.
    fn prune_metadata_at(&self, value: &mut Value, place: Place<'_>, removed: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let at = Place::Field(&place, name);
                    if self.embedded && name == "metadata" {
                        removed.extend(decode::prune_metadata(value, &at.to_string()));
                    } else if let Some(schema) = self.field(name) {
                        schema.prune_metadata_at(value, at, removed);
                    }
                }
            }
            Value::Array(list) => {
                if let Some(schema) = &self.items {
                    for (index, item) in list.iter_mut().enumerate() {
                        schema.prune_metadata_at(item, Place::Item(&place, index), removed);
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "cases read better as values")]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: Value, mut object: Value, expected: Value, paths: &[&str]) {
        let removed = Schema::parse(&schema).unwrap().prune(&mut object);
        assert_eq!(object, expected);
        assert_eq!(removed, paths);
    }

    #[test]
    fn removes_what_is_not_named() {
        check(
            json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
                "a": {"type": "string"},
                "l": {"type": "array", "items": {"type": "object", "properties": {
                    "k": {"type": "string"}}}},
            }}}}),
            json!({"kind": "A", "metadata": {"x": 1}, "other": 1,
                "spec": {"a": "x", "b": 1, "l": [{"k": "a", "z": 1}]}}),
            json!({"kind": "A", "metadata": {"x": 1}, "spec": {"a": "x", "l": [{"k": "a"}]}}),
            &["other", "spec.b", "spec.l[0].z"],
        );
    }

    #[test]
    fn keeps_where_it_is_told() {
        check(
            json!({"type": "object", "properties": {
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    "properties": {"a": {"type": "object"}}},
                "map": {"type": "object", "additionalProperties": {"type": "object"}},
                "all": {"type": "object", "additionalProperties": true},
                "emb": {"type": "object", "x-kubernetes-embedded-resource": true,
                    "properties": {"spec": {"type": "object"}}},
            }}),
            json!({"any": {"a": {"b": 1}, "c": 1}, "map": {"k": {"x": 1}}, "all": {"x": 1},
                "emb": {"kind": "A", "metadata": {"name": "a"}, "x": 1}}),
            json!({"any": {"a": {}, "c": 1}, "map": {"k": {}}, "all": {"x": 1},
                "emb": {"kind": "A", "metadata": {"name": "a"}}}),
            &["any.a.b", "emb.x", "map.k.x"],
        );
    }
}
