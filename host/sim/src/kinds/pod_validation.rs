//! Validation of Pods and pod templates: what authors of plugins trip over, not
//! all that a kubelet could object to.

use std::collections::BTreeSet;

use serde_json::Value;

use super::edit::{entries, integer, items, present, text, text_at};
use super::meta::{validate_annotations, validate_labels, validate_nonnegative};
use super::resources::{self, quantity};
use crate::field::{Errors, FieldError, Path};
use crate::names;

const SPEC: Path<'static> = Path::new("spec");

pub(super) fn validate(pod: &Value, errors: &mut Errors) {
    validate_spec(&SPEC, pod.get("spec").unwrap_or(&Value::Null), errors);
}

/// What may change in the spec of a Pod: images, and a few fields once.
pub(super) fn validate_update(pod: &Value, old: &Value, errors: &mut Errors) {
    const FORBIDDEN: &str = "pod updates may not change fields other than \
        `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
        `spec.tolerations` (only additions to existing tolerations),\
        `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously \
        negative)";
    let strip = |pod: &Value| {
        let mut spec = pod.get("spec").cloned().unwrap_or_default();
        if let Some(fields) = spec.as_object_mut() {
            for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
                fields.remove(field);
            }
        }
        for list in ["containers", "initContainers"] {
            for container in super::edit::items_mut(&mut spec, list) {
                super::edit::remove(container, "image");
            }
        }
        spec
    };
    let names = |pod: &Value| items(pod.get("spec").unwrap_or(&Value::Null), "containers").count();
    if names(pod) != names(old) {
        errors.push(FieldError::forbidden(
            &SPEC.child("containers"),
            "pod updates may not add or remove containers",
        ));
        return;
    }
    if strip(pod) != strip(old) {
        errors.push(FieldError::forbidden(&SPEC, FORBIDDEN));
    }
}

/// Checks the template of a workload, whose pods are always restarted.
pub(super) fn validate_template(path: &Path<'_>, template: &Value, errors: &mut Errors) {
    let meta = template.get("metadata").unwrap_or(&Value::Null);
    let meta_path = path.child("metadata");
    validate_labels(meta, &path.child("labels"), "labels", errors);
    validate_annotations(meta, &meta_path.child("annotations"), errors);
    validate_spec(
        &path.child("spec"),
        template.get("spec").unwrap_or(&Value::Null),
        errors,
    );
}

/// Pushes an error unless the template's pods are always restarted.
pub(super) fn validate_always_restarted(
    path: &Path<'_>,
    template: &Value,
    kind: &str,
    errors: &mut Errors,
) {
    let policy = text_at(template, "/spec/restartPolicy");
    if policy != "Always" {
        errors.push(FieldError::not_supported(
            &path.child("spec.restartPolicy"),
            &policy.into(),
            &["Always"],
        ));
    }
    if template.pointer("/spec/activeDeadlineSeconds").is_some() {
        errors.push(FieldError::forbidden(
            &path.child("spec.activeDeadlineSeconds"),
            format!("activeDeadlineSeconds in {kind} is not Supported"),
        ));
    }
}

/// Where the files of a volume come from, in the order in which the server looks.
const VOLUME_SOURCES: [&str; 30] = [
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

fn validate_spec(path: &Path<'_>, spec: &Value, errors: &mut Errors) {
    let mut volumes = BTreeSet::new();
    for (index, volume) in items(spec, "volumes").enumerate() {
        let path = path.child("volumes");
        let path = path.index(index);
        let sources = VOLUME_SOURCES
            .iter()
            .filter(|source| volume.get(source).is_some_and(|source| !source.is_null()));
        for source in sources.skip(1) {
            errors.push(FieldError::forbidden(
                &path.child(source),
                "may not specify more than 1 volume type",
            ));
        }
        let name = text(volume, "name");
        validate_item_name(&path.child("name"), name, &mut volumes, errors);
    }
    let mut containers = BTreeSet::new();
    if present(spec, "containers").is_none() {
        errors.push(FieldError::required(&path.child("containers"), ""));
    }
    for list in ["containers", "initContainers"] {
        for (index, container) in items(spec, list).enumerate() {
            let path = path.child(list);
            let path = path.index(index);
            let name = text(container, "name");
            validate_item_name(&path.child("name"), name, &mut containers, errors);
            validate_container(&path, container, &volumes, errors);
        }
    }
    supported(
        path,
        spec,
        "restartPolicy",
        &["Always", "OnFailure", "Never"],
        errors,
    );
    supported(
        path,
        spec,
        "dnsPolicy",
        &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"],
        errors,
    );
    if let Some(seconds) = integer(spec, "activeDeadlineSeconds")
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        errors.push(FieldError::invalid(
            &path.child("activeDeadlineSeconds"),
            &seconds.into(),
            names::in_range(1, i64::from(i32::MAX)),
        ));
    }
    let selector = path.child("nodeSelector");
    validate_labels(spec, &selector, "nodeSelector", errors);
    let account = text(spec, "serviceAccountName");
    if !account.is_empty() {
        for wrong in names::dns1123_subdomain(account) {
            errors.push(FieldError::invalid_str(
                &path.child("serviceAccountName"),
                account,
                wrong,
            ));
        }
    }
    let node = text(spec, "nodeName");
    if !node.is_empty() {
        for wrong in names::dns1123_subdomain(node) {
            errors.push(FieldError::invalid_str(
                &path.child("nodeName"),
                node,
                wrong,
            ));
        }
    }
}

fn validate_item_name<'a>(
    path: &Path<'_>,
    name: &'a str,
    seen: &mut BTreeSet<&'a str>,
    errors: &mut Errors,
) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    for wrong in names::dns1123_label(name) {
        errors.push(FieldError::invalid_str(path, name, wrong));
    }
    if !seen.insert(name) {
        errors.push(FieldError::duplicate(path, &name.into()));
    }
}

fn validate_container(
    path: &Path<'_>,
    container: &Value,
    volumes: &BTreeSet<&str>,
    errors: &mut Errors,
) {
    let image = text(container, "image");
    if image.is_empty() {
        errors.push(FieldError::required(&path.child("image"), ""));
    } else if image.trim() != image {
        errors.push(FieldError::invalid_str(
            &path.child("image"),
            image,
            "must not have leading or trailing whitespace",
        ));
    }
    for (index, port) in items(container, "ports").enumerate() {
        let path = path.child("ports");
        validate_port(&path.index(index), port, errors);
    }
    for (index, variable) in items(container, "env").enumerate() {
        let path = path.child("env");
        let path = path.index(index);
        let path = path.child("name");
        let name = text(variable, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else {
            for wrong in names::env_var(name) {
                errors.push(FieldError::invalid_str(&path, name, wrong));
            }
        }
    }
    for (index, mount) in items(container, "volumeMounts").enumerate() {
        let path = path.child("volumeMounts");
        let path = path.index(index);
        let name = text(mount, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        if text(mount, "mountPath").is_empty() {
            errors.push(FieldError::required(&path.child("mountPath"), ""));
        }
        if !volumes.contains(name) {
            errors.push(FieldError::not_found(&path.child("name"), &name.into()));
        }
    }
    supported(
        path,
        container,
        "imagePullPolicy",
        &["Always", "IfNotPresent", "Never"],
        errors,
    );
    if let Some(resources) = container.get("resources") {
        validate_resources(&path.child("resources"), resources, errors);
    }
    supported(
        path,
        container,
        "terminationMessagePolicy",
        &["FallbackToLogsOnError", "File"],
        errors,
    );
}

fn validate_port(path: &Path<'_>, port: &Value, errors: &mut Errors) {
    let name = text(port, "name");
    if !name.is_empty() {
        for wrong in names::port_name(name) {
            errors.push(FieldError::invalid_str(&path.child("name"), name, wrong));
        }
    }
    match integer(port, "containerPort").unwrap_or(0) {
        0 => errors.push(FieldError::required(&path.child("containerPort"), "")),
        number => {
            for wrong in names::port_number(number) {
                errors.push(FieldError::invalid(
                    &path.child("containerPort"),
                    &number.into(),
                    wrong,
                ));
            }
        }
    }
    supported(path, port, "protocol", &["SCTP", "TCP", "UDP"], errors);
}

/// Checks requests and limits: their names, amounts, and that no request is
/// more than its limit.
pub(super) fn validate_resources(path: &Path<'_>, resources: &Value, errors: &mut Errors) {
    let limits = path.child("limits");
    for (name, amount) in entries(resources, "limits") {
        let path = limits.key(name);
        resources::validate_container_name(&path, name, errors);
        resources::validate_amount(&path, name, amount, errors);
    }
    let requests = path.child("requests");
    for (name, amount) in entries(resources, "requests") {
        let path = requests.key(name);
        resources::validate_container_name(&path, name, errors);
        resources::validate_amount(&path, name, amount, errors);
        let limit = resources.get("limits").and_then(|limits| limits.get(name));
        let (Some(limit), Some(request)) = (limit.and_then(quantity), quantity(amount)) else {
            if !resources::is_overcommit_allowed(name) {
                errors.push(FieldError::required(
                    &limits,
                    "Limit must be set for non overcommitable resources",
                ));
            }
            continue;
        };
        if request > limit {
            errors.push(FieldError::invalid(
                &requests,
                amount,
                format!("must be less than or equal to {name} limit of {limit}"),
            ));
        } else if request != limit && !resources::is_overcommit_allowed(name) {
            errors.push(FieldError::invalid(
                &requests,
                amount,
                format!("must be equal to {name} limit of {limit}"),
            ));
        }
    }
}

/// Pushes an error unless `field` is absent or one of `values`, which are in
/// the server's order.
pub(super) fn supported(
    path: &Path<'_>,
    value: &Value,
    field: &str,
    values: &[&str],
    errors: &mut Errors,
) {
    if let Some(given) = present(value, field)
        && !given.as_str().is_some_and(|given| values.contains(&given))
    {
        errors.push(FieldError::not_supported(&path.child(field), given, values));
    }
}

/// Checks the numbers that workloads share.
pub(super) fn validate_counts(path: &Path<'_>, spec: &Value, fields: &[&str], errors: &mut Errors) {
    for field in fields {
        validate_nonnegative(path, spec, field, errors);
    }
}
