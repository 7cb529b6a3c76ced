//! What a namespace that is being deleted says of its contents.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::resource::Resource;
use crate::rest::meta;
use crate::status::qualified;

/// What one object adds to what is left in a namespace.
#[derive(Debug, Clone)]
pub(super) struct Part {
    resource: String,
    finalizers: Vec<String>,
}

impl Part {
    /// What an object of a resource adds.
    pub(super) fn of(resource: &Resource, object: &Value) -> Self {
        let name = match resource.group.as_str() {
            // The server leaves the point there.
            "" => format!("{}.", resource.plural),
            group => qualified(group, &resource.plural),
        };
        Part {
            resource: name,
            finalizers: meta::finalizers(object).map(str::to_owned).collect(),
        }
    }
}

/// What is left in a namespace.
#[derive(Debug, Default, Clone)]
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
    pub(super) fn add(&mut self, part: &Part) {
        *self.resources.entry(part.resource.clone()).or_default() += 1;
        for finalizer in &part.finalizers {
            *self.finalizers.entry(finalizer.clone()).or_default() += 1;
        }
    }

    /// Takes it out of account.
    pub(super) fn remove(&mut self, part: &Part) {
        less(&mut self.resources, &part.resource);
        for finalizer in &part.finalizers {
            less(&mut self.finalizers, finalizer);
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

/// One less of a name.
fn less(counts: &mut BTreeMap<String, usize>, name: &str) {
    if let Some(count) = counts.get_mut(name) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(name);
        }
    }
}
