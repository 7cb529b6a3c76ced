//! What a namespace that is being deleted says of its contents.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::resource::Resource;
use crate::status::qualified;

/// What is left in a namespace.
#[derive(Debug, Default)]
pub(super) struct Remaining {
    /// How many objects of each resource, by its name with its group.
    resources: BTreeMap<String, usize>,
    /// How many objects have each finalizer.
    finalizers: BTreeMap<String, usize>,
}

impl Remaining {
    pub(super) fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    /// Takes an object into account.
    pub(super) fn count(&mut self, resource: &Resource, object: &Value) {
        let name = match resource.group.as_str() {
            // The server leaves the point there.
            "" => format!("{}.", resource.plural),
            group => qualified(group, &resource.plural),
        };
        *self.resources.entry(name).or_default() += 1;
        let finalizers = object
            .pointer("/metadata/finalizers")
            .and_then(Value::as_array);
        for finalizer in finalizers.into_iter().flatten().filter_map(Value::as_str) {
            *self.finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }

    /// Brings the conditions in a status up to date. The time of one moves when its
    /// status does.
    pub(super) fn tell(&self, status: &mut Value, now: &str) {
        if !status["conditions"].is_array() {
            status["conditions"] = json!([]);
        }
        let Some(conditions) = status["conditions"].as_array_mut() else {
            return;
        };
        for (kind, holds, reason, message) in self.conditions() {
            let holds = if holds { "True" } else { "False" };
            let old = conditions.iter().position(|old| old["type"] == kind);
            let since = old
                .map(|at| &conditions[at])
                .filter(|old| old["status"] == holds)
                .map_or_else(|| json!(now), |old| old["lastTransitionTime"].clone());
            let condition = json!({
                "type": kind,
                "status": holds,
                "lastTransitionTime": since,
                "reason": reason,
                "message": message,
            });
            match old {
                Some(at) => conditions[at] = condition,
                None => conditions.push(condition),
            }
        }
    }

    /// Type, status, reason and message of each condition, in the server's order.
    fn conditions(&self) -> [(&'static str, bool, &'static str, String); 5] {
        let counted = |counts: &BTreeMap<String, usize>, what: &str| {
            let parts: Vec<String> = counts
                .iter()
                .map(|(name, count)| format!("{name} {what} {count} resource instances"))
                .collect();
            parts.join(", ")
        };
        let contents = if self.resources.is_empty() {
            (
                "ContentRemoved",
                "All content successfully removed".to_owned(),
            )
        } else {
            let list = counted(&self.resources, "has");
            (
                "SomeResourcesRemain",
                format!("Some resources are remaining: {list}"),
            )
        };
        let finalizers = if self.finalizers.is_empty() {
            (
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished".to_owned(),
            )
        } else {
            let list = counted(&self.finalizers, "in");
            (
                "SomeFinalizersRemain",
                format!("Some content in the namespace has finalizers remaining: {list}"),
            )
        };
        [
            (
                "NamespaceDeletionDiscoveryFailure",
                false,
                "ResourcesDiscovered",
                "All resources successfully discovered".to_owned(),
            ),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                false,
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed".to_owned(),
            ),
            (
                "NamespaceDeletionContentFailure",
                false,
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization".to_owned(),
            ),
            (
                "NamespaceContentRemaining",
                !self.resources.is_empty(),
                contents.0,
                contents.1,
            ),
            (
                "NamespaceFinalizersRemaining",
                !self.finalizers.is_empty(),
                finalizers.0,
                finalizers.1,
            ),
        ]
    }
}
