//! Conflicts of an apply, told as the server tells them.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

use crate::managed::ManagerId;
use crate::path::Path;
use crate::set::FieldSet;

/// A field that the config would change although another manager owns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Who owns it.
    pub manager: ManagerId,
    /// The field.
    pub path: Path,
}

/// All conflicts of one apply, by manager and then by field; never empty.
///
/// The server names managers in the text in order and in the causes in any
/// order; here both are in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(Vec<Conflict>);

impl Conflicts {
    pub(crate) fn from_sets(sets: &BTreeMap<ManagerId, FieldSet>) -> Self {
        let mut managers: Vec<_> = sets.iter().collect();
        managers.sort_by_cached_key(|(id, _)| id.sort_key());
        Self(
            managers
                .into_iter()
                .flat_map(|(manager, set)| {
                    set.iter().map(|path| Conflict {
                        manager: manager.clone(),
                        path,
                    })
                })
                .collect(),
        )
    }

    /// The conflicts one by one.
    pub fn iter(&self) -> impl Iterator<Item = &Conflict> {
        self.0.iter()
    }

    /// The conflicts at fields outside of `allowed`, if there are any.
    pub(crate) fn outside(&self, allowed: &FieldSet) -> Option<Self> {
        let left: Vec<_> = self
            .0
            .iter()
            .filter(|conflict| !allowed.has(&conflict.path))
            .cloned()
            .collect();
        (!left.is_empty()).then_some(Self(left))
    }

    /// The `details.causes` of the server's answer.
    pub fn causes(&self) -> Value {
        self.0
            .iter()
            .map(|Conflict { manager, path }| {
                json!({
                    "reason": "FieldManagerConflict",
                    "message": format!("conflict with {manager}"),
                    "field": path.to_string(),
                })
            })
            .collect()
    }
}

impl fmt::Display for Conflicts {
    /// The message of the server's answer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [Conflict { manager, path }] = self.0.as_slice() {
            return write!(
                f,
                "Apply failed with 1 conflict: conflict with {manager}: {path}"
            );
        }
        write!(f, "Apply failed with {} conflicts: ", self.0.len())?;
        let mut last = None;
        for (index, Conflict { manager, path }) in self.0.iter().enumerate() {
            if last != Some(manager) {
                if index > 0 {
                    f.write_str("\n")?;
                }
                write!(f, "conflicts with {manager}:")?;
                last = Some(manager);
            }
            write!(f, "\n- {path}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Conflicts {}
