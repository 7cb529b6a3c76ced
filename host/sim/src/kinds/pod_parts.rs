//! The parts of a Pod that have paths of their own: its ephemeral containers, and the
//! resources of its containers. Either path takes its part and nothing else.

use std::collections::BTreeSet;

use serde_json::Value;

use super::edit::{copy, entries, items, items_mut, remove, set, text, text_at};
use super::pod::qos_class;
use super::pod_validation;
use crate::field::{Errors, FieldError, Path};

const SPEC: Path<'static> = Path::new("spec");
/// The lists whose containers have resources.
const LISTS: [&str; 2] = ["containers", "initContainers"];
/// What of a container is changed by the path for resources.
const RESIZED: [&str; 2] = ["resources", "resizePolicy"];
/// The resources that can be changed while a container runs.
const CHANGEABLE: [&str; 2] = ["cpu", "memory"];

/// Puts back all that the path of `part` does not take. For another part nothing is.
pub(super) fn prepare(part: &str, pod: &mut Value, old: &Value) {
    let spec = match part {
        "ephemeralcontainers" => with_ephemeral(pod, old),
        "resize" => with_resources(pod, old),
        _ => return,
    };
    // Where the containers are others, the whole is refused.
    let Some(spec) = spec else { return };
    let managed = pod.pointer("/metadata/managedFields").cloned();
    *pod = old.clone();
    set(pod, "spec", spec);
    match managed {
        Some(managed) => set(&mut pod["metadata"], "managedFields", managed),
        None => drop(remove(&mut pod["metadata"], "managedFields")),
    }
}

fn with_ephemeral(pod: &Value, old: &Value) -> Option<Value> {
    let mut spec = old.get("spec").cloned()?;
    let asked = pod.get("spec").unwrap_or(&Value::Null);
    copy(&mut spec, asked, "ephemeralContainers");
    Some(spec)
}

fn with_resources(pod: &Value, old: &Value) -> Option<Value> {
    let mut spec = old.get("spec").cloned()?;
    let asked = pod.get("spec")?;
    for list in LISTS {
        if names(asked, list) != names(&spec, list) {
            return None;
        }
        for (container, asked) in items_mut(&mut spec, list).zip(items(asked, list)) {
            for field in RESIZED {
                copy(container, asked, field);
            }
        }
    }
    copy(&mut spec, asked, "resources");
    Some(spec)
}

fn names<'a>(spec: &'a Value, list: &str) -> Vec<&'a str> {
    items(spec, list)
        .map(|container| text(container, "name"))
        .collect()
}

/// Says what is wrong with a change that came by the path of `part`.
pub(super) fn validate(part: &str, pod: &Value, old: &Value, errors: &mut Errors) {
    pod_validation::validate(pod, errors);
    match part {
        "ephemeralcontainers" => validate_ephemeral(pod, old, errors),
        "resize" => validate_resize(pod, old, errors),
        _ => pod_validation::validate_update(pod, old, errors),
    }
}

/// Ephemeral containers are added for good.
fn validate_ephemeral(pod: &Value, old: &Value, errors: &mut Errors) {
    const LIST: &str = "ephemeralContainers";
    let path = SPEC.child(LIST);
    let null = Value::Null;
    let (spec, old) = (
        pod.get("spec").unwrap_or(&null),
        old.get("spec").unwrap_or(&null),
    );
    for before in items(old, LIST) {
        let name = text(before, "name");
        let after = items(spec, LIST).find(|container| text(container, "name") == name);
        let what = match after {
            None => "removed",
            Some(after) if after != before => "changed",
            Some(_) => continue,
        };
        errors.push(FieldError::forbidden(
            &path,
            format!("existing ephemeral containers {name:?} may not be {what}\n"),
        ));
    }
}

/// Processors and memory of running containers may be changed, but not given up, and
/// not so that the pod comes into another class.
fn validate_resize(pod: &Value, old: &Value, errors: &mut Errors) {
    let null = Value::Null;
    let (spec, before) = (
        pod.get("spec").unwrap_or(&null),
        old.get("spec").unwrap_or(&null),
    );
    let class = text_at(old, "/status/qosClass");
    if qos_class(spec) != class && !class.is_empty() {
        errors.push(FieldError::invalid_str(
            &SPEC,
            class,
            "Pod QOS Class may not change as a result of resizing",
        ));
    }
    let mut ordered = true;
    for list in LISTS {
        let (now, then) = (names(spec, list), names(before, list));
        let path = SPEC.child(list);
        if now.len() != then.len() {
            let why = format!("{list} may not be added or removed on resize");
            errors.push(FieldError::forbidden(&path, why));
            ordered = false;
            continue;
        }
        let moved = now.iter().zip(&then).enumerate();
        for (index, _) in moved.filter(|(_, (now, then))| now != then) {
            let path = path.index(index);
            let why = format!("{list} may not be renamed or reordered on resize");
            errors.push(FieldError::forbidden(&path.child("name"), why));
            ordered = false;
        }
    }
    if !ordered {
        return;
    }
    for list in LISTS {
        let path = SPEC.child(list);
        for (index, (after, before)) in items(spec, list).zip(items(before, list)).enumerate() {
            let path = path.index(index);
            validate_kept(&path.child("resources"), after, before, errors);
        }
    }
    for list in LISTS {
        let both = || items(spec, list).zip(items(before, list));
        if both().any(|(after, before)| fixed(after) != fixed(before)) {
            let why = "only cpu and memory resources are mutable";
            errors.push(FieldError::forbidden(&SPEC, why));
        }
    }
}

