//! The helm-controller of Flux: releases, with what is done when one fails.

mod history;
mod tries;
mod wanted;

use std::time::Duration;

use serde_json::Value;

use self::tries::tries;
use self::wanted::Wanted;
use super::super::context::Kind;
use super::super::script::Failure;
use super::conditions::{self, PROGRESSING, READY, RECONCILING, RETRYING, STALLED, Truth};
use super::needs::Unmet;
use super::scene::Scene;
use super::source::FINALIZER;
use super::{ASKED_FOR, CHARTS, RELEASES, needs};
use crate::duration;
use crate::kinds::edit::{flag, integer, items, present, remove, set, text};
use crate::rest::meta;
use crate::status::ApiError;

/// How often is looked at what waits for others, or for values.
const REQUEUE: Duration = Duration::from_secs(30);
/// The pause before an attempt after what failed was taken back.
const PAUSE: Duration = Duration::from_millis(750);
/// How long an action may take, where nothing is said of it.
const TIMEOUT: Duration = Duration::from_secs(300);
/// When a failed action is tried again that is not to be taken back.
const RETRY: Duration = Duration::from_secs(300);
/// The usual interval where none can be read.
const INTERVAL: Duration = Duration::from_secs(600);
const TERMINAL: &str = "Reconciliation failed terminally due to configuration error";

/// Requests, of the same token as the usual one.
const FORCE: &str = "reconcile.fluxcd.io/forceAt";
const RESET: &str = "reconcile.fluxcd.io/resetAt";

const RELEASED: &str = "Released";
const REMEDIATED: &str = "Remediated";
const TESTED: &str = "TestSuccess";

/// What Helm does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Install,
    Upgrade,
    Test,
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Action::Install => "install",
            Action::Upgrade => "upgrade",
            Action::Test => "test",
        }
    }

    /// Why a release succeeded or failed.
    fn reasons(self) -> (&'static str, &'static str) {
        match self {
            Action::Install => ("InstallSucceeded", "InstallFailed"),
            Action::Upgrade => ("UpgradeSucceeded", "UpgradeFailed"),
            Action::Test => ("TestSucceeded", "TestFailed"),
        }
    }

    /// The field that counts failures of it.
    fn counter(self) -> &'static str {
        match self {
            Action::Install => "installFailures",
            Action::Upgrade | Action::Test => "upgradeFailures",
        }
    }
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Do(Action),
    /// As often as was allowed has been tried.
    Exhausted,
    /// There is nothing to go back to.
    Lost,
    /// It is as it should be.
    Nothing,
}

pub(super) fn reconcile(mut scene: Scene<'_, '_>) -> Result<(), ApiError> {
    if meta::is_terminating(scene.before) {
        return end(scene);
    }
    if scene.hold(FINALIZER)? {
        return Ok(());
    }
    scene.handled();
    if scene.is_suspended() {
        scene.observed();
        return scene.commit();
    }
    wanted::template(&mut scene)?;
    if let Some(unmet) = unmet(&scene) {
        match unmet {
            Unmet::Yet(why) => {
                wait(&mut scene, "DependencyNotReady", &why);
                scene.wake_in(REQUEUE);
            }
            Unmet::Never(why) => {
                let message = format!("{TERMINAL}: {why}");
                scene.say(READY, Truth::False, "InvalidCELExpression", &message);
                scene.stall("InvalidCELExpression", &message);
            }
        }
        return scene.commit();
    }
    match wanted::wanted(&mut scene) {
        Ok(wanted) => go(&mut scene, &wanted),
        Err(lack) => {
            wait(&mut scene, lack.reason, &lack.message);
            if let Some(again) = lack.again {
                scene.wake_in(again);
            }
        }
    }
    scene.commit()
}

/// The first of those on which it depends that is not ready.
fn unmet(scene: &Scene<'_, '_>) -> Option<Unmet> {
    let missing = |key: &str, why: &str| format!("unable to get '{key}' dependency: {why}");
    needs::dependency(scene.context, RELEASES, scene.before, missing, |_| false)
}

