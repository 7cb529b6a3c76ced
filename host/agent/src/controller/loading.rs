//! Loading plugins, putting them to work, and stopping them.

use super::load_job::{Load, Previous};
use super::reporting::{
    UNIT_LABEL_LENGTH, is_unit_object_of, unit_object_name, unit_object_prefix,
};
use super::{Controller, Done, JobFor, Loaded, Route, Tag, jitter};
use crate::active::{Active, LoadKey};
use crate::approval::Approval;
use crate::artifacts::{FAILING, Seen, is_of_registry};
use crate::gates::Gates;
use crate::left::Place;
use crate::load::Standing;
use crate::plugin::Health;
use crate::plugin::steps::Steps;
use crate::problem::Problem;
use crate::reporter::{About, Report};
use crate::rights::Rights;
use crate::version::VersionId;
use crate::written::{Written, has_effects, is_durable, is_ours};
use reeve_api::{Reason, ShadowStatus};
use reeve_cluster::{WatchHandle, WatchState};
use reeve_core::backoff::Backoff;
use reeve_core::{Digest, UnitKey};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A version that is held since units failed in a way that may pass is asked again this
/// often: asking about all of them takes a while, and a person is told meanwhile.
const HELD_RECHECK: Duration = Duration::from_secs(5 * 60);

impl Controller {
    pub(super) fn synced(&self) -> bool {
        let mut own = self.own.all().into_iter();
        own.all(|watch| watch.state() == WatchState::Synced)
    }

    /// Loads and reports what could not be before everything was known.
    pub(super) fn load_all(&mut self) {
        if !self.synced() {
            return;
        }
        // What the lists have told comes first: a plugin whose ConfigMap is not taken in
        // yet is not without one.
        while let Ok(change) = self.changes.try_recv() {
            self.on_change(change);
        }
        self.resume_reports();
        self.drop_forgotten_unit_objects();
        let waiting: Vec<(Arc<str>, bool)> = self
            .state
            .plugins
            .values()
            .filter(|p| {
                let idle = p.active.is_none() && p.loading.is_none() && p.retry_at.is_none();
                p.wants_load || idle
            })
            .map(|p| (p.name.clone(), p.is_installed()))
            .collect();
        for (name, installed) in waiting {
            if installed {
                self.start_load(&name);
            } else {
                self.stop_plugin(&name);
            }
        }
    }

    pub(super) fn start_load(&mut self, name: &Arc<str>) {
        let synced = self.synced();
        let Some(plugin) = self.state.plugins.get_mut(name) else {
            return;
        };
        plugin.retry_at = None;
        // Policy must be known before anything runs under it.
        plugin.wants_load = !synced;
        if !synced {
            return;
        }
        if let Some(running) = plugin.loading.take() {
            running.abort();
        }
        if let Some(problem) = &plugin.unreadable {
            plugin.problem = Some(problem.clone());
            return self.mark_stale(name);
        }
        if !plugin.is_installed() {
            return;
        }
        plugin.tag.rest();
        let config_map = plugin.config_map.clone();
        let component_of = plugin.component_of.clone();
        let approval = Approval {
            asks: plugin.asks.clone(),
            canary: plugin.canary_asks(),
            token: plugin.approved_asks.clone(),
        };
        let policy = plugin
            .policy
            .as_ref()
            .map(|(spec, _)| spec.clone())
            .unwrap_or_default();
        let running = plugin.stable().cloned();
        plugin.judged_early = !plugin.is_settled();
        let canary = plugin.canary_version();
        let returned = plugin.returned();
        let current = plugin.active.as_ref().filter(|_| !plugin.outdated);
        let current = current.map(|active| active.key.clone());
        let (last_good, previous) = (plugin.last_good, plugin.previous.clone());
        let left = plugin.left.clone();
        let words = plugin.words.clone();
        let places = plugin.places.clone();
        let contributes = plugin.contributions.recorded.clone();
        let mut maps: Vec<_> = config_map.into_iter().collect();
        let parts_of = |name: &Arc<str>| {
            let parts = self.state.parts.get(name).into_iter();
            parts.flat_map(|parts| parts.values().cloned())
        };
        maps.extend(parts_of(name));
        if let Some(other) = component_of.filter(|other| other != name) {
            let config_map = self.state.plugins.get(&other);
            maps.extend(config_map.and_then(|plugin| plugin.config_map.clone()));
            maps.extend(parts_of(&other));
        }
        let load = Load {
            loader: self.loader.clone(),
            gates: self.gated.then(|| Gates {
                runner: self.runner.clone(),
                units: self.own.units.spec().clone(),
            }),
            plugin: name.clone(),
            maps,
            policy,
            approval,
            words,
            running,
            canary,
            returned,
            current,
            last_good,
            previous,
            left,
            places,
            contributes,
        };
        let handle = self.state.jobs.spawn(load.run());
        self.state
            .job_ids
            .insert(handle.id(), JobFor::Load(name.clone()));
        if let Some(plugin) = self.state.plugins.get_mut(name) {
            plugin.loading = Some(handle);
        }
        self.state.loads += 1;
        self.mark_stale(name);
    }