/// What a container asked for, it goes on to ask for.
fn validate_kept(path: &Path<'_>, after: &Value, before: &Value, errors: &mut Errors) {
    for field in ["requests", "limits"] {
        let of = |container: &Value| -> BTreeSet<String> {
            let resources = container.get("resources").unwrap_or(&Value::Null);
            entries(resources, field)
                .map(|(name, _)| name.clone())
                .collect()
        };
        if !of(before).is_subset(&of(after)) {
            let why = format!("resource {field} cannot be removed");
            errors.push(FieldError::forbidden(&path.child(field), why));
        }
    }
}

/// The amounts of a container that cannot be changed.
fn fixed(container: &Value) -> Vec<(&str, &String, &Value)> {
    let resources = container.get("resources").unwrap_or(&Value::Null);
    ["requests", "limits"]
        .into_iter()
        .flat_map(|field| {
            entries(resources, field).map(move |(name, amount)| (field, name, amount))
        })
        .filter(|(_, name, _)| !CHANGEABLE.contains(&name.as_str()))
        .collect()
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "cases read better as values")]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(resources: Value) -> Value {
        json!({
            "metadata": {"name": "p", "labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
            "status": {"qosClass": "Burstable"},
        })
    }

    fn complaints(part: &str, pod: &Value, old: &Value) -> String {
        let mut errors = Errors::new();
        match part {
            "resize" => validate_resize(pod, old, &mut errors),
            _ => validate_ephemeral(pod, old, &mut errors),
        }
        if errors.is_empty() {
            return String::new();
        }
        errors.aggregate()
    }

    #[test]
    fn a_path_takes_its_part_only() {
        let old = pod(json!({"requests": {"cpu": "1"}}));
        let asked = json!({"requests": {"cpu": "2"}});
        let mut sent = pod(asked.clone());
        sent["metadata"]["labels"] = json!({"c": "d"});
        sent["metadata"]["managedFields"] = json!([{}]);
        sent["spec"]["containers"][0]["image"] = json!("other");
        sent["spec"]["ephemeralContainers"] = json!([{"name": "e"}]);
        let mut resized = sent.clone();
        prepare("resize", &mut resized, &old);
        let mut expected = pod(asked);
        expected["metadata"]["managedFields"] = json!([{}]);
        assert_eq!(resized, expected);
        let mut joined = sent.clone();
        prepare("ephemeralcontainers", &mut joined, &old);
        let mut expected = old.clone();
        expected["metadata"]["managedFields"] = json!([{}]);
        expected["spec"]["ephemeralContainers"] = json!([{"name": "e"}]);
        assert_eq!(joined, expected);
        // Other containers are looked at as a whole, and refused.
        sent["spec"]["containers"][0]["name"] = json!("d");
        let whole = sent.clone();
        prepare("resize", &mut sent, &old);
        assert_eq!(sent, whole);
        assert_eq!(
            complaints("resize", &sent, &old),
            "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"
        );
    }

    #[test]
    fn resources_are_changed_within_bounds() {
        let old = pod(json!({"requests": {"cpu": "1"}}));
        for (resources, expected) in [
            (json!({"requests": {"cpu": "2", "memory": "1Gi"}}), ""),
            (
                json!({"requests": {"memory": "1"}}),
                "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
            ),
            (
                json!({"requests": {"cpu": "1", "ephemeral-storage": "1"}}),
                "spec: Forbidden: only cpu and memory resources are mutable",
            ),
            (
                json!({"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1", "memory": "1"}}),
                "spec: Invalid value: \"Burstable\": Pod QOS Class may not change as a result of resizing",
            ),
        ] {
            assert_eq!(complaints("resize", &pod(resources), &old), expected);
        }
    }

    #[test]
    fn ephemeral_containers_come_to_stay() {
        let with = |containers: Value| {
            let mut pod = pod(json!({}));
            pod["spec"]["ephemeralContainers"] = containers;
            pod
        };
        let check = |before: Value, after: Value, expected: &str| {
            let found = complaints("ephemeralcontainers", &with(after), &with(before));
            assert_eq!(found, expected);
        };
        let one = json!([{"name": "e", "image": "x"}]);
        check(json!([]), one.clone(), "");
        check(
            one.clone(),
            json!([]),
            "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"e\" may not be removed\n",
        );
        check(
            one,
            json!([{"name": "e", "image": "y"}]),
            "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"e\" may not be changed\n",
        );
    }
}
