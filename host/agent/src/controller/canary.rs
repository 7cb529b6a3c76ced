//! A new version that a share of units gets first.
//!
//! Two versions run then: the new one is the plugin's `active`, as if it had taken over,
//! and the one before runs for all units that are not among the first. What is watched
//! is what either watches. The one before stays the last good version until the new one
//! has stood its time: a restart finds it in the cache as ever, and the new one goes on
//! where it was, by what the status says.

use super::Controller;
use crate::active::Active;
use crate::delivery::Package;
use crate::gates::CanaryRules;
use crate::kept;
use crate::left::Place;
use crate::plugin::{Health, PluginState};
use crate::problem::Problem;
use crate::version::{Artifact, VersionId};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use reeve_api::{APPROVE_UPGRADE_ANNOTATION, CanaryStatus, Reason};
use reeve_core::canary::{highest, rank};
use reeve_core::upgrade::token_for_all;
use reeve_core::{Asks, ObjectReference, UnitKey};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What some units run, and what all others do.
#[derive(Debug)]
pub(crate) struct Canary {
    /// What runs for the others, and for all if this comes to nothing.
    pub(crate) stable: Arc<Active>,
    /// What is kept when it has stood its time, if anything is.
    package: Option<Package>,
    version: VersionId,
    token: String,
    /// What it asks for.
    asks: Vec<String>,
    /// The highest rank of those that got it.
    highest: u64,
    units: usize,
    started: Timestamp,
    /// When its time is over.
    ends: Option<Instant>,
    /// Those that failed before already.
    troubled: HashSet<Arc<ObjectReference>>,
    /// Those that have run under it.
    heard: HashSet<ObjectReference>,
    /// Those that fail and did not, and why.
    failing: BTreeMap<ObjectReference, String>,
}

/// A version that is to run for some units first.
#[derive(Debug)]
pub(crate) struct NewCanary {
    /// What is to be kept, if anything is.
    pub(super) package: Option<Package>,
    /// The version before it, where it had to be loaded anew as well.
    pub(super) stable: Option<Arc<Active>>,
}

const PROGRESSING: &str = "Progressing";
const PASSED: &str = "Passed";
const RETURNED: &str = "Returned";
const ROLLED_BACK: &str = "RolledBack";

impl Canary {
    fn has(&self, unit: &UnitKey) -> bool {
        rank(&self.token, &unit.id()) <= self.highest
    }

    fn status(&self, phase: &str, message: String) -> CanaryStatus {
        let version = self.version.to_status();
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let asks = match phase == PROGRESSING {
            true => self.asks.clone(),
            false => Vec::new(),
        };
        CanaryStatus {
            digest: version.digest,
            config_digest: version.config_digest,
            phase: phase.to_owned(),
            units: count(self.units),
            failing: count(self.failing.len()),
            highest: format!("{:016x}", self.highest),
            started_at: Some(Time(self.started)),
            asks,
            message,
        }
    }
}

/// The token of the version that a status is about.
fn token_of(status: &CanaryStatus) -> Option<String> {
    let (digest, config) = (&status.digest, &status.config_digest);
    let (component, config) = (digest.parse().ok()?, config.parse().ok()?);
    Some(VersionId { component, config }.token())
}

impl PluginState {
    /// The version that a unit runs under.
    pub(crate) fn active_for(&self, unit: &UnitKey) -> Option<&Arc<Active>> {
        match &self.canary {
            Some(canary) if !canary.has(unit) => Some(&canary.stable),
            _ => self.active.as_ref(),
        }
    }

    /// What stays if the newest version does not: what all of the gates compare with.
    pub(crate) fn stable(&self) -> Option<&Arc<Active>> {
        match &self.canary {
            Some(canary) => Some(&canary.stable),
            None => self.active.as_ref(),
        }
    }

    /// The version that some units run, if there is one.
    pub(super) fn canary_version(&self) -> Option<VersionId> {
        self.canary.as_ref().map(|canary| canary.version)
    }

    /// What is asked for by this version, or by the one that most units go on with.
    pub(super) fn asked(&self, active: &Active) -> Vec<String> {
        let canary = self.canary.as_ref();
        let stable = canary.map_or(active, |canary| &canary.stable);
        Asks::of(&stable.manifest).lines()
    }

    /// What the version asks for that some units run, or ran before a restart: either of
    /// the two goes on without being approved anew.
    pub(super) fn canary_asks(&self) -> Option<Vec<String>> {
        let status = self.canary_status()?;
        (status.phase == PROGRESSING).then_some(status.asks)
    }

