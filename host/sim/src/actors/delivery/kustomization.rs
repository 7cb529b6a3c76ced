//! The kustomize-controller of Flux.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::context::Kind;
use super::super::script::{Failure, Script};
use super::conditions::{PROGRESSING, READY, RECONCILING, RETRYING, STALLED, Truth};
use super::needs::{self, Standing, Unmet};
use super::scene::Scene;
use super::source::FINALIZER;
use super::{ASKED_FOR, KUSTOMIZATIONS, earliest, hash};
use crate::duration;
use crate::kinds::edit::{flag, integer, items, present, set, text, text_at};
use crate::rest::meta;
use crate::status::ApiError;

/// How often is looked at what waits for others.
const REQUEUE: Duration = Duration::from_secs(30);
/// The usual interval where none can be read.
const INTERVAL: Duration = Duration::from_secs(600);
/// How much shorter an attempt may be than the interval, where nothing is said of it, and
/// the least that one may take.
const LEAST: Duration = Duration::from_secs(30);
/// How many entries the history has.
const HISTORY: usize = 5;

pub(super) fn reconcile(mut scene: Scene<'_, '_>) -> Result<(), ApiError> {
    if meta::is_terminating(scene.before) {
        return end(&scene);
    }
    if scene.hold(FINALIZER)? {
        return Ok(());
    }
    if scene.is_suspended() {
        scene.handled();
        return scene.commit();
    }
    let (kind, namespace, name) = needs::place(scene.before, "/spec/sourceRef");
    let source = match needs::source(scene.context, kind, namespace, name) {
        Standing::Missing(why) => {
            wait(&mut scene, "ArtifactFailed", &why);
            return scene.commit();
        }
        Standing::There(found) => found,
    };
    if source.is_played && source.artifact.is_none() {
        let message = "Source artifact not found, retrying in 30s";
        wait(&mut scene, "ArtifactFailed", message);
        scene.wake_in(REQUEUE);
        return scene.commit();
    }
    let revision = match &source.artifact {
        Some(artifact) => text(artifact, "revision").to_owned(),
        None => format!(
            "latest@sha1:{:.40}",
            hash(&format!("{kind}/{namespace}/{name}"))
        ),
    };
    match unmet(&scene, &revision) {
        Some(Unmet::Yet(why)) => {
            wait(&mut scene, "DependencyNotReady", &why);
            scene.wake_in(REQUEUE);
            return scene.commit();
        }
        Some(Unmet::Never(why)) => {
            let message =
                format!("Reconciliation failed terminally due to configuration error: {why}");
            scene.say(READY, Truth::False, "InvalidCELExpression", &message);
            scene.stall("InvalidCELExpression", &message);
            scene.handled();
            return scene.commit();
        }
        None => {}
    }
    run(&mut scene, &revision);
    scene.commit()
}

/// Resources of one that goes are pruned, then it goes; not if it is suspended.
fn end(scene: &Scene<'_, '_>) -> Result<(), ApiError> {
    let prunes = scene.script.stalled || scene.script.failure == Some(Failure::Uninstall);
    if prunes && !scene.is_suspended() {
        return Ok(());
    }
    scene.release(|finalizer| finalizer == FINALIZER)
}

/// The first of those on which it depends that is not ready.
fn unmet(scene: &Scene<'_, '_>, revision: &str) -> Option<Unmet> {
    let ours = needs::place(scene.before, "/spec/sourceRef");
    let missing = |key: &str, why: &str| format!("dependency '{key}' not found: {why}");
    let outdated = |other: &Value| {
        needs::place(other, "/spec/sourceRef") == ours
            && text_at(other, "/status/lastAppliedRevision") != revision
    };
    needs::dependency(
        scene.context,
        KUSTOMIZATIONS,
        scene.before,
        missing,
        outdated,
    )
}

/// It is not ready because of others. What was being done goes on later.
fn wait(scene: &mut Scene<'_, '_>, reason: &str, message: &str) {
    scene.unsay(STALLED);
    if let Some(known) = super::conditions::get(scene.stands(), RECONCILING) {
        let message = text(known, "message").to_owned();
        scene.say(RECONCILING, Truth::True, RETRYING, &message);
    }
    scene.say(READY, Truth::False, reason, message);
    scene.handled();
}

