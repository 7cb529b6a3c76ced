//! The application controller of Argo CD: how an Application compares with its source,
//! and how healthy it is. What a sync does is in [`operation`].

use serde_json::{Value, json};

use super::super::context::Kind;
use super::super::script::Failure;
use super::scene::Scene;
use super::{ASKED_FOR, PROJECTS, operation, revision};
use crate::kinds::edit::{flag, items, present, remove, set, text, text_at};
use crate::rest::meta;
use crate::status::ApiError;

const REFRESH: &str = "argocd.argoproj.io/refresh";
const SKIP: &str = "argocd.argoproj.io/skip-reconcile";
/// The domain of all finalizers of Argo CD.
const FINALIZERS: &str = "argocd.argoproj.io";

const SYNCED: &str = "Synced";
const OUT_OF_SYNC: &str = "OutOfSync";
const UNKNOWN: &str = "Unknown";

pub(super) fn reconcile(mut scene: Scene<'_, '_>) -> Result<(), ApiError> {
    if meta::is_terminating(scene.before) {
        return end(scene);
    }
    if scene.annotation(SKIP) == "true" {
        return Ok(());
    }
    let found = revisions(&scene);
    let mut after = operation::run(&mut scene, &found);
    compare(&mut scene, &found, &mut after);
    let before = scene.before;
    let is_asked = !scene.annotation(REFRESH).is_empty();
    if !is_asked && after.started.is_none() && !after.has_ended {
        return scene.commit();
    }
    scene.commit_with(|object| {
        // A request to compare is answered by its removal.
        let annotations = meta::of_mut(object).get_mut("annotations");
        if let Some(annotations) = annotations.filter(|_| is_asked) {
            remove(annotations, REFRESH);
        }
        operation::write(object, before, &after);
    })
}

/// What an Application is made from: one source, or several.
pub(super) fn sources(object: &Value) -> Value {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    match present(spec, "sources") {
        Some(sources) => json!({"sources": sources}),
        None => json!({"source": spec.get("source").cloned().unwrap_or_else(|| json!({}))}),
    }
}

/// The revisions of the sources, as a status has them: `revision`, or `revisions`.
fn revisions(scene: &Scene<'_, '_>) -> Value {
    let sources = sources(scene.before);
    match sources.get("sources") {
        Some(_) => {
            let each = items(&sources, "sources");
            let each = each.map(|source| json!(revision::commit(source, &scene.script)));
            json!({"revisions": each.collect::<Vec<_>>()})
        }
        None => json!({"revision": revision::commit(&sources["source"], &scene.script)}),
    }
}

/// Revisions as messages have them.
pub(super) fn shown(found: &Value) -> String {
    match found.get("revisions") {
        Some(_) => {
            let each = items(found, "revisions").filter_map(Value::as_str);
            each.collect::<Vec<_>>().join(", ")
        }
        None => text(found, "revision").to_owned(),
    }
}

/// Puts the fields of one object into another.
pub(super) fn lay_over(object: &mut Value, fields: &Value) {
    for (field, value) in fields.as_object().into_iter().flatten() {
        set(object, field, value.clone());
    }
}