    /// Forgets that some units ran a version: another one runs for all.
    pub(super) fn forget_progress(&mut self) {
        self.canary_status
            .take_if(|status| status.phase == PROGRESSING);
    }

    /// The token of a version that was returned, and why.
    pub(super) fn returned(&self) -> Option<(String, String)> {
        let status = self.canary_status.as_ref()?;
        let returned = status.phase == RETURNED;
        let token = token_of(status).filter(|_| returned)?;
        Some((token, status.message.clone()))
    }

    /// Whether a unit was among the first before a restart, and what it ran under is
    /// about to be there again: under another version meanwhile it would go back and
    /// forth.
    pub(super) fn awaits_canary(&self, unit: &UnitKey) -> bool {
        let resumes = self.canary.is_none() && self.loading.is_some();
        let status = self.canary_status.as_ref().filter(|_| resumes);
        let status = status.filter(|status| status.phase == PROGRESSING);
        status.is_some_and(|status| {
            let highest = u64::from_str_radix(&status.highest, 16).ok();
            let token = token_of(status);
            let rank = token.map(|token| rank(&token, &unit.id()));
            rank.zip(highest)
                .is_some_and(|(rank, highest)| rank <= highest)
        })
    }

    /// What the status says of it now.
    pub(crate) fn canary_status(&self) -> Option<CanaryStatus> {
        match &self.canary {
            Some(canary) => Some(canary.status(PROGRESSING, String::new())),
            None => self.canary_status.clone(),
        }
    }

    /// That only some units run the newest version, while that is so.
    pub(crate) fn canary_problem(&self) -> Option<Problem> {
        let canary = self.canary.as_ref()?;
        let time = self
            .canary_rules()
            .map_or(Duration::ZERO, |rules| rules.time);
        let ends = canary
            .started
            .saturating_add(time)
            .unwrap_or(canary.started);
        let failing = match canary.failing.len() {
            0 => String::new(),
            failing => format!(", of which {failing} fail"),
        };
        Some(Problem::passing(
            Reason::Canary,
            format!(
                "{} runs for {} of {} units{failing}, and for all of them from {ends} on if they \
                 do not fail; `reeve plugin rollback {}` takes it back",
                canary.version.component,
                canary.units,
                self.counts().total,
                self.name
            ),
        ))
    }

    fn canary_rules(&self) -> Option<CanaryRules> {
        let (spec, _) = self.policy.as_ref()?;
        CanaryRules::read(spec).ok().flatten()
    }

    /// Begins with a version, or goes on where it was. Returns whether it is to run for
    /// some units only.
    pub(super) fn begin_canary(
        &mut self,
        active: &Arc<Active>,
        new: NewCanary,
        now: Timestamp,
    ) -> bool {
        let version = VersionId::running(active);
        let token = version.token();
        if let Some(canary) = self.canary.as_mut().filter(|one| one.version == version) {
            canary.stable = new.stable.unwrap_or_else(|| canary.stable.clone());
            canary.package = new.package.or_else(|| canary.package.take());
            return true;
        }
        let stable = new.stable.or_else(|| self.stable().cloned());
        let Some((stable, rules)) = stable.zip(self.canary_rules()) else {
            return false;
        };
        let present = self.units.iter().filter(|(_, unit)| unit.is_present());
        let ranked: Vec<(u64, Arc<ObjectReference>, Health)> = present
            .map(|(primary, unit)| {
                let rank = rank(&token, &self.unit(primary).id());
                (rank, primary.clone(), unit.health())
            })
            .collect();
        let before = self.canary_status.as_ref().filter(|status| {
            status.phase == PROGRESSING && token_of(status).as_deref() == Some(&token)
        });
        let resumed = before.and_then(|status| {
            let highest = u64::from_str_radix(&status.highest, 16).ok()?;
            let units = usize::try_from(status.units).ok()?;
            Some((highest, units, status.started_at.as_ref()?.0))
        });
        let chosen = resumed.or_else(|| {
            let ranks = ranked.iter().map(|(rank, ..)| *rank).collect();
            let (highest, units) = highest(ranks, rules.units)?;
            Some((highest, units, now))
        });
        let Some((highest, units, started)) = chosen else {
            return false;
        };
        let troubled = ranked.into_iter();
        let troubled = troubled.filter(|(_, _, health)| *health == Health::Failing);
        self.canary = Some(Canary {
            stable,
            package: new.package,
            version,
            token,
            asks: Asks::of(&active.manifest).lines(),
            highest,
            units,
            started,
            ends: None,
            troubled: troubled.map(|(_, primary, _)| primary).collect(),
            heard: HashSet::new(),
            failing: BTreeMap::new(),
        });
        self.forget_progress();
        self.set_canary_end(now);
        true
    }

