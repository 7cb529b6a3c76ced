//! What a plugin has in the cluster, as its watches see it, and the runs that
//! follow from it.

use crate::active::Active;
use crate::controller::{unit_object_name, unit_object_prefix};
use crate::effects::Effects;
use crate::plugin::PluginState;
use crate::run::{Run, Sync, is_held};
use crate::sync_status;
use reeve_api::APPROVE_PLAN_ANNOTATION;
use reeve_cluster::{Object, Snapshot, WatchSpec};
use reeve_core::ownership::{UNIT_LABEL, unit_label};
use reeve_core::selector::Selector;
use reeve_core::{ObjectReference, UnitKey};
use std::sync::Arc;

/// The plan that a person has approved on a `Unit`.
pub(crate) fn approved_plan(unit: &Object) -> Option<String> {
    let id = unit.annotation(APPROVE_PLAN_ANNOTATION)?;
    Some(id.trim().to_owned())
}

impl PluginState {
    /// Finds the units of a version: its primaries, and those of which only objects
    /// are left.
    pub(crate) fn take_stock(
        &mut self,
        active: &Active,
        snapshot: &Snapshot,
        primaries: &[Arc<Object>],
    ) {
        for state in self.units.values_mut() {
            state.set_present(false);
            state.failures = 0;
        }
        for primary in primaries {
            let unit = self.unit(&primary.reference());
            let held = is_held(primary, &self.name);
            let state = self.ensure_unit(&unit);
            state.set_present(true);
            state.held = held;
        }
        self.owned.clear();
        self.strangers.clear();
        self.owned_count = 0;
        for watch in &active.watches.owned {
            let everything = Selector::default();
            let objects = snapshot.list_in(watch.spec(), None, &everything).found();
            for object in objects.unwrap_or_default() {
                let Some(label) = object.label(UNIT_LABEL) else {
                    continue;
                };
                if !self.labels.contains_key(label) {
                    if let Some(unit) = self.orphan(&object) {
                        self.ensure_unit(&unit);
                    } else {
                        let reference = object.reference();
                        self.strangers.note(active, &reference, Some(&object));
                    }
                }
                let owned = self.owned.entry(label.to_owned()).or_default();
                self.owned_count += usize::from(owned.insert(object.reference()));
            }
        }
        self.find_contributions(active, snapshot);
    }

    /// Takes up how far syncs were from the `Unit` objects of a namespace, for units
    /// of which nothing is known yet.
    pub(crate) fn resume_syncs(&mut self, snapshot: &Snapshot, units: &WatchSpec, namespace: &str) {
        self.find_effects(snapshot, units);
        let keys: Vec<UnitKey> = self
            .units
            .keys()
            .map(|primary| self.unit(primary))
            .collect();
        for unit in keys {
            let object = snapshot.get_in(units, Some(namespace), &unit_object_name(&unit));
            let object = object.found();
            if let (Some(object), Some(state)) = (&object, self.units.get_mut(&*unit.primary)) {
                state.approved_plan = approved_plan(object);
            }
            let found = object.and_then(|object| {
                let unit: reeve_api::Unit = serde_json::from_value(object.value()).ok()?;
                unit.status
            });
            let (Some(status), Some(state)) = (found, self.units.get_mut(&*unit.primary)) else {
                continue;
            };
            if state.effects.is_empty() {
                state.effects = Effects::read(&status.actions);
            }
            let sync = status.sync.as_ref();
            let read = |sync| Some((sync_status::read(sync)?, sync_status::since(sync)));
            if let Some((sync, since)) = sync.and_then(read)
                && state.sync.revision.is_none()
            {
                state.sync = sync;
                state.blocked_since = since;
            }
        }
    }

    /// Forgets how far syncs and outside effects are: another replica may have brought
    /// them further.
    pub(crate) fn forget_syncs(&mut self) {
        for state in self.units.values_mut() {
            state.sync = Sync::default();
            state.effects = Effects::default();
            state.blocked_since = None;
        }
    }

    /// Finds units of which nothing is left but outside effects that are to be taken
    /// away.
    fn find_effects(&mut self, snapshot: &Snapshot, units: &WatchSpec) {
        let Some(active) = self.active.clone() else {
            return;
        };
        let kind = &active.manifest.primary().kind;
        let prefix = unit_object_prefix(&self.name);
        let found = snapshot.list_in(units, None, &Selector::default());
        for object in found.found().unwrap_or_default() {
            if !object.name().starts_with(&prefix) {
                continue;
            }
            let Ok(unit) = serde_json::from_value::<reeve_api::Unit>(object.value()) else {
                continue;
            };
            let primary = unit.spec.primary;
            let has_effects = unit.status.is_some_and(|status| !status.actions.is_empty());
            let ours = unit.spec.plugin == *self.name
                && primary.kind == kind.kind
                && primary.api_version == kind.api_version();
            if ours && has_effects {
                let reference = ObjectReference::new(kind.clone(), primary.namespace, primary.name);
                let unit = self.unit(&reference);
                self.ensure_unit(&unit);
            }
        }
    }

    /// The run of a unit that is due.
    pub(crate) fn run(&self, unit: &UnitKey, active: &Arc<Active>) -> Run {
        let state = self.units.get(&*unit.primary);
        Run {
            owned: self.owned_by(unit),
            contributed: self.contributions.of(&unit_label(unit)),
            sync: state.map(|state| state.sync.clone()).unwrap_or_default(),
            guard: self.guard.clone(),
            approvals: self.approvals.clone(),
            plugin_owns: self.owned_count,
            attempt: crate::request::Attempt::Same,
            mode: self.mode(),
            may_hold: self.standing.may_hold,
            held: state.is_some_and(|state| state.held),
            approved_plan: state.and_then(|state| state.approved_plan.clone()),
            recalled: self.recalled.clone(),
            was_holding: self.was_holding,
            effects: state.map(|state| state.effects.clone()).unwrap_or_default(),
            unit: unit.clone(),
            active: active.clone(),
        }
    }
}
