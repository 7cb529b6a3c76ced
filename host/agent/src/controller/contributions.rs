//! Where the units of a plugin contribute to objects of others.
//!
//! It stands in the `managedFields` of those objects and nowhere else. Which kinds
//! to look through is kept in the status of the `Plugin`, so that a restart finds
//! all of it again, and nothing grows with the number of units.

use super::Controller;
use crate::active::Active;
use crate::execute::Lost;
use crate::plugin::PluginState;
use reeve_api::SyncMode;
use reeve_cluster::{Object, ObjectChange, Snapshot};
use reeve_core::ownership::contributor_prefix;
use reeve_core::selector::Selector;
use reeve_core::{ObjectReference, UnitKey};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// What is known of a plugin's contributions.
#[derive(Debug, Default)]
pub(crate) struct Contributions {
    /// Kinds to whose objects it contributes, as far as is known.
    pub(crate) kinds: BTreeSet<String>,
    /// Those of them that are in the status of the Plugin. Only to these is anything
    /// contributed.
    pub(crate) recorded: BTreeSet<String>,
    /// Objects that have fields of a unit, by the unit's label.
    made: HashMap<String, BTreeSet<ObjectReference>>,
    /// Units that want to contribute to an object, by their primaries.
    wanted: HashMap<ObjectReference, BTreeSet<ObjectReference>>,
    /// Contributions of units that ended while nobody looked: object and manager.
    pub(crate) orphaned: Vec<(ObjectReference, String)>,
}

impl Contributions {
    /// Takes in the kinds that the Plugin's status has. Returns whether there are new
    /// ones.
    pub(crate) fn record(&mut self, kinds: BTreeSet<String>) -> bool {
        let new = !kinds.is_subset(&self.recorded);
        self.recorded.extend(kinds.iter().cloned());
        self.kinds.extend(kinds);
        new
    }

    /// How many objects and units are known here.
    pub(crate) fn len(&self) -> usize {
        let made: usize = self.made.values().map(BTreeSet::len).sum();
        let wanted: usize = self.wanted.values().map(BTreeSet::len).sum();
        made + wanted + self.kinds.len() + self.orphaned.len()
    }

