//! PersistentVolumeClaims.

use serde_json::{Value, json};

use super::edit::{
    default_to, ensure_object, entries, object, present, remove, set, text, text_at,
};
use super::persistent_volume::{add_finalizer, validate_class, validate_modes};
use super::pod_validation::supported;
use super::quantities;
use super::resources::{self, quantity};
use super::selectors;
use crate::field::{Errors, FieldError, Path};
use crate::names;

const SPEC: Path<'static> = Path::new("spec");
const STATUS: Path<'static> = Path::new("status");
/// The two fields for the source of a claim's data.
const OLDER: &str = "dataSource";
const NEWER: &str = "dataSourceRef";

pub(super) fn default(claim: &mut Value) {
    if let Some(spec) = ensure_object(claim, "spec") {
        default_to(spec, "volumeMode", "Filesystem");
        ensure_object(spec, "resources");
    }
}

/// As [`default`], of a claim and not of a template for one.
pub(super) fn default_whole(claim: &mut Value) {
    default(claim);
    default_phase(claim, "Pending");
}

/// An object that has come to no phase is in the first one.
pub(super) fn default_phase(object: &mut Value, first: &str) {
    if let Some(status) = ensure_object(object, "status") {
        default_to(status, "phase", first);
    }
}

/// Brings the two fields for the source of a claim's data in step. What the older one
/// cannot be is dropped, and what the newer one has from another namespace.
pub(super) fn prepare(claim: &mut Value, old: Option<&Value>) {
    let Some(spec) = claim.get_mut("spec") else {
        return;
    };
    let was = |field: &str| {
        let spec = old.and_then(|old| old.get("spec"));
        spec.is_some_and(|spec| present(spec, field).is_some())
    };
    let namespace = |spec: &Value| {
        let source = spec.get(NEWER).unwrap_or(&Value::Null);
        text(source, "namespace").to_owned()
    };
    if !namespace(spec).is_empty() && !was(NEWER) {
        remove(spec, NEWER);
    }
    let is_known = spec.get(OLDER).is_some_and(|source| {
        matches!(
            (text(source, "apiGroup"), text(source, "kind")),
            ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
        )
    });
    let is_newer_given = spec.get(NEWER).is_some_and(Value::is_object);
    if !is_known && !is_newer_given && !was(OLDER) && !was(NEWER) {
        remove(spec, OLDER);
    }
    let from = match (present(spec, OLDER), present(spec, NEWER)) {
        (Some(source), None) => Some((NEWER, source.clone())),
        (None, Some(source)) if text(source, "namespace").is_empty() => {
            Some((OLDER, source.clone()))
        }
        _ => None,
    };
    if let Some((field, mut source)) = from {
        remove(&mut source, "namespace");
        set(spec, field, source);
    }
}

pub(super) fn admit(claim: &mut Value) {
    add_finalizer(claim, "kubernetes.io/pvc-protection");
}

pub(super) fn validate(claim: &Value, errors: &mut Errors) {
    validate_spec(&SPEC, claim.get("spec").unwrap_or(&Value::Null), errors);
}

/// Checks the template of the claim of a volume.
pub(super) fn validate_template(path: &Path<'_>, template: &Value, errors: &mut Errors) {
    let meta = template.get("metadata").unwrap_or(&Value::Null);
    let of_meta = path.child("metadata");
    super::meta::validate_annotations(meta, &of_meta.child("annotations"), errors);
    super::meta::validate_labels(meta, &of_meta.child("labels"), "labels", errors);
    let spec = template.get("spec").unwrap_or(&Value::Null);
    validate_spec(&path.child("spec"), spec, errors);
}