/// It is not ready because of others.
fn wait(scene: &mut Scene<'_, '_>, reason: &str, message: &str) {
    scene.progress("Fulfilling prerequisites");
    let known = conditions::get(&scene.before["status"], READY);
    if known.is_none_or(|known| text(known, "message") != message) {
        let kind = match reason {
            "DependencyNotReady" => Kind::Normal,
            _ => Kind::Warning,
        };
        scene.event(kind, reason, message);
    }
    scene.say(READY, Truth::False, reason, message);
}

/// Does what is to be done for what is wanted, as far as it has come by now.
fn go(scene: &mut Scene<'_, '_>, wanted: &Wanted) {
    let status = scene.stands();
    let changed = integer(status, "lastAttemptedGeneration") != Some(scene.generation)
        || text(status, "lastAttemptedRevision") != wanted.version
        || text(status, "lastAttemptedConfigDigest") != wanted.config;
    let was_asked = conditions::get(status, STALLED)
        .is_some_and(|stalled| text(stalled, "message").ends_with(ASKED_FOR));
    let is_reset = asked(scene, RESET, "lastHandledResetAt");
    if is_reset {
        let requested = scene.requested();
        set(scene.status(), "lastHandledResetAt", requested);
    }
    if changed || is_reset || was_asked && !scene.script.stalled {
        for count in ["failures", "installFailures", "upgradeFailures"] {
            remove(scene.status(), count);
        }
        scene.unsay(STALLED);
    }
    let force = asked(scene, FORCE, "lastHandledForceAt");
    let storage = match scene.said("/spec/storageNamespace") {
        "" => scene.namespace(),
        given => given,
    };
    let generation = scene.generation;
    let status = scene.status();
    set(status, "storageNamespace", storage);
    set(status, "lastAttemptedGeneration", generation);
    set(status, "lastAttemptedRevision", wanted.version.as_str());
    set(status, "lastAttemptedConfigDigest", wanted.config.as_str());
    match &wanted.digest {
        Some(digest) => set(status, "lastAttemptedRevisionDigest", digest.as_str()),
        None => drop(remove(status, "lastAttemptedRevisionDigest")),
    }
    if scene.script.stalled {
        return hang(scene, wanted);
    }
    let next = next(scene, wanted, force);
    if next != Next::Nothing && !force && rests(scene) {
        return;
    }
    match next {
        Next::Do(action) => act(scene, wanted, action),
        Next::Exhausted => exhaust(scene),
        Next::Lost => lose(scene),
        Next::Nothing => settle(scene),
    }
}

/// Whether a request of another kind than the usual one is open.
fn asked(scene: &Scene<'_, '_>, annotation: &str, field: &str) -> bool {
    let requested = scene.annotation(annotation);
    !requested.is_empty()
        && requested == scene.requested()
        && text(&scene.before["status"], field) != requested
}

/// What comes next, by the latest release that there is.
fn next(scene: &Scene<'_, '_>, wanted: &Wanted, force: bool) -> Next {
    let status = scene.stands();
    let exhausted = |action: Action| !force && tries(scene, action).exhausted();
    let latest = history::latest(status);
    let attempt = |action| {
        if exhausted(action) {
            Next::Exhausted
        } else {
            Next::Do(action)
        }
    };
    let Some(latest) = latest else {
        return attempt(Action::Install);
    };
    let tests = scene.before.pointer("/spec/test");
    let is_tested = tests.is_some_and(|test| flag(test, "enable"));
    let failed_test = items_of(latest, "testHooks").any(|hook| text(hook, "phase") == "Failed");
    let minds = tries(scene, active(status)).minds_tests;
    let is_failed = text(latest, "status") == "failed" || is_tested && failed_test && minds;
    if is_failed {
        let tries = tries(scene, active(status));
        return if tries.retry.is_some() || force || tries.failures <= 0 {
            Next::Do(Action::Upgrade)
        } else if tries.exhausted() {
            Next::Exhausted
        } else if !tries.uninstalls && !history::has_target(status) {
            Next::Lost
        } else {
            Next::Do(Action::Upgrade)
        };
    }
    if !history::is_of(latest, wanted) {
        return attempt(Action::Upgrade);
    }
    if is_tested && latest.get("testHooks").is_none() {
        return Next::Do(Action::Test);
    }
    if force {
        return Next::Do(Action::Upgrade);
    }
    Next::Nothing
}

