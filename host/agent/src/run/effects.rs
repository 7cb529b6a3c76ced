//! Making outside effects, looking whether they are there, and taking them away.

use super::ask::{fault_problem, log_lines};
use super::secrets::PATIENCE;
use super::{Ran, Run, Runner, approval, texts};
use crate::controller::{jitter, unit_object_name};
use crate::effects::{Door, Due, Effect, EffectFeed, Effects, GivenEffect, Keeper, Kept, NoRoom};
use crate::metrics::EffectResult;
use crate::problem::Problem;
use crate::reporter::UnitReport;
use crate::request::Attempt;
use crate::secret_names::unit_spec;
use crate::written::Written;
use k8s_openapi::jiff::Timestamp;
use reeve_api::{Reason, SyncMode, UnitStatus};
use reeve_core::Failure;
use reeve_core::outcome::{Action, Completion, Event, Verb};
use reeve_core::plan::{Preview, PreviewEffect};
use reeve_engine::Actuation;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The largest fact: a name, an address, an id. It is kept in the `Unit` object.
const FACT_BYTES: usize = 4 << 10;

/// When an effect cannot be written down, a run tries again after this time: soon enough
/// for whoever waits for it.
const AGAIN: Duration = Duration::from_secs(3);

/// The attempt in a row of whose failure people are told by an event.
const TOLD: u32 = 2;

/// How one attempt ended.
enum Tried {
    /// The effect stands.
    Done,
    /// It was taken away.
    Retired,
    /// It is not there any more.
    Gone,
    /// It failed.
    Failed(Problem),
}

/// What would be made and taken away outside, were these effects asked for, and waits
/// for a person. Nothing does where nobody is asked.
pub(super) fn unapproved(run: &Run, actions: &[Action]) -> Vec<PreviewEffect> {
    if run.mode == SyncMode::Auto {
        return Vec::new();
    }
    let mut effects = run.effects.clone();
    effects.want(actions);
    if run.mode == SyncMode::PlanOnly {
        effects.disapprove();
    }
    effects.unapproved()
}

impl Runner {
    /// Does what is due about the effects of a unit.
    pub(super) async fn bring_about_effects(
        &self,
        run: &Run,
        uid: &str,
        actions: &[Action],
        ran: &mut Ran,
    ) {
        if actions.is_empty() && run.effects.is_empty() {
            return;
        }
        let waiting = unapproved(run, actions);
        if self.rehearsal.is_some() {
            self.rehearse_effects(run, actions, waiting);
            return;
        }
        // Nobody is there any more for whom a record of what stays would be kept.
        let only_forgets = uid.is_empty() && waiting.is_empty();
        if run.mode == SyncMode::PlanOnly && !only_forgets {
            if !waiting.is_empty() && ran.plan.is_none() {
                approval::may_effect(run, waiting, ran);
            }
            return;
        }
        let mut effects = run.effects.clone();
        if run.attempt > Attempt::Look {
            effects.try_anew();
        }
        let facts = effects.facts();
        let kept = effects.want(actions);
        for effect in &kept {
            let (unit, Action { key, name, .. }) = (&run.unit, &effect.action);
            tracing::info!(plugin = %unit.plugin, primary = %unit.primary, action = %name, key, "effect kept, though it is asked for no more");
        }
        ran.events.extend(kept.iter().map(kept_event));
        let refused: Vec<&Action> = effects.refused(actions).collect();
        if let [Action { key, name, .. }, others @ ..] = &refused[..] {
            let others = match others.len() {
                0 => String::new(),
                count => format!(" and {count} more"),
            };
            let no_room = effects.no_room(&unit_object_name(&run.unit));
            let text = format!("action {name} ({key}){others}: {no_room}");
            ran.problems
                .push(Problem::passing(Reason::ActionFailed, text));
        }
        let asks = run.mode == SyncMode::OnRequest;
        effects.approve(&ran.approved);
        let waiting = if asks {
            effects.unapproved()
        } else {
            Vec::new()
        };
        // A plan that waits already shows them, or comes before them.
        if !waiting.is_empty() && ran.plan.is_none() && approval::may_effect(run, waiting, ran) {
            effects.approve(&ran.approved);
        }
        let waiting = effects.unapproved();
        let mut no_room = None;
        for key in effects.keys() {
            self.attend(run, uid, &key, &mut effects, &mut no_room, ran)
                .await;
        }
        // One of them came in, and with it the unit has left the line.
        ran.again |= effects.await_room() && !run.active.outside.awaits(&run.unit);
        // What has turned out to be gone is another plan.
        ran.again |= asks && effects.unapproved() != waiting;
        ran.again |= effects.facts() != facts;
        let now = self.clock.now();
        if let Some(next) = effects.next(asks) {
            let wait = Duration::try_from(next.duration_since(now)).unwrap_or_default();
            ran.next = ran.next.at_the_latest(wait).bounded();
        }
        ran.effects = Some(effects);
    }

