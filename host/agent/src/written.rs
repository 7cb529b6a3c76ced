//! What `Unit` objects say of the units of a plugin, and what of that nobody else knows.
//!
//! A plugin that stops for a while, since a right was taken away or its ConfigMap is
//! made anew, must find its outside effects and the hooks of its syncs again. So their
//! `Unit` objects stay until the plugin itself is forgotten.

use crate::controller::{is_unit_object_of, unit_object_name};
use crate::inventory::{approved_plan, forgotten_effects};
use crate::reporter::Reports;
use crate::sync_status;
use reeve_api::{GROUP, Unit, UnitSpec, UnitStatus, VERSION};
use reeve_cluster::{Object, Snapshot, WatchSpec};
use reeve_core::selector::Selector;
use reeve_core::{GroupVersionKind, ObjectReference, UnitKey};
use std::collections::{BTreeMap, BTreeSet};

/// What is written of one unit.
#[derive(Clone, Debug)]
pub(crate) struct WrittenUnit {
    pub(crate) spec: UnitSpec,
    pub(crate) status: Option<UnitStatus>,
    /// The plan that a person has approved.
    pub(crate) approved: Option<String>,
    /// Outside effects that a person lets the agent forget, by their tokens.
    pub(crate) forgotten: BTreeSet<String>,
}

/// What is written of the units of one plugin, by the names of the objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Written(BTreeMap<String, WrittenUnit>);

impl Written {
    /// As the watch of the `Unit` objects has it; none while that tells nothing, from
    /// which nothing follows.
    pub(crate) fn seen(plugin: &str, snapshot: &Snapshot, units: &WatchSpec) -> Option<Self> {
        let found = snapshot
            .list_in(units, None, &Selector::default())
            .found()?;
        let ours = found
            .into_iter()
            .filter(|object| is_unit_object_of(plugin, object.name()));
        let read = ours.filter_map(|object| {
            let Unit { spec, status, .. } = serde_json::from_value(object.value()).ok()?;
            let approved = approved_plan(&object);
            let unit = WrittenUnit {
                spec,
                status,
                approved,
                forgotten: forgotten_effects(&object),
            };
            Some((object.name().to_owned(), unit))
        });
        Some(Self(read.collect()))
    }

    /// What the `Unit` object of this name says, as far as that is known.
    pub(crate) fn unit(snapshot: &Snapshot, namespace: &str, object: &str) -> Option<UnitStatus> {
        let kind = GroupVersionKind::new(GROUP, VERSION, "Unit");
        let found = snapshot.get(&kind, Some(namespace), object).found()?;
        let Unit { status, .. } = serde_json::from_value(found.value()).ok()?;
        status
    }

    /// The same, with what this replica has said of them since: the watch, or the API
    /// server itself, may not have that yet.
    pub(crate) fn and_said(mut self, plugin: &str, reports: &Reports) -> Self {
        for (name, report) in reports.said_where(|name| is_unit_object_of(plugin, name)) {
            let (mut status, mut approved) = (report.status, None);
            let mut forgotten = BTreeSet::new();
            if let Some(seen) = self.0.remove(&name) {
                (approved, forgotten) = (seen.approved, seen.forgotten);
                // Those are not part of what is said.
                status.secrets = seen.status.unwrap_or_default().secrets;
            }
            let unit = WrittenUnit {
                spec: report.spec,
                status: Some(status),
                approved,
                forgotten,
            };
            self.0.insert(name, unit);
        }
        self
    }

    /// What is written of a unit.
    pub(crate) fn of(&self, unit: &UnitKey) -> Option<&WrittenUnit> {
        self.0.get(&unit_object_name(unit))
    }

    /// Names of the objects that are so.
    pub(crate) fn names(&self, wanted: impl Fn(&UnitStatus) -> bool) -> Vec<String> {
        let units = self.0.iter();
        let wanted = units.filter(|(_, unit)| unit.status.as_ref().is_some_and(&wanted));
        wanted.map(|(name, _)| name.clone()).collect()
    }

    /// Primaries of this kind that have outside effects or Secrets, whether they exist or
    /// not.
    pub(crate) fn remembered(&self, kind: &GroupVersionKind) -> Vec<ObjectReference> {
        let with = self
            .0
            .values()
            .filter(|unit| unit.status.as_ref().is_some_and(remembers));
        with.filter_map(|unit| {
            let primary = &unit.spec.primary;
            // The version is not part of a unit's identity.
            let found = GroupVersionKind::from_fields(&primary.api_version, &primary.kind)?;
            found.same_kind(kind).then(|| {
                let (namespace, name) = (primary.namespace.clone(), primary.name.clone());
                ObjectReference::new(kind.clone(), namespace, name)
            })
        })
        .collect()
    }
}

/// Whether a `Unit` object has the name that the agent gives it.
pub(crate) fn is_ours(object: &Object) -> bool {
    let Ok(Unit { spec, .. }) = serde_json::from_value(object.value()) else {
        return false;
    };
    let primary = spec.primary;
    let kind = GroupVersionKind::from_fields(&primary.api_version, &primary.kind);
    kind.is_some_and(|kind| {
        let primary = ObjectReference::new(kind, primary.namespace, primary.name);
        unit_object_name(&UnitKey::new(spec.plugin, primary)) == object.name()
    })
}

/// Whether a unit has outside effects: what was made is known from nowhere else.
pub(crate) fn has_effects(status: &UnitStatus) -> bool {
    !status.actions.is_empty()
}

/// Whether a unit has something that the cluster does not show.
fn remembers(status: &UnitStatus) -> bool {
    has_effects(status) || !status.secrets.is_empty()
}

/// Whether a stop of the plugin must not lose what is written of a unit: its outside
/// effects, and the hooks that its sync has run.
pub(crate) fn is_durable(status: &UnitStatus) -> bool {
    let sync = status.sync.as_ref().and_then(sync_status::read);
    has_effects(status) || sync.is_some_and(|sync| sync.is_durable())
}
