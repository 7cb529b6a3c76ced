//! The unit: one plugin and one primary object.

use crate::digest::Digest;
use crate::kind::ObjectReference;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// Length of a unit's label.
pub(crate) const LABEL_LENGTH: usize = 20;

/// What is scheduled, planned and applied as one. Clones are cheap, and share what was
/// computed of it.
#[derive(Clone)]
pub struct UnitKey(Arc<Unit>);

/// What a [`UnitKey`] stands for.
pub struct Unit {
    /// Name of the plugin.
    pub plugin: Arc<str>,
    /// The primary. Its version is that of the plugin's manifest.
    pub primary: Arc<ObjectReference>,
    label: Box<str>,
}

impl UnitKey {
    /// The unit of a plugin for a primary.
    pub fn new(plugin: impl Into<Arc<str>>, primary: ObjectReference) -> Self {
        let id = id_of(&primary);
        Self(Arc::new(Unit {
            plugin: plugin.into(),
            primary: Arc::new(primary),
            label: Digest::of(id.as_bytes()).digits(LABEL_LENGTH).into(),
        }))
    }

    /// The text that names this unit in annotations, and whose hash is its label.
    ///
    /// The version of the primary's kind is left out: the same object read in
    /// another version is the same unit.
    pub fn id(&self) -> String {
        id_of(&self.primary)
    }

    /// Its label, a hash of [`Self::id`], by which its objects are found.
    pub(crate) fn label(&self) -> &str {
        &self.0.label
    }
}

fn id_of(primary: &ObjectReference) -> String {
    let kind = &primary.kind;
    let namespace = primary.namespace.as_deref().unwrap_or("");
    let name = &primary.name;
    [&kind.kind, ".", &kind.group, "/", namespace, "/", name].concat()
}

impl Deref for UnitKey {
    type Target = Unit;

    fn deref(&self) -> &Unit {
        &self.0
    }
}

impl Unit {
    fn key(&self) -> (&str, &ObjectReference) {
        (&self.plugin, &self.primary)
    }
}

impl PartialEq for UnitKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.key() == other.key()
    }
}

impl Eq for UnitKey {}

impl Hash for UnitKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl PartialOrd for UnitKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for UnitKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl fmt::Debug for UnitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (plugin, primary) = self.key();
        let mut shown = f.debug_struct("UnitKey");
        shown.field("plugin", &plugin).field("primary", primary);
        shown.finish()
    }
}

/// `quotas for Profile alice`.
impl fmt::Display for UnitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", self.plugin, self.primary)
    }
}
