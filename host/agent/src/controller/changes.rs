//! What a change in the store means: a plugin to load, a unit to run.

use super::load_job::Words;
use super::reporting::{is_unit_object_of, unit_object_name};
use super::{Controller, Route, State};
use crate::delivery::{self, PART_OF_LABEL};
use crate::inventory::{approved_plan, forgotten_effects};
use crate::plugin::steps::Steps;
use crate::plugin::{Health, PluginState};
use crate::policy_object::PolicyObject;
use crate::problem::Problem;
use crate::request::{Ask, Attempt};
use crate::run::is_held;
use crate::secret_names::Remembered;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff::Timestamp;
use reeve_api::{
    APPROVE_ASKS_ANNOTATION, APPROVE_DELETION_ANNOTATION, APPROVE_UPGRADE_ANNOTATION, PluginSpec,
    PluginStatus, RECONCILE_ANNOTATION, RELEASE_ANNOTATION, RETRY_ANNOTATION, ROLL_BACK_ANNOTATION,
    Reason, SUSPEND_ANNOTATION, SYNC_ANNOTATION, Unit,
};
use reeve_cluster::{Change, Object, ObjectChange, WatchSpec, WatchState};
use reeve_core::health::{self, HEALTH_ANNOTATION};
use reeve_core::ownership::{PRIMARY_ANNOTATION, UNIT_LABEL, unit_label};
use reeve_core::prune::Token;
use reeve_core::{GroupVersionKind, ObjectReference, UnitKey};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::time::Instant;

impl Controller {
    pub(super) fn on_change(&mut self, change: Change) {
        let change = match change {
            Change::Object(change) => change,
            Change::State { watch, state } => return self.on_watch_state(&watch, &state),
        };
        if change.watch == *self.own.config_maps.spec() {
            self.on_config_map(change.new.as_ref(), &change.reference);
        } else if change.watch == *self.own.parts.spec() {
            self.on_part(&change);
        } else if change.watch == *self.own.plugins.spec() {
            self.on_plugin_object(change.new.as_ref(), &change.reference);
        } else if change.watch == *self.own.units.spec() {
            let name = change.reference.name.clone();
            self.on_approval(change.new.as_deref(), change.old.as_deref());
            if let Some(unit) = &change.new {
                let remembered = Remembered::of(unit);
                let names = remembered.as_ref().map(|found| found.names.clone());
                if let Some(remembered) = remembered {
                    self.recall(remembered);
                }
                if !change.own_write {
                    self.reports
                        .put_unit_right(&name, names.unwrap_or_default());
                }
                self.state.unit_objects.insert(name);
            } else {
                self.state.unit_objects.remove(&name);
                self.reports.repeat_unit(&name);
            }
        }
        // A plugin may read what the agent itself watches. Who has read it is looked up once
        // for all of them.
        let routes = self.state.routes.get(&change.watch).cloned();
        let mut is_read = false;
        for (plugin, route) in routes.iter().flat_map(|routes| routes.iter()) {
            match route {
                Route::Primary => self.on_primary(plugin, &change),
                Route::Owned => self.on_owned(plugin, &change),
                Route::Contributed => self.on_contributed(plugin, &change),
                Route::Read => is_read = true,
                Route::Class => self.run_unready(plugin, false),
            }
        }
        if is_read {
            self.on_read(&change);
        }
    }

    /// Takes up which Secrets a unit has. Who follows has them read, to know of them when
    /// it leads.
    fn recall(&self, remembered: Remembered) {
        let plugin = self.state.plugins.get(&remembered.unit.plugin);
        let active = plugin.and_then(|plugin| plugin.active.as_ref());
        let watch = active.and_then(|active| active.secrets());
        if let Some(watch) = watch.filter(|_| !self.leads()) {
            let (holder, names) = remembered.held();
            watch.set_names(&holder, &names);
        }
        self.reports.recall(remembered);
    }