/// How far one has come that began `elapsed` ago: it is tried again at each interval.
fn attempt(script: &Script, interval: Duration, elapsed: Duration) -> (Stage, Option<Duration>) {
    if script.stalled {
        return (Stage::Stalled, None);
    }
    let run = script.ready_after;
    if script
        .failure
        .is_none_or(|failure| failure == Failure::Uninstall)
    {
        return match script.readiness(elapsed) {
            (true, next) => (Stage::Applied, next),
            (false, next) if elapsed < run => (Stage::Working(None), next),
            (false, next) => (Stage::Failing(Failure::Health), next),
        };
    }
    let failure = script.failure.unwrap_or(Failure::Apply);
    let period = (run + interval).max(Duration::from_millis(1));
    let tries = elapsed.as_nanos() / period.as_nanos();
    let last = script
        .fail_times
        .and_then(|times| u128::try_from(times).ok());
    let tries = last.map_or(tries, |last| tries.min(last));
    let began = period * u32::try_from(tries).unwrap_or(u32::MAX);
    let is_good = last.is_some_and(|last| tries >= last);
    if elapsed.saturating_sub(began) < run {
        let fails = (!is_good).then_some(failure);
        (Stage::Working(fails), Some(began + run))
    } else if is_good {
        (Stage::Applied, None)
    } else {
        (Stage::Failing(failure), Some(began + period))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// With how that will fail.
    Working(Option<Failure>),
    Failing(Failure),
    Stalled,
    Applied,
}

fn run(scene: &mut Scene<'_, '_>, revision: &str) {
    let interval = scene.span("/spec/interval", INTERVAL);
    let interval = scene.span("/spec/retryInterval", interval);
    let mark = format!(
        "{} {revision} {} {:?}",
        scene.generation,
        scene.requested(),
        scene.script.failure
    );
    let status = &scene.before["status"];
    let stamp = match text(status, "lastAttemptedRevision") == revision {
        true => earliest(status),
        false => "",
    };
    let elapsed = scene.lasts(&mark, stamp);
    let (stage, next) = attempt(&scene.script, interval, elapsed);
    if let Some(next) = next {
        scene.wake_at(elapsed, next);
    }
    let spec = scene.before.get("spec").unwrap_or(&Value::Null);
    let checks = flag(spec, "wait") || present(spec, "healthChecks").is_some();
    if stage == Stage::Stalled {
        let message = format!("stalled: {ASKED_FOR}");
        scene.say(READY, Truth::False, "AccessDenied", &message);
        // Of one to which access is denied no generation is observed.
        scene.unsay(RECONCILING);
        scene.say(STALLED, Truth::True, "AccessDenied", &message);
        return scene.handled();
    }
    let fetches = Some(Failure::Fetch);
    if stage != Stage::Working(fetches) && stage != Stage::Failing(Failure::Fetch) {
        set(scene.status(), "lastAttemptedRevision", revision);
    }
    match stage {
        Stage::Working(fails) => {
            // The last that it is at before it fails or is done.
            let done = if checks {
                Failure::Health
            } else {
                Failure::Apply
            };
            let last = fails.unwrap_or(done);
            let message = at(scene, revision, last);
            scene.progress(&message);
            if checks && last == Failure::Health {
                scene.say("Healthy", Truth::Unknown, PROGRESSING, &message);
            }
            scene.say(
                READY,
                Truth::Unknown,
                PROGRESSING,
                "Reconciliation in progress",
            );
        }
        Stage::Failing(failure) => fail(scene, revision, failure, checks),
        Stage::Applied | Stage::Stalled => apply(scene, revision, checks),
    }
}

/// What it is at when it fails so.
fn at(scene: &Scene<'_, '_>, revision: &str, failure: Failure) -> String {
    let interval = scene.span("/spec/interval", INTERVAL);
    let timeout = scene.span("/spec/timeout", interval.saturating_sub(LEAST));
    let timeout = duration::printed(timeout.max(LEAST));
    let what = match failure {
        Failure::Fetch => "Fetching manifests",
        Failure::Build => "Building manifests",
        Failure::Health => "Running health checks",
        _ => "Detecting drift",
    };
    format!("{what} for revision {revision} with a timeout of {timeout}")
}

fn fail(scene: &mut Scene<'_, '_>, revision: &str, failure: Failure, checks: bool) {
    let took = duration::printed(scene.script.ready_after);
    let (reason, message) = match failure {
        Failure::Fetch => (
            "ArtifactFailed",
            format!("failed to download archive: {ASKED_FOR}"),
        ),
        Failure::Build => (
            "BuildFailed",
            format!("kustomize build failed: {ASKED_FOR}"),
        ),
        Failure::Health => (
            "HealthCheckFailed",
            format!("health check failed after {took}: {ASKED_FOR}"),
        ),
        _ => (
            "ReconciliationFailed",
            format!("failed to apply: {ASKED_FOR}"),
        ),
    };
    if failure == Failure::Health {
        if checks {
            scene.say("Healthy", Truth::False, reason, ASKED_FOR);
        }
        // It was applied.
        count_nothing(scene);
    }
    let known = super::conditions::get(&scene.before["status"], READY);
    // Each attempt ends once, however often it is looked at.
    if known.is_none_or(|known| text(known, "reason") != reason) {
        if !matches!(failure, Failure::Fetch | Failure::Build) {
            record(scene, revision, reason);
        }
        scene.event(Kind::Warning, reason, &message);
    }
    let progress = at(scene, revision, failure);
    scene.retry(&progress, reason, &message);
    scene.handled();
}

/// None of what was applied is there.
fn count_nothing(scene: &mut Scene<'_, '_>) {
    if scene.stands().get("inventory").is_none() {
        set(scene.status(), "inventory", json!({"entries": []}));
    }
}

fn apply(scene: &mut Scene<'_, '_>, revision: &str, checks: bool) {
    let took = duration::printed(scene.script.ready_after);
    if checks {
        let message = format!("Health check passed in {took}");
        scene.say("Healthy", Truth::True, "Succeeded", &message);
    } else {
        scene.unsay("Healthy");
    }
    let message = format!("Applied revision: {revision}");
    let before = &scene.before["status"];
    let was = super::conditions::is(before, READY, Truth::True)
        && integer(before, "observedGeneration") == Some(scene.generation)
        && text(before, "lastAppliedRevision") == revision;
    scene.ready("ReconciliationSucceeded", &message);
    set(scene.status(), "lastAppliedRevision", revision);
    count_nothing(scene);
    if !was {
        record(scene, revision, "ReconciliationSucceeded");
        let message = format!("Reconciliation finished in {took}");
        scene.event(Kind::Normal, "ReconciliationSucceeded", &message);
    }
    scene.handled();
}

/// Notes how an attempt ended: the newest first, those alike in one entry.
fn record(scene: &mut Scene<'_, '_>, revision: &str, outcome: &str) {
    let digest = format!(
        "sha256:{}",
        hash(&format!("{revision} {}", scene.said("/spec/path")))
    );
    let took = duration::printed(scene.script.ready_after);
    let now = scene.now.clone();
    let mut others: Vec<Value> = items(scene.stands(), "history").cloned().collect();
    let same = |entry: &Value| {
        text(entry, "digest") == digest && text(entry, "lastReconciledStatus") == outcome
    };
    let known = others.iter().position(same).map(|at| others.remove(at));
    let field = |field: &str| known.as_ref().and_then(|known| known.get(field)).cloned();
    let times = field("totalReconciliations").and_then(|times| times.as_i64());
    let entry = json!({
        "digest": digest,
        "firstReconciled": field("firstReconciled").unwrap_or(json!(now)),
        "lastReconciled": now,
        "lastReconciledDuration": took,
        "lastReconciledStatus": outcome,
        "totalReconciliations": times.unwrap_or(0) + 1,
        "metadata": {"revision": revision},
    });
    others.insert(0, entry);
    others.truncate(HISTORY);
    set(scene.status(), "history", others);
}

#[cfg(test)]
mod tests {
    use super::super::super::Actors;
    use super::*;

    #[track_caller]
    fn check(script: &Script, at: u64, stage: Stage, next: Option<u64>) {
        let interval = Duration::from_secs(60);
        let (found, then) = attempt(script, interval, Duration::from_secs(at));
        assert_eq!(
            (found, then.map(|t| t.as_secs())),
            (stage, next),
            "at {at} s"
        );
    }

    #[test]
    fn attempts_are_made_at_each_interval() {
        let script = |failure, fail_times| Script {
            ready_after: Duration::from_secs(10),
            failure,
            fail_times,
            ..Script::of(&Actors::default())
        };
        check(&script(None, None), 9, Stage::Working(None), Some(10));
        check(&script(None, None), 10, Stage::Applied, None);
        let failing = script(Some(Failure::Build), None);
        let failed = Stage::Failing(Failure::Build);
        let builds = Stage::Working(Some(Failure::Build));
        check(&failing, 9, builds, Some(10));
        check(&failing, 10, failed, Some(70));
        check(&failing, 70, builds, Some(80));
        check(&failing, 80, failed, Some(140));
        let once = script(Some(Failure::Apply), Some(1));
        check(&once, 69, Stage::Failing(Failure::Apply), Some(70));
        check(&once, 70, Stage::Working(None), Some(80));
        check(&once, 80, Stage::Applied, None);
        check(&once, 80_000, Stage::Applied, None);
        let degrading = Script {
            degrade_after: Some(Duration::from_secs(5)),
            ..script(None, None)
        };
        check(&degrading, 14, Stage::Applied, Some(15));
        check(&degrading, 15, Stage::Failing(Failure::Health), None);
    }
}
