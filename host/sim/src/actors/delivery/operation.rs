//! Operations of Argo CD: syncs, who starts them, how they go, and what is left of them.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::context::Kind;
use super::super::script::{Failure, Script};
use super::application::{is_automated, lay_over, shown, sources};
use super::scene::Scene;
use super::{ASKED_FOR, revision};
use crate::clock;
use crate::duration;
use crate::kinds::edit::{flag, integer, items, present, remove, set, text, text_at};

/// The pauses between the tries of a sync: the first, by how much it grows each time, and
/// the longest.
const BACKOFF: Duration = Duration::from_secs(5);
const FACTOR: u32 = 2;
const BACKOFF_MAX: Duration = Duration::from_secs(180);
/// How often an automated sync is tried again, where nothing is said of it.
const RETRIES: i64 = 5;
/// How much of the history is kept, where nothing is said of it.
const HISTORY: i64 = 10;
/// The pauses before what was changed is put right again: none at first, then this one,
/// by how much it grows, and the longest (`ARGOCD_APPLICATION_CONTROLLER_SELF_HEAL_*`).
const HEALING: Duration = Duration::from_secs(2);
const HEALING_FACTOR: u32 = 3;
const HEALING_MAX: Duration = Duration::from_secs(300);
/// The field that counts how often that was done.
const HEALED: &str = "autoHealAttemptsCount";

/// What became of the operation of an Application.
#[derive(Debug, Default)]
pub(super) struct After {
    /// Whether one is on.
    pub(super) is_on: bool,
    /// Whether one ended just now.
    pub(super) has_ended: bool,
    /// Whether it went well.
    pub(super) has_synced: bool,
    /// One to be started.
    pub(super) started: Option<Value>,
}

/// Takes up the operation that is asked for, or goes on with it.
pub(super) fn run(scene: &mut Scene<'_, '_>, found: &Value) -> After {
    let mut after = After::default();
    let Some(operation) = scene.before.get("operation").filter(|o| o.is_object()) else {
        return after;
    };
    after.is_on = true;
    let state = scene.stands().get("operationState").cloned();
    let state = state.filter(|state| matches!(text(state, "phase"), "Running" | "Terminating"));
    let mut state = state.unwrap_or_else(|| begin(scene, operation));
    if step(scene, &mut state, found) {
        after.is_on = false;
        after.has_ended = true;
        let deploys = text(&state, "phase") == "Succeeded"
            && !state
                .pointer("/operation/sync")
                .is_none_or(|sync| flag(sync, "dryRun"));
        end(scene, &state, found, deploys);
        // One to another revision leaves the Application out of sync.
        let wanted = sources(scene.before);
        after.has_synced = deploys && is_deployed(scene.stands(), &wanted, found);
    }
    set(scene.status(), "operationState", state);
    after
}

fn begin(scene: &Scene<'_, '_>, operation: &Value) -> Value {
    json!({
        "operation": operation,
        "phase": "Running",
        "startedAt": scene.now,
        "retryCount": 0,
    })
}