    /// Takes in what a person has approved of a unit.
    fn on_approval(&mut self, new: Option<&Object>, old: Option<&Object>) {
        let Some(object) = new.or(old) else {
            return;
        };
        let Ok(found) = serde_json::from_value::<Unit>(object.value()) else {
            return;
        };
        let approved = new.and_then(approved_plan);
        let forgotten = new.map(forgotten_effects).unwrap_or_default();
        let Some(plugin) = self.state.plugins.get_mut(found.spec.plugin.as_str()) else {
            return;
        };
        let primary = found.spec.primary;
        let Some(kind) = GroupVersionKind::from_fields(&primary.api_version, &primary.kind) else {
            return;
        };
        let primary = ObjectReference::new(kind, primary.namespace, primary.name);
        let unit = plugin.unit(&primary);
        // Who may make a Unit may write anything into it.
        if unit_object_name(&unit) != object.name() {
            return;
        }
        let Some(state) = plugin.units.get_mut(&primary) else {
            return;
        };
        let given = (approved.is_some() && state.approved_plan != approved)
            || !forgotten.is_subset(&state.forgotten);
        (state.approved_plan, state.forgotten) = (approved, forgotten);
        if given {
            self.state.queue.add_first(unit);
        }
    }

    /// A plugin whose watch fails says so; one whose watch has come back tries
    /// again what did not work. Where nothing could be answered meanwhile, every unit
    /// may have been told so and gone on without: all of them run again.
    fn on_watch_state(&mut self, watch: &Arc<WatchSpec>, state: &WatchState) {
        let all = match state {
            WatchState::Forbidden { .. } | WatchState::NotServed => {
                // Those that nobody watches any more are not told to be back.
                let State {
                    doubted, routes, ..
                } = &mut self.state;
                doubted.retain(|watch| routes.contains_key(watch));
                doubted.insert(watch.clone());
                false
            }
            WatchState::Synced => self.state.doubted.remove(watch),
            WatchState::Syncing | WatchState::Failing { .. } => false,
        };
        let routes = self.state.routes.get(watch).cloned();
        for (name, route) in routes.iter().flat_map(|routes| routes.iter()) {
            // Its CRD may come back with another scope or other names, so that
            // what was loaded with the old one is of no use.
            if *state == WatchState::NotServed && *route != Route::Class {
                self.loader.cluster.forget(&watch.resource.kind);
                self.load_anew(name);
            }
            if *state == WatchState::Synced {
                self.run_unready(name, all && *route != Route::Class);
            }
            self.mark_stale(name);
        }
    }

    /// Queues the units of a plugin that are not ready, or all of them.
    fn run_unready(&mut self, name: &str, all: bool) {
        let Some(plugin) = self.state.plugins.get(name) else {
            return;
        };
        let failing = plugin
            .units
            .iter()
            .filter(|(_, unit)| all || unit.health() != Health::Ready);
        for (primary, _) in failing {
            self.state.queue.add_bulk(plugin.unit(primary));
        }
    }

    pub(super) fn on_config_map(&mut self, new: Option<&Arc<Object>>, reference: &ObjectReference) {
        let name: Arc<str> = reference.name.as_str().into();
        let runs_at_once = self.runs_at_once();
        let plugins = &mut self.state.plugins;
        let plugin = plugins
            .entry(name.clone())
            .or_insert_with(|| PluginState::new(&name));
        let before = std::mem::replace(&mut plugin.config_map, new.cloned());
        // Whoever keeps its annotations would otherwise keep it from ever being loaded.
        let loads = plugin.loading.is_some();
        let runs = plugin.active.is_some() && plugin.problem.is_none();
        if (loads || runs) && holds_the_same(before.as_deref(), new.map(|new| &**new)) {
            return;
        }
        plugin.component_of = new.and_then(|map| component_of(map));
        plugin.load_failures = 0;
        if new.is_some() {
            plugin.is_installed_again();
            self.metrics
                .installed(&name, runs_at_once, plugin.running().as_ref());
            self.start_load(&name);
        } else if plugin.is_installed() {
            self.start_load(&name);
        } else {
            self.metrics.removed(&name);
            self.stop_plugin(&name);
        }
        self.load_instances(&name);
    }