/// Compares what is there with what should be, and starts a sync where that is asked
/// for in general.
fn compare(scene: &mut Scene<'_, '_>, found: &Value, after: &mut operation::After) {
    let mut compared = sources(scene.before);
    let spec = scene.before.get("spec").unwrap_or(&Value::Null);
    let destination = spec.get("destination").cloned();
    set(
        &mut compared,
        "destination",
        destination.unwrap_or_else(|| json!({})),
    );
    if let Some(ignored) = present(spec, "ignoreDifferences") {
        set(&mut compared, "ignoreDifferences", ignored.clone());
    }
    let before = scene.stands()["sync"].clone();
    let asked = !scene.annotation(REFRESH).is_empty();
    if let Some((condition, message)) = broken(scene) {
        complain(scene, &[(condition, message)]);
        let mut sync = json!({"status": UNKNOWN, "comparedTo": compared});
        if let Some(known) = before.get("revision").filter(|_| condition == COMPARISON) {
            set(&mut sync, "revision", known.clone());
        }
        return stand(scene, sync, (UNKNOWN, ""), asked);
    }
    let is_same = before.get("comparedTo") == Some(&compared)
        && found
            .as_object()
            .into_iter()
            .flatten()
            .all(|(field, value)| before.get(field) == Some(value));
    let known = text(&before, "status");
    let wanted = sources(scene.before);
    let is_synced = if operation::drifts(scene) {
        false
    } else if operation::has_applied(scene.stands(), &wanted, found) {
        true
    } else if after.has_ended && operation::deployed(scene) {
        after.has_synced
    } else if is_same && known != UNKNOWN {
        known == SYNCED
    } else {
        // Only the sources of the last sync are on record.
        known == UNKNOWN && operation::is_deployed(scene.stands(), &wanted, found)
    };
    let status = if is_synced { SYNCED } else { OUT_OF_SYNC };
    let mut sync = json!({"status": status, "comparedTo": compared});
    lay_over(&mut sync, found);
    let health = health(scene, after);
    stand(scene, sync, health, asked || !is_same || after.has_ended);
    let failed = if is_synced {
        None
    } else {
        operation::automate(scene, found, after)
    };
    let failed = failed.map(|message| ("SyncError", message));
    complain(scene, failed.as_slice());
}

const COMPARISON: &str = "ComparisonError";

/// Why nothing can be compared.
fn broken(scene: &Scene<'_, '_>) -> Option<(&'static str, String)> {
    let project = match scene.said("/spec/project") {
        "" => "default",
        given => given,
    };
    let key = format!("{}/{project}", scene.namespace());
    let are_served = scene.context.shared.registry.find_table(PROJECTS).is_some();
    if are_served && project != "default" && scene.context.get(PROJECTS, &key).is_none() {
        let message = format!("Application referencing project {project} which does not exist");
        return Some(("InvalidSpecError", message));
    }
    (scene.script.failure == Some(Failure::Compare)).then(|| {
        let message = format!(
            "Failed to load target state: failed to generate manifest for source 1 of 1: rpc error: code = Unknown desc = {ASKED_FOR}"
        );
        (COMPARISON, message)
    })
}

/// Sets the conditions: there are those that say what is wrong, and no others.
fn complain(scene: &mut Scene<'_, '_>, wrong: &[(&str, String)]) {
    let now = scene.now.clone();
    let known: Vec<Value> = items(scene.stands(), "conditions").cloned().collect();
    let conditions = wrong.iter().map(|(kind, message)| {
        let same =
            |known: &&Value| text(known, "type") == *kind && text(known, "message") == message;
        let since = known.iter().find(same);
        let since = since.map_or(now.as_str(), |known| text(known, "lastTransitionTime"));
        json!({"type": kind, "message": message, "lastTransitionTime": since})
    });
    let conditions: Vec<Value> = conditions.collect();
    if conditions.is_empty() {
        remove(scene.status(), "conditions");
    } else {
        set(scene.status(), "conditions", conditions);
    }
}

/// How healthy it is: what was synced takes its time.
fn health(scene: &mut Scene<'_, '_>, after: &operation::After) -> (&'static str, &'static str) {
    let Some((deployed, stamp)) = last_deployed(scene.stands()) else {
        return ("Missing", "");
    };
    let state = scene.stands().get("operationState");
    if after.is_on && !state.is_some_and(operation::is_applied) {
        return (known_health(scene), "");
    }
    match scene.script.failure {
        Some(Failure::Health) => return ("Degraded", ASKED_FOR),
        Some(Failure::Suspend) => return ("Suspended", ASKED_FOR),
        _ => {}
    }
    // What was synced once more as it was has been healthy all the time.
    let since = scene
        .context
        .since_of(scene.before, "health", &deployed, &stamp);
    let elapsed = scene.context.elapsed(since);
    let (ready, next) = scene.script.readiness(elapsed);
    if let Some(next) = next {
        scene.wake_at(elapsed, next);
    }
    match ready {
        true => ("Healthy", ""),
        false if elapsed < scene.script.ready_after || scene.script.stalled => ("Progressing", ""),
        false => ("Degraded", ASKED_FOR),
    }
}

