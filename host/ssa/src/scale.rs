//! Ownership across the `scale` subresource.
//!
//! A scale is an object of its own, so a write to it goes through
//! [`crate::apply()`] or [`crate::update()`] with a `Scale` as live object. The
//! owners of its one field are those of the replicas in the parent:
//! [`ScaleFields::to_scale`] gives the scale its managed fields, and
//! [`ScaleFields::to_parent`] takes them back after the write.

use std::collections::BTreeMap;

use crate::managed::{ManagedFields, ManagerId, Operation, Owned};
use crate::path::Path;
use crate::set::FieldSet;

const SCALE_VERSION: &str = "autoscaling/v1";

/// Where the parent keeps its replicas, in each of its versions. Versions
/// without the subresource have no path; entries of versions that are not
/// listed are dropped.
#[derive(Clone, Debug, Default)]
pub struct ScaleFields {
    /// `apiVersion` to path.
    pub replicas: BTreeMap<String, Option<Path>>,
}

impl ScaleFields {
    /// A parent with one version that keeps its replicas in `.spec.replicas`,
    /// as all built-in kinds do.
    pub fn spec_replicas(api_version: &str) -> Self {
        let path = Path::fields(["spec", "replicas"]);
        Self {
            replicas: BTreeMap::from([(api_version.to_owned(), Some(path))]),
        }
    }

    fn path(&self, owned: &Owned) -> Option<&Path> {
        self.replicas.get(&owned.api_version)?.as_ref()
    }

    /// The managed fields of the scale: those of the parent that own the
    /// replicas.
    pub fn to_scale(&self, parent: &ManagedFields) -> ManagedFields {
        let owners = parent
            .0
            .iter()
            .filter(|(_, owned)| self.path(owned).is_some_and(|path| owned.set.has(path)));
        let entries = owners.map(|(id, owned)| {
            let mut id = id.clone();
            if id.operation == Operation::Update {
                id.api_version = Some(SCALE_VERSION.to_owned());
            }
            let scale = Owned {
                set: only(&Path::fields(["spec", "replicas"])),
                api_version: SCALE_VERSION.to_owned(),
                time: owned.time.clone(),
            };
            (id, scale)
        });
        ManagedFields(entries.collect())
    }

    /// The managed fields of the parent after a write to its scale, in the
    /// parent's version `api_version`.
    ///
    /// As in the server, entries that come from the scale have no time, and
    /// an updater that goes on owning the replicas has a second entry for
    /// them.
    pub fn to_parent(
        &self,
        parent: &ManagedFields,
        scale: &ManagedFields,
        api_version: &str,
    ) -> ManagedFields {
        let mut from_scale: BTreeMap<ManagerId, &Owned> = scale
            .0
            .iter()
            .map(|(id, owned)| (id.clone(), owned))
            .collect();
        let mut out = BTreeMap::new();
        for (id, owned) in &parent.0 {
            if !self.replicas.contains_key(&owned.api_version) {
                continue;
            }
            let mut owned = owned.clone();
            let path = self.path(&owned).filter(|path| owned.set.has(path));
            if let Some(path) = path
                && from_scale.remove(id).is_none()
            {
                owned.set = owned.set.difference(&only(path));
            }
            if !owned.set.is_empty() {
                out.insert(id.clone(), owned);
            }
        }
        let replicas = Path::fields(["spec", "replicas"]);
        let Some(Some(path)) = self.replicas.get(api_version) else {
            return ManagedFields(out);
        };
        for (id, owned) in from_scale {
            if owned.set.has(&replicas) {
                let time = parent.0.get(&id).and_then(|owned| owned.time.clone());
                let owned = Owned {
                    set: only(path),
                    api_version: api_version.to_owned(),
                    time,
                };
                out.insert(id, owned);
            }
        }
        ManagedFields(out)
    }
}

fn only(path: &Path) -> FieldSet {
    FieldSet::from_iter([path.clone()])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{Apply, ApplyError, Update, apply, builtin, update};

    /// A scale with the managed fields that a parent gives it.
    fn scale(parent: &ManagedFields, replicas: i64) -> Value {
        let mut scale = json!({
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": "x", "uid": "1"},
            "spec": {"replicas": replicas},
        });
        fields().to_scale(parent).write_to(&mut scale);
        scale
    }

    fn fields() -> ScaleFields {
        ScaleFields::spec_replicas("apps/v1")
    }

    fn parent() -> ManagedFields {
        ManagedFields::parse(Some(&json!([{
            "manager": "a", "operation": "Apply", "apiVersion": "apps/v1",
            "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:replicas": {}, "f:selector": {}}},
        }])))
        .unwrap()
    }

    fn patched(parent: &ManagedFields, manager: &str, from: i64, to: i64) -> ManagedFields {
        let live = scale(parent, from);
        let mut object = live.clone();
        object["spec"]["replicas"] = to.into();
        let schema = builtin::schema("autoscaling", "v1", "Scale").unwrap();
        let object = update(Update {
            schema,
            versions: &[],
            live: Some(&live),
            object,
            manager,
            subresource: "scale",
            now: "2026-01-01T00:00:09Z",
            reset: &FieldSet::new(),
        });
        fields().to_parent(parent, &ManagedFields::of(&object).unwrap(), "apps/v1")
    }

    #[test]
    fn scaling_takes_the_replicas() {
        assert_eq!(
            patched(&parent(), "kubectl-scale", 2, 3).to_value(),
            json!([
                {
                    "manager": "a", "operation": "Apply", "apiVersion": "apps/v1",
                    "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:spec": {"f:selector": {}}},
                },
                {
                    "manager": "kubectl-scale", "operation": "Update", "apiVersion": "apps/v1",
                    "fieldsType": "FieldsV1", "subresource": "scale",
                    "fieldsV1": {"f:spec": {"f:replicas": {}}},
                },
            ])
        );
    }

    #[test]
    fn scaling_to_the_same_changes_nothing() {
        assert_eq!(patched(&parent(), "kubectl-scale", 2, 2), parent());
    }

    #[test]
    fn an_applied_scale_conflicts_in_terms_of_the_scale() {
        let parent = patched(&parent(), "kubectl-scale", 2, 3);
        // Reading the entries back is what tells the two versions apart.
        let parent = ManagedFields::parse(Some(&parent.to_value())).unwrap();
        let live = scale(&parent, 3);
        let config = json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": "x"}, "spec": {"replicas": 4},
        });
        let error = apply(Apply {
            schema: builtin::schema("autoscaling", "v1", "Scale").unwrap(),
            versions: &[],
            live: Some(&live),
            config: &config,
            manager: "hpa",
            force: false,
            subresource: "scale",
            now: "2026-01-01T00:00:09Z",
            reset: &FieldSet::new(),
        })
        .unwrap_err();
        assert!(matches!(error, ApplyError::Conflict(_)));
        assert_eq!(
            error.to_string(),
            "Apply failed with 1 conflict: conflict with \"kubectl-scale\" with subresource \
             \"scale\" using autoscaling/v1: .spec.replicas"
        );
    }
}