/// Checks the spec of a claim, or of a template for claims.
pub(super) fn validate_spec(path: &Path<'_>, spec: &Value, errors: &mut Errors) {
    if present(spec, "accessModes").is_none() {
        errors.push(FieldError::required(
            &path.child("accessModes"),
            "at least 1 access mode is required",
        ));
    }
    if let Some(selector) = spec.get("selector") {
        selectors::validate(&path.child("selector"), selector, errors);
    }
    validate_modes(path, spec, errors);
    let of_size = path.child("resources");
    let of_size = of_size.key("storage");
    match spec.pointer("/resources/requests/storage") {
        None => errors.push(FieldError::required(&of_size, "")),
        Some(amount) => {
            if quantity(amount).is_some_and(|q| q.is_zero() || q.is_negative()) {
                errors.push(FieldError::invalid(
                    &of_size,
                    amount,
                    "must be greater than zero",
                ));
            } else {
                resources::validate_amount(&of_size, "storage", amount, errors);
            }
        }
    }
    validate_class(path, spec, "storageClassName", errors);
    supported(path, spec, "volumeMode", &["Block", "Filesystem"], errors);
    validate_data(path, spec, errors);
    validate_class(path, spec, "volumeAttributesClassName", errors);
}

/// Checks where the data of a claim comes from: both fields for that say the same.
fn validate_data(path: &Path<'_>, spec: &Value, errors: &mut Errors) {
    for field in [OLDER, NEWER] {
        if let Some(source) = object(spec, field) {
            validate_source(&path.child(field), source, errors);
        }
    }
    let (Some(older), Some(newer)) = (object(spec, OLDER), object(spec, NEWER)) else {
        return;
    };
    let same = |field: &str| text(older, field) == text(newer, field);
    let why = if !text(newer, "namespace").is_empty() {
        "may not be specified when dataSourceRef.namespace is specified"
    } else if ["apiGroup", "kind", "name"].into_iter().all(same) {
        return;
    } else {
        "must match dataSourceRef"
    };
    // As the server shows it: the path, as a value of no fields.
    errors.push(FieldError::invalid(path, &json!({}), why));
}

fn validate_source(path: &Path<'_>, source: &Value, errors: &mut Errors) {
    for field in ["name", "kind"] {
        if text(source, field).is_empty() {
            errors.push(FieldError::required(&path.child(field), ""));
        }
    }
    let (group, kind) = (text(source, "apiGroup"), text(source, "kind"));
    if group.is_empty() {
        if kind != "PersistentVolumeClaim" {
            let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(FieldError::invalid_str(path, kind, why));
        }
    } else {
        for wrong in names::dns1123_subdomain(group) {
            errors.push(FieldError::invalid_str(
                &path.child("apiGroup"),
                group,
                wrong,
            ));
        }
    }
    let namespace = text(source, "namespace");
    if !namespace.is_empty() {
        for wrong in names::dns1123_label(namespace) {
            errors.push(FieldError::invalid_str(
                &path.child("namespace"),
                namespace,
                wrong,
            ));
        }
    }
}

/// A claim is immutable, but for its volume, which is set once, and the size
/// of a bound one.
pub(super) fn validate_update(claim: &Value, old: &Value, errors: &mut Errors) {
    let bound = text_at(claim, "/status/phase") == "Bound";
    let unset = text_at(old, "/spec/volumeName").is_empty();
    let strip = |claim: &Value| {
        let mut spec = claim.get("spec").cloned().unwrap_or_default();
        if unset {
            remove(&mut spec, "volumeName");
        }
        if bound {
            remove(&mut spec, "volumeAttributesClassName");
            if let Some(requests) = spec.pointer_mut("/resources/requests") {
                remove(requests, "storage");
            }
            if let Some(resources) = spec.get_mut("resources")
                && present(resources, "requests").is_none()
            {
                remove(resources, "requests");
            }
        }
        // A class may be set where there was none.
        if text_at(old, "/spec/storageClassName").is_empty()
            && old.pointer("/spec/storageClassName").is_none()
        {
            remove(&mut spec, "storageClassName");
        }
        let claim = json!({ "spec": spec });
        quantities::amounts(("", "v1"), "PersistentVolumeClaim", &claim)
    };
    let (before, after) = (strip(old), strip(claim));
    if before != after {
        errors.push(FieldError::forbidden(
            &SPEC,
            "spec is immutable after creation except resources.requests and \
             volumeAttributesClassName for bound claims",
        ));
    }
    // None is none of it.
    let amount = |claim: &Value, at: &str| {
        let amount = claim.pointer(at).unwrap_or(&Value::Null);
        quantity(amount).or_else(|| quantity(&json!("0")))
    };
    let size = |claim: &Value| amount(claim, "/spec/resources/requests/storage");
    if size(claim) < size(old) && size(claim) <= amount(old, "/status/capacity/storage") {
        let path = SPEC.child("resources.requests.storage");
        errors.push(FieldError::forbidden(
            &path,
            "field can not be less than status.capacity",
        ));
    }
    super::meta::validate_immutable(
        &Path::new("volumeMode"),
        claim.get("spec").unwrap_or(&Value::Null),
        old.get("spec").unwrap_or(&Value::Null),
        "volumeMode",
        errors,
    );
}

