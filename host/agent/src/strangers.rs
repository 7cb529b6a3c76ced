//! Objects that earlier versions of a plugin made for primaries of another kind.
//!
//! They are where the running version writes, so they are watched; but they belong
//! to no unit of it, and nobody would ever prune them. So they are named.

use crate::active::Active;
use reeve_cluster::Object;
use reeve_core::ObjectReference;
use reeve_core::ownership::PRIMARY_ANNOTATION;
use std::collections::BTreeSet;

/// More than these are counted, not named.
const MAX_NAMED: usize = 5;

/// The objects of one plugin whose primaries are of another kind than those of the
/// running version.
#[derive(Debug, Default)]
pub(crate) struct Strangers(BTreeSet<ObjectReference>);

impl Strangers {
    /// Takes in an object as it is now, which belongs to no known unit; none when
    /// it is gone or belongs to one. Returns whether that is news.
    pub(crate) fn note(
        &mut self,
        active: &Active,
        reference: &ObjectReference,
        object: Option<&Object>,
    ) -> bool {
        if object.is_some_and(|object| is_stranger(active, object)) {
            self.0.insert(reference.clone())
        } else {
            self.0.remove(reference)
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// What to say about them, if there are any.
    pub(crate) fn describe(&self, active: &Active) -> Option<String> {
        let named = self.0.iter().take(MAX_NAMED).map(ToString::to_string);
        let mut names = named.collect::<Vec<_>>().join(", ");
        if names.is_empty() {
            return None;
        }
        let unnamed = self.0.len().saturating_sub(MAX_NAMED);
        if unnamed > 0 {
            names.push_str(&format!(" and {unnamed} more"));
        }
        Some(format!(
            "earlier versions made {names} for objects of another kind than {}, for which the running one works: nobody maintains or deletes them. Delete what is not needed",
            active.manifest.primary().kind
        ))
    }
}

fn is_stranger(active: &Active, object: &Object) -> bool {
    let Some(primary) = object.annotation(PRIMARY_ANNOTATION) else {
        return false;
    };
    let kind = &active.manifest.primary().kind;
    let kind_and_group = primary.split('/').next().unwrap_or_default();
    let other = kind_and_group.split_once('.') != Some((kind.kind.as_str(), kind.group.as_str()));
    // Labels and annotations can be forged; without an apply of ours it is nobody's.
    other && object.manager_fields(&active.field_manager).is_some()
}