    pub(super) fn on_loaded(
        &mut self,
        name: &Arc<str>,
        newest: Option<Digest>,
        seen: Option<Seen>,
        shadow: Option<ShadowStatus>,
        result: Result<Loaded, Problem>,
    ) {
        let cached = self.loader.engine.has_cache();
        let Some(plugin) = self.state.plugins.get_mut(name) else {
            return;
        };
        plugin.loading = None;
        plugin.saw(seen);
        if newest.is_some() {
            plugin.newest = newest;
        }
        if shadow.is_some() {
            plugin.shadow.clone_from(&shadow);
        }
        let mut goes_on = matches!(result, Ok(Loaded::First(..)));
        let is_first = goes_on;
        let in_place_of_newest = matches!(result, Ok(Loaded::InPlaceOfNewest(..)));
        let upgrades = matches!(result, Ok(Loaded::New(..) | Loaded::Canary(..)));
        let newest_runs = matches!(
            result,
            Ok(Loaded::Unchanged | Loaded::New(..) | Loaded::Canary(..))
        );
        if newest_runs {
            plugin.left = Previous::default();
        }
        if let Ok(Loaded::New(active, _)) = &result {
            plugin.forget_return(VersionId::running(active));
        }
        let (mut begun, mut keep) = (false, None);
        let (new, problem) = match result {
            Ok(Loaded::Unchanged) => (None, None),
            Ok(Loaded::New(active, standing) | Loaded::First(active, standing)) => {
                (Some((active, standing)), None)
            }
            Ok(Loaded::Canary(active, standing, new)) => {
                let package = new.package.clone();
                begun = plugin.begin_canary(&active, *new, self.clock.now());
                // Nobody to try it on: it has taken over.
                if !begun && cached && package.is_none() {
                    let digest = active.component.digest();
                    tracing::warn!(plugin = %name, %digest, "not kept for the next start: there was no room for it while its gates were looked at");
                }
                keep = package.filter(|_| !begun);
                (Some((active, standing)), None)
            }
            Ok(Loaded::InPlaceOfNewest(active, standing, problem)) => {
                (Some((active, standing)), Some(problem))
            }
            Err(problem) => (None, Some(problem)),
        };
        let known = std::mem::replace(&mut plugin.problem, problem.clone());
        match &problem {
            None => plugin.load_failures = 0,
            Some(problem) => {
                // Once, however often it is tried again.
                if known.as_ref() != Some(problem) {
                    tracing::warn!(plugin = %name, reason = %problem.reason, message = problem.message, "plugin not loaded");
                }
                plugin.load_failures = plugin.load_failures.saturating_add(1);
                if problem.retries {
                    let jitter = jitter(name, plugin.load_failures);
                    let delay = Backoff::CONNECTION.delay(plugin.load_failures, jitter);
                    let delay = match problem.reason {
                        Reason::UpgradeHeld => delay.max(HELD_RECHECK),
                        // It has had a minute of the only compiler, or what its limits allow of
                        // a thread, and others wait for these.
                        Reason::CompileFailed | Reason::MetadataFailed | Reason::DescribeFailed => {
                            FAILING.delay(plugin.load_failures, jitter)
                        }
                        _ if plugin.artifact().is_some() && is_of_registry(problem) => {
                            FAILING.delay(plugin.load_failures, jitter)
                        }
                        _ => delay,
                    };
                    plugin.retry_at = Some(Instant::now() + delay);
                }
            }
        }
        if let Some((active, standing)) = new {
            plugin.outdated = false;
            if !begun {
                plugin.canary = None;
                // One that ran before a restart may come next.
                if !is_first {
                    plugin.forget_progress();
                }
                plugin.take_over(VersionId::running(&active), in_place_of_newest, cached);
            }
            // After a restart what ran last comes first; and what a newest version was held
            // for is what it would do beyond what ran, which is another now.
            let held = |problem: &Problem| {
                matches!(problem.reason, Reason::UpgradeHeld | Reason::UpgradeBroken)
            };
            let held = problem.as_ref().is_some_and(held);
            goes_on |= in_place_of_newest && (held || plugin.wants_left());
            plugin.asks = Some(plugin.asked(&active));
            plugin.stand(&active, standing);
            if let Some(canary) = &plugin.canary {
                plugin.places.extend(Place::of(&canary.stable.manifest));
            }
            let rights = Rights::answered(Instant::now());
            let waited = plugin.rights.replace(rights).map(|mut old| old.end());
            plugin.rights_unknown = None;
            self.resume(waited.unwrap_or_default());
            self.activate(name, &active);
        }
        if let Some(package) = keep {
            self.keep(name, package);
        }
        if begun && let Some(plugin) = self.state.plugins.get(name) {
            let message = plugin.canary_problem().map(|problem| problem.message);
            self.tell_of_canary(name, "CanaryStarted", message.unwrap_or_default());
        } else if let Some(problem) = &problem {
            if problem.reason == Reason::RolledBack {
                self.roll_back_canary(name, problem);
            }
            self.queue_awaiting(name);
        } else if !goes_on {
            self.queue_awaiting(name);
        }
        let shadow = shadow.filter(|_| upgrades);
        self.tell_of_upgrade(name, known.as_ref(), problem.as_ref(), shadow.as_ref());
        self.mark_stale(name);
        // A watch that was lost meanwhile is waited for, and then all begins anew.
        let plugin = self.state.plugins.get(name);
        // Units may have caught up while the newest was judged.
        if plugin.is_some_and(|plugin| {
            plugin.active.is_some() && (goes_on || plugin.is_to_be_judged_again())
        }) {
            self.start_load(name);
        }
    }

