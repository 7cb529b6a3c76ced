//! Running units, and what follows from how a run went.

use super::reporting::{
    event_report, fight_event, set_unit_conditions, unit_object_name, unit_report,
};
use super::{Controller, Done, JobFor, jitter, trouble};
use crate::active::{Active, LoadKey};
use crate::artifacts::Looked;
use crate::effects::Effects;
use crate::execute::Lost;
use crate::metrics::RunResult;
use crate::plugin::steps::AT_ONCE;
use crate::plugin::{Health, UnitState};
use crate::problem::Problem;
use crate::reporter::{About, Report};
use crate::request::Attempt;
use crate::run::{Ran, Runner};
use crate::secret_names::{kept_secret, object_name};
use crate::sync_status;
use crate::written::is_durable;
use reeve_api::Reason;
use reeve_cluster::{Answer, ObjectName};
use reeve_core::UnitKey;
use reeve_core::backoff::Backoff;
use reeve_core::outcome::Next;
use reeve_core::ownership::unit_label;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tracing::Instrument as _;

/// What a unit waits for and nobody watches is looked for this often. A namespace that
/// is missing usually comes moments after the primary, made by somebody else.
const WAIT_RECHECK: Duration = Duration::from_secs(10);

impl Controller {
    /// Whether one more may run. Who waits for the outside takes no part in that, and
    /// ends what it has begun when it is back.
    pub(super) fn has_room(&self) -> bool {
        let outside = self.loader.outside.outside();
        self.state.runs.saturating_sub(outside) < self.runs_at_once()
    }

    /// Units that may run at once: more than may write, so that those which write never
    /// wait for plugins and plans.
    pub(super) fn runs_at_once(&self) -> usize {
        self.concurrency.saturating_add(self.concurrency / 2)
    }

    pub(super) fn start_runs(&mut self) {
        while self.has_room() && self.may_run() {
            // If there are others, one plugin leaves room to them: to run, and to write.
            let share = match self.state.plugins.len() {
                0 | 1 => self.runs_at_once(),
                _ => self.concurrency.saturating_mul(3).div_ceil(4),
            };
            let now = Instant::now();
            let Some(unit) = self.state.queue.take(now, share) else {
                return;
            };
            let plugin = self.state.plugins.get_mut(&unit.plugin);
            let plugin = plugin.and_then(|plugin| {
                let active = plugin.active_for(&unit).cloned();
                active.map(|active| (plugin, active))
            });
            let Some((plugin, active)) = plugin else {
                self.state.queue.done(&unit);
                continue;
            };
            // It is queued again when the plugin goes on.
            if plugin.is_suspended() || plugin.awaits_canary(&unit) {
                self.state.queue.done(&unit);
                continue;
            }
            if let Some(rights) = &mut plugin.rights
                && !rights.admit(&unit, now)
            {
                continue;
            }
            let mut run = plugin.run(&unit, &active);
            let mut lost = Lost::default();
            if let Some(state) = plugin.units.get_mut(&*unit.primary) {
                state.steps.begin();
                run.attempt = std::mem::take(&mut state.attempt);
                if run.attempt != Attempt::Same {
                    // Here as well: it is done later, should this run not come to it.
                    state.effects.look_again(self.clock.now());
                    run.effects = state.effects.clone();
                }
                lost = state.lost.clone();
            }
            let runner = Runner {
                executor: self.runner.executor.of_unit(lost),
                ..self.runner.clone()
            };
            let job_unit = unit.clone();
            let waited = self.state.queue.waited(&unit);
            let timer = self.metrics.run_started(&unit.plugin, waited);
            let span = tracing::info_span!(
                "unit",
                plugin = %unit.plugin,
                primary = %unit.primary,
                run = timer.number(),
            );
            // It is large, and would be moved from place to place.
            let job = Box::pin(async move {
                let ran = runner.run(run).await;
                Done::Run {
                    unit: job_unit,
                    key: active.key.clone(),
                    ran: Box::new(ran),
                }
            });
            let handle = self.state.jobs.spawn(job.instrument(span));
            self.state.job_ids.insert(handle.id(), JobFor::Run(unit));
            self.state.run_handles.insert(handle.id(), (handle, timer));
            self.state.runs += 1;
        }
    }