    /// A part of a component has come, gone or changed: whoever runs that component
    /// loads it again.
    fn on_part(&mut self, change: &ObjectChange) {
        let of = |object: &Option<Arc<Object>>| -> Option<Arc<str>> {
            object.as_ref()?.label(PART_OF_LABEL).map(Into::into)
        };
        let name = &change.reference.name;
        if let Some(old) = of(&change.old)
            && let Some(parts) = self.state.parts.get_mut(&old)
        {
            parts.remove(name);
            if parts.is_empty() {
                self.state.parts.remove(&old);
            }
        }
        if let Some((new, object)) = of(&change.new).zip(change.new.clone()) {
            let parts = self.state.parts.entry(new).or_default();
            parts.insert(name.clone(), object);
        }
        let moved = of(&change.old) != of(&change.new);
        if !moved && holds_the_same(change.old.as_deref(), change.new.as_deref()) {
            return;
        }
        let plugins: BTreeSet<Arc<str>> = [of(&change.old), of(&change.new)]
            .into_iter()
            .flatten()
            .collect();
        for plugin in plugins {
            self.start_load(&plugin);
            self.load_instances(&plugin);
        }
    }

    /// Loads the plugins that run the component of this one.
    fn load_instances(&mut self, of: &Arc<str>) {
        let instances: Vec<Arc<str>> = self
            .state
            .plugins
            .values()
            .filter(|plugin| plugin.component_of.as_ref() == Some(of) && plugin.name != *of)
            .map(|plugin| plugin.name.clone())
            .collect();
        for instance in instances {
            self.start_load(&instance);
        }
    }

    pub(super) fn on_plugin_object(
        &mut self,
        new: Option<&Arc<Object>>,
        reference: &ObjectReference,
    ) {
        let name: Arc<str> = reference.name.as_str().into();
        let Some(object) = new else {
            return self.on_plugin_object_gone(&name);
        };
        let object = PolicyObject::read(object);
        let leads = self.leads();
        // One without a ConfigMap waits for it, and says so.
        let plugins = &mut self.state.plugins;
        let plugin = plugins
            .entry(name.clone())
            .or_insert_with(|| PluginState::new(&name));
        let spec = match &object.spec {
            Ok(spec) => spec.clone(),
            Err(problem) => {
                let problem = problem.clone();
                return self.on_unreadable(&name, problem, object.status);
            }
        };
        let annotation = |name: &str| object.annotation(name);
        let approvals = annotation(APPROVE_DELETION_ANNOTATION);
        let approved_asks = annotation(APPROVE_ASKS_ANNOTATION);
        let words = Words {
            approved: annotation(APPROVE_UPGRADE_ANNOTATION),
            rolled_back: annotation(ROLL_BACK_ANNOTATION),
        };
        let other_words = plugin.approved_asks != approved_asks || plugin.words != words;
        (plugin.approved_asks, plugin.words) = (approved_asks, words);
        let requests = [
            (Ask::Reconcile, annotation(RECONCILE_ANNOTATION)),
            (Ask::Retry, annotation(RETRY_ANNOTATION)),
            (Ask::Sync, annotation(SYNC_ANNOTATION)),
        ];
        let first_look = plugin.policy.is_none();
        let approved = plugin.approve(approvals.as_deref(), self.clock.now());
        let asked = requests.map(|(ask, text)| plugin.request(ask, text, first_look));
        if approved {
            for primary in plugin.units.keys() {
                self.state.queue.add_first(plugin.unit(primary));
            }
        }
        for unit in asked.iter().flat_map(|asked| &asked.units) {
            self.state.queue.add_first(unit.clone());
        }
        let asked_new = asked.iter().any(|asked| asked.new);
        let asked_load = asked.iter().any(|asked| asked.load);
        let looks = asked.iter().take(2).any(|asked| asked.new) && !first_look;
        if looks && let Some(active) = &plugin.active {
            active.sources.look_again();
        }
        let status = object.status.as_ref();
        let kinds = status.map(|status| status.contributes_to.iter().cloned().collect());
        let grown = plugin.contributions.record(kinds.unwrap_or_default());
        // Such an object is made for each plugin that has none, and says what held without it.
        let says_nothing =
            first_look && spec == PluginSpec::default() && object.status.is_none() && !other_words;
        let policy = (spec, object.generation);
        let mended = plugin.unreadable.take().is_some();
        let changed = plugin.policy.as_ref() != Some(&policy) || other_words || mended;
        let mut approved_elsewhere = false;
        // Who follows goes by what the leader reports.
        if (plugin.reported.is_none() || !leads)
            && let Some(status) = object.status.clone()
        {
            let first = plugin.reported.is_none();
            let asks = (plugin.asks.clone(), plugin.canary_asks());
            if !leads {
                plugin.leave_requests(&status);
            }
            plugin.restore(status);
            if first {
                plugin.renew_guard();
                plugin.be_quiet();
            }
            // Another replica found that a person had approved.
            approved_elsewhere = (plugin.asks.clone(), plugin.canary_asks()) != asks;
        }
        let run_anew = plugin.set_policy(Some(policy));
        plugin.set_canary_end(self.clock.now());
        if run_anew {
            for primary in plugin.units.keys() {
                self.state.queue.add_bulk(plugin.unit(primary));
            }
        }
        let held = |problem: &Problem| problem.reason == Reason::ApprovalRequired;
        let approved_elsewhere = approved_elsewhere && plugin.problem.as_ref().is_some_and(held);
        if changed || grown || approved_elsewhere {
            plugin.load_failures = 0;
        }
        let installed = plugin.is_installed();
        let loads = plugin.active.is_some() || plugin.loading.is_some();
        let goes_on = loads && says_nothing && !mended;
        if installed {
            plugin.is_installed_again();
        }
        if changed || asked_new {
            self.mark_stale(&name);
        }
        if !leads {
            self.follow_canary(&name);
        }
        if changed && !installed && self.synced() {
            self.stop_plugin(&name);
        }
        if installed && ((changed && !goes_on) || grown || asked_load) {
            self.start_load(&name);
        }
        self.tell_at_last(&name);
    }

