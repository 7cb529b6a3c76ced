//! The volumes of a pod.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Holder, environment, supported};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{integer, items, object, text};
use crate::kinds::{claim, token_lifetime};
use crate::names;

/// Where the files of a volume come from, in the order in which the server looks.
const SOURCES: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

/// What a file may tell of a pod.
const FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

/// What can be at a path of a node.
const HOST_PATHS: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

/// The modes that a file can have.
const MODES: std::ops::RangeInclusive<i64> = 0..=0o777;

/// Volumes by their names.
pub(super) type Volumes<'a> = BTreeMap<&'a str, &'a Value>;

/// Checks the volumes of a pod. The answer is those that can be mounted.
pub(super) fn validate<'a>(
    list: &Path<'_>,
    spec: &'a Value,
    holder: Holder,
    errors: &mut Errors,
) -> Volumes<'a> {
    let mut known = Volumes::new();
    for (index, volume) in items(spec, "volumes").enumerate() {
        let path = list.index(index);
        let mut found = Errors::new();
        let sources = SOURCES.iter().filter_map(|source| {
            let value = volume.get(source).filter(|value| !value.is_null())?;
            Some((*source, value))
        });
        for (count, (source, value)) in sources.enumerate() {
            let path = path.child(source);
            if count == 0 {
                validate_source(&path, source, value, holder, &mut found);
            } else {
                found.push(FieldError::forbidden(
                    &path,
                    "may not specify more than 1 volume type",
                ));
            }
        }
        let name = text(volume, "name");
        let path = path.child("name");
        if name.is_empty() {
            found.push(FieldError::required(&path, ""));
        } else {
            for wrong in names::dns1123_label(name) {
                found.push(FieldError::invalid_str(&path, name, wrong));
            }
        }
        if known.contains_key(name) {
            found.push(FieldError::duplicate(&path, &name.into()));
        }
        if found.is_empty() {
            known.insert(name, volume);
        }
        errors.extend(found);
    }
    known
}

fn validate_source(
    path: &Path<'_>,
    source: &str,
    value: &Value,
    holder: Holder,
    errors: &mut Errors,
) {
    let mut required = |field: &str| {
        let missing = text(value, field).is_empty();
        if missing {
            errors.push(FieldError::required(&path.child(field), ""));
        }
        missing
    };
    match source {
        "emptyDir" if text(value, "sizeLimit").starts_with('-') => {
            errors.push(FieldError::forbidden(
                &path.child("sizeLimit"),
                "SizeLimit field must be a valid resource quantity",
            ));
        }
        "hostPath" => validate_host_path(path, value, errors),
        "secret" => {
            required("secretName");
            validate_files(path, value, errors);
        }
        "configMap" => {
            required("name");
            validate_files(path, value, errors);
        }
        "persistentVolumeClaim" => {
            required("claimName");
        }
        "csi" => {
            required("driver");
        }
        "ephemeral" => {
            let path = path.child("volumeClaimTemplate");
            match object(value, "volumeClaimTemplate") {
                Some(template) => claim::validate_template(&path, template, errors),
                None => errors.push(FieldError::required(&path, "")),
            }
        }
        "image" => {
            // In a template it may be filled in later.
            if holder == Holder::Pod {
                required("reference");
            }
            let policies = ["Always", "IfNotPresent", "Never"];
            supported(path, value, "pullPolicy", &policies, errors);
        }
        "nfs" => validate_nfs(path, value, errors),
        "downwardAPI" => {
            validate_mode(path, value, "defaultMode", errors);
            for file in items(value, "items") {
                validate_told(path, file, errors);
            }
        }
        "projected" => {
            validate_mode(path, value, "defaultMode", errors);
            validate_projection(path, value, errors);
        }
        _ => {}
    }
}

/// Checks a path of a node.
pub(in crate::kinds) fn validate_host_path(path: &Path<'_>, value: &Value, errors: &mut Errors) {
    let of_path = path.child("path");
    let place = text(value, "path");
    if place.is_empty() {
        errors.push(FieldError::required(&of_path, ""));
        return;
    }
    validate_no_steps_back(&of_path, place, errors);
    supported(path, value, "type", &HOST_PATHS, errors);
}

/// Checks a folder of another machine.
pub(in crate::kinds) fn validate_nfs(path: &Path<'_>, value: &Value, errors: &mut Errors) {
    for field in ["server", "path"] {
        if text(value, field).is_empty() {
            errors.push(FieldError::required(&path.child(field), ""));
        }
    }
    let place = text(value, "path");
    if !place.starts_with('/') {
        let why = "must be an absolute path";
        errors.push(FieldError::invalid_str(&path.child("path"), place, why));
    }
}

