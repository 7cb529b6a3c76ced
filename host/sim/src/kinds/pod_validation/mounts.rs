//! Where the containers of a pod find its volumes: as files, and as devices.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::supported;
use super::volumes::{self, Volumes};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{flag, items, text};

/// Volumes by the names under which a container has them, with their places.
fn places<'a>(container: &'a Value, list: &str, place: &str) -> BTreeMap<&'a str, &'a str> {
    items(container, list)
        .map(|item| (text(item, "name"), text(item, place)))
        .collect()
}

/// Pushes an error about the text in `field` of a mount or device.
fn refuse(path: &Path<'_>, item: &Value, field: &str, why: &str, errors: &mut Errors) {
    let given = text(item, field);
    errors.push(FieldError::invalid_str(&path.child(field), given, why));
}

/// Pushes an error unless the text in `field` is given.
fn require(path: &Path<'_>, item: &Value, field: &str, errors: &mut Errors) {
    if text(item, field).is_empty() {
        errors.push(FieldError::required(&path.child(field), ""));
    }
}

/// Checks the files of a container: what is said of a part of a mount is said without its
/// index, as by the real server.
pub(super) fn validate(
    list: &Path<'_>,
    container: &Value,
    volumes: &Volumes<'_>,
    errors: &mut Errors,
) {
    let devices = places(container, "volumeDevices", "devicePath");
    let device_paths: BTreeSet<&str> = devices.values().copied().collect();
    let mut taken = BTreeSet::new();
    for (index, mount) in items(container, "volumeMounts").enumerate() {
        let path = list.index(index);
        let (name, place) = (text(mount, "name"), text(mount, "mountPath"));
        require(&path, mount, "name", errors);
        if !volumes.contains_key(name) {
            errors.push(FieldError::not_found(&path.child("name"), &name.into()));
        }
        require(&path, mount, "mountPath", errors);
        if !taken.insert(place) {
            refuse(&path, mount, "mountPath", "must be unique", errors);
        }
        if devices.contains_key(name) {
            let why = "must not already exist in volumeDevices";
            refuse(&path, mount, "name", why, errors);
        }
        if device_paths.contains(place) {
            let why = "must not already exist as a path in volumeDevices";
            refuse(&path, mount, "mountPath", why, errors);
        }
        let (part, expression) = (text(mount, "subPath"), text(mount, "subPathExpr"));
        if !part.is_empty() {
            volumes::validate_relative(&list.child("subPath"), part, errors);
        }
        if !expression.is_empty() {
            if !part.is_empty() {
                let why = "subPathExpr and subPath are mutually exclusive";
                refuse(&path, mount, "subPathExpr", why, errors);
            }
            volumes::validate_relative(&list.child("subPathExpr"), expression, errors);
        }
        validate_propagation(list, container, mount, errors);
        validate_read_only(list, mount, errors);
    }
}

fn validate_propagation(list: &Path<'_>, container: &Value, mount: &Value, errors: &mut Errors) {
    const FIELD: &str = "mountPropagation";
    let ways = ["Bidirectional", "HostToContainer", "None"];
    supported(list, mount, FIELD, &ways, errors);
    let privileged = container
        .get("securityContext")
        .is_some_and(|context| flag(context, "privileged"));
    if text(mount, FIELD) == "Bidirectional" && !privileged {
        errors.push(FieldError::forbidden(
            &list.child(FIELD),
            "Bidirectional mount propagation is available only to privileged containers",
        ));
    }
}

/// What is below a mount can only be read where nothing of it can be written.
fn validate_read_only(list: &Path<'_>, mount: &Value, errors: &mut Errors) {
    const FIELD: &str = "recursiveReadOnly";
    let ways = ["Disabled", "Enabled", "IfPossible"];
    supported(list, mount, FIELD, &ways, errors);
    if !matches!(text(mount, FIELD), "Enabled" | "IfPossible") {
        return;
    }
    let path = list.child(FIELD);
    if !flag(mount, "readOnly") {
        let why = "may only be specified when readOnly is true";
        errors.push(FieldError::forbidden(&path, why));
    }
    if !matches!(text(mount, "mountPropagation"), "" | "None") {
        let why = "may only be specified when mountPropagation is None or not specified";
        errors.push(FieldError::forbidden(&path, why));
    }
}

/// Checks the devices of a container, which claims are for.
pub(super) fn validate_devices(
    list: &Path<'_>,
    container: &Value,
    volumes: &Volumes<'_>,
    errors: &mut Errors,
) {
    let mounts = places(container, "volumeMounts", "mountPath");
    let mount_paths: BTreeSet<&str> = mounts.values().copied().collect();
    let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for (index, device) in items(container, "volumeDevices").enumerate() {
        let path = list.index(index);
        let (name, place) = (text(device, "name"), text(device, "devicePath"));
        require(&path, device, "name", errors);
        if names.contains(name) {
            refuse(&path, device, "name", "must be unique", errors);
        }
        match volumes.get(name) {
            None => errors.push(FieldError::not_found(&path.child("name"), &name.into())),
            Some(volume) if !is_claim(volume) => {
                let why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                refuse(&path, device, "name", why, errors);
            }
            Some(_) => {}
        }
        require(&path, device, "devicePath", errors);
        if paths.contains(place) {
            refuse(&path, device, "devicePath", "must be unique", errors);
        }
        if place.split('/').any(|part| part == "..") {
            let why = "can not contain backsteps ('..')";
            refuse(&path, device, "devicePath", why, errors);
        } else {
            paths.insert(place);
        }
        if mounts.contains_key(name) {
            let why = "must not already exist in volumeMounts";
            refuse(&path, device, "name", why, errors);
        }
        if mount_paths.contains(place) {
            let why = "must not already exist as a path in volumeMounts";
            refuse(&path, device, "devicePath", why, errors);
        }
        if !name.is_empty() {
            names.insert(name);
        }
    }
}

fn is_claim(volume: &Value) -> bool {
    ["persistentVolumeClaim", "ephemeral"]
        .iter()
        .any(|source| volume.get(source).is_some_and(Value::is_object))
}