    /// Without its `Plugin` object a plugin runs under the default policy.
    fn on_plugin_object_gone(&mut self, name: &Arc<str>) {
        self.reports.forget_made(name);
        let Some(plugin) = self.state.plugins.get_mut(name) else {
            return;
        };
        let run_anew = plugin.set_policy(None);
        plugin.unreadable = None;
        plugin.reported = None;
        if plugin.config_map.is_none() {
            // It was an artifact, and is removed as if its ConfigMap had gone.
            let ran = plugin.active.is_some() || plugin.loading.is_some();
            if ran {
                self.metrics.removed(name);
                self.stop_plugin(name);
            }
            let plugin = self.state.plugins.get(name);
            if !ran || plugin.is_some_and(|plugin| plugin.removing.is_none()) {
                self.state.plugins.remove(name);
                self.metrics.removed(name);
                self.reports
                    .forget_names(|object| is_unit_object_of(name, object));
                self.drop_unit_objects(name, &BTreeSet::new());
            }
        } else {
            if run_anew {
                for primary in plugin.units.keys() {
                    self.state.queue.add_bulk(plugin.unit(primary));
                }
            }
            self.mark_stale(name);
            self.start_load(name);
        }
    }

    /// A policy that cannot be read is no policy to run under: what runs goes on under
    /// the one before, and where there is none, nothing runs.
    fn on_unreadable(&mut self, name: &Arc<str>, problem: Problem, status: Option<PluginStatus>) {
        tracing::warn!(plugin = %name, reason = %problem.reason, message = problem.message, "policy not read");
        let Some(plugin) = self.state.plugins.get_mut(name) else {
            return;
        };
        if let Some(status) = status.filter(|_| plugin.reported.is_none()) {
            plugin.restore(status);
            plugin.renew_guard();
            plugin.be_quiet();
        }
        plugin.unreadable = Some(problem);
        let (known, installed) = (plugin.policy.is_some(), plugin.is_installed());
        if !known {
            self.halt(name);
        }
        if installed {
            self.start_load(name);
        } else if self.synced() {
            self.stop_plugin(name);
        }
        self.mark_stale(name);
    }

