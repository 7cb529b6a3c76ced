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

#[cfg(test)]
mod tests {
    use super::*;

    fn conflicts(sets: &[(ManagerId, &[&str])]) -> Conflicts {
        let sets = sets.iter().map(|(id, paths)| {
            let set = paths.iter().map(|path| Path::fields(path.split('.')));
            (id.clone(), set.collect())
        });
        Conflicts::from_sets(&sets.collect())
    }

    #[test]
    fn the_message_depends_on_the_number() {
        let edit = ManagerId::update("kubectl-edit", "v1", "");
        let a = ManagerId::apply("a", "");
        for (conflicts, message) in [
            (
                conflicts(&[(edit.clone(), &["spec.hard.pods"])]),
                "Apply failed with 1 conflict: conflict with \"kubectl-edit\" using v1: .spec.hard.pods",
            ),
            (
                conflicts(&[(edit.clone(), &["spec.y", "spec.x"])]),
                "Apply failed with 2 conflicts: conflicts with \"kubectl-edit\" using v1:\n- .spec.x\n- .spec.y",
            ),
            (
                conflicts(&[(edit.clone(), &["spec.x"]), (a.clone(), &["spec.y"])]),
                "Apply failed with 2 conflicts: conflicts with \"a\":\n- .spec.y\nconflicts with \"kubectl-edit\" using v1:\n- .spec.x",
            ),
        ] {
            assert_eq!(conflicts.to_string(), message);
        }
    }

    #[test]
    fn each_conflict_is_a_cause() {
        let conflicts = conflicts(&[(ManagerId::apply("a", "status"), &["status.x"])]);
        assert_eq!(
            conflicts.causes(),
            json!([{
                "reason": "FieldManagerConflict",
                "message": "conflict with \"a\" with subresource \"status\"",
                "field": ".status.x",
            }])
        );
    }

    #[test]
    fn allowed_fields_are_no_conflicts() {
        let all = conflicts(&[(ManagerId::apply("a", ""), &["x", "y"])]);
        let allowed = |paths: &[&str]| paths.iter().map(|p| Path::fields([*p])).collect();
        assert_eq!(all.outside(&allowed(&["x", "y"])), None);
        let left = all.outside(&allowed(&["y"])).unwrap();
        assert_eq!(left.iter().count(), 1);
    }
}