/// What was deployed last, and when: what is in the history, or what was applied by an
/// operation that fails after that.
fn last_deployed(status: &Value) -> Option<(String, String)> {
    let what = |synced: &Value, when: &str| {
        let fields = ["revision", "revisions", "source", "sources"];
        let fields = fields.map(|field| synced[field].to_string());
        (fields.join(" "), when.to_owned())
    };
    let state = status.get("operationState");
    if let Some(state) = state.filter(|state| operation::is_applied(state)) {
        return Some(what(&state["syncResult"], text(state, "startedAt")));
    }
    let last = items(status, "history").last()?;
    Some(what(last, text(last, "deployedAt")))
}

fn known_health(scene: &Scene<'_, '_>) -> &'static str {
    match text_at(scene.stands(), "/health/status") {
        "Healthy" => "Healthy",
        "Degraded" => "Degraded",
        "Progressing" => "Progressing",
        "Suspended" => "Suspended",
        _ => "Missing",
    }
}

/// Writes down how it compares and how healthy it is, and tells of what changed.
fn stand(scene: &mut Scene<'_, '_>, sync: Value, health: (&str, &str), compared: bool) {
    let (health, message) = health;
    let was = text_at(scene.stands(), "/sync/status").to_owned();
    let is = text(&sync, "status").to_owned();
    if was != is {
        let message = format!("Updated sync status: {was} -> {is}");
        scene.event(Kind::Normal, "ResourceUpdated", &message);
    }
    let before = scene.stands()["health"].clone();
    let was = text(&before, "status");
    let mut now = json!({"status": health});
    let known = before.get("lastTransitionTime").filter(|_| was == health);
    let since = known.cloned().unwrap_or_else(|| json!(scene.now));
    set(&mut now, "lastTransitionTime", since);
    if was != health {
        let message = format!("Updated health status: {was} -> {health}");
        scene.event(Kind::Normal, "ResourceUpdated", &message);
    }
    if !message.is_empty() {
        set(&mut now, "message", message);
    }
    let (time, spec) = (scene.now.clone(), scene.before.get("spec"));
    let sort = spec.map_or("Directory", source_type);
    let status = scene.status();
    if compared || status.get("reconciledAt").is_none() {
        set(status, "reconciledAt", time);
    }
    set(status, "sync", sync);
    set(status, "health", now);
    set(status, "sourceType", sort);
    set(status, "controllerNamespace", "argocd");
    if status.get("summary").is_none() {
        set(status, "summary", json!({}));
    }
}

/// What makes the objects of a source.
fn source_type(spec: &Value) -> &'static str {
    let first = items(spec, "sources").next().or_else(|| spec.get("source"));
    let Some(source) = first else {
        return "Directory";
    };
    let has = |field: &str| present(source, field).is_some();
    if has("chart") || has("helm") {
        "Helm"
    } else if has("kustomize") {
        "Kustomize"
    } else if has("plugin") {
        "Plugin"
    } else {
        "Directory"
    }
}

/// Its resources go first, where a finalizer says so.
fn end(mut scene: Scene<'_, '_>) -> Result<(), ApiError> {
    let ours = |finalizer: &str| finalizer.contains(FINALIZERS);
    if !meta::finalizers(scene.before).any(ours) {
        return Ok(());
    }
    if scene.script.stalled || scene.script.failure == Some(Failure::Uninstall) {
        complain(&mut scene, &[("DeletionError", ASKED_FOR.to_owned())]);
        return scene.commit();
    }
    let stamp = meta::text(scene.before, "deletionTimestamp");
    let elapsed = scene.lasts("deletion", stamp);
    let ready = scene.script.ready_after;
    if elapsed < ready {
        scene.wake_at(elapsed, ready);
        return Ok(());
    }
    scene.release(ours)
}

/// Whether syncs are to start by themselves.
pub(super) fn is_automated(spec: &Value) -> bool {
    let automated = spec.pointer("/syncPolicy/automated");
    automated
        .is_some_and(|automated| automated.get("enabled").is_none() || flag(automated, "enabled"))
}
