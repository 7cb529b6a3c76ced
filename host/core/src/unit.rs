//! The unit: one plugin and one primary object.

use crate::kind::ObjectReference;
use std::fmt;
use std::sync::Arc;

/// What is scheduled, planned and applied as one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitKey {
    /// Name of the plugin.
    pub plugin: Arc<str>,
    /// The primary. Its version is that of the plugin's manifest.
    pub primary: Arc<ObjectReference>,
}

impl UnitKey {
    /// The unit of a plugin for a primary.
    pub fn new(plugin: impl Into<Arc<str>>, primary: ObjectReference) -> Self {
        Self {
            plugin: plugin.into(),
            primary: Arc::new(primary),
        }
    }

    /// The text that names this unit in annotations, and whose hash is its label.
    ///
    /// The version of the primary's kind is left out: the same object read in
    /// another version is the same unit.
    pub fn id(&self) -> String {
        let kind = &self.primary.kind;
        let namespace = self.primary.namespace.as_deref().unwrap_or("");
        let name = &self.primary.name;
        [&kind.kind, ".", &kind.group, "/", namespace, "/", name].concat()
    }
}

/// `quotas for Profile alice`.
impl fmt::Display for UnitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", self.plugin, self.primary)
    }
}