    /// Sets when its time is over, by the policy as it is now.
    pub(super) fn set_canary_end(&mut self, now: Timestamp) {
        let time = self
            .canary_rules()
            .map_or(Duration::ZERO, |rules| rules.time);
        if let Some(canary) = &mut self.canary {
            let passed = now.duration_since(canary.started);
            let passed = Duration::try_from(passed).unwrap_or_default();
            canary.ends = Some(Instant::now() + time.saturating_sub(passed));
        }
    }

    /// When it is to be looked at.
    pub(super) fn canary_due(&self) -> Option<Instant> {
        self.canary.as_ref()?.ends
    }

    /// Takes in how a unit is that has run. Returns whether too many fail.
    pub(super) fn heard_canary(&mut self, unit: &UnitKey) -> bool {
        let rules = self.canary_rules();
        let Some(canary) = self.canary.as_mut().filter(|canary| canary.has(unit)) else {
            return false;
        };
        let Some(state) = self.units.get(&*unit.primary) else {
            canary.failing.remove(&*unit.primary);
            return false;
        };
        let primary = (*unit.primary).clone();
        canary.heard.insert(primary.clone());
        let problem = state.problem.as_ref();
        let problem = problem.filter(|_| state.health() == Health::Failing);
        match problem {
            // What the API server did not take once it may take the next time.
            Some(problem) if is_of_version(problem.reason) || state.failures > 1 => {
                if !canary.troubled.contains(&primary) {
                    canary.failing.insert(primary, problem.to_string());
                }
            }
            Some(_) => {}
            None => {
                canary.failing.remove(&primary);
                canary.troubled.remove(&primary);
            }
        }
        let failing = canary.failing.len();
        rules.is_some_and(|rules| rules.is_exceeded(failing, canary.units))
    }

    /// Whether all of those that got it first and are still there have run under it.
    fn all_heard_canary(&self) -> bool {
        let Some(canary) = &self.canary else {
            return false;
        };
        let mut units = self.units.iter().filter(|(_, unit)| unit.is_present());
        units.all(|(primary, _)| !canary.has(&self.unit(primary)) || canary.heard.contains(primary))
    }
}

/// Whether a problem can only be one of the version.
fn is_of_version(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Trapped | Reason::LimitExceeded | Reason::OutcomeRefused | Reason::Terminal
    )
}

impl PluginState {
    /// Forgets that a version was taken back that runs for all now.
    pub(crate) fn forget_return(&mut self, version: VersionId) {
        let is_it = |status: &mut CanaryStatus| {
            token_of(status).as_deref() == Some(&version.token()) && status.phase == RETURNED
        };
        self.canary_status.take_if(is_it);
    }
}

impl Controller {
    /// Gives what has stood its time to all units.
    pub(super) fn end_canaries(&mut self, now: Instant) {
        if !self.leads() {
            return;
        }
        let due = self.state.plugins.values();
        let due = due.filter(|plugin| plugin.canary_due().is_some_and(|at| at <= now));
        let due: Vec<Arc<str>> = due.map(|plugin| plugin.name.clone()).collect();
        for name in due {
            self.end_canary(&name);
        }
    }

    fn end_canary(&mut self, name: &Arc<str>) {
        /// Units that have not run yet are waited for, and looked at again.
        const AGAIN: Duration = Duration::from_secs(5);
        let Some(plugin) = self.state.plugins.get_mut(name) else {
            return;
        };
        let waits = plugin.is_suspended() || plugin.loading.is_some();
        if waits || !plugin.all_heard_canary() {
            if let Some(canary) = &mut plugin.canary {
                canary.ends = Some(Instant::now() + AGAIN);
            }
            return;
        }
        self.pass_canary(name);
    }

    fn pass_canary(&mut self, name: &Arc<str>) {
        let cached = self.loader.engine.has_cache();
        let Some(plugin) = self.state.plugins.get_mut(name) else {
            return;
        };
        let Some((canary, active)) = plugin.canary.take().zip(plugin.active.clone()) else {
            return;
        };
        tracing::info!(plugin = %name, digest = %canary.version.component, "stood its time");
        plugin.canary_status = Some(canary.status(PASSED, String::new()));
        plugin.asks = Some(plugin.asked(&active));
        plugin.take_over(canary.version, false, cached);
        if !cached && plugin.previous.version == Some(VersionId::running(&canary.stable)) {
            plugin.previous.compiled = Some(Artifact::of(&canary.stable));
        }
        match canary.package {
            Some(package) => self.keep(name, package),
            None if cached => {
                tracing::warn!(plugin = %name, digest = %canary.version.component, "not kept for the next start: there was no room for it while some units had it first");
            }
            None => {}
        }
        self.activate(name, &active);
        self.tell_of_canary(
            name,
            "CanaryPassed",
            format!(
                "{} runs for all units: {} of them had it first and did not fail",
                canary.version.component, canary.units
            ),
        );
        self.mark_stale(name);
    }

