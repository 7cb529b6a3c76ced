//! Pod Security: what the labels of a namespace say that pods in it may do.
//!
//! The rules are those of the Pod Security Standards, in each of their versions. Who makes a
//! pod that the level `enforce` does not allow is refused; of `warn`, and of what workloads
//! will make, callers are warned. There is no log for `audit`. Nobody is exempt.

mod baseline;
mod checks;
mod pod;
mod restricted;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use self::checks::violations;
use self::pod::{Pod, Violation};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{flag, items, text, text_at};
use crate::resource::Resource;
use crate::rest::meta;
use crate::server::Shared;
use crate::status::ApiError;

const PODS: &str = "pods";
const NAMESPACES: &str = "namespaces";
/// Requests for these parts of a pod say nothing of what it may do.
const HARMLESS_PARTS: [&str; 8] = [
    "exec",
    "attach",
    "binding",
    "eviction",
    "log",
    "portforward",
    "proxy",
    "status",
];
/// How many pods of a namespace are looked at when its level changes, as by the real server.
const MOST_PODS: usize = 3_000;

/// What a level is called in labels and messages, the most permissive first.
const LEVELS: [&str; 3] = ["privileged", "baseline", "restricted"];

/// How much pods may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Level {
    /// Anything.
    #[default]
    Privileged,
    /// Nothing that is known to give more rights.
    Baseline,
    /// Only what is known to be good practice.
    Restricted,
}

/// Whose standards count: those of Kubernetes 1.x.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Version {
    /// Those of this server.
    #[default]
    Latest,
    Minor(u64),
}

/// A level in one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Standard {
    level: Level,
    version: Version,
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = LEVELS.get(self.level as usize).unwrap_or(&"");
        match self.version {
            Version::Latest => write!(f, "{level}:latest"),
            Version::Minor(minor) => write!(f, "{level}:v1.{minor}"),
        }
    }
}

/// What a namespace says of its pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Policy {
    enforce: Standard,
    warn: Standard,
}

impl Policy {
    /// Reads labels, by what each of them is. What is wrong with one makes it the strictest
    /// for `enforce`, and the most permissive for others.
    fn read<'l>(label: impl Fn(&str) -> Option<&'l str>, errors: &mut Errors) -> Self {
        let mut policy = Policy::default();
        let mut given = [false; 2];
        let mut warns_in_version = false;
        for mode in ["enforce", "audit", "warn"] {
            let mut standard = Standard::default();
            let name = format!("pod-security.kubernetes.io/{mode}");
            if let Some(value) = label(&name) {
                let known = LEVELS.iter().position(|level| *level == value);
                match known {
                    Some(1) => standard.level = Level::Baseline,
                    Some(2) => standard.level = Level::Restricted,
                    Some(_) => {}
                    None => {
                        let why = format!("must be one of {}", LEVELS.join(", "));
                        complain(&name, value, &why, errors);
                        if mode == "enforce" {
                            standard.level = Level::Restricted;
                        }
                    }
                }
                match mode {
                    "enforce" => given[0] = known.is_some(),
                    "warn" => given[1] = true,
                    _ => {}
                }
            }
            let name = format!("{name}-version");
            if let Some(value) = label(&name) {
                match version(value) {
                    Some(version) => standard.version = version,
                    None => complain(&name, value, "must be \"latest\" or \"v1.x\"", errors),
                }
                warns_in_version |= mode == "warn";
            }
            match mode {
                "enforce" => policy.enforce = standard,
                "warn" => policy.warn = standard,
                _ => {}
            }
        }
        // Of what is refused in pods, workloads are warned of.
        let [enforces, warns] = given;
        if !warns && enforces && policy.enforce.level > policy.warn.level {
            policy.warn.level = policy.enforce.level;
            if !warns_in_version {
                policy.warn.version = policy.enforce.version;
            }
        }
        policy
    }

    fn of(namespace: &Value, errors: &mut Errors) -> Self {
        let labels = namespace.pointer("/metadata/labels");
        let label = |name: &str| labels?.get(name)?.as_str();
        Policy::read(label, errors)
    }
}

