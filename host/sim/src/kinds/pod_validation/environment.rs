//! The environment of a container, and the fields of its pod that it is told.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{amounts, volumes};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{items, object, present, text};
use crate::names;

/// What an environment may be told of a pod.
const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// What there is besides.
const OTHER_FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "spec.restartPolicy",
    "spec.schedulerName",
    "status.phase",
    "spec.host",
];
/// The amounts of a container that can be told.
const AMOUNTS: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// Checks the variables of a container.
pub(super) fn validate(path: &Path<'_>, container: &Value, errors: &mut Errors) {
    let list = path.child("env");
    for (index, variable) in items(container, "env").enumerate() {
        let path = list.index(index);
        let name = text(variable, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else {
            for wrong in names::env_var(name) {
                errors.push(FieldError::invalid_str(&path.child("name"), name, wrong));
            }
        }
        if let Some(from) = object(variable, "valueFrom") {
            let has_value = !text(variable, "value").is_empty();
            validate_source(&path.child("valueFrom"), from, has_value, errors);
        }
    }
    let list = path.child("envFrom");
    for (index, from) in items(container, "envFrom").enumerate() {
        let path = list.index(index);
        let prefix = text(from, "prefix");
        if !prefix.is_empty() {
            for wrong in names::env_var(prefix) {
                errors.push(FieldError::invalid_str(
                    &path.child("prefix"),
                    prefix,
                    wrong,
                ));
            }
        }
        let mut sources = 0;
        for field in ["configMapRef", "secretRef"] {
            let Some(source) = object(from, field) else {
                continue;
            };
            sources += 1;
            let name = text(source, "name");
            let path = path.child(field);
            if name.is_empty() {
                errors.push(FieldError::required(&path.child("name"), ""));
            } else {
                validate_name(&path.child("name"), name, errors);
            }
        }
        match sources {
            0 => errors.push(FieldError::invalid_str(
                &list,
                "",
                "must specify one of: `configMapRef` or `secretRef`",
            )),
            1 => {}
            _ => errors.push(FieldError::invalid_str(&list, "", TOO_MANY)),
        }
    }
}

const TOO_MANY: &str = "may not have more than one field specified at a time";

fn validate_source(path: &Path<'_>, from: &Value, has_value: bool, errors: &mut Errors) {
    let mut sources = 0;
    if let Some(field) = object(from, "fieldRef") {
        sources += 1;
        validate_field(&path.child("fieldRef"), field, FIELDS, errors);
    }
    if let Some(amount) = object(from, "resourceFieldRef") {
        sources += 1;
        validate_amount(&path.child("resourceFieldRef"), amount, false, errors);
    }
    for field in ["configMapKeyRef", "secretKeyRef"] {
        let Some(reference) = object(from, field) else {
            continue;
        };
        sources += 1;
        let path = path.child(field);
        validate_name(&path.child("name"), text(reference, "name"), errors);
        let key = text(reference, "key");
        if key.is_empty() {
            errors.push(FieldError::required(&path.child("key"), ""));
        } else {
            for wrong in names::config_key(key) {
                errors.push(FieldError::invalid_str(&path.child("key"), key, wrong));
            }
        }
    }
    if let Some(reference) = object(from, "fileKeyRef") {
        sources += 1;
        validate_file(&path.child("fileKeyRef"), reference, errors);
    }
    let wrong = match sources {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if has_value => "may not be specified when `value` is not empty",
        1 => return,
        _ => TOO_MANY,
    };
    errors.push(FieldError::invalid_str(path, "", wrong));
}

/// Checks a reference to a variable in a file.
fn validate_file(path: &Path<'_>, reference: &Value, errors: &mut Errors) {
    let named: [(&str, names::Validator); 2] = [
        ("key", names::env_var),
        ("volumeName", names::dns1123_label),
    ];
    for (field, validator) in named {
        let (path, given) = (path.child(field), text(reference, field));
        if given.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        for wrong in validator(given) {
            errors.push(FieldError::invalid_str(&path, given, wrong));
        }
    }
    let (path, place) = (path.child("path"), text(reference, "path"));
    if place.is_empty() {
        errors.push(FieldError::required(&path, ""));
    }
    volumes::validate_no_steps_back(&path, place, errors);
}

/// Checks that files with variables are in volumes that live as long as their pod.
pub(super) fn validate_files(path: &Path<'_>, spec: &Value, errors: &mut Errors) {
    // Of those with one name, the last counts.
    let volumes: BTreeMap<&str, &Value> = items(spec, "volumes")
        .map(|volume| (text(volume, "name"), volume))
        .collect();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let path = path.child(list);
        for (index, container) in items(spec, list).enumerate() {
            let path = path.index(index);
            let path = path.child("env");
            for (index, variable) in items(container, "env").enumerate() {
                let Some(reference) = variable.pointer("/valueFrom/fileKeyRef") else {
                    continue;
                };
                let path = path.index(index);
                let path = path.child("valueFrom.fileKeyRef.volumeName");
                let name = text(reference, "volumeName");
                match volumes.get(name) {
                    None => errors.push(FieldError::not_found(&path, &name.into())),
                    Some(volume) if object(volume, "emptyDir").is_none() => {
                        let why = "referenced volume must be of type emptyDir";
                        errors.push(FieldError::invalid_str(&path, name, why));
                    }
                    Some(_) => {}
                }
            }
        }
    }
}

