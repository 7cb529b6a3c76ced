//! The containers of a pod.

use std::collections::BTreeSet;

use serde_json::Value;

use super::volumes::Volumes;
use super::{
    Holder, amounts, environment, ephemeral, handlers, mounts, restarts, security, supported,
};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{flag, integer, items, present, text};
use crate::names;

/// A pod as its containers see it.
pub(super) struct Pod<'a> {
    pub(super) spec: &'a Value,
    /// The volumes that can be mounted.
    pub(super) volumes: Volumes<'a>,
    /// The names of its claims.
    pub(super) claims: BTreeSet<&'a str>,
}

/// Checks all containers of the pod whose spec is at `path`.
pub(super) fn validate(path: &Path<'_>, pod: &Pod<'_>, errors: &mut Errors) {
    let spec = pod.spec;
    let grace = integer(spec, "terminationGracePeriodSeconds").unwrap_or(handlers::GRACE);
    let list = path.child("containers");
    if present(spec, "containers").is_none() {
        errors.push(FieldError::required(&list, ""));
    }
    let mut containers = BTreeSet::new();
    for (index, container) in items(spec, "containers").enumerate() {
        let path = list.index(index);
        validate_container(&path, container, pod, errors);
        validate_unique(&path, container, &mut containers, errors);
        handlers::validate(&path, container, grace, errors);
        restarts::validate(&path, container, errors);
    }
    let mut ports = BTreeSet::new();
    for (index, container) in items(spec, "containers").enumerate() {
        validate_host_ports(&list.index(index), container, &mut ports, errors);
    }
    let list = path.child("initContainers");
    for (index, container) in items(spec, "initContainers").enumerate() {
        let path = list.index(index);
        validate_container(&path, container, pod, errors);
        restarts::validate(&path, container, errors);
        validate_unique(&path, container, &mut containers, errors);
        validate_host_ports(&path, container, &mut BTreeSet::new(), errors);
        if text(container, "restartPolicy") == "Always" {
            handlers::validate(&path, container, grace, errors);
            continue;
        }
        for field in [
            "lifecycle",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
        ] {
            if container.get(field).is_some_and(|value| !value.is_null()) {
                errors.push(FieldError::forbidden(
                    &path.child(field),
                    "may not be set for init containers without restartPolicy=Always",
                ));
            }
        }
        restarts::validate_init_resizes(&path, container, errors);
    }
    ephemeral::validate(path, pod, errors);
}

/// Checks what the image of a container of a Pod looks like. In a template this is left to
/// whoever makes pods of it.
pub(super) fn validate_image(path: &Path<'_>, container: &Value, errors: &mut Errors) {
    let image = text(container, "image");
    if image.trim() != image {
        errors.push(FieldError::invalid_str(
            &path.child("image"),
            image,
            "must not have leading or trailing whitespace",
        ));
    }
}

/// On the network of its node, a container's ports are those of the node. A template
/// may leave that to the defaults of its pods.
pub(super) fn validate_host_network(
    path: &Path<'_>,
    spec: &Value,
    holder: Holder,
    errors: &mut Errors,
) {
    if !flag(spec, "hostNetwork") {
        return;
    }
    let list = path.child("containers");
    for (index, container) in items(spec, "containers").enumerate() {
        let path = list.index(index);
        let ports = path.child("ports");
        for (index, port) in items(container, "ports").enumerate() {
            let on_host = integer(port, "hostPort").unwrap_or(0);
            if on_host == 0 && holder == Holder::Template {
                continue;
            }
            if on_host != integer(port, "containerPort").unwrap_or(0) {
                errors.push(FieldError::invalid(
                    &ports.index(index).child("hostPort"),
                    &on_host.into(),
                    "must match `containerPort` when `hostNetwork` is true",
                ));
            }
        }
    }
}

fn validate_unique<'a>(
    path: &Path<'_>,
    container: &'a Value,
    names: &mut BTreeSet<&'a str>,
    errors: &mut Errors,
) {
    let name = text(container, "name");
    if !names.insert(name) {
        errors.push(FieldError::duplicate(&path.child("name"), &name.into()));
    }
}

/// A port of a node is taken once for each protocol and address.
fn validate_host_ports(
    path: &Path<'_>,
    container: &Value,
    taken: &mut BTreeSet<String>,
    errors: &mut Errors,
) {
    let ports = path.child("ports");
    for (index, port) in items(container, "ports").enumerate() {
        let number = integer(port, "hostPort").unwrap_or(0);
        if number == 0 {
            continue;
        }
        let shown = format!(
            "{}/{}/{number}",
            text(port, "protocol"),
            text(port, "hostIP")
        );
        if taken.contains(&shown) {
            let path = ports.index(index);
            errors.push(FieldError::duplicate(
                &path.child("hostPort"),
                &shown.into(),
            ));
        } else {
            taken.insert(shown);
        }
    }
}

/// Checks what all sorts of containers have in common.
pub(super) fn validate_container(
    path: &Path<'_>,
    container: &Value,
    pod: &Pod<'_>,
    errors: &mut Errors,
) {
    let name = text(container, "name");
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    } else {
        for wrong in names::dns1123_label(name) {
            errors.push(FieldError::invalid_str(&path.child("name"), name, wrong));
        }
    }
    let image = text(container, "image");
    if image.is_empty() {
        errors.push(FieldError::required(&path.child("image"), ""));
    }
    supported(
        path,
        container,
        "terminationMessagePolicy",
        &["File", "FallbackToLogsOnError"],
        errors,
    );
    validate_ports(&path.child("ports"), container, errors);
    environment::validate(path, container, errors);
    let volumes = &pod.volumes;
    mounts::validate(&path.child("volumeMounts"), container, volumes, errors);
    mounts::validate_devices(&path.child("volumeDevices"), container, volumes, errors);
    supported(
        path,
        container,
        "imagePullPolicy",
        &["Always", "IfNotPresent", "Never"],
        errors,
    );
    if let Some(asked) = container.get("resources") {
        amounts::validate(&path.child("resources"), asked, &pod.claims, errors);
    }
    let policy = text(pod.spec, "restartPolicy");
    restarts::validate_resizes(&path.child("resizePolicy"), container, policy, errors);
    let own_users = pod.spec.get("hostUsers") == Some(&Value::Bool(false));
    let context = path.child("securityContext");
    security::validate_container(&context, container, own_users, errors);
}

fn validate_ports(list: &Path<'_>, container: &Value, errors: &mut Errors) {
    let mut known = BTreeSet::new();
    for (index, port) in items(container, "ports").enumerate() {
        let path = list.index(index);
        let name = text(port, "name");
        if !name.is_empty() {
            let wrong = names::port_name(name);
            if wrong.is_empty() && !known.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), &name.into()));
            }
            for wrong in wrong {
                errors.push(FieldError::invalid_str(&path.child("name"), name, wrong));
            }
        }
        for field in ["containerPort", "hostPort"] {
            match integer(port, field).unwrap_or(0) {
                0 if field == "hostPort" => {}
                0 => errors.push(FieldError::required(&path.child(field), "")),
                number => {
                    for wrong in names::port_number(number) {
                        errors.push(FieldError::invalid(
                            &path.child(field),
                            &number.into(),
                            wrong,
                        ));
                    }
                }
            }
        }
        supported(&path, port, "protocol", &["SCTP", "TCP", "UDP"], errors);
    }
}