    /// Puts a loaded version in the place of the one that runs.
    pub(super) fn activate(&mut self, name: &Arc<str>, active: &Arc<Active>) {
        let digest = active.component.digest();
        tracing::info!(plugin = %name, %digest, version = active.metadata.version, "plugin running");
        self.unroute(name);
        // The same component may be loaded again since a kind is served with another
        // scope: then the same answer is checked anew.
        self.runner.memo.forget_plugin(name);
        // Another version may come to rest, and what is known of a newer one was held against
        // the one before.
        if let Some(plugin) = self.state.plugins.get_mut(name) {
            plugin.judged_early = true;
            for unit in plugin.units.values_mut() {
                unit.steps = Steps::default();
                unit.set_caught_up(false);
            }
        }
        let own = |watch: &WatchHandle, route| (watch.spec().clone(), route);
        let mut routes = vec![own(&active.watches.primary, Route::Primary)];
        let reads = active.watches.reads.iter().flatten();
        routes.extend(reads.map(|watch| own(watch, Route::Read)));
        routes.extend(
            active
                .watches
                .owned
                .iter()
                .map(|watch| own(watch, Route::Owned)),
        );
        let contributed = active.watches.contributed.iter();
        routes.extend(contributed.map(|watch| own(watch, Route::Contributed)));
        let plugin = self.state.plugins.get(name);
        let stable = plugin.and_then(|plugin| plugin.canary.as_ref());
        let stable = stable.map(|canary| canary.stable.clone());
        if let Some(stable) = &stable {
            let watches = &stable.watches;
            routes.push(own(&watches.primary, Route::Primary));
            let reads = watches.reads.iter().flatten();
            routes.extend(reads.map(|watch| own(watch, Route::Read)));
            routes.extend(watches.owned.iter().map(|watch| own(watch, Route::Owned)));
            let contributed = watches.contributed.iter();
            routes.extend(contributed.map(|watch| own(watch, Route::Contributed)));
        }
        let classes = active.watches.classes.iter();
        routes.extend(classes.map(|watch| own(watch, Route::Class)));
        for (spec, route) in routes {
            let wanted = self.state.routes.entry(spec).or_default();
            if !wanted.contains(&(name.clone(), route)) {
                Arc::make_mut(wanted).push((name.clone(), route));
            }
        }
        let snapshot = self.runner.store.snapshot();
        let everything = reeve_core::selector::Selector::default();
        let written = self.written(name);
        let Some(plugin) = self.state.plugins.get_mut(name) else {
            return;
        };
        plugin.active = Some(active.clone());
        plugin.guard.lock().set_policy(active.withdrawals);
        plugin.primary_kind = Some(active.manifest.primary().kind.clone());
        // Units of another kind of primary are not this version's; their objects
        // stay where they are.
        let kind = &active.manifest.primary().kind;
        let others = plugin
            .units
            .keys()
            .filter(|reference| reference.kind != *kind);
        let others: Vec<UnitKey> = others.map(|reference| plugin.unit(reference)).collect();
        let mut said = Vec::new();
        for unit in others {
            self.state.queue.remove(&unit);
            self.state.reads.remove(&unit);
            let state = plugin.forget_unit(&unit);
            if state.is_some_and(|state| state.reported) {
                said.push(unit_object_name(&unit));
            }
        }
        let list = |watch: &WatchHandle| snapshot.list_in(watch.spec(), None, &everything).found();
        let mut others = active
            .watches
            .owned
            .iter()
            .chain(&active.watches.contributed);
        let others_seen = others.all(|watch| list(watch).is_some());
        let primaries = list(&active.watches.primary).filter(|_| others_seen);
        let Some((primaries, written)) = primaries.zip(written) else {
            // A watch was lost in the moment since it was synced; the next attempt
            // begins anew.
            plugin.active = None;
            plugin.retry_at = Some(Instant::now() + Backoff::CONNECTION.base);
            return;
        };
        plugin.take_stock(active, &snapshot, &primaries);
        if let Some(stable) = &stable {
            plugin.take_stock_of_owned(stable, &snapshot);
        }
        plugin.resume_syncs(&written);
        let units: Vec<UnitKey> = plugin.units.keys().map(|r| plugin.unit(r)).collect();
        let mut names: BTreeSet<String> = units.iter().map(unit_object_name).collect();
        // A version for the kind from before may take them away yet.
        names.extend(written.names(has_effects));
        self.drop_unit_objects(name, &names);
        // Those of which the watch has not told yet.
        for object in said.into_iter().filter(|object| !names.contains(object)) {
            self.reports.put(About::Unit(object), Report::Unit(None));
        }
        for unit in units {
            self.state.queue.add_bulk(unit);
        }
    }