    pub(super) fn on_primary(&mut self, plugin: &Arc<str>, change: &ObjectChange) {
        let leads = self.leads();
        let Some(state) = self.state.plugins.get_mut(plugin) else {
            return;
        };
        let unit = state.unit(&change.reference);
        match (&change.old, &change.new) {
            (_, None) => {
                if let Some(state) = state.units.get_mut(&change.reference) {
                    state.set_present(false);
                    state.steps = Steps::default();
                    self.state.queue.add(unit);
                }
            }
            (old, Some(new)) => {
                let Some(active) = state.active.clone() else {
                    return;
                };
                let known = state
                    .units
                    .get(&change.reference)
                    .is_some_and(|unit| unit.is_present());
                let stable = state.canary.as_ref().map(|canary| canary.stable.clone());
                let unit_state = state.ensure_unit(&unit);
                unit_state.set_present(true);
                unit_state.held = is_held(new, plugin);
                let changed = |key: &str| {
                    let differs = |old: &Arc<Object>| old.annotation(key) != new.annotation(key);
                    old.as_ref().is_some_and(differs)
                };
                let asked = [
                    (RECONCILE_ANNOTATION, Attempt::Look),
                    (RETRY_ANNOTATION, Attempt::Retry),
                    (SYNC_ANNOTATION, Attempt::Anew),
                ];
                let asked = asked.into_iter().filter(|(key, _)| changed(key));
                let attempt = asked.map(|(_, attempt)| attempt).max();
                if let Some(attempt) = attempt {
                    unit_state.named = true;
                    unit_state.try_anew(attempt);
                    if !leads {
                        state.overhear(&change.reference, attempt);
                    }
                }
                let versions = [Some(&active), stable.as_ref()];
                let says = [SUSPEND_ANNOTATION, RELEASE_ANNOTATION];
                if attempt.is_some() || says.into_iter().any(changed) {
                    self.state.queue.add_first(unit);
                    self.mark_stale(plugin);
                    return;
                }
                let same = known
                    && old.as_ref().is_some_and(|old| {
                        old.is_deleting() == new.is_deleting()
                            && versions.into_iter().flatten().all(|version| {
                                let projection = &version.manifest.primary().projection;
                                projection.apply(&old.value()) == projection.apply(&new.value())
                            })
                    });
                if !same {
                    self.state.queue.add(unit);
                }
            }
        }
        self.mark_stale(plugin);
    }

    pub(super) fn on_owned(&mut self, plugin: &Arc<str>, change: &ObjectChange) {
        let Some(state) = self.state.plugins.get_mut(plugin) else {
            return;
        };
        let label = |object: &Option<Arc<Object>>| {
            object
                .as_ref()
                .and_then(|object| object.label(UNIT_LABEL).map(str::to_owned))
        };
        let (old, new) = (label(&change.old), label(&change.new));
        if let Some(old) = old.as_ref().filter(|_| old != new)
            && let Some(owned) = state.owned.get_mut(old)
        {
            state.owned_count -= usize::from(owned.remove(&change.reference));
            if owned.is_empty() {
                state.owned.remove(old);
            }
        }
        if let Some(new) = &new {
            let owned = state.owned.entry(new.clone()).or_default();
            state.owned_count += usize::from(owned.insert(change.reference.clone()));
        }
        state.look_for_kinds(change, Instant::now());
        if state.note_stranger(change) {
            self.mark_stale(plugin);
        }
        let Some(state) = self.state.plugins.get_mut(plugin) else {
            return;
        };
        if let (Some(gone), None) = (&change.old, &change.new)
            && let Some(primary) = old.as_ref().and_then(|label| state.labels.get(label))
            && let Some(unit) = state.units.get_mut(primary)
        {
            unit.sync
                .note_gone(gone.uid(), || gone.value(), self.clock.now());
        }
        // What we wrote ourselves needs no answer, unless it took the object from
        // another unit; nor does what is none of our business. What a unit has made is
        // looked at by the run that made it and known before the next one begins; one
        // that is no more has no next run.
        let ours = || {
            let manager = state.active.as_ref().map(|active| &*active.field_manager);
            concerns_owner(change, manager.unwrap_or_default())
        };
        let made = change.old.is_none()
            && new
                .as_ref()
                .is_some_and(|label| state.labels.contains_key(label));
        let needs_no_answer = match change.own_write {
            true => old == new || made,
            false => old == new && !ours(),
        };
        if needs_no_answer {
            return;
        }
        let mut units: Vec<UnitKey> = Vec::new();
        for label in [&old, &new].into_iter().flatten() {
            if let Some(primary) = state.labels.get(label) {
                units.push(state.unit(primary));
            } else if let Some(object) = &change.new
                && let Some(unit) = state.orphan(object)
            {
                state.ensure_unit(&unit);
                units.push(unit);
            }
        }
        for unit in units {
            let state = self.state.plugins.get(plugin);
            let state = state.and_then(|plugin| plugin.units.get(&*unit.primary));
            match state.and_then(|unit| unit.drift_delay()) {
                None => match &change.new {
                    Some(object) => self.state.queue.add_for(unit, object),
                    None => self.state.queue.add(unit),
                },
                Some(at) => self.state.queue.add_at(unit, at),
            }
        }
    }
}