    pub(super) fn on_done(
        &mut self,
        done: Result<(tokio::task::Id, Done), tokio::task::JoinError>,
    ) {
        let id = match &done {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let job = self.state.job_ids.remove(&id);
        match &job {
            Some(JobFor::Load(_) | JobFor::Look(_)) => self.state.loads -= 1,
            Some(JobFor::Run(_)) => {
                if let Some((_, timer)) = self.state.run_handles.remove(&id) {
                    self.metrics.run_ended(&timer, self.result(&done));
                }
                self.state.runs -= 1;
                self.state.ended += 1;
            }
            Some(JobFor::Recheck(_) | JobFor::Removal(_)) | None => {}
        }
        match (done, job) {
            (
                Ok((
                    _,
                    Done::Load {
                        plugin,
                        newest,
                        seen,
                        shadow,
                        result,
                    },
                )),
                _,
            ) => {
                // A load that was overtaken has been aborted; should it have ended
                // first, the newer one will say better.
                if self.is_current_load(&plugin, id) {
                    let (seen, shadow) = (seen.map(|seen| *seen), shadow.map(|shadow| *shadow));
                    self.on_loaded(&plugin, newest, seen, shadow, result);
                }
            }
            (Ok((_, Done::Run { unit, key, ran })), _) => self.on_ran(&unit, &key, *ran),
            (
                Ok((
                    _,
                    Done::Recheck {
                        plugin,
                        key,
                        result,
                    },
                )),
                _,
            ) => self.on_rechecked(&plugin, &key, result),
            (Err(error), Some(JobFor::Run(unit))) if error.is_panic() => {
                self.metrics.panicked(&unit.plugin);
                let problem = Problem::passing(
                    Reason::ApplyFailed,
                    "the agent itself failed in this run; this is a bug of reeve, see its log",
                );
                let key = self.active_key(&unit);
                if let Some(key) = key {
                    let mut ran = Ran::failed(problem);
                    // What it had begun outside is written there.
                    let said = self.reports.said(&unit_object_name(&unit));
                    ran.effects = said.map(|said| Effects::read(&said.status.actions));
                    self.on_ran(&unit, &key, ran);
                } else {
                    self.state.queue.done(&unit);
                }
            }
            (Err(error), Some(JobFor::Load(plugin))) if error.is_panic() => {
                let problem = Problem::passing(
                    Reason::CompileFailed,
                    "the agent itself failed while loading; this is a bug of reeve, see its log",
                );
                if self.is_current_load(&plugin, id) {
                    self.on_loaded(&plugin, None, None, None, Err(problem));
                }
            }
            (Ok((_, Done::Look { plugin, looked })), _) => self.on_looked(&plugin, looked),
            (Ok((_, Done::Removal { plugin, result })), _) => self.on_removed(&plugin, result),
            (Err(error), Some(JobFor::Removal(plugin))) if error.is_panic() => {
                let problem = Problem::passing(
                    Reason::ApplyFailed,
                    "the agent itself failed; this is a bug of reeve, see its log",
                );
                self.on_removed(&plugin, Err(problem));
            }
            (Err(error), Some(JobFor::Look(plugin))) if error.is_panic() => {
                let problem = Problem::passing(
                    Reason::RegistryUnreachable,
                    "the agent itself failed while it asked; this is a bug of reeve, see its log",
                );
                self.on_looked(&plugin, Looked::Unknown(problem));
            }
            // Whatever became of the question, units must not wait for ever.
            (Err(error), Some(JobFor::Recheck(plugin))) => {
                self.renew_rights(&plugin, false);
                if error.is_panic() {
                    let message = "the agent itself failed while it asked; this is a bug of reeve, see its log";
                    let problem = Problem::passing(Reason::Unreachable, message);
                    self.note_untold(&plugin, Some(problem));
                }
            }
            // Ended for a term that has begun.
            (Err(_), Some(JobFor::Run(unit))) => {
                self.state.queue.done(&unit);
                self.state.queue.add(unit);
            }
            (Err(_), _) => {}
        }
    }

    /// What a run that ended counts as: nothing, when another replica does it again.
    fn result(
        &self,
        done: &Result<(tokio::task::Id, Done), tokio::task::JoinError>,
    ) -> Option<RunResult> {
        self.fence.check().ok()?;
        match done {
            Ok((_, Done::Run { ran, .. })) => Some(match (&ran.problems[..], ran.next) {
                ([], Next::OnChange) => RunResult::Success,
                ([], Next::After(_)) => RunResult::RequeueAfter,
                (problems, next) if problems.iter().all(Problem::waits) => match next {
                    Next::OnChange => RunResult::Success,
                    Next::After(_) => RunResult::RequeueAfter,
                },
                _ => RunResult::Error,
            }),
            Err(error) if error.is_panic() => Some(RunResult::Error),
            _ => None,
        }
    }

    fn is_current_load(&self, plugin: &str, id: tokio::task::Id) -> bool {
        let plugin = self.state.plugins.get(plugin);
        let loading = plugin.and_then(|plugin| plugin.loading.as_ref());
        loading.is_some_and(|current| current.id() == id)
    }

    pub(super) fn active_key(&self, unit: &UnitKey) -> Option<LoadKey> {
        let plugin = self.state.plugins.get(&unit.plugin)?;
        Some(plugin.active_for(unit)?.key.clone())
    }

    /// Writes down what a run has done that ended when its plugin had stopped.
    fn on_ran_since_stopped(&self, unit: &UnitKey, ran: Ran) {
        if ran.effects.is_none() && ran.sync.is_none() {
            return;
        }
        let name = unit_object_name(unit);
        let said = self.reports.said(&name);
        let mut report = said.unwrap_or_else(|| {
            let nothing = UnitState::default();
            unit_report(unit, &nothing, ran.primary_uid.as_deref(), None)
        });
        if let Some(effects) = ran.effects {
            report.status.actions = effects.write();
        }
        if let Some(sync) = ran.sync {
            report.status.sync = sync_status::write(&sync, None);
        }
        let report = is_durable(&report.status).then(|| Box::new(report));
        self.reports.put(About::Unit(name), Report::Unit(report));
    }

    pub(super) fn on_ran(&mut self, unit: &UnitKey, key: &LoadKey, mut ran: Ran) {
        let again = self.state.queue.done_writing(unit, &ran.written);
        // Whoever leads now finds out how the unit is; this replica does when it
        // leads again.
        if self.fence.check().is_err() {
            self.state.queue.add(unit.clone());
            return;
        }
        let current = self.active_key(unit).as_ref() == Some(key);
        let Some(plugin) = self.state.plugins.get_mut(&unit.plugin) else {
            return;
        };
        // The answer of a version that no longer runs says nothing about the one
        // that does; the unit is queued for that one already. Under another version of
        // the primary's kind it may have run meanwhile, and what it wrote been
        // overwritten by this one: it looks again.
        if !current {
            let same = plugin.labels.get(unit_label(unit)).cloned();
            let primary = same.as_ref().unwrap_or(&unit.primary);
            if let Some(state) = plugin.units.get_mut(primary) {
                state.attempt = state.attempt.max(ran.attempt);
                // What was done outside was done, whichever version asked for it.
                if let Some(effects) = ran.effects.take() {
                    state.effects = effects;
                }
            } else {
                return self.on_ran_since_stopped(unit, ran);
            }
            if let Some(primary) = same.filter(|primary| *primary != unit.primary) {
                let unit = plugin.unit(&primary);
                self.state.queue.add(unit);
            }
            return;
        }
        let active = plugin.active_for(unit).cloned();
        let digest = active
            .as_ref()
            .map(|active| active.component.digest().to_string());
        let named = plugin.is_named(unit);
        let Some(state) = plugin.units.get_mut(&*unit.primary) else {
            return;
        };
        if let Some(reads) = ran.reads {
            let new = self.state.reads.set(unit, reads);
            // What was read for the first time was not listened for while the call
            // ran. If the store has moved since, look again.
            let moved = self.runner.store.snapshot().version() != ran.version;
            let turned = active
                .as_ref()
                .is_some_and(|active| active.sources.version() != ran.sources);
            let pause = state.steps.pause();
            if new && (moved || turned) {
                match pause.is_zero() {
                    true => self.state.queue.add(unit.clone()),
                    false => self
                        .state
                        .queue
                        .add_at(unit.clone(), Instant::now() + pause),
                }
            }
        }
        if let Some(over) = state.fought(&ran.contested, Instant::now()) {
            self.state.queue.add_at(unit.clone(), over);
        }
        state.attempt = state.attempt.max(ran.attempt);
        if ran.again {
            self.state.queue.add(unit.clone());
        }
        plugin.contributions.kinds.extend(ran.contributes);
        if let Some(contributing) = ran.contributing {
            let before = std::mem::replace(&mut state.contributing, contributing);
            plugin
                .contributions
                .want(&unit.primary, &before, &state.contributing);
        }
        let awaits_room = ran.effects.as_ref().is_some_and(Effects::await_room);
        if let Some(effects) = ran.effects {
            state.effects = effects;
        }
        let now = self.clock.now();
        if let Some(sync) = &ran.sync {
            state.steps.end(sync.revision != state.sync.revision);
            let pause = state.steps.pause();
            if !pause.is_zero() && !ran.absent {
                ran.problems.push(restless());
                // Nothing that it reads may change any more.
                self.state
                    .queue
                    .add_at(unit.clone(), Instant::now() + pause);
            }
        }
        if let Some(mut sync) = ran.sync {
            sync.keep_ends(&state.sync);
            let blocker = sync
                .blocked
                .as_ref()
                .map(|blocked| blocked.object.to_string());
            let known = state.blocked_since.take();
            state.blocked_since = blocker.map(|object| match known {
                Some((known, since)) if known == object => (known, since),
                _ => (object, now),
            });
            state.sync = sync;
        }
        if let Next::After(delay) = ran.next {
            self.state
                .queue
                .add_at(unit.clone(), Instant::now() + delay);
        }
        let identity = active.as_ref().map(|active| &active.identity);
        let told = identity.and_then(|who| self.loader.cluster.told_to_wait(Some(who)));
        if let Some(until) = told {
            self.state.queue.rest(&unit.plugin, until);
        }
        // A primary may have come or gone since the run looked.
        let gone = ran.absent && !state.is_present() && !again && ran.problems.is_empty();
        // Trouble comes before what only takes its time.
        ran.problems.sort_by_key(Problem::waits);
        state.problem = ran.problems.first().cloned();
        state.set_heard(true);
        state.set_caught_up(!ran.again);
        state.plan = ran.plan;
        state.set_health(match &state.problem {
            Some(problem) if problem.waits() => Health::Waiting,
            Some(_) => Health::Failing,
            None => Health::Ready,
        });
        if let Some(problem) = state.problem.as_ref().filter(|problem| problem.waits()) {
            state.failures = 0;
            tracing::info!(plugin = %unit.plugin, primary = %unit.primary, reason = %problem.reason, message = problem.message, "unit waits");
            if problem.retries {
                let at = Instant::now() + WAIT_RECHECK;
                self.state.queue.add_at(unit.clone(), at);
            }
        } else if let Some(problem) = &state.problem {
            // That the server has too much to do says little of the unit; but where it says so
            // of one unit again and again, the others of the plugin must not rest each time.
            let told = told.filter(|_| problem.reason == Reason::Unreachable);
            // It does what it does, if too often.
            if problem.reason != Reason::NotConvergent {
                state.failures = state.failures.saturating_add(1);
            }
            tracing::warn!(plugin = %unit.plugin, primary = %unit.primary, reason = %problem.reason, message = problem.message, "unit not ready");
            if problem.retries {
                self.metrics.backed_off(&unit.plugin);
                let jitter = jitter(&unit.id(), state.failures);
                let at = match told {
                    Some(until) => until + Backoff::CONNECTION.delay(state.failures, jitter),
                    None => Instant::now() + Backoff::UNIT.delay(state.failures, jitter),
                };
                self.state.queue.add_at(unit.clone(), at);
            }
        } else {
            state.failures = 0;
        }
        if let Some(desired) = ran.desired {
            state.desired = desired;
        }
        let name = unit_object_name(unit);
        if let Some(watch) = active.as_ref().and_then(|active| active.secrets()) {
            let label = unit_label(unit);
            let owned = plugin.owned.get(label).into_iter().flatten();
            let has = state.desired.iter().chain(owned);
            let has = has.filter(|one| one.kind.is_secret());
            let mut names: BTreeSet<ObjectName> = has.map(object_name).collect();
            // What nobody wants any more stays known until it is seen to be gone.
            let snapshot = self.runner.store.snapshot();
            let held = watch.names_of(label);
            names.extend(held.into_iter().filter(|one| {
                let found = snapshot.get_in(watch.spec(), one.namespace.as_deref(), &one.name);
                !matches!(found, Answer::Absent)
            }));
            // What is left of a unit that is gone goes with its owner.
            names.retain(|_| !gone);
            watch.set_names(label, &names);
            let kept = names.iter().map(kept_secret).collect();
            self.reports.keep_names(&name, &kept);
        }
        ran.events
            .extend(trouble::events(&ran.problems, &state.sync));
        ran.events
            .extend(state.fight.as_ref().map(|fight| fight_event(fight)));
        if let Some(uid) = &ran.primary_uid {
            let before = std::mem::take(&mut state.told_before);
            for event in &ran.events {
                if state.events.contains(event) {
                    continue;
                }
                // It had its room; what had none then has it now.
                if before.contains(event) || state.event_limit.admit(Instant::now()) {
                    let about = About::Event(format!("{unit}/{}/{}", event.reason, event.message));
                    let report = event_report(unit, uid, event, self.clock.now());
                    self.reports.put(about, report);
                } else {
                    tracing::warn!(plugin = %unit.plugin, primary = %unit.primary, reason = event.reason, message = event.message, "event not recorded, there were too many");
                }
            }
            state.events = ran.events;
        }
        let remembers = !state.effects.is_empty() || (state.sync.is_durable() && !gone);
        let says_something = !ran.problems.is_empty()
            || !ran.conditions.is_empty()
            || (state.fight.is_some() && !gone)
            || remembers;
        let has_object = self.state.unit_objects.contains(&name);
        let must = remembers || named || state.named || is_answered(state, &ran.problems);
        let tells = says_something && (must || plugin.told.admit(&unit.primary, has_object));
        // One may have waited for its room.
        let next = match says_something && !must {
            true => None,
            false => plugin.told.release(&unit.primary),
        };
        if says_something {
            let now = self.clock.now();
            set_unit_conditions(state, &ran.problems, &ran.conditions, now);
        } else {
            state.conditions.clear();
        }
        if tells {
            let report = unit_report(unit, state, ran.primary_uid.as_deref(), digest);
            let (about, report) = (About::Unit(name), Report::Unit(Some(Box::new(report))));
            match ran.again {
                true => self.reports.put_for_now(about, report),
                false => self.reports.put(about, report),
            }
            state.reported = true;
        } else if state.reported || has_object {
            state.reported = false;
            self.reports.put(About::Unit(name), Report::Unit(None));
        }
        let next = next.map(|primary| plugin.unit(&primary));
        next.into_iter()
            .for_each(|unit| self.state.queue.add_bulk(unit));
        if gone {
            if let Some(active) = &active {
                active.outside.forget(unit);
            }
            plugin.forget_unit(unit);
            self.state.reads.remove(unit);
            self.state.queue.remove(unit);
            self.runner.memo.forget(unit);
        }
        // Once for each run that ends: it may have made room outside.
        while let Some(active) = &active
            && let Some(next) = active.outside.next()
        {
            // It may have gone, or over to another version, which has a line of its own.
            let known = plugin.units.contains_key(&*next.primary);
            let same = |now: &Arc<Active>| Arc::ptr_eq(now, active);
            if known && plugin.active_for(&next).is_some_and(same) {
                self.state.queue.add(next);
                break;
            }
            active.outside.forget(&next);
        }
        let fails = plugin.heard_canary(unit);
        // Who found no room outside has not done yet what was asked.
        if !awaits_room {
            plugin.has_run(unit);
        }
        plugin.heard();
        let held = ran
            .problems
            .iter()
            .any(|one| one.reason == Reason::DeletionHeld);
        if held && plugin.approve_held(now) {
            for primary in plugin.units.keys() {
                self.state.queue.add(plugin.unit(primary));
            }
        }
        let judge = plugin.loading.is_none() && plugin.is_to_be_judged_again();
        if fails {
            self.return_canary(&unit.plugin);
        } else if judge {
            self.start_load(&unit.plugin);
        }
        self.mark_stale(&unit.plugin);
    }
}

/// Whether a person answers in the unit's object: a plan or a deletion waits there.
fn is_answered(state: &UnitState, problems: &[Problem]) -> bool {
    let held = |problem: &Problem| problem.reason == Reason::DeletionHeld;
    state.plan.is_some() || problems.iter().any(held)
}

/// What is wrong with a unit that has made too many steps for what it has made itself.
fn restless() -> Problem {
    Problem::lasting(
        Reason::NotConvergent,
        format!(
            "more than {AT_ONCE} times in a row the plugin wanted something else for what it had \
             made itself; it is run for that after growing delays now: what it returns must come \
             to rest, whatever it reads of it"
        ),
    )
}