    /// Deletes the `Unit` objects of a plugin, all but these.
    pub(super) fn drop_unit_objects(&mut self, name: &str, keep: &BTreeSet<String>) {
        let said = self
            .reports
            .said_where(|object| is_unit_object_of(name, object));
        let mut objects: BTreeSet<String> = said.into_iter().map(|(object, _)| object).collect();
        let seen = self.state.unit_objects.iter();
        objects.extend(
            seen.filter(|object| is_unit_object_of(name, object))
                .cloned(),
        );
        for object in objects.difference(keep) {
            self.reports
                .put(About::Unit(object.clone()), Report::Unit(None));
        }
    }

    /// What is written of a plugin's units, here or in the cluster; none while that
    /// cannot be seen.
    pub(super) fn written(&self, name: &str) -> Option<Written> {
        let snapshot = self.runner.store.snapshot();
        let seen = Written::seen(name, &snapshot, self.own.units.spec())?;
        Some(seen.and_said(name, &self.reports))
    }

    /// Deletes the `Unit` objects of plugins that were forgotten while nobody led.
    pub(super) fn drop_forgotten_unit_objects(&mut self) {
        let known: BTreeSet<String> = self
            .state
            .plugins
            .keys()
            .map(|name| unit_object_prefix(name))
            .collect();
        let unknown = self.state.unit_objects.iter().filter(|object| {
            let end = object.len().checked_sub(UNIT_LABEL_LENGTH);
            let prefix = end.and_then(|end| object.get(..end));
            prefix.is_some_and(|prefix| !known.contains(prefix))
        });
        let (snapshot, units) = (self.runner.store.snapshot(), self.own.units.spec());
        let namespace = Some(&*self.loader.namespace);
        for object in unknown {
            let found = snapshot.get_in(units, namespace, object).found();
            // One that somebody made by hand is none of ours.
            if found.is_some_and(|found| is_ours(&found)) {
                self.reports.forget_names(|name| name == object);
                self.reports
                    .put(About::Unit(object.clone()), Report::Unit(None));
            }
        }
    }