    /// Takes down what would be done about the effects of a unit.
    fn rehearse_effects(&self, run: &Run, actions: &[Action], waiting: Vec<PreviewEffect>) {
        let Some(rehearsal) = &self.rehearsal else {
            return;
        };
        let mut effects = run.effects.clone();
        let left = effects.want(actions);
        rehearsal.take_down_effects(&effects, left);
        if run.mode == SyncMode::OnRequest && !waiting.is_empty() {
            let used = run.sync.used_approval.as_deref();
            rehearsal.take_down_approval(Preview::of_effects(waiting).id(used));
        }
    }

    /// Takes down what would become of the effects of a unit that ends.
    pub(super) fn rehearse_last_effects(&self, run: &Run) {
        if self.rehearsal.is_some() && !run.effects.is_empty() {
            self.rehearse_effects(run, &[], Vec::new());
        }
    }

    /// Takes away the effects of a primary that is gone, as far as they are to be.
    pub(super) async fn end_effects(&self, run: &Run, ran: &mut Ran) {
        if run.effects.is_empty() {
            return;
        }
        if !ran.absent {
            self.rehearse_last_effects(run);
            return;
        }
        // Not to be told of is not to be gone.
        match self.executor.live(&run.active, &run.unit.primary).await {
            Ok(Some(primary)) if !primary.is_deleting() => {
                let selected = run.active.manifest.primary().selector.is_empty();
                if selected {
                    ran.absent = false;
                    ran.problems.push(Problem::passing(
                        Reason::Syncing,
                        format!(
                            "{} exists, but the watch has not told of it yet",
                            run.unit.primary
                        ),
                    ));
                    return;
                }
            }
            Ok(_) => {}
            Err(problem) => {
                ran.absent = false;
                ran.problems.push(problem);
                return;
            }
        }
        self.bring_about_effects(run, "", &[], ran).await;
        // Where nothing may be written, they are still to be taken away.
        ran.absent = ran.effects.as_ref().is_some_and(Effects::is_empty);
    }