/// Checks what a claim has got, and what of it is still on its way.
pub(super) fn validate_status(claim: &Value, _old: &Value, errors: &mut Errors) {
    const STATES: [&str; 5] = [
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    ];
    let status = claim.get("status").unwrap_or(&Value::Null);
    let validate_amount = |path: &Path<'_>, amount: &Value, errors: &mut Errors| {
        let whole = resources::quantity(amount).map_or(0, |amount| amount.ceil());
        if whole < 0 {
            let why = "must be a valid resource quantity";
            let whole = i64::try_from(whole).unwrap_or(i64::MIN);
            errors.push(FieldError::invalid(path, &whole.into(), why));
        }
        whole < 0
    };
    let path = STATUS.child("capacity");
    for (name, amount) in entries(status, "capacity") {
        validate_amount(&path.key(name), amount, errors);
    }
    let path = STATUS.child("allocatedResourceStatuses");
    for (name, state) in entries(status, "allocatedResourceStatuses") {
        validate_claimed_name(&path, name, errors);
        if !state.as_str().is_some_and(|state| STATES.contains(&state)) {
            let name = Value::from(name.as_str());
            errors.push(FieldError::not_supported(&path, &name, &STATES));
        }
    }
    let path = STATUS.child("allocatedResources");
    for (name, amount) in entries(status, "allocatedResources") {
        let count = errors.len();
        validate_claimed_name(&path, name, errors);
        if errors.len() == count && !validate_amount(&path.key(name), amount, errors) {
            resources::validate_amount(&path.key(name), "storage", amount, errors);
        }
    }
}

/// Checks the name of something that a claim has got: its storage, or what somebody else
/// than Kubernetes gives.
fn validate_claimed_name(path: &Path<'_>, name: &str, errors: &mut Errors) {
    let wrong = names::qualified_name(name);
    let fits = wrong.is_empty();
    for wrong in wrong {
        errors.push(FieldError::invalid_str(path, name, wrong));
    }
    if fits && resources::is_native(name) && name != "storage" {
        errors.push(FieldError::not_supported(path, &name.into(), &["storage"]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_fields_of_the_source_are_in_step() {
        let check = |spec: Value, old: Option<Value>, expected: Value| {
            let mut claim = json!({ "spec": spec });
            let old = old.map(|spec| json!({ "spec": spec }));
            prepare(&mut claim, old.as_ref());
            assert_eq!(claim["spec"], expected, "{spec}");
        };
        let claim = json!({"kind": "PersistentVolumeClaim", "name": "a"});
        let other = json!({"apiGroup": "x.io", "kind": "X", "name": "a"});
        let both = |source: &Value| json!({"dataSource": source, "dataSourceRef": source});
        check(json!({"dataSource": claim}), None, both(&claim));
        check(json!({"dataSourceRef": other}), None, both(&other));
        check(json!({"dataSource": other}), None, json!({}));
        check(
            json!({"dataSource": other}),
            Some(both(&other)),
            both(&other),
        );
        let mut away = claim.clone();
        away["namespace"] = json!("b");
        check(json!({"dataSourceRef": away}), None, json!({}));
        check(
            json!({"dataSource": claim, "dataSourceRef": away}),
            None,
            both(&claim),
        );
        check(json!({}), None, json!({}));
    }
}