    /// Asks again whether a plugin may still do what it does.
    pub(super) fn start_recheck(&mut self, name: &Arc<str>) {
        let Some(plugin) = self.state.plugins.get_mut(name) else {
            return;
        };
        let places = plugin.places.clone();
        let Some((active, rights)) = plugin.active.clone().zip(plugin.rights.as_mut()) else {
            let waited = plugin.rights.take().map(|mut rights| rights.end());
            plugin.rights_unknown = None;
            return self.resume(waited.unwrap_or_default());
        };
        rights.ask();
        let (loader, plugin) = (self.loader.clone(), name.clone());
        let handle = self.state.jobs.spawn(async move {
            let result = loader.recheck(&plugin, &active, &places).await;
            let key = active.key.clone();
            Done::Recheck {
                plugin,
                key,
                result,
            }
        });
        self.state
            .job_ids
            .insert(handle.id(), JobFor::Recheck(name.clone()));
    }

    /// Notes that a question about rights has ended, with an answer or without, and lets the
    /// units run that waited for it.
    pub(super) fn renew_rights(&mut self, name: &Arc<str>, is_told: bool) {
        let plugin = self.state.plugins.get_mut(name);
        let rights = plugin.and_then(|plugin| plugin.rights.as_mut());
        let waited = rights.map(|rights| match is_told {
            true => rights.renew(Instant::now()),
            false => rights.give_up(Instant::now()),
        });
        self.resume(waited.unwrap_or_default());
    }

    /// Notes why nobody tells what is granted, or that somebody does.
    pub(super) fn note_untold(&mut self, name: &Arc<str>, problem: Option<Problem>) {
        let Some(plugin) = self.state.plugins.get_mut(name) else {
            return;
        };
        if plugin.rights_unknown == problem {
            return;
        }
        if let Some(problem) = &problem {
            tracing::warn!(plugin = %name, message = problem.message, "rights not known");
        }
        plugin.rights_unknown = problem;
        self.mark_stale(name);
    }

    /// Queues units again that were taken and did not run.
    fn resume(&mut self, units: Vec<UnitKey>) {
        for unit in units {
            self.state.queue.done(&unit);
            self.state.queue.add(unit);
        }
    }

    /// Goes on with what is granted now, or stops what no longer is.
    pub(super) fn on_rechecked(
        &mut self,
        name: &Arc<str>,
        key: &LoadKey,
        result: Result<Standing, Problem>,
    ) {
        let Some(plugin) = self.state.plugins.get(name) else {
            return;
        };
        let Some(active) = plugin.active.clone().filter(|active| active.key == *key) else {
            // A canary went back meanwhile, or came. What is granted to the version that
            // runs now was not asked; units that wait go on when that is known.
            return self.start_recheck(name);
        };
        // Whether it was told or not, the question has ended: units wait for it.
        self.renew_rights(name, result.as_ref().err().is_none_or(Problem::is_refusal));
        let untold = result
            .as_ref()
            .err()
            .filter(|problem| !problem.is_refusal())
            .cloned();
        self.note_untold(name, untold);
        match result {
            Ok(standing) => {
                if standing.outdated {
                    tracing::info!(plugin = %name, "a definition has changed, loading anew");
                    self.load_anew(name);
                }
                let Some(plugin) = self.state.plugins.get_mut(name) else {
                    return;
                };
                if let Some(rights) = &mut plugin.rights
                    && (standing.powerless.is_some()
                        || !standing.left.is_empty()
                        || !active.unserved.is_empty())
                {
                    rights.ask_soon();
                }
                let may_hold_alike = plugin.standing.may_hold == standing.may_hold;
                let granted_alike = plugin.standing.ungranted == standing.ungranted
                    && plugin.standing.powerless == standing.powerless
                    && may_hold_alike;
                if granted_alike && plugin.standing.left == standing.left {
                    return;
                }
                plugin.stand(&active, standing);
                if granted_alike {
                    self.mark_stale(name);
                    return;
                }
                // Which primaries are to wait, only running their units tells.
                let concerned = plugin
                    .units
                    .iter()
                    .filter(|(_, unit)| !may_hold_alike || unit.health() == Health::Failing);
                for (primary, _) in concerned {
                    self.state.queue.add_bulk(plugin.unit(primary));
                }
            }
            // Not to be told is not to be refused.
            Err(problem) if !problem.is_refusal() => return,
            Err(problem) => {
                tracing::warn!(plugin = %name, reason = %problem.reason, message = problem.message, "plugin stopped");
                self.halt(name);
                if let Some(plugin) = self.state.plugins.get_mut(name) {
                    let known = plugin.problem.replace(problem.clone());
                    plugin.retry_at = Some(Instant::now() + Backoff::CONNECTION.cap);
                    self.tell_of_upgrade(name, known.as_ref(), Some(&problem), None);
                }
            }
        }
        self.mark_stale(name);
    }