    /// Does what is due about one effect, if anything is.
    /// `no_room` is what another effect of this run was told.
    async fn attend(
        &self,
        run: &Run,
        uid: &str,
        key: &str,
        effects: &mut Effects,
        no_room: &mut Option<NoRoom>,
        ran: &mut Ran,
    ) {
        let now = self.clock.now();
        let Some(effect) = effects.get_mut(key) else {
            return;
        };
        let asks = run.mode == SyncMode::OnRequest;
        // Also of one that waits for a person by now: it waits for no room any more.
        if !run.active.outside.awaits(&run.unit) {
            effect.asked_in();
        }
        if asks && !effect.may_go_on() {
            return;
        }
        if let Due::At(_) = effect.due(now) {
            ran.problems.extend(standing_problem(effect));
            return;
        }
        // Before anything is asked or made for it: who finds no room is no load for the
        // API server, and leaves no Secret of an effect that was never begun.
        let entered = match (&self.effects, *no_room) {
            (EffectFeed::Given(_), _) => Ok(None),
            (EffectFeed::Outside, Some(no)) => Err(no),
            (EffectFeed::Outside, None) => {
                let a_person_waits = run.attempt > Attempt::Look;
                let entered = run.active.outside.enter(&run.unit, a_person_waits);
                entered.await.map(Some)
            }
        };
        let _place = match entered {
            Ok(place) => place,
            Err(no) => {
                *no_room = Some(no);
                let jitter = jitter(&run.unit.id(), effect.failures);
                effect.turned_away(no, jitter, self.clock.now());
                ran.problems.extend(standing_problem(effect));
                return;
            }
        };
        let unrecorded = effect.is_unrecorded() && matches!(self.effects, EffectFeed::Outside);
        let recorded = match unrecorded {
            true => self.record_effects(run, uid, effects).await,
            false => Ok(()),
        };
        let Some(effect) = effects.get_mut(key) else {
            return;
        };
        let mut tried = match recorded {
            Ok(()) => self.attempt(run, uid, effect, now).await,
            // Nothing was begun, so nothing of it has failed.
            Err(problem) => {
                effect.postponed(AGAIN, now);
                ran.problems.push(problem);
                return;
            }
        };
        if matches!(tried, Tried::Gone) {
            ran.events.push(gone_event(effect, asks));
            effect.gone();
            if asks {
                return;
            }
            tried = self.attempt(run, uid, effect, now).await;
        }
        match tried {
            Tried::Done => {}
            Tried::Retired => effects.remove(key),
            // It was just made; whether it stays is looked at in its time.
            Tried::Gone => effect.failed("it is gone as soon as it is made".to_owned(), now),
            Tried::Failed(problem) => {
                let unit = &run.unit;
                tracing::warn!(plugin = %unit.plugin, primary = %unit.primary, action = %effect.action.name, key, message = problem.message, "action failed");
                effect.failed(problem.message.clone(), now);
                effect.waits = problem.waits();
                ran.events.extend(failure_event(effect, &problem));
                ran.problems.push(problem);
            }
        }
    }

    /// Has the effects of a unit written down as they are asked for. What is made before
    /// that would be known to nobody if the agent died.
    async fn record_effects(
        &self,
        run: &Run,
        uid: &str,
        effects: &mut Effects,
    ) -> Result<(), Problem> {
        let object = unit_object_name(&run.unit);
        let written = Written::unit(&self.store.snapshot(), &self.namespace, &object);
        let report = UnitReport {
            spec: unit_spec(&run.unit, Some(uid)),
            status: UnitStatus {
                actions: effects.write(),
                ..written.unwrap_or_default()
            },
        };
        let recorded = self.reports.record_effects(&object, report);
        let why = match timeout(PATIENCE, recorded).await {
            Ok(true) => {
                effects.recorded();
                return Ok(());
            }
            Ok(false) => "this replica does not lead",
            Err(_) => "the agent's log says why",
        };
        Err(Problem::passing(
            Reason::Unreachable,
            format!(
                "Unit {object} cannot be written, in which outside effects are to stand before \
                 they are made ({why}); they are made when it is"
            ),
        ))
    }