fn complain(label: &str, value: &str, why: &str, errors: &mut Errors) {
    let labels = Path::new("metadata");
    let labels = labels.child("labels");
    errors.push(FieldError::invalid_str(&labels.key(label), value, why));
}

/// `latest`, or `v1.x` without zeros before.
fn version(text: &str) -> Option<Version> {
    if text == "latest" {
        return Some(Version::Latest);
    }
    let minor = text.strip_prefix("v1.")?;
    let is_number = !minor.is_empty() && minor.bytes().all(|digit| digit.is_ascii_digit());
    if !is_number || (minor.len() > 1 && minor.starts_with('0')) {
        return None;
    }
    // The real server counts as far as a signed number of 64 bits goes.
    let minor: i64 = minor.parse().ok()?;
    Some(Version::Minor(minor.unsigned_abs()))
}

/// Where the template of the pods of a workload is; empty for a pod.
fn template_of(resource: &Resource) -> Option<&'static str> {
    match &*resource.table {
        PODS => Some(""),
        "podtemplates" => Some("/template"),
        "replicationcontrollers"
        | "replicasets.apps"
        | "deployments.apps"
        | "statefulsets.apps"
        | "daemonsets.apps"
        | "jobs.batch" => Some("/spec/template"),
        "cronjobs.batch" => Some("/spec/jobTemplate/spec/template"),
        _ => None,
    }
}

/// Holds what is written to the standards of its namespace: a new object, where there is no
/// `old` one. `subresource` is empty for a write of the whole. `warn` is told what is not
/// refused.
///
/// # Errors
///
/// When a pod is not allowed, or a namespace has labels that say nothing known.
pub(crate) fn check(
    server: &Shared,
    resource: &Resource,
    subresource: &str,
    object: &Value,
    old: Option<&Value>,
    warn: impl FnMut(&str),
) -> Result<(), ApiError> {
    if &*resource.table == NAMESPACES {
        return match subresource {
            "" => check_namespace(server, resource, object, old, warn),
            _ => Ok(()),
        };
    }
    let Some(template) = template_of(resource) else {
        return Ok(());
    };
    let is_pod = template.is_empty();
    let counts = match is_pod {
        true => !HARMLESS_PARTS.contains(&subresource),
        false => subresource.is_empty(),
    };
    if counts {
        let pod = object.pointer(template).unwrap_or(&Value::Null);
        let is_changed = !is_pod || old.is_none_or(|old| has_other_images(object, old));
        if is_changed && pod.is_object() {
            return check_pod(server, resource, object, pod, is_pod, warn);
        }
    }
    Ok(())
}

fn check_pod(
    server: &Shared,
    resource: &Resource,
    object: &Value,
    pod: &Value,
    enforces: bool,
    mut warn: impl FnMut(&str),
) -> Result<(), ApiError> {
    let namespace = server
        .store
        .get(NAMESPACES, meta::text(object, "namespace"));
    let Some(namespace) = namespace else {
        return Ok(());
    };
    let policy = Policy::read(|name| namespace.label(name), &mut Errors::new());
    let pod = Pod::new(pod);
    if enforces {
        let found = violations(policy.enforce, &pod);
        if !found.is_empty() {
            let (standard, found) = (policy.enforce, detailed(&found));
            let why = format!("violates PodSecurity \"{standard}\": {found}");
            let about = resource.about(meta::text(object, "name"));
            return Err(ApiError::forbidden(about, &why));
        }
    }
    let found = violations(policy.warn, &pod);
    if !found.is_empty() {
        let (standard, found) = (policy.warn, detailed(&found));
        warn(&format!(
            "would violate PodSecurity \"{standard}\": {found}"
        ));
    }
    Ok(())
}

/// What is wrong with a pod, and with which part of it.
fn detailed(found: &[Violation]) -> String {
    let shown = found
        .iter()
        .map(|found| format!("{} ({})", found.reason, found.detail));
    shown.collect::<Vec<_>>().join(", ")
}