/// The values of a map.
fn items_of<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    crate::kinds::edit::entries(value, field).map(|(_, item)| item)
}

/// The action that was attempted last.
fn active(status: &Value) -> Action {
    match text(status, "lastAttemptedReleaseAction") {
        "upgrade" => Action::Upgrade,
        _ => Action::Install,
    }
}

/// Whether it rests between two attempts.
fn rests(scene: &mut Scene<'_, '_>) -> bool {
    let status = scene.stands();
    let reconciling = conditions::get(status, RECONCILING);
    let Some(reconciling) = reconciling.filter(|known| text(known, "reason") == RETRYING) else {
        return false;
    };
    let stamp = text(reconciling, "lastTransitionTime").to_owned();
    let failures = integer(status, "failures").unwrap_or(0);
    if failures == 0 {
        return false;
    }
    let pause = tries(scene, active(scene.stands())).retry.unwrap_or(PAUSE);
    let mark = format!("rest {failures} {} {}", scene.generation, scene.requested());
    let elapsed = scene.lasts(&mark, &stamp);
    if elapsed >= pause {
        return false;
    }
    scene.wake_at(elapsed, pause);
    true
}

/// Runs an action, and takes in how it ended once its time is over.
fn act(scene: &mut Scene<'_, '_>, wanted: &Wanted, action: Action) {
    let timeout = scene.span("/spec/timeout", TIMEOUT);
    let timeout = scene.span(&format!("/spec/{}/timeout", action.name()), timeout);
    let timeout = duration::printed(timeout);
    let message = format!(
        "Running '{}' action with timeout of {timeout}",
        action.name()
    );
    let latest = history::version(scene.stands());
    let failures = integer(scene.stands(), "failures").unwrap_or(0);
    let mark = format!(
        "{message} {} {} {} {latest} {failures} {}",
        scene.generation,
        wanted.version,
        wanted.config,
        scene.requested()
    );
    let running = conditions::get(scene.stands(), RECONCILING);
    let running = running.filter(|known| text(known, "message") == message);
    let stamp = running.map_or("", |known| text(known, "lastTransitionTime"));
    let stamp = stamp.to_owned();
    let elapsed = scene.lasts(&mark, &stamp);
    let ready = scene.script.ready_after;
    if elapsed < ready {
        scene.wake_at(elapsed, ready);
        scene.progress(&message);
        if action != Action::Test {
            scene.say(READY, Truth::Unknown, PROGRESSING, &message);
        }
        return;
    }
    if asked(scene, FORCE, "lastHandledForceAt") {
        let requested = scene.requested();
        set(scene.status(), "lastHandledForceAt", requested);
    }
    let took = duration::printed(ready);
    let fails = fails(scene, action);
    if action == Action::Test {
        return test(scene, fails);
    }
    let status = scene.status();
    set(status, "lastAttemptedReleaseAction", action.name());
    set(status, "lastAttemptedReleaseActionDuration", took);
    scene.unsay(TESTED);
    scene.unsay(REMEDIATED);
    if action == Action::Install {
        remove(scene.status(), "history");
    }
    let now = scene.now.clone();
    let outcome = if fails { "failed" } else { "deployed" };
    let version = latest + 1;
    history::push(
        scene.status(),
        wanted,
        (action.name(), outcome),
        version,
        &now,
    );
    if fails {
        let message = has_failed(action, wanted);
        fail(scene, action, &message);
    } else {
        let message = format!(
            "Helm {} succeeded for release {} with chart {}@{}",
            action.name(),
            history::full_name(scene.stands()),
            wanted.chart,
            wanted.version
        );
        let (reason, _) = action.reasons();
        scene.say(RELEASED, Truth::True, reason, &message);
        if tries(scene, action).retry.is_some() {
            for count in ["failures", "installFailures", "upgradeFailures"] {
                remove(scene.status(), count);
            }
        }
        scene.event(Kind::Normal, reason, &message);
        let tests = scene.before.pointer("/spec/test");
        if tests.is_some_and(|test| flag(test, "enable")) {
            let message = format!(
                "Helm release {} with chart {}@{} is awaiting tests",
                history::full_name(scene.stands()),
                wanted.chart,
                wanted.version
            );
            scene.say(TESTED, Truth::Unknown, "AwaitingTests", &message);
            summarize(scene);
            return act(scene, wanted, Action::Test);
        }
        settle(scene);
    }
}

