//! The rules that the level `restricted` adds.

use serde_json::Value;

use super::baseline::{self, added, bad_profile};
use super::pod::{Pod, Violation, context, named, plural, quoted, setters, sorted, use_of};
use crate::kinds::edit::{integer, items, object, text};

/// Volumes that give a pod nothing of its node.
const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];
/// The others that there are.
const OTHER_VOLUMES: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

pub(super) fn escalation(pod: &Pod<'_>) -> Option<Violation> {
    let is_off =
        |container| context(container).get("allowPrivilegeEscalation") == Some(&Value::Bool(false));
    let bad = pod.bad(|container| !is_off(container));
    if bad.is_empty() {
        return None;
    }
    let who = named("container", &bad);
    let detail = format!("{who} must set securityContext.allowPrivilegeEscalation=false");
    Violation::new("allowPrivilegeEscalation != false", detail)
}

pub(super) fn capabilities(pod: &Pod<'_>) -> Option<Violation> {
    const ALLOWED: &[&str] = &["NET_BIND_SERVICE"];
    let drops_all = |container| {
        let given = object(context(container), "capabilities").unwrap_or(&Value::Null);
        items(given, "drop").any(|name| name == "ALL")
    };
    let keeping = pod.bad(|container| !drops_all(container));
    let adding = pod.bad(|container| added(container, ALLOWED).next().is_some());
    let mut details = Vec::new();
    if !keeping.is_empty() {
        let who = named("container", &keeping);
        details.push(format!(
            "{who} must set securityContext.capabilities.drop=[\"ALL\"]"
        ));
    }
    if !adding.is_empty() {
        let names = sorted(pod.containers().flat_map(|c| added(c, ALLOWED)));
        details.push(format!(
            "{} must not include {} in securityContext.capabilities.add",
            named("container", &adding),
            quoted(&names)
        ));
    }
    if details.is_empty() {
        return None;
    }
    Violation::new("unrestricted capabilities", details.join("; "))
}

pub(super) fn volumes(pod: &Pod<'_>) -> Option<Violation> {
    let has = |volume: &Value, sort: &str| object(volume, sort).is_some();
    let bad = items(pod.spec, "volumes")
        .filter(|volume| !VOLUMES.iter().any(|sort| has(volume, sort)))
        .map(|volume| {
            let sort = OTHER_VOLUMES.into_iter().find(|sort| has(volume, sort));
            (text(volume, "name"), sort.unwrap_or("unknown"))
        });
    let (names, sorts): (Vec<&str>, Vec<&str>) = bad.unzip();
    if names.is_empty() {
        return None;
    }
    let sorts = sorted(sorts);
    let detail = format!(
        "{} {} {} {}",
        named("volume", &names),
        use_of(names.len()),
        plural("restricted volume type", sorts.len()),
        quoted(&sorts)
    );
    Violation::new("restricted volume types", detail)
}

pub(super) fn non_root(pod: &Pod<'_>) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    let says = |context: &Value| context.get("runAsNonRoot").and_then(Value::as_bool);
    let of_pod = says(pod.context());
    let wrong = pod.bad(|container| says(context(container)) == Some(false));
    if let Some(who) = setters(of_pod == Some(false), &wrong) {
        let detail = format!("{who} must not set securityContext.runAsNonRoot=false");
        return Violation::new(REASON, detail);
    }
    let silent = pod.bad(|container| says(context(container)).is_none());
    if of_pod == Some(true) || silent.is_empty() {
        return None;
    }
    let who = named("container", &silent);
    let detail = format!("pod or {who} must set securityContext.runAsNonRoot=true");
    Violation::new(REASON, detail)
}

pub(super) fn user(pod: &Pod<'_>) -> Option<Violation> {
    let is_root = |context: &Value| integer(context, "runAsUser") == Some(0);
    let bad = pod.bad(|container| is_root(context(container)));
    let who = setters(is_root(pod.context()), &bad)?;
    Violation::new("runAsUser=0", format!("{who} must not set runAsUser=0"))
}

pub(super) fn seccomp(pod: &Pod<'_>) -> Option<Violation> {
    const FIELD: &str = "seccompProfile";
    if let Some(found) = baseline::seccomp(pod) {
        return Some(found);
    }
    let has = |context: &Value| object(context, FIELD).is_some();
    let silent = pod.bad(|container| !has(context(container)));
    let is_good = has(pod.context()) && bad_profile(pod.context(), FIELD).is_none();
    if is_good || silent.is_empty() {
        return None;
    }
    let who = named("container", &silent);
    let detail = format!(
        "pod or {who} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\""
    );
    Violation::new(FIELD, detail)
}