/// How an operation stands. Returns whether it is over.
fn step(scene: &mut Scene<'_, '_>, state: &mut Value, found: &Value) -> bool {
    let now = scene.now.clone();
    if text(state, "phase") == "Terminating" {
        return close(state, "Failed", "Operation terminated", &now);
    }
    if state.pointer("/operation/sync").is_none_or(Value::is_null) {
        let message = "Invalid operation request: no operation specified";
        return close(state, "Error", message, &now);
    }
    let tried = integer(state, "retryCount").unwrap_or(0);
    let retry = state
        .pointer("/operation/retry")
        .cloned()
        .unwrap_or_default();
    if let Some(finished) = present(state, "finishedAt").and_then(Value::as_str) {
        // It failed, and rests before it is tried again.
        let since = clock::parse(finished).unwrap_or_else(|| scene.context.now());
        let (elapsed, pause) = (scene.context.elapsed(since), pause(&retry, tried - 1));
        if elapsed < pause {
            scene.wake_at(elapsed, pause);
            return false;
        }
        remove(state, "finishedAt");
        remove(state, "syncResult");
        let message = format!("Retrying operation. Attempt #{tried}");
        set(state, "message", message);
    }
    if state.get("syncResult").is_none() {
        let result = result(scene, state, found);
        set(state, "syncResult", result);
    }
    let mark = format!("sync {} {tried}", text(state, "startedAt"));
    let stamp = if tried == 0 {
        text(state, "startedAt")
    } else {
        ""
    }
    .to_owned();
    let elapsed = scene.lasts(&mark, &stamp);
    let is_to_fail = fails(scene, tried);
    let hook = is_to_fail.then(|| hook(scene)).flatten();
    // What comes after a sync waits until all that it applied is healthy.
    let hook_at = match scene.script.failure {
        Some(Failure::PostSync) if hook.is_some() => scene.script.ready_after,
        _ => Duration::ZERO,
    };
    let takes = hook_at + scene.script.complete_after;
    if scene.script.stalled {
        let message = format!("waiting for healthy state of its resources: {ASKED_FOR}");
        set(state, "message", message);
        return false;
    }
    if elapsed < takes {
        scene.wake_at(elapsed, if elapsed < hook_at { hook_at } else { takes });
        if let Some(hook) = hook.filter(|_| elapsed >= hook_at) {
            let name = text(&hook, "name");
            let message = format!("waiting for completion of hook batch/Job/{name}");
            set(state, "message", message);
            set_hook(state, hook, "Running", "");
        } else if tried == 0 {
            set(state, "message", "one or more tasks are running");
        }
        return false;
    }
    if !is_to_fail {
        return close(
            state,
            "Succeeded",
            "successfully synced (all tasks run)",
            &now,
        );
    }
    let message = match hook {
        Some(hook) => {
            set_hook(state, hook, "Failed", ASKED_FOR);
            "one or more synchronization tasks completed unsuccessfully".to_owned()
        }
        None => format!("one or more objects failed to apply, reason: {ASKED_FOR}"),
    };
    let limit = integer(&retry, "limit").unwrap_or(0);
    if tried < limit || limit < 0 {
        set(state, "finishedAt", now);
        let pause = pause(&retry, tried);
        let next = scene.context.now() + pause;
        let at = kitchen(&clock::rfc3339(next));
        let message = format!("{message}. Retrying attempt #{} at {at}.", tried + 1);
        set(state, "message", message);
        set(state, "retryCount", tried + 1);
        scene.wake_in(pause);
        return false;
    }
    let message = match tried {
        0 => message,
        tried => format!("{message} (retried {tried} times)."),
    };
    close(state, "Failed", &message, &now)
}

/// An operation is over.
fn close(state: &mut Value, phase: &str, message: &str, now: &str) -> bool {
    set(state, "phase", phase);
    set(state, "message", message);
    set(state, "finishedAt", now);
    true
}

/// What a sync is to: what the Application asks for now, or what the operation names.
fn result(scene: &Scene<'_, '_>, state: &Value, found: &Value) -> Value {
    let mut result = sources_of(scene, state);
    lay_over(&mut result, found);
    let named = text_at(state, "/operation/sync/revision");
    let asked = text_at(&result, "/source/targetRevision");
    if !named.is_empty() && named != asked && result.get("source").is_some() {
        let mut source = result["source"].clone();
        set(&mut source, "targetRevision", named);
        let script = Script {
            revision: None,
            ..scene.script.clone()
        };
        let revision = revision::commit(&source, &script);
        set(&mut result, "revision", revision);
    }
    if result.get("revision").is_none() {
        set(&mut result, "revision", "");
    }
    result
}