    pub(super) fn unroute(&mut self, name: &Arc<str>) {
        self.state.routes.retain(|_, wanted| {
            if wanted.iter().any(|(plugin, _)| plugin == name) {
                Arc::make_mut(wanted).retain(|(plugin, _)| plugin != name);
            }
            !wanted.is_empty()
        });
    }

    /// Loads what runs again, soon and until it succeeds. It goes on meanwhile.
    pub(super) fn load_anew(&mut self, name: &str) {
        if let Some(plugin) = self.state.plugins.get_mut(name) {
            plugin.outdated = true;
            if plugin.retry_at.is_none() {
                plugin.retry_at = Some(Instant::now() + Backoff::CONNECTION.base);
            }
        }
    }

    /// Stops a plugin whose ConfigMap is gone. What becomes of its objects, its policy
    /// says.
    pub(super) fn stop_plugin(&mut self, name: &Arc<str>) {
        let plugin = self.state.plugins.get(name);
        let holding = plugin.is_some_and(|plugin| plugin.units.values().any(|unit| unit.held));
        self.halt(name);
        self.loader.artifacts.forget(name);
        self.remove_later(name, holding);
        if let Some(plugin) = self.state.plugins.get_mut(name) {
            plugin.newest = None;
            plugin.tag = Tag::default();
            plugin.problem = Some(plugin.without_config_map());
        }
        self.mark_stale(name);
    }

    /// Ends whatever runs or loads for a plugin. It may run again: what was done
    /// outside, and how far syncs with hooks are, stays written until the plugin is
    /// forgotten.
    pub(super) fn halt(&mut self, name: &Arc<str>) {
        self.unroute(name);
        self.runner.memo.forget_plugin(name);
        let written = self.written(name);
        let Some(plugin) = self.state.plugins.get_mut(name) else {
            return;
        };
        if let Some(running) = plugin.loading.take() {
            running.abort();
        }
        plugin.retry_at = None;
        plugin.tag.rest();
        plugin.wants_load = false;
        plugin.active = None;
        let effects = written.as_ref().map(|written| written.names(has_effects));
        plugin.effects_left = effects.map_or(0, |effects| effects.len());
        plugin.canary = None;
        let waited = plugin.rights.take().map(|mut rights| rights.end());
        for unit in waited.into_iter().flatten() {
            self.state.queue.done(&unit);
        }
        let units: Vec<UnitKey> = plugin.units.keys().map(|r| plugin.unit(r)).collect();
        for unit in units {
            self.state.queue.remove(&unit);
            self.state.reads.remove(&unit);
            plugin.forget_unit(&unit);
        }
        plugin.owned.clear();
        plugin.strangers.clear();
        plugin.owned_count = 0;
        // What was held before is held again.
        plugin.renew_guard();
        if let Some(written) = written {
            let keep = written.names(is_durable);
            self.drop_unit_objects(name, &keep.into_iter().collect());
        }
    }
}