/// Whether a change of an owned object can change what is done about it. For
/// kinds that nothing works on that is our part of it alone: the usage in the
/// status of a ResourceQuota is nobody's drift. A rule for its health may ask for more.
fn concerns_owner(change: &ObjectChange, manager: &str) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else {
        return true;
    };
    let same = old.uid() == new.uid()
        && old.is_deleting() == new.is_deleting()
        && health::is_static(new.kind())
        && new.annotation(HEALTH_ANNOTATION).is_none()
        && old.manager_fields(manager) == new.manager_fields(manager)
        && old.annotations() == new.annotations();
    !same
}

impl PluginState {
    /// Takes in what a person has approved. Returns whether it is new.
    pub(crate) fn approve(&mut self, text: Option<&str>, now: Timestamp) -> bool {
        let tokens: Arc<[Token]> = text
            .into_iter()
            .flat_map(|text| text.split(','))
            .filter_map(|token| match token.trim().parse() {
                Ok(token) => Some(token),
                Err(error) => {
                    tracing::warn!(plugin = %self.name, %error, "approval not understood");
                    None
                }
            })
            .collect();
        if tokens == self.approvals {
            return false;
        }
        for token in tokens
            .iter()
            .filter(|token| !self.approvals.contains(token))
        {
            // A token of one unit's hold is checked with that unit.
            match self.guard.lock().approve(token, now) {
                Ok(count) => {
                    tracing::info!(plugin = %self.name, count, %token, "held deletions approved");
                }
                Err(error) => tracing::debug!(plugin = %self.name, %error, "approval of a unit"),
            }
        }
        self.approvals = tokens;
        true
    }

    /// Takes in whether an object belongs to no unit of ours. Returns whether that
    /// is news.
    fn note_stranger(&mut self, change: &ObjectChange) -> bool {
        let Some(active) = &self.active else {
            return false;
        };
        let unknown = |object: &&Arc<Object>| {
            let label = object.label(UNIT_LABEL);
            label.is_some_and(|label| !self.labels.contains_key(label))
        };
        let object = change.new.as_ref().filter(unknown);
        let object = object.map(|object| &**object);
        self.strangers.note(active, &change.reference, object)
    }

    /// The unit that an object's annotation names, if it is of our primary's kind.
    pub(crate) fn orphan(&self, object: &Object) -> Option<UnitKey> {
        let active = self.active.as_ref()?;
        // Labels can be forged; without an apply of ours it is nobody's orphan.
        object.manager_fields(&active.field_manager)?;
        let kind = &active.manifest.primary().kind;
        let id = object.annotation(PRIMARY_ANNOTATION)?;
        let mut parts = id.splitn(3, '/');
        let (kind_and_group, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
        let ours =
            kind_and_group.split_once('.') == Some((kind.kind.as_str(), kind.group.as_str()));
        if !ours || name.is_empty() {
            return None;
        }
        let namespace = Some(namespace.to_owned()).filter(|n| !n.is_empty());
        let unit = self.unit(&ObjectReference::new(kind.clone(), namespace, name));
        // The annotation must fit the label by which we found the object.
        (object.label(UNIT_LABEL) == Some(unit_label(&unit))).then_some(unit)
    }
}

/// Whether two states of a ConfigMap hold the same, whatever else is different.
fn holds_the_same(old: Option<&Object>, new: Option<&Object>) -> bool {
    let (Some(old), Some(new)) = (old, new) else {
        return false;
    };
    let (old_value, new_value) = (old.value(), new.value());
    let same = |field: &str| old_value.get(field) == new_value.get(field);
    old.uid() == new.uid() && same("data") && same("binaryData")
}

/// The plugin whose component a ConfigMap runs. What cannot be read says so when it
/// is loaded.
fn component_of(config_map: &Object) -> Option<Arc<str>> {
    let map: ConfigMap = serde_json::from_str(config_map.json()).ok()?;
    delivery::component_of(&map).map(Into::into)
}