/// What is synced: what the operation names, or what the Application is made from.
fn sources_of(scene: &Scene<'_, '_>, state: &Value) -> Value {
    let sync = state.pointer("/operation/sync").unwrap_or(&Value::Null);
    if let Some(sources) = present(sync, "sources") {
        return json!({"sources": sources});
    }
    match present(sync, "source") {
        Some(source) => json!({"source": source}),
        None => sources(scene.before),
    }
}

/// The hook that is to fail: a Job.
fn hook(scene: &Scene<'_, '_>) -> Option<Value> {
    let (phase, suffix) = match scene.script.failure? {
        Failure::PreSync => ("PreSync", "pre-sync"),
        Failure::PostSync => (POST_SYNC, "post-sync"),
        _ => return None,
    };
    Some(json!({
        "group": "batch",
        "version": "v1",
        "kind": "Job",
        "namespace": scene.said("/spec/destination/namespace"),
        "name": format!("{}-{suffix}", scene.name()),
        "hookType": phase,
        "syncPhase": phase,
    }))
}

const POST_SYNC: &str = "PostSync";

/// Writes down how a hook stands.
fn set_hook(state: &mut Value, mut hook: Value, phase: &str, message: &str) {
    set(&mut hook, "hookPhase", phase);
    if !message.is_empty() {
        set(&mut hook, "message", message);
    }
    if let Some(result) = state.get_mut("syncResult") {
        set(result, "resources", json!([hook]));
    }
}

/// Whether an operation has applied everything, and only the hook after that fails. What
/// it did is no part of the history.
pub(super) fn is_applied(state: &Value) -> bool {
    let result = state.get("syncResult").unwrap_or(&Value::Null);
    let mut hooks = items(result, "resources");
    hooks.any(|hook| text(hook, "syncPhase") == POST_SYNC)
}

/// Whether the present operation, or the last one, has applied these revisions of these
/// sources without having come to its end.
pub(super) fn has_applied(status: &Value, sources: &Value, found: &Value) -> bool {
    let state = status.get("operationState").unwrap_or(&Value::Null);
    let result = state.get("syncResult").unwrap_or(&Value::Null);
    is_applied(state) && has(result, sources, found)
}

fn fails(scene: &Scene<'_, '_>, tried: i64) -> bool {
    let is_meant = scene.script.failure.is_some_and(|failure| {
        !matches!(
            failure,
            Failure::Compare
                | Failure::Health
                | Failure::Uninstall
                | Failure::Drift
                | Failure::Suspend
        )
    });
    is_meant && scene.script.fail_times.is_none_or(|times| tried < times)
}

/// How long to wait after so many tries.
fn pause(retry: &Value, tried: i64) -> Duration {
    let backoff = retry.get("backoff").unwrap_or(&Value::Null);
    let span = |field: &str, usual| match text(backoff, field) {
        // Without a unit, these are seconds.
        number if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => {
            number.parse().map_or(usual, Duration::from_secs)
        }
        other => duration::wait(other).unwrap_or(usual),
    };
    let factor = integer(backoff, "factor").and_then(|factor| u32::try_from(factor).ok());
    let factor = factor.filter(|factor| *factor > 0).unwrap_or(FACTOR);
    let longest = span("maxDuration", BACKOFF_MAX);
    let mut pause = span("duration", BACKOFF);
    for _ in 0..tried.clamp(0, 64) {
        pause = pause.saturating_mul(factor).min(longest);
    }
    pause.min(longest)
}

/// A time of day as clocks in kitchens show it: `3:04PM`.
fn kitchen(time: &str) -> String {
    let part = |from: usize| {
        time.get(from..from + 2)
            .and_then(|two| two.parse::<u8>().ok())
    };
    let (hour, minute) = (part(11).unwrap_or(0), part(14).unwrap_or(0));
    let half = if hour < 12 { "AM" } else { "PM" };
    let hour = match hour % 12 {
        0 => 12,
        hour => hour,
    };
    format!("{hour}:{minute:02}{half}")
}