    /// Objects that have fields of the unit with this label.
    pub(crate) fn of(&self, label: &str) -> Vec<ObjectReference> {
        let made = self.made.get(label);
        made.map(|set| set.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// Notes to which objects a unit wants to contribute, and to which it did.
    pub(crate) fn want(
        &mut self,
        primary: &ObjectReference,
        before: &[ObjectReference],
        now: &[ObjectReference],
    ) {
        for object in before.iter().filter(|object| !now.contains(object)) {
            if let Some(units) = self.wanted.get_mut(object) {
                units.remove(primary);
                if units.is_empty() {
                    self.wanted.remove(object);
                }
            }
        }
        for object in now {
            let units = self.wanted.entry(object.clone()).or_default();
            units.insert(primary.clone());
        }
    }

    fn note(&mut self, label: &str, object: &ObjectReference, has: bool) {
        if has {
            let made = self.made.entry(label.to_owned()).or_default();
            made.insert(object.clone());
        } else if let Some(made) = self.made.get_mut(label) {
            made.remove(object);
            if made.is_empty() {
                self.made.remove(label);
            }
        }
    }
}

impl PluginState {
    /// Looks through all objects to which the plugin may have contributed.
    pub(crate) fn find_contributions(&mut self, active: &Active, snapshot: &Snapshot) {
        let prefix = contributor_prefix(&self.name);
        let everything = Selector::default();
        self.contributions.made.clear();
        self.contributions.orphaned.clear();
        for watch in &active.watches.contributed {
            let objects = snapshot.list_in(watch.spec(), None, &everything).found();
            for object in objects.unwrap_or_default() {
                for label in fields(&prefix, &object).into_keys() {
                    let reference = object.reference();
                    if !self.labels.contains_key(&label) {
                        let orphan = (reference.clone(), format!("{prefix}{label}"));
                        self.contributions.orphaned.push(orphan);
                    }
                    self.contributions.note(&label, &reference, true);
                }
            }
        }
    }
}

impl Controller {
    /// An object of a kind to which a plugin contributes has changed.
    pub(super) fn on_contributed(&mut self, plugin: &Arc<str>, change: &ObjectChange) {
        let Some(state) = self.state.plugins.get_mut(plugin) else {
            return;
        };
        let prefix = contributor_prefix(&state.name);
        let of = |object: &Option<Arc<Object>>| {
            let object = object.as_ref();
            object
                .map(|object| fields(&prefix, object))
                .unwrap_or_default()
        };
        let (old, new) = (of(&change.old), of(&change.new));
        for label in old.keys().filter(|label| !new.contains_key(*label)) {
            state.contributions.note(label, &change.reference, false);
        }
        for label in new.keys() {
            state.contributions.note(label, &change.reference, true);
        }
        if change.own_write {
            return;
        }
        let same = match (&change.old, &change.new) {
            (Some(old), Some(new)) => {
                old.uid() == new.uid() && old.is_deleting() == new.is_deleting()
            }
            _ => false,
        };
        let mut units: BTreeSet<UnitKey> = BTreeSet::new();
        if !same && let Some(primaries) = state.contributions.wanted.get(&change.reference) {
            units.extend(primaries.iter().map(|primary| state.unit(primary)));
        }
        for label in old.keys().chain(new.keys()) {
            if old.get(label) != new.get(label)
                && let Some(primary) = state.labels.get(label)
            {
                units.insert(state.unit(primary));
            }
        }
        for unit in units {
            let state = self.state.plugins.get(plugin);
            let state = state.and_then(|plugin| plugin.units.get(&*unit.primary));
            match state.and_then(|unit| unit.drift_delay()) {
                None => self.state.queue.add(unit),
                Some(at) => self.state.queue.add_at(unit, at),
            }
        }
    }

    /// Gives up contributions of units that are no more.
    pub(super) fn release_orphans(&mut self) {
        if !self.may_run() {
            return;
        }
        for plugin in self.state.plugins.values_mut() {
            let Some(active) = plugin.active.clone() else {
                continue;
            };
            // There is no unit that could show a plan of this.
            let written = plugin.mode() == SyncMode::Auto && !plugin.is_suspended();
            if !written || plugin.contributions.orphaned.is_empty() {
                continue;
            }
            let mut orphaned = std::mem::take(&mut plugin.contributions.orphaned);
            // A primary of that name may have come meanwhile.
            let prefix = contributor_prefix(&plugin.name);
            orphaned.retain(|(_, manager)| {
                let label = manager.strip_prefix(&prefix);
                label.is_some_and(|label| !plugin.labels.contains_key(label))
            });
            // Of no unit: nobody waits for what becomes of a write.
            let executor = self.runner.executor.of_unit(Lost::default());
            self.state.releases.spawn(async move {
                for (object, manager) in orphaned {
                    let released = executor.withdraw(&active, &object, None, &manager).await;
                    // The next start finds it again.
                    if let Err(problem) = released {
                        tracing::warn!(plugin = %active.plugin, %object, %problem, "contribution of a unit that is gone not given up");
                    }
                }
            });
        }
    }
}

/// Fields that units of a plugin contribute to an object, by the units' labels.
fn fields(prefix: &str, object: &Object) -> BTreeMap<String, Option<String>> {
    // Most objects have none, and need not be parsed for that.
    if !object
        .managed_fields()
        .is_some_and(|all| all.contains(prefix))
    {
        return BTreeMap::new();
    }
    let managers = object.managers().into_iter();
    managers
        .filter(|entry| entry.operation == "Apply" && entry.subresource.is_empty())
        .filter_map(|entry| {
            let label = entry.manager.strip_prefix(prefix)?.to_owned();
            let fields = object.manager_fields(&entry.manager);
            Some((label, fields.map(|fields| fields.to_string())))
        })
        .collect()
}
