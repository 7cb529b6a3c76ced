//! The history of a release: what Helm would have stored, the newest first.

use serde_json::{Value, json};

use super::super::hash;
use super::wanted::Wanted;
use crate::kinds::edit::{entries, integer, items, items_mut, remove, set, text};

/// How much is kept where nothing good is known.
const KEPT: usize = 5;

/// What Helm no longer has, and what it keeps though it is no more there.
const PURGED: &str = "uninstalling";
const UNINSTALLED: &str = "uninstalled";

/// The latest release that is there.
pub(super) fn latest(status: &Value) -> Option<&Value> {
    let latest = items(status, "history").next();
    latest.filter(|latest| ![PURGED, UNINSTALLED].contains(&text(latest, "status")))
}

/// The version of the latest release that Helm has; 0 where there is none.
pub(super) fn version(status: &Value) -> i64 {
    let latest = items(status, "history").next();
    let latest = latest.filter(|latest| text(latest, "status") != PURGED);
    let version = latest.and_then(|latest| integer(latest, "version"));
    version.unwrap_or(0)
}

/// `namespace/name.v2`, of the latest release.
pub(super) fn full_name(status: &Value) -> String {
    let latest = items(status, "history").next();
    latest.map(named).unwrap_or_default()
}

fn named(release: &Value) -> String {
    let version = integer(release, "version").unwrap_or(0);
    let (namespace, name) = (text(release, "namespace"), text(release, "name"));
    format!("{namespace}/{name}.v{version}")
}

/// `chart@version`, of the latest release.
pub(super) fn chart(status: &Value) -> String {
    let latest = items(status, "history").next();
    latest.map(charted).unwrap_or_default()
}

fn charted(release: &Value) -> String {
    let (name, version) = (text(release, "chartName"), text(release, "chartVersion"));
    format!("{name}@{version}")
}

/// Whether a release is of this chart with these values.
pub(super) fn is_of(release: &Value, wanted: &Wanted) -> bool {
    text(release, "chartName") == wanted.chart
        && text(release, "chartVersion") == wanted.version
        && text(release, "configDigest") == wanted.config
}

/// Adds a release, with what was done and how that ended.
pub(super) fn push(
    status: &mut Value,
    wanted: &Wanted,
    (action, outcome): (&str, &str),
    version: i64,
    now: &str,
) {
    let first = items(status, "history").last();
    let first = first.map_or(now, |first| text(first, "firstDeployed"));
    let mut release = json!({
        "apiVersion": "v2",
        "name": wanted.name,
        "namespace": wanted.namespace,
        "version": version,
        "status": outcome,
        "action": action,
        "chartName": wanted.chart,
        "chartVersion": wanted.version,
        "configDigest": wanted.config,
        "firstDeployed": first,
        "lastDeployed": now,
    });
    if let Some(digest) = &wanted.digest {
        set(&mut release, "ociDigest", digest.as_str());
    }
    let mut others: Vec<Value> = items(status, "history").cloned().collect();
    // Helm writes the release once more from which it goes on: that which is deployed, or
    // else the last one. Of what is written once more the action is not told.
    let deployed = others.iter().position(is_deployed);
    if let Some(origin) = others.get_mut(deployed.unwrap_or(0)) {
        remove(origin, "action");
        if outcome == "deployed" {
            set(origin, "status", "superseded");
        }
        seal(origin);
    }
    insert(status, release, others);
}

fn is_deployed(release: &Value) -> bool {
    text(release, "status") == "deployed"
}

/// Adds a release in front of the others.
fn insert(status: &mut Value, mut release: Value, mut others: Vec<Value>) {
    seal(&mut release);
    others.insert(0, release);
    set(status, "history", others);
}

/// The digest tells one state of a release from another.
fn seal(release: &mut Value) {
    let state = ["status", "configDigest", "lastDeployed", "deleted"];
    let state = state.map(|field| text(release, field)).join(" ");
    let tests = release.get("testHooks").map(Value::to_string);
    let tests = tests.unwrap_or_default();
    let digest = hash(&format!(
        "{} {} {state} {tests}",
        named(release),
        charted(release)
    ));
    set(release, "digest", format!("sha256:{digest}"));
}

/// The latest release is uninstalled by an action. What Helm says of one that it does not
/// keep is the last that is heard of it.
pub(super) fn uninstalled(status: &mut Value, action: &str, is_kept: bool, now: &str) {
    if let Some(latest) = items_mut(status, "history").next() {
        set(latest, "status", if is_kept { UNINSTALLED } else { PURGED });
        set(latest, "action", action);
        set(latest, "deleted", now);
        seal(latest);
    }
}

/// The tests of the latest release ended so.
pub(super) fn tested(status: &mut Value, phase: &str, now: &str) {
    if let Some(latest) = items_mut(status, "history").next() {
        let name = format!("{}-test", text(latest, "name"));
        let mut hooks = json!({});
        let hook = json!({"lastStarted": now, "lastCompleted": now, "phase": phase});
        set(&mut hooks, &name, hook);
        set(latest, "testHooks", hooks);
        seal(latest);
    }
}