/// Whether an action is to fail this time.
fn fails(scene: &Scene<'_, '_>, action: Action) -> bool {
    let failure = match scene.script.failure {
        None | Some(Failure::Fetch | Failure::Uninstall | Failure::Drift | Failure::Suspend) => {
            return false;
        }
        Some(failure) => failure,
    };
    let meant = match (failure, action) {
        (Failure::Install, _) => action == Action::Install,
        (Failure::Upgrade, _) => action == Action::Upgrade,
        (Failure::Test, _) => action == Action::Test,
        (_, action) => action != Action::Test,
    };
    let failures = integer(scene.stands(), "failures").unwrap_or(0);
    meant && scene.script.fail_times.is_none_or(|times| failures < times)
}

fn test(scene: &mut Scene<'_, '_>, fails: bool) {
    let (name, chart) = {
        let status = scene.stands();
        (history::full_name(status), history::chart(status))
    };
    let phase = if fails { "Failed" } else { "Succeeded" };
    let now = scene.now.clone();
    history::tested(scene.status(), phase, &now);
    if fails {
        let message =
            format!("Helm test failed for release {name} with chart {chart}: {ASKED_FOR}");
        let active = active(scene.stands());
        scene.say(TESTED, Truth::False, "TestFailed", &message);
        scene.event(Kind::Warning, "TestFailed", &message);
        if tries(scene, active).minds_tests {
            return account(scene, active);
        }
        count(scene, "failures");
        return settle(scene);
    }
    let message = format!(
        "Helm test succeeded for release {name} with chart {chart}: 1 test hook completed successfully"
    );
    scene.say(TESTED, Truth::True, "TestSucceeded", &message);
    scene.event(Kind::Normal, "TestSucceeded", &message);
    settle(scene);
}

/// What is said of an action that failed.
fn has_failed(action: Action, wanted: &Wanted) -> String {
    format!(
        "Helm {} failed for release {}/{} with chart {}@{}: {ASKED_FOR}",
        action.name(),
        wanted.namespace,
        wanted.name,
        wanted.chart,
        wanted.version
    )
}

/// Takes in that an action failed.
fn fail(scene: &mut Scene<'_, '_>, action: Action, message: &str) {
    let (_, reason) = action.reasons();
    scene.say(RELEASED, Truth::False, reason, message);
    scene.event(Kind::Warning, reason, message);
    account(scene, action);
}

fn count(scene: &mut Scene<'_, '_>, field: &str) {
    let known = integer(scene.stands(), field).unwrap_or(0);
    set(scene.status(), field, known + 1);
}