fn validate_name(path: &Path<'_>, name: &str, errors: &mut Errors) {
    for wrong in names::dns1123_subdomain(name) {
        errors.push(FieldError::invalid_str(path, name, wrong));
    }
}

/// Checks a reference to a field of the pod, which must be one of `known`.
pub(super) fn validate_field(
    path: &Path<'_>,
    reference: &Value,
    known: &[&str],
    errors: &mut Errors,
) {
    if text(reference, "apiVersion").is_empty() {
        errors.push(FieldError::required(&path.child("apiVersion"), ""));
        return;
    }
    let field = text(reference, "fieldPath");
    if field.is_empty() {
        errors.push(FieldError::required(&path.child("fieldPath"), ""));
        return;
    }
    let subscripted = field
        .strip_suffix("']")
        .and_then(|field| field.split_once("['"))
        .filter(|(field, _)| !field.is_empty());
    let is_map = |field: &str| matches!(field, "metadata.annotations" | "metadata.labels");
    let is_field = |field| FIELDS.contains(&field) || OTHER_FIELDS.contains(&field);
    let wrong = match subscripted {
        _ if text(reference, "apiVersion") != "v1" => Some(format!(
            "unsupported pod version: {}",
            text(reference, "apiVersion")
        )),
        Some((map, _)) if !is_map(map) => {
            Some(format!("field label does not support subscript: {field}"))
        }
        None if !is_field(field) => Some(format!("field label not supported: {field}")),
        _ => None,
    };
    if let Some(wrong) = wrong {
        errors.push(FieldError::invalid_str(
            &path.child("fieldPath"),
            field,
            format!("error converting fieldPath: {wrong}"),
        ));
        return;
    }
    // An older name.
    let field = if field == "spec.host" {
        "spec.nodeName"
    } else {
        field
    };
    match subscripted {
        Some((map, key)) => {
            let key = if map == "metadata.annotations" {
                key.to_lowercase()
            } else {
                key.to_owned()
            };
            for wrong in names::qualified_name(&key) {
                errors.push(FieldError::invalid_str(path, &key, wrong));
            }
        }
        None if !known.contains(&field) => errors.push(FieldError::not_supported(
            &path.child("fieldPath"),
            &field.into(),
            known,
        )),
        None => {}
    }
}

/// Checks a reference to an amount of a container, which a volume has to name.
pub(super) fn validate_amount(
    path: &Path<'_>,
    reference: &Value,
    in_volume: bool,
    errors: &mut Errors,
) {
    if in_volume && present(reference, "containerName").is_none() {
        errors.push(FieldError::required(&path.child("containerName"), ""));
        return;
    }
    let amount = text(reference, "resource");
    let is_huge = ["limits.hugepages-", "requests.hugepages-"]
        .iter()
        .any(|prefix| amount.starts_with(prefix));
    if amount.is_empty() {
        errors.push(FieldError::required(&path.child("resource"), ""));
    } else if !is_huge && !AMOUNTS.contains(&amount) {
        errors.push(FieldError::not_supported(
            &path.child("resource"),
            &amount.into(),
            AMOUNTS,
        ));
    }
    if let Some(divisor) = reference.get("divisor") {
        amounts::validate_divisor(path, amount, divisor, errors);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_with_variables_are_in_volumes_of_the_pod() {
        let variable = |volume: &str| {
            let reference = json!({"key": "A", "volumeName": volume, "path": "env"});
            json!({"name": "A", "valueFrom": {"fileKeyRef": reference}})
        };
        let spec = json!({
            "volumes": [{"name": "empty", "emptyDir": {}}, {"name": "host", "hostPath": {}}],
            "containers": [{"env": [variable("empty"), variable("host")]}],
            "initContainers": [{"env": [variable("none")]}],
        });
        let mut errors = Errors::new();
        validate_files(&Path::new("spec"), &spec, &mut errors);
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "spec.initContainers[0].env[0].valueFrom.fileKeyRef.volumeName: Not found: \"none\"",
                "spec.containers[0].env[1].valueFrom.fileKeyRef.volumeName: Invalid value: \
                 \"host\": referenced volume must be of type emptyDir",
            ]
        );
    }

    #[test]
    fn references_to_files_are_complete() {
        let complaints = |reference: Value| {
            let from = json!({ "fileKeyRef": reference });
            let mut errors = Errors::new();
            validate_source(&Path::new("v"), &from, false, &mut errors);
            let fields = errors.iter().map(|error| error.field.clone());
            fields.collect::<Vec<String>>()
        };
        let none: [&str; 0] = [];
        let good = json!({"key": "A", "volumeName": "v", "path": "a/b"});
        assert_eq!(complaints(good), none);
        let wrong = [
            "v.fileKeyRef.key",
            "v.fileKeyRef.volumeName",
            "v.fileKeyRef.path",
        ];
        assert_eq!(complaints(json!({})), wrong);
        let bad = json!({"key": "A=", "volumeName": "V", "path": "a/../b"});
        assert_eq!(complaints(bad), wrong);
    }
}