    async fn attempt(&self, run: &Run, uid: &str, effect: &mut Effect, now: Timestamp) -> Tried {
        let action = &effect.action;
        let failed = |reason, text: String| {
            Tried::Failed(Problem::passing(
                reason,
                format!("action {} ({}): {text}", action.name, action.key),
            ))
        };
        let mut values: BTreeMap<String, Kept> = BTreeMap::new();
        // Where a person is asked, a look makes nothing and changes nothing.
        let only_looks = run.mode == SyncMode::OnRequest && effect.pending().is_none();
        if effect.wanted {
            let keeper = Keeper {
                cluster: &self.executor.cluster,
                active: &run.active,
                unit: &run.unit,
                uid,
                key: &action.key,
            };
            for secret in &action.secrets {
                let kept = match only_looks {
                    true => keeper.look(secret).await,
                    false => keeper.keep(secret).await.map(Some),
                };
                match kept {
                    Ok(Some(kept)) => values.insert(secret.name.clone(), kept),
                    Ok(None) => return Tried::Gone,
                    Err(refused) => return failed(refused.reason, refused.message),
                };
            }
        }
        let fingerprint = effect.fingerprint(&values);
        let verb = match &effect.done {
            _ if !effect.wanted => Verb::Retire,
            Some(done) if done.fingerprint == fingerprint => Verb::Verify,
            _ if only_looks => return Tried::Gone,
            _ => Verb::Apply,
        };
        effect.begun = true;
        let completion = match self.actuate(run, effect, verb, values).await {
            Err(problem) => {
                let action = &effect.action;
                return Tried::Failed(Problem {
                    message: format!(
                        "action {} ({}), {}: {}",
                        action.name,
                        action.key,
                        verb.as_str(),
                        problem.message
                    ),
                    ..problem
                });
            }
            Ok(completion) => completion,
        };
        match verb {
            Verb::Retire => Tried::Retired,
            Verb::Verify if !completion.in_place => Tried::Gone,
            Verb::Verify => {
                effect.verified(now);
                Tried::Done
            }
            Verb::Apply => match fact(completion.fact) {
                Ok(fact) => {
                    effect.carried_out(fingerprint, fact, now);
                    Tried::Done
                }
                Err(text) => Tried::Failed(Problem::passing(
                    Reason::OutcomeRefused,
                    format!(
                        "action {} ({}): {text}",
                        effect.action.name, effect.action.key
                    ),
                )),
            },
        }
    }

    /// Calls `actuate`.
    async fn actuate(
        &self,
        run: &Run,
        effect: &Effect,
        verb: Verb,
        values: BTreeMap<String, Kept>,
    ) -> Result<Completion, Problem> {
        let Run { unit, active, .. } = run;
        if let EffectFeed::Given(given) = &self.effects {
            let given = given.borrow().get(&effect.action.name).cloned();
            return pretend(given, effect);
        }
        let Some(rule) = active.manifest.action(&effect.action.name) else {
            return Err(Problem::lasting(
                Reason::ActionFailed,
                format!(
                    "this version of the plugin declares no such action any more; it is to be \
                     taken away by a version that does, or by hand, after which `reeve forget {} \
                     --unit {}` lets the agent forget it",
                    unit.plugin, unit.primary.name
                ),
            ));
        };
        let passwords = values
            .into_iter()
            .map(|(name, kept)| (name, kept.value))
            .collect();
        let door = Arc::new(Door::new(active.granted.clone(), rule, passwords));
        let actuation = Actuation {
            action: effect.action.clone(),
            verb,
            config: active.config.clone(),
            // Of what is gone nothing is to be gone on with.
            fact: effect.done.as_ref().and_then(|done| {
                let gone = done.fingerprint.is_empty() && verb == Verb::Apply;
                (!gone).then(|| done.fact.clone().into())
            }),
            unit: Some(unit.clone()),
        };
        let call = {
            let active = active.clone();
            async move {
                let component = &active.component;
                component.actuate(actuation, door, &active.limits).await
            }
        };
        let began = Instant::now();
        let called = active.effect_threads.run(call).await;
        let result = match &called {
            Ok(called) => match &called.value {
                Ok(done) if verb == Verb::Verify && !done.in_place => EffectResult::Gone,
                Ok(_) => EffectResult::Success,
                Err(_) => EffectResult::Error,
            },
            Err(_) => EffectResult::Error,
        };
        let (name, time) = (&effect.action.name, began.elapsed());
        self.metrics
            .actuated(&unit.plugin, name, verb, result, time);
        self.count(unit, &called);
        match called {
            Ok(called) => {
                log_lines(unit, &called.logs, called.logs_dropped);
                called.value.map_err(failure_problem)
            }
            Err(fault) => {
                log_lines(unit, &fault.logs, fault.logs_dropped);
                Err(fault_problem(&fault))
            }
        }
    }
}