/// Tells that an operation is over, and keeps what it deployed on record.
fn end(scene: &mut Scene<'_, '_>, state: &Value, found: &Value, deploys: bool) {
    let revision = match text_at(state, "/syncResult/revision") {
        "" => shown(found),
        revision => revision.to_owned(),
    };
    if text(state, "phase") == "Succeeded" {
        let message = format!("Sync operation to {revision} succeeded");
        scene.event(Kind::Normal, "OperationCompleted", &message);
    } else {
        let message = format!(
            "Sync operation to {revision} failed: {}",
            text(state, "message")
        );
        scene.event(Kind::Warning, "OperationCompleted", &message);
    }
    if !deploys {
        return;
    }
    let mut history: Vec<Value> = items(scene.stands(), "history").cloned().collect();
    let last = history.last().and_then(|last| integer(last, "id"));
    let mut entry = json!({
        "id": last.map_or(0, |id| id + 1),
        "deployStartedAt": state["startedAt"],
        "deployedAt": scene.now,
    });
    let result = state.get("syncResult").unwrap_or(&Value::Null);
    for field in ["revision", "revisions", "source", "sources"] {
        if let Some(value) = present(result, field) {
            set(&mut entry, field, value.clone());
        }
    }
    let initiator = state.pointer("/operation/initiatedBy");
    let initiator = initiator.cloned().unwrap_or_else(|| json!({}));
    set(&mut entry, "initiatedBy", initiator);
    history.push(entry);
    let spec = scene.before.get("spec").unwrap_or(&Value::Null);
    let limit = integer(spec, "revisionHistoryLimit").unwrap_or(HISTORY);
    let limit = usize::try_from(limit.max(1)).unwrap_or(usize::MAX);
    let surplus = history.len().saturating_sub(limit);
    history.drain(..surplus);
    set(scene.status(), "history", history);
}

/// Whether the operation that is over deployed anything.
pub(super) fn deployed(scene: &Scene<'_, '_>) -> bool {
    scene.stands().get("history") != scene.before["status"].get("history")
}

/// Whether the last sync was of these revisions of these sources.
pub(super) fn is_deployed(status: &Value, sources: &Value, found: &Value) -> bool {
    let last = items(status, "history").last();
    last.is_some_and(|last| has(last, sources, found))
}

/// Whether what was synced are these revisions of these sources.
fn has(synced: &Value, sources: &Value, found: &Value) -> bool {
    let mut fields = sources
        .as_object()
        .into_iter()
        .chain(found.as_object())
        .flatten();
    fields.all(|(field, value)| synced.get(field) == Some(value))
}

/// Whether what was deployed is another now than was deployed: as long as that is asked
/// for, or until it was put right so many times.
pub(super) fn drifts(scene: &Scene<'_, '_>) -> bool {
    let script = &scene.script;
    script.failure == Some(Failure::Drift)
        && items(scene.stands(), "history").next().is_some()
        && script
            .fail_times
            .is_none_or(|times| healed(scene.stands()) < times)
}

/// How often the last operation and those before it put right what was changed.
fn healed(status: &Value) -> i64 {
    let sync = status.pointer("/operationState/operation/sync");
    sync.and_then(|sync| integer(sync, HEALED)).unwrap_or(0)
}

/// How long to wait after the last operation, where so many have put right what was
/// changed.
fn healing_pause(times: i64) -> Duration {
    let mut pause = HEALING;
    for _ in 1..times.clamp(0, 64) {
        pause = pause.saturating_mul(HEALING_FACTOR).min(HEALING_MAX);
    }
    if times > 0 { pause } else { Duration::ZERO }
}