/// Whether a pod has other containers than before, or other images in them.
fn has_other_images(pod: &Value, old: &Value) -> bool {
    let (pod, old) = (&pod["spec"], &old["spec"]);
    let images = |pod: &Value, list| -> Vec<String> {
        let images = items(pod, list).map(|container| text(container, "image").to_owned());
        images.collect()
    };
    let differ = |list| images(pod, list) != images(old, list);
    let is_new = |container: &Value| {
        let name = text(container, "name");
        let before = items(old, "ephemeralContainers").find(|old| text(old, "name") == name);
        before.is_none_or(|before| text(before, "image") != text(container, "image"))
    };
    differ("containers")
        || differ("initContainers")
        || items(pod, "ephemeralContainers").any(is_new)
}

/// Refuses labels that say nothing known, and warns of pods that a new level would not allow.
fn check_namespace(
    server: &Shared,
    resource: &Resource,
    namespace: &Value,
    old: Option<&Value>,
    mut warn: impl FnMut(&str),
) -> Result<(), ApiError> {
    let (mut errors, mut known) = (Errors::new(), Errors::new());
    let policy = Policy::of(namespace, &mut errors);
    let before = old.map(|old| Policy::of(old, &mut known));
    let name = meta::text(namespace, "name");
    if !errors.is_empty() {
        let told = |errors: &Errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
        if told(&errors) != told(&known) {
            return Err(ApiError::invalid(resource.about_kind(name), &errors));
        }
    }
    let Some(before) = before else {
        return Ok(());
    };
    let (new, old) = (policy.enforce, before.enforce);
    let is_looser = new.version == old.version && new.level <= old.level;
    if new != old && new.level != Level::Privileged && !is_looser {
        warn_of_pods(server, name, new, &mut warn);
    }
    Ok(())
}

/// Warns of the pods that are there and that a standard does not allow: those that fail
/// alike together.
fn warn_of_pods(server: &Shared, namespace: &str, standard: Standard, warn: &mut impl FnMut(&str)) {
    let pods = server.store.in_namespace(PODS, namespace);
    // One of each controller first.
    let (mut seen, mut first, mut rest) = (BTreeSet::new(), Vec::new(), Vec::new());
    for pod in pods.iter().map(|pod| pod.value()) {
        let owners = &pod["metadata"];
        let controller = items(owners, "ownerReferences").find(|owner| flag(owner, "controller"));
        let controller = controller.map(|owner| text(owner, "uid").to_owned());
        match controller.is_none_or(|uid| seen.insert(uid)) {
            true => first.push(pod),
            false => rest.push(pod),
        }
    }
    first.append(&mut rest);
    let mut failing: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for pod in first.iter().take(MOST_PODS) {
        let found = violations(standard, &Pod::new(pod));
        if found.is_empty() {
            continue;
        }
        let reasons: Vec<&str> = found.iter().map(|found| &*found.reason).collect();
        let name = text_at(pod, "/metadata/name");
        let (least, count) = failing
            .entry(reasons.join(", "))
            .or_insert_with(|| (name.to_owned(), 0));
        if name < least.as_str() {
            name.clone_into(least);
        }
        *count += 1;
    }
    if first.len() > MOST_PODS {
        warn(&format!(
            "new PodSecurity enforce level only checked against the first {MOST_PODS} of {} existing pods",
            first.len()
        ));
    }
    if !failing.is_empty() {
        warn(&format!(
            "existing pods in namespace {namespace:?} violate the new PodSecurity enforce level \"{standard}\""
        ));
    }
    let shown = failing.iter().map(|(reasons, (name, count))| match count {
        1 => format!("{name}: {reasons}"),
        2 => format!("{name} (and 1 other pod): {reasons}"),
        more => format!("{name} (and {} other pods): {reasons}", more - 1),
    });
    let mut shown: Vec<String> = shown.collect();
    shown.sort_unstable();
    for warning in shown {
        warn(&warning);
    }
}

#[cfg(test)]
mod tests;
