//! Fields that a unit wants and that somebody else has.

use crate::ignore::locate;
use reeve_ssa::{FieldSet, ManagedFields, ManagerId, Operation, PathElement};
use serde_json::Value;
use std::fmt;

/// A field that a unit wants and somebody else has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taken {
    /// The field, as the API server writes paths: `.spec.replicas`.
    pub field: String,
    /// The manager that has it.
    pub manager: String,
    /// The subresource by which it came to it; empty for the object itself.
    pub subresource: String,
    /// Whether that manager applies it, and so claims it for as long as it does.
    pub applied: bool,
    /// Whether it has another value than the one that is wanted, which applying
    /// would overwrite.
    pub overwrites: bool,
}

/// `.spec.replicas by "kube-controller-manager" (scale)`.
impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {:?}", self.field, self.manager)?;
        if !self.subresource.is_empty() {
            write!(f, " ({})", self.subresource)?;
        }
        Ok(())
    }
}

/// The fields of `body` that others than `manager`, an applier, have in `live`, an
/// object with its `managedFields`, and that it has no part in itself.
///
/// No schema is needed: how the API server took the object apart stands in the
/// entries.
pub fn taken(live: &Value, body: &Value, manager: &str) -> Vec<Taken> {
    // Nobody can be named from malformed entries.
    let managers = ManagedFields::of(live).unwrap_or_default();
    let nothing = FieldSet::new();
    let own = managers.get(&ManagerId::apply(manager, ""));
    let own = own.map_or(&nothing, |owned| &owned.set);
    let mut all = Vec::new();
    for (id, owned) in managers.iter() {
        if id.manager == manager || id.subresource == "status" {
            continue;
        }
        for path in owned.set.leaves().difference(own).iter() {
            // An item of a list is had by having something of it.
            if matches!(path.0.last(), Some(PathElement::Key(_))) {
                continue;
            }
            let Some(wanted) = locate(body, &path).and_then(|at| at.get(body)) else {
                continue;
            };
            let there = locate(live, &path).and_then(|at| at.get(live));
            all.push(Taken {
                field: path.to_string(),
                manager: id.manager.clone(),
                subresource: id.subresource.clone(),
                applied: id.operation == Operation::Apply,
                overwrites: there.is_some_and(|there| there != wanted),
            });
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(manager: &str, operation: &str, subresource: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "apps/v1",
            "subresource": subresource, "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    fn check(entries: &[Value], expected: &[(&str, bool)]) {
        let live = json!({
            "metadata": {"name": "d", "labels": {"a": "theirs"}, "managedFields": entries},
            "spec": {"replicas": 5, "containers": [{"name": "main", "image": "theirs"}]},
        });
        let body = json!({
            "metadata": {"name": "d", "labels": {"a": "ours"}},
            "spec": {"replicas": 3, "paused": true,
                "containers": [{"name": "main", "image": "theirs"}]},
        });
        let found: Vec<(String, bool)> = taken(&live, &body, "me")
            .iter()
            .map(|one| (one.to_string(), one.overwrites))
            .collect();
        let found: Vec<_> = found.iter().map(|(text, over)| (&**text, *over)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn fields_are_told_with_whoever_has_them() {
        let replicas = json!({"f:spec": {"f:replicas": {}}});
        check(
            &[entry("hpa", "Update", "scale", &replicas)],
            &[(".spec.replicas by \"hpa\" (scale)", true)],
        );
        // Shared is not taken.
        check(
            &[
                entry("hpa", "Update", "scale", &replicas),
                entry("me", "Apply", "", &replicas),
            ],
            &[],
        );
        // Neither is what is not wanted, what is gone, nor what a status says.
        check(
            &[
                entry("x", "Update", "", &json!({"f:spec": {"f:other": {}}})),
                entry("y", "Update", "status", &replicas),
            ],
            &[],
        );
        let image = json!({"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {
            ".": {}, "f:image": {}}}}, "f:metadata": {"f:labels": {"f:a": {}}}});
        check(
            &[entry("edit", "Update", "", &image)],
            &[
                (".metadata.labels.a by \"edit\"", true),
                (".spec.containers[name=\"main\"].image by \"edit\"", false),
            ],
        );
        let gone = json!({"f:spec": {"f:paused": {}}});
        check(
            &[entry("edit", "Update", "", &gone)],
            &[(".spec.paused by \"edit\"", false)],
        );
        check(&[json!({"manager": 1})], &[]);
    }
}