/// Starts a sync, where the Application has them start by themselves. Returns why it
/// does not although it should.
pub(super) fn automate(
    scene: &mut Scene<'_, '_>,
    found: &Value,
    after: &mut After,
) -> Option<String> {
    let spec = scene.before.get("spec")?;
    if !is_automated(spec) || after.is_on {
        return None;
    }
    let sources = sources(scene.before);
    let policy = spec.get("syncPolicy").unwrap_or(&Value::Null);
    let is_set = |field: &str| {
        let automated = policy.pointer("/automated");
        automated.is_some_and(|automated| flag(automated, field))
    };
    let mut heals = None;
    if let Some(state) = present(scene.stands(), "operationState") {
        let result = state.get("syncResult").unwrap_or(&Value::Null);
        if has(result, &sources, found) {
            if text(state, "phase") != "Succeeded" {
                let (shown, why) = (shown(found), text(state, "message"));
                return Some(format!("Failed last sync attempt to [{shown}]: {why}"));
            }
            // Where it goes is no part of what was attempted, and what was changed there
            // is put right only where that is asked for.
            if !is_set("selfHeal") {
                return None;
            }
            let times = healed(scene.stands());
            let finished = clock::parse(text(state, "finishedAt"));
            let finished = finished.unwrap_or_else(|| scene.context.now());
            let (elapsed, pause) = (scene.context.elapsed(finished), healing_pause(times));
            if elapsed < pause {
                scene.wake_at(elapsed, pause);
                return None;
            }
            heals = Some(times + 1);
        }
    }
    let mut sync = sources;
    lay_over(&mut sync, found);
    if is_set("prune") {
        set(&mut sync, "prune", true);
    }
    if let Some(times) = heals {
        set(&mut sync, HEALED, times);
    }
    if let Some(options) = present(policy, "syncOptions") {
        set(&mut sync, "syncOptions", options.clone());
    }
    let retry = present(policy, "retry").cloned();
    let operation = json!({
        "initiatedBy": {"automated": true},
        "retry": retry.unwrap_or_else(|| json!({"limit": RETRIES})),
        "sync": sync,
    });
    let message = format!("Initiated automated sync to '{}'", shown(found));
    scene.event(Kind::Normal, "OperationStarted", &message);
    after.started = Some(operation);
    None
}

/// Puts the operation that was started into an object, or removes the one that has
/// ended. One that somebody else has asked for meanwhile stays.
pub(super) fn write(object: &mut Value, before: &Value, after: &After) {
    let of = |object: &Value| object.get("operation").filter(|o| !o.is_null()).cloned();
    if of(object) != of(before) {
        return;
    }
    match &after.started {
        Some(operation) => set(object, "operation", operation.clone()),
        None if after.has_ended => drop(remove(object, "operation")),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_as_they_are_told() {
        let usual = Value::Null;
        let own = json!({"backoff": {"duration": "1s", "factor": 3, "maxDuration": "10s"}});
        let parts = json!({"backoff": {"duration": "0.5m", "factor": 3, "maxDuration": "0h1.5m"}});
        let seconds = json!({"backoff": {"duration": "7"}});
        for (retry, tried, expected) in [
            (&parts, 0, 30),
            (&parts, 2, 90),
            (&seconds, 0, 7),
            (&usual, 0, 5),
            (&usual, 1, 10),
            (&usual, 9, 180),
            (&usual, i64::MAX, 180),
            (&own, 0, 1),
            (&own, 2, 9),
            (&own, 3, 10),
        ] {
            assert_eq!(pause(retry, tried).as_secs(), expected, "{retry} {tried}");
        }
    }

    #[test]
    fn what_is_changed_again_and_again_is_put_right_less_often() {
        let pauses = [0, 1, 2, 3, 4, 5, 6, 7, i64::MAX].map(|times| healing_pause(times).as_secs());
        assert_eq!(pauses, [0, 2, 6, 18, 54, 162, 300, 300, 300]);
    }

    #[test]
    fn times_of_day_are_for_people() {
        for (time, expected) in [
            ("2026-01-01T00:05:00Z", "12:05AM"),
            ("2026-01-01T12:00:00Z", "12:00PM"),
            ("2026-01-01T15:04:59Z", "3:04PM"),
        ] {
            assert_eq!(kitchen(time), expected);
        }
    }
}