/// Counts a failure, and does what is to be done about it.
fn account(scene: &mut Scene<'_, '_>, action: Action) {
    count(scene, "failures");
    count(scene, action.counter());
    summarize(scene);
    let tries = tries(scene, action);
    if let Some(retry) = tries.retry {
        history::shorten(scene.status());
        let message = format!("retrying after {}", duration::printed(retry));
        // As something that was done, whatever came of it.
        scene.observed();
        return again(scene, &message);
    }
    if tries.exhausted() && !tries.remedies_last {
        return exhaust(scene);
    }
    let now = scene.now.clone();
    if tries.uninstalls {
        let name = history::full_name(scene.stands());
        let chart = history::chart(scene.stands());
        let is_kept = keeps_history(scene);
        history::uninstalled(scene.status(), "uninstall-remediation", is_kept, &now);
        let message =
            format!("Helm uninstall remediation for release {name} with chart {chart} succeeded");
        scene.say(REMEDIATED, Truth::True, "UninstallSucceeded", &message);
        scene.event(Kind::Normal, "UninstallSucceeded", &message);
    } else if let Some((name, chart)) = history::rolled_back(scene.status(), &now) {
        let message =
            format!("Helm rollback to previous release {name} with chart {chart} succeeded");
        scene.say(REMEDIATED, Truth::True, "RollbackSucceeded", &message);
        scene.event(Kind::Normal, "RollbackSucceeded", &message);
        summarize(scene);
    } else {
        return lose(scene);
    }
    if tries.exhausted() && !(tries.uninstalls && action == Action::Upgrade) {
        return exhaust(scene);
    }
    let ready = conditions::get(scene.stands(), READY);
    let message = ready.map_or("", |ready| text(ready, "message")).to_owned();
    again(scene, &message);
}

/// It is tried again, after a pause.
fn again(scene: &mut Scene<'_, '_>, message: &str) {
    scene.unsay(STALLED);
    scene.say(RECONCILING, Truth::True, RETRYING, message);
    rests(scene);
}

/// As often as was allowed has been tried.
fn exhaust(scene: &mut Scene<'_, '_>) {
    let active = active(scene.stands());
    let failures = tries(scene, active).failures;
    let message = format!("Failed to {} after {failures} attempt(s)", active.name());
    scene.stall("RetriesExceeded", &message);
}

/// What failed is to be rolled back, and there is nothing to go back to.
fn lose(scene: &mut Scene<'_, '_>) {
    let message = "Failed to perform remediation: missing target release for rollback: cannot remediate failed release";
    scene.stall("MissingRollbackTarget", message);
}

/// It was asked to stall, whatever its retries are.
fn hang(scene: &mut Scene<'_, '_>, wanted: &Wanted) {
    let action = match items(scene.stands(), "history").next() {
        None => Action::Install,
        Some(_) => Action::Upgrade,
    };
    let message = has_failed(action, wanted);
    let (_, reason) = action.reasons();
    scene.say(RELEASED, Truth::False, reason, &message);
    scene.say(READY, Truth::False, reason, &message);
    let message = format!(
        "Failed to {} after 1 attempt(s): {ASKED_FOR}",
        action.name()
    );
    scene.stall("RetriesExceeded", &message);
}

/// The release is as it should be.
fn settle(scene: &mut Scene<'_, '_>) {
    scene.unsay(RECONCILING);
    history::truncate(scene.status());
    let wanted = conditions::get(scene.stands(), RELEASED).cloned();
    // What was rolled back to, or has stalled by request, is what is wanted now.
    let released = wanted.is_some_and(|released| text(&released, "status") == "True");
    if conditions::is(scene.stands(), REMEDIATED, Truth::True) || !released {
        let status = scene.stands();
        let message = format!(
            "Helm upgrade succeeded for release {} with chart {}",
            history::full_name(status),
            history::chart(status)
        );
        scene.unsay(REMEDIATED);
        scene.say(RELEASED, Truth::True, "UpgradeSucceeded", &message);
    }
    let mode = scene.said("/spec/driftDetection/mode");
    if matches!(mode, "enabled" | "warn") {
        let message = "No drift detected against the cluster state";
        scene.say("Drifted", Truth::False, "NoDriftDetected", message);
    }
    summarize(scene);
    scene.observed();
}