/// Checks which keys become which files.
fn validate_files(path: &Path<'_>, source: &Value, errors: &mut Errors) {
    validate_mode(path, source, "defaultMode", errors);
    let list = path.child("items");
    for (index, item) in items(source, "items").enumerate() {
        validate_file(&list.index(index), item, errors);
    }
}

fn validate_file(path: &Path<'_>, item: &Value, errors: &mut Errors) {
    if text(item, "key").is_empty() {
        errors.push(FieldError::required(&path.child("key"), ""));
    }
    validate_place(&path.child("path"), text(item, "path"), errors);
    validate_mode(path, item, "mode", errors);
}

fn validate_mode(path: &Path<'_>, value: &Value, field: &str, errors: &mut Errors) {
    if let Some(mode) = integer(value, field).filter(|mode| !MODES.contains(mode)) {
        errors.push(FieldError::invalid(
            &path.child(field),
            &mode.into(),
            "must be a number between 0 and 0777 (octal), both inclusive",
        ));
    }
}

/// Checks where in a volume a file is put.
fn validate_place(path: &Path<'_>, place: &str, errors: &mut Errors) {
    if place.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    validate_relative(path, place, errors);
    if place.starts_with("..") && !place.starts_with("../") {
        errors.push(FieldError::invalid_str(
            path,
            place,
            "must not start with '..'",
        ));
    }
}

/// Checks a path that must stay below where it starts.
pub(super) fn validate_relative(path: &Path<'_>, place: &str, errors: &mut Errors) {
    if place.starts_with('/') {
        errors.push(FieldError::invalid_str(
            path,
            place,
            "must be a relative path",
        ));
    }
    validate_no_steps_back(path, place, errors);
}

pub(in crate::kinds) fn validate_no_steps_back(path: &Path<'_>, place: &str, errors: &mut Errors) {
    if place.split('/').any(|part| part == "..") {
        errors.push(FieldError::invalid_str(
            path,
            place,
            "must not contain '..'",
        ));
    }
}

/// Checks a file that tells something of its pod. It is told without its index, as
/// the real server does.
fn validate_told(path: &Path<'_>, file: &Value, errors: &mut Errors) {
    validate_place(&path.child("path"), text(file, "path"), errors);
    match (object(file, "fieldRef"), object(file, "resourceFieldRef")) {
        (Some(field), amount) => {
            environment::validate_field(&path.child("fieldRef"), field, FIELDS, errors);
            if amount.is_some() {
                errors.push(FieldError::invalid_str(
                    path,
                    "resource",
                    "fieldRef and resourceFieldRef can not be specified simultaneously",
                ));
            }
        }
        (None, Some(amount)) => {
            environment::validate_amount(&path.child("resourceFieldRef"), amount, true, errors);
        }
        (None, None) => errors.push(FieldError::required(
            path,
            "one of fieldRef and resourceFieldRef is required",
        )),
    }
    validate_mode(path, file, "mode", errors);
}

/// Checks a volume that is made of several sources.
fn validate_projection(path: &Path<'_>, projection: &Value, errors: &mut Errors) {
    let mut places = BTreeSet::new();
    let list = path.child("sources");
    for (index, source) in items(projection, "sources").enumerate() {
        let at = list.index(index);
        let mut count = 0;
        for kind in ["secret", "configMap"] {
            let Some(files) = object(source, kind) else {
                continue;
            };
            count += 1;
            let (name, at) = (text(files, "name"), at.child(kind));
            if name.is_empty() {
                errors.push(FieldError::required(&at.child("name"), ""));
            }
            let list = at.child("items");
            for (index, item) in items(files, "items").enumerate() {
                validate_file(&list.index(index), item, errors);
                let place = text(item, "path");
                if !place.is_empty() && !places.insert(place) {
                    errors.push(FieldError::invalid_str(path, name, TWICE));
                }
            }
        }
        if let Some(files) = object(source, "downwardAPI") {
            count += 1;
            for file in items(files, "items") {
                validate_told(&at.child("downwardAPI"), file, errors);
                let place = text(file, "path");
                if !place.is_empty() && !places.insert(place) {
                    errors.push(FieldError::invalid_str(path, place, TWICE));
                }
            }
        }
        if let Some(token) = object(source, "serviceAccountToken") {
            count += 1;
            let at = at.child("serviceAccountToken");
            let seconds = integer(token, "expirationSeconds").unwrap_or(0);
            token_lifetime::validate(&at, seconds, errors);
            validate_place(&path.child("path"), text(token, "path"), errors);
        }
        if count > 1 {
            errors.push(FieldError::forbidden(
                &at,
                "may not specify more than 1 volume type per source",
            ));
        }
    }
}

const TWICE: &str = "conflicting duplicate paths";