/// Where the latest good release before the present one is.
fn previous(status: &Value) -> Option<usize> {
    let good = |release: &Value| {
        let mut failed =
            entries(release, "testHooks").filter(|(_, hook)| text(hook, "phase") == "Failed");
        matches!(text(release, "status"), "deployed" | "superseded") && failed.next().is_none()
    };
    let found = items(status, "history").skip(1).position(good);
    found.map(|at| at + 1)
}

/// Whether there is a good release before the present one.
pub(super) fn has_target(status: &Value) -> bool {
    previous(status).is_some()
}

/// Releases once more what was there before the present release. Returns the names of
/// the release that it goes back to, and of its chart.
pub(super) fn rolled_back(status: &mut Value, now: &str) -> Option<(String, String)> {
    truncate(status);
    let at = previous(status)?;
    let target = items(status, "history").nth(at)?.clone();
    let mut release = target.clone();
    set(&mut release, "version", version(status) + 1);
    set(&mut release, "status", "deployed");
    set(&mut release, "action", "rollback");
    set(&mut release, "lastDeployed", now);
    for field in ["ociDigest", "testHooks"] {
        remove(&mut release, field);
    }
    let mut others: Vec<Value> = items(status, "history").cloned().collect();
    for other in others.iter_mut().filter(|other| is_deployed(other)) {
        set(other, "status", "superseded");
        set(other, "action", "rollback");
        seal(other);
    }
    insert(status, release, others);
    Some((named(&target), charted(&target)))
}

/// Forgets what is older than the latest good release before the present one.
pub(super) fn truncate(status: &mut Value) {
    keep(status, previous(status).map_or(KEPT, |at| at + 1));
}

/// Forgets all but the latest few.
pub(super) fn shorten(status: &mut Value) {
    keep(status, KEPT);
}

fn keep(status: &mut Value, kept: usize) {
    if let Some(Value::Array(history)) = status.get_mut("history") {
        history.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(version: &str) -> Wanted {
        Wanted {
            name: "web".to_owned(),
            namespace: "apps".to_owned(),
            chart: "web".to_owned(),
            version: version.to_owned(),
            digest: None,
            config: "sha256:0".to_owned(),
        }
    }

    fn shown(status: &Value) -> Vec<String> {
        let releases = items(status, "history");
        let words = |r: &Value| {
            let (status, action) = (text(r, "status"), text(r, "action"));
            let words = format!("{} {} {status} {action}", named(r), charted(r));
            words.trim_end().to_owned()
        };
        releases.map(words).collect()
    }

    #[test]
    fn a_failed_upgrade_is_rolled_back() {
        let mut status = json!({});
        push(
            &mut status,
            &wanted("1.0.0"),
            ("install", "deployed"),
            1,
            "t1",
        );
        push(
            &mut status,
            &wanted("1.1.0"),
            ("upgrade", "deployed"),
            2,
            "t2",
        );
        push(
            &mut status,
            &wanted("2.0.0"),
            ("upgrade", "failed"),
            3,
            "t3",
        );
        assert_eq!(
            shown(&status),
            [
                "apps/web.v3 web@2.0.0 failed upgrade",
                "apps/web.v2 web@1.1.0 deployed",
                "apps/web.v1 web@1.0.0 superseded",
            ]
        );
        let back = rolled_back(&mut status, "t4");
        let expected = ("apps/web.v2".to_owned(), "web@1.1.0".to_owned());
        assert_eq!(back, Some(expected));
        assert_eq!(
            shown(&status),
            [
                "apps/web.v4 web@1.1.0 deployed rollback",
                "apps/web.v3 web@2.0.0 failed upgrade",
                "apps/web.v2 web@1.1.0 superseded rollback",
            ]
        );
        assert_eq!(status["history"][0]["firstDeployed"], "t1");
        assert!(is_of(&status["history"][0], &wanted("1.1.0")));
    }

    #[test]
    fn nothing_to_go_back_to_is_told() {
        let mut status = json!({});
        push(
            &mut status,
            &wanted("1.0.0"),
            ("install", "failed"),
            1,
            "t1",
        );
        assert_eq!(rolled_back(&mut status, "t2"), None);
        assert!(!has_target(&status));
        uninstalled(&mut status, "uninstall-remediation", true, "t2");
        assert_eq!(
            shown(&status),
            ["apps/web.v1 web@1.0.0 uninstalled uninstall-remediation"]
        );
        assert_eq!(status["history"][0]["deleted"], "t2");
        assert_eq!((version(&status), latest(&status)), (1, None));
        // Of one that is not kept nothing is there.
        uninstalled(&mut status, "uninstall-remediation", false, "t2");
        assert_eq!(
            shown(&status),
            ["apps/web.v1 web@1.0.0 uninstalling uninstall-remediation"]
        );
        assert_eq!((version(&status), latest(&status)), (0, None));
    }
}