    /// Keeps what has taken over for the next start. Not to be kept is a line in the log.
    pub(super) fn keep(&self, name: &Arc<str>, package: Package) {
        let (engine, namespace) = (self.loader.engine.clone(), self.loader.namespace.clone());
        let name = name.clone();
        tokio::task::spawn_blocking(move || kept::keep(&engine, &namespace, &name, &package));
    }

    /// Gives the version before to all units again, since too many fail.
    pub(super) fn return_canary(&mut self, name: &Arc<str>) {
        let plugin = self.state.plugins.get(name);
        let Some(canary) = plugin.and_then(|plugin| plugin.canary.as_ref()) else {
            return;
        };
        let stable = VersionId::running(&canary.stable);
        let example = canary.failing.iter().next();
        let example = example.map(|(primary, problem)| format!("{primary}: {problem}"));
        let message = format!(
            "the new version, {}, was run for {} units first, and {} of them failed that did not \
             before: {}. The version before, {}, runs for all of them again. Deliver a better one, \
             or let this one take over with `reeve plugin approve {name} --namespace {}`, which \
             annotates the Plugin {APPROVE_UPGRADE_ANNOTATION}={}",
            canary.version.beside(stable),
            canary.units,
            canary.failing.len(),
            example.unwrap_or_default(),
            stable.beside(canary.version),
            self.loader.namespace,
            token_for_all(&canary.token),
        );
        let problem = Problem::lasting(Reason::CanaryReturned, message);
        let known = self.drop_canary(name, RETURNED, &problem);
        self.tell_of_upgrade(name, known.as_ref(), Some(&problem), None);
        // Of a newer one that was in trouble nothing is said any more.
        if known.is_some() {
            self.start_load(name);
        }
    }

    /// Gives the version before to all units again, since a person wants that.
    pub(super) fn roll_back_canary(&mut self, name: &Arc<str>, problem: &Problem) {
        self.drop_canary(name, ROLLED_BACK, problem);
    }

    /// Returns what was said of the newest version before.
    fn drop_canary(&mut self, name: &Arc<str>, phase: &str, why: &Problem) -> Option<Problem> {
        let plugin = self.state.plugins.get_mut(name)?;
        let canary = plugin.canary.take()?;
        tracing::warn!(plugin = %name, digest = %canary.version.component, phase, message = why.message, "runs for no unit any more");
        plugin.canary_status = Some(canary.status(phase, why.message.clone()));
        plugin.asks = Some(Asks::of(&canary.stable.manifest).lines());
        plugin.places.extend(Place::of(&canary.stable.manifest));
        let known = plugin.problem.replace(why.clone());
        let stable = canary.stable;
        self.activate(name, &stable);
        self.mark_stale(name);
        known
    }

    /// Queues units that waited for a version that does not come.
    pub(super) fn queue_awaiting(&mut self, name: &Arc<str>) {
        let Some(plugin) = self.state.plugins.get_mut(name) else {
            return;
        };
        let waited = plugin
            .canary_status
            .take_if(|status| status.phase == PROGRESSING);
        if plugin.canary.is_some() || waited.is_none() {
            return;
        }
        for primary in plugin.units.keys() {
            self.state.queue.add_bulk(plugin.unit(primary));
        }
    }

    /// Goes by what the leader has found of a version that some units run.
    pub(super) fn follow_canary(&mut self, name: &Arc<str>) {
        let Some(plugin) = self.state.plugins.get(name) else {
            return;
        };
        let reported = plugin.reported.as_ref();
        let Some(status) = reported.and_then(|status| status.canary.clone()) else {
            return;
        };
        let ours = plugin.canary.as_ref();
        let ours = ours.filter(|one| token_of(&status).as_ref() == Some(&one.token));
        if ours.is_none() {
            return;
        }
        match status.phase.as_str() {
            PASSED => self.pass_canary(name),
            RETURNED | ROLLED_BACK => {
                let problem = Problem::lasting(Reason::CanaryReturned, status.message);
                self.drop_canary(name, &status.phase, &problem);
            }
            _ => {}
        }
    }
}
