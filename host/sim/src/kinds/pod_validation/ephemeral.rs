//! Containers that join a pod which runs.

use std::collections::BTreeSet;

use super::containers::{self, Pod};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{items, present, text};

const LIST: &str = "ephemeralContainers";
const REFUSED: &str = "cannot be set for an Ephemeral Container";
/// What a pod that runs could not give them, by the names of the server's own type.
const OTHERS: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

/// Checks the ephemeral containers of a pod: they have names of their own, and nothing
/// that others rely on.
pub(super) fn validate(path: &Path<'_>, pod: &Pod<'_>, errors: &mut Errors) {
    let list = path.child(LIST);
    let others: BTreeSet<&str> = ["containers", "initContainers"]
        .iter()
        .flat_map(|list| items(pod.spec, list))
        .map(|container| text(container, "name"))
        .collect();
    let mut known = others.clone();
    for (index, container) in items(pod.spec, LIST).enumerate() {
        let path = list.index(index);
        containers::validate_container(&path, container, pod, errors);
        containers::validate_image(&path, container, errors);
        let name = text(container, "name");
        if !known.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), &name.into()));
        }
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !others.contains(target) {
            let path = path.child("targetContainerName");
            errors.push(FieldError::not_found(&path, &target.into()));
        }
        for field in OTHERS {
            if present(container, field).is_some() {
                errors.push(FieldError::forbidden(&path.child(field), REFUSED));
            }
        }
        let mounts = path.child("volumeMounts");
        for (index, mount) in items(container, "volumeMounts").enumerate() {
            let path = mounts.index(index);
            for field in ["subPath", "subPathExpr"] {
                if !text(mount, field).is_empty() {
                    errors.push(FieldError::forbidden(&path.child(field), REFUSED));
                }
            }
        }
    }
}