/// Sets `Ready` from how the release, its tests and its remedy went.
fn summarize(scene: &mut Scene<'_, '_>) {
    let test = scene.before.pointer("/spec/test");
    let is_tested = test.is_some_and(|test| flag(test, "enable"));
    let counts = is_tested && !test.is_some_and(|test| flag(test, "ignoreFailures"));
    if !is_tested {
        scene.unsay(TESTED);
    }
    let parts = [(REMEDIATED, true), (TESTED, counts), (RELEASED, true)];
    let status = scene.stands();
    let parts = parts.iter().filter(|(_, counts)| *counts);
    let parts = parts.filter_map(|(kind, _)| conditions::get(status, kind));
    // Of equals the last is taken.
    let of = |part: &&Value| integer(part, "observedGeneration").unwrap_or(0);
    let newest: Vec<&Value> = parts.collect();
    let Some(part) = newest.into_iter().rev().max_by_key(of).cloned() else {
        return;
    };
    let truth = match text(&part, "status") {
        "True" if text(&part, "type") != REMEDIATED => Truth::True,
        "Unknown" => Truth::Unknown,
        _ => Truth::False,
    };
    if truth == Truth::True {
        scene.unsay(STALLED);
    }
    scene.say(READY, truth, text(&part, "reason"), text(&part, "message"));
}

/// The release goes, and then the object; one that is suspended leaves it behind.
fn end(mut scene: Scene<'_, '_>) -> Result<(), ApiError> {
    if !super::has_finalizer(scene.before, FINALIZER) {
        return Ok(());
    }
    let is_released = !scene.said("/status/storageNamespace").is_empty()
        && present(&scene.before["status"], "history").is_some();
    if !scene.is_suspended() {
        if is_released && !uninstall(&mut scene) {
            return scene.commit();
        }
        let chart = scene.said("/status/helmChart");
        if let Some(chart) = scene.context.get(CHARTS, chart) {
            scene.context.delete(CHARTS, &chart)?;
        }
    }
    scene.release(|finalizer| finalizer == FINALIZER)
}

/// Whether Helm keeps what it has uninstalled.
fn keeps_history(scene: &Scene<'_, '_>) -> bool {
    let spec = scene.before.pointer("/spec/uninstall");
    spec.is_some_and(|spec| flag(spec, "keepHistory"))
}

/// Uninstalls the release. Returns whether it is gone.
fn uninstall(scene: &mut Scene<'_, '_>) -> bool {
    let status = scene.stands();
    let (name, chart) = (history::full_name(status), history::chart(status));
    if scene.script.stalled || scene.script.failure == Some(Failure::Uninstall) {
        let message =
            format!("Helm uninstall failed for release {name} with chart {chart}: {ASKED_FOR}");
        let known = conditions::get(scene.stands(), RELEASED);
        if known.is_none_or(|known| text(known, "message") != message) {
            count(scene, "failures");
            scene.event(Kind::Warning, "UninstallFailed", &message);
            let now = scene.now.clone();
            history::uninstalled(scene.status(), "uninstall", false, &now);
        }
        scene.say(RELEASED, Truth::False, "UninstallFailed", &message);
        scene.say(READY, Truth::False, "UninstallFailed", &message);
        return false;
    }
    let stamp = meta::text(scene.before, "deletionTimestamp");
    let elapsed = scene.lasts("uninstall", stamp);
    let ready = scene.script.ready_after;
    if elapsed < ready {
        scene.wake_at(elapsed, ready);
        return false;
    }
    let message = format!("Helm uninstall succeeded for release {name} with chart {chart}");
    scene.event(Kind::Normal, "UninstallSucceeded", &message);
    true
}
