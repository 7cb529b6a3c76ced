//! What a plugin has in the cluster, as its watches see it, and the runs that
//! follow from it.

use crate::active::Active;
use crate::effects::{Effects, forget_tokens};
use crate::plugin::PluginState;
use crate::run::{Run, Sync, is_held};
use crate::sync_status;
use crate::written::Written;
use reeve_api::{APPROVE_PLAN_ANNOTATION, FORGET_EFFECTS_ANNOTATION};
use reeve_cluster::{Object, Snapshot};
use reeve_core::UnitKey;
use reeve_core::ownership::{UNIT_LABEL, unit_label};
use reeve_core::selector::Selector;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The plan that a person has approved on a `Unit`.
pub(crate) fn approved_plan(unit: &Object) -> Option<String> {
    let id = unit.annotation(APPROVE_PLAN_ANNOTATION)?;
    Some(id.trim().to_owned())
}

/// The effects that a person has taken away and lets the agent forget, on a `Unit`.
pub(crate) fn forgotten_effects(unit: &Object) -> BTreeSet<String> {
    let tokens = unit.annotation(FORGET_EFFECTS_ANNOTATION);
    forget_tokens(&tokens.unwrap_or_default())
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
        self.take_stock_of_owned(active, snapshot);
        self.find_contributions(active, snapshot);
    }

    /// Finds the objects of the kinds that a version writes.
    pub(crate) fn take_stock_of_owned(&mut self, active: &Active, snapshot: &Snapshot) {
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
    }

    /// Takes up how far syncs were from what is written in `Unit` objects, for units of
    /// which nothing is known yet. Those of which nothing is left but outside effects or
    /// Secrets that are to be taken away are units, too.
    pub(crate) fn resume_syncs(&mut self, written: &Written) {
        if let Some(active) = self.active.clone() {
            for primary in written.remembered(&active.manifest.primary().kind) {
                let unit = self.unit(&primary);
                // Who may make a Unit may write anything into it.
                if written.of(&unit).is_some() {
                    self.ensure_unit(&unit);
                }
            }
        }
        let keys: Vec<UnitKey> = self
            .units
            .keys()
            .map(|primary| self.unit(primary))
            .collect();
        for unit in keys {
            let found = written.of(&unit);
            let Some((found, state)) = found.zip(self.units.get_mut(&*unit.primary)) else {
                continue;
            };
            state.approved_plan.clone_from(&found.approved);
            state.forgotten.clone_from(&found.forgotten);
            let Some(status) = &found.status else {
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

    /// The run of a unit that is due.
    pub(crate) fn run(&self, unit: &UnitKey, active: &Arc<Active>) -> Run {
        let state = self.units.get(&*unit.primary);
        Run {
            owned: self.owned_by(unit),
            contributed: self.contributions.of(unit_label(unit)),
            sync: state.map(|state| state.sync.clone()).unwrap_or_default(),
            guard: self.guard.clone(),
            approvals: self.approvals.clone(),
            plugin_owns: self.owned_count,
            attempt: crate::request::Attempt::Same,
            mode: self.mode(),
            may_hold: self.standing.may_hold,
            held: state.is_some_and(|state| state.held),
            approved_plan: state.and_then(|state| state.approved_plan.clone()),
            forgotten: state
                .map(|state| state.forgotten.clone())
                .unwrap_or_default(),
            recalled: self.recalled.clone(),
            was_holding: self.was_holding,
            effects: state.map(|state| state.effects.clone()).unwrap_or_default(),
            unit: unit.clone(),
            active: active.clone(),
        }
    }
}