/// What a scenario says comes of an effect.
fn pretend(given: Option<GivenEffect>, effect: &Effect) -> Result<Completion, Problem> {
    match given {
        Some(GivenEffect::Fact(fact)) => Ok(Completion {
            in_place: true,
            fact: fact.into_bytes(),
        }),
        Some(GivenEffect::Failing(text)) => Err(Problem::passing(Reason::ActionFailed, text)),
        None => Err(Problem::passing(
            Reason::ActionFailed,
            format!(
                "outside effects are not made in a scenario; say under `actions` what comes of `{}`",
                effect.action.name
            ),
        )),
    }
}

fn fact(bytes: Vec<u8>) -> Result<String, String> {
    if bytes.len() > FACT_BYTES {
        return Err(format!(
            "its fact has {} bytes, more than {FACT_BYTES}; report less",
            bytes.len()
        ));
    }
    let text = String::from_utf8(bytes).map_err(|_| "its fact is no UTF-8".to_owned())?;
    match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(format!("its fact is no JSON: {error}")),
    }
}

/// What is outside is not watched, so that even what cannot work now is tried again.
fn failure_problem(failure: Failure) -> Problem {
    match texts::cut_failure(failure) {
        Failure::NotReady(message) => Problem::lasting(Reason::NotReady, message),
        Failure::Retry(message) | Failure::Terminal(message) => {
            Problem::passing(Reason::ActionFailed, message)
        }
    }
}

/// What is still wrong with an effect that is not tried just now.
fn standing_problem(effect: &Effect) -> Option<Problem> {
    let Action { key, name, .. } = &effect.action;
    let pending = effect.pending().filter(|_| effect.not_before.is_some());
    match (pending, effect.message.clone()) {
        (Some(verb), message) if effect.awaits_room => {
            let before = message.map_or_else(String::new, |message| format!("; before: {message}"));
            let text = format!(
                "action {name} ({key}), {}: waits for others that are under way{before}",
                verb.as_str()
            );
            Some(Problem::lasting(Reason::Waiting, text))
        }
        (_, Some(message)) if effect.waits => Some(Problem::lasting(Reason::NotReady, message)),
        (_, Some(message)) => Some(Problem::passing(Reason::ActionFailed, message)),
        // What kept it from being begun was the API server.
        (Some(verb), None) => {
            let text = format!("action {name} ({key}), {}: is tried again", verb.as_str());
            Some(Problem::passing(Reason::Unreachable, text))
        }
        (None, None) => None,
    }
}

fn kept_event(effect: &Effect) -> Event {
    let Action { key, name, .. } = &effect.action;
    Event {
        warning: false,
        reason: Reason::EffectKept.to_string(),
        message: format!(
            "the outside effect {name} ({key}) is asked for no more; it stays as it is, to be taken away by hand"
        ),
    }
}

pub(super) fn forgotten_event(action: &Action) -> Event {
    let Action { key, name, .. } = action;
    Event {
        warning: false,
        reason: Reason::EffectKept.to_string(),
        message: format!(
            "the outside effect {name} ({key}) was to be taken away; it is forgotten, since a \
             person says that it has been"
        ),
    }
}

/// Once is chance, and the third time is no news.
fn failure_event(effect: &Effect, problem: &Problem) -> Option<Event> {
    (effect.failures == TOLD && !problem.waits()).then(|| problem.event())
}

fn gone_event(effect: &Effect, asks: bool) -> Event {
    let Action { key, name, .. } = &effect.action;
    let when = match asks {
        true => " when a person has approved that",
        false => "",
    };
    Event {
        warning: true,
        reason: Reason::EffectGone.to_string(),
        message: format!(
            "the outside effect {name} ({key}) is not there any more and is made again{when}"
        ),
    }
}
