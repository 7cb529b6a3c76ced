//! PersistentVolumes and PersistentVolumeClaims.

use serde_json::{Value, json};

use super::edit::{default_to, ensure_object, entries, items, present, remove, set, text, text_at};
use super::pod_validation::supported;
use super::resources::{self, quantity};
use super::selectors;
use crate::field::{Errors, FieldError, Path};
use crate::names;

const SPEC: Path<'static> = Path::new("spec");
const ACCESS_MODES: &[&str] = &[
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];

/// Fields of a PersistentVolume's spec that are not the description of where
/// the data is.
const NOT_SOURCES: &[&str] = &[
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

pub(super) fn default_claim(claim: &mut Value) {
    if let Some(spec) = ensure_object(claim, "spec") {
        default_to(spec, "volumeMode", "Filesystem");
        ensure_object(spec, "resources");
    }
}

/// Brings the two fields for the source of a claim's data in step. What the older one
/// cannot be is dropped, and what the newer one has from another namespace.
pub(super) fn prepare_claim(claim: &mut Value, old: Option<&Value>) {
    const OLDER: &str = "dataSource";
    const NEWER: &str = "dataSourceRef";
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

pub(super) fn admit_claim(claim: &mut Value) {
    add_finalizer(claim, "kubernetes.io/pvc-protection");
}

pub(super) fn default_volume(volume: &mut Value) {
    if let Some(spec) = ensure_object(volume, "spec") {
        default_to(spec, "persistentVolumeReclaimPolicy", "Retain");
        default_to(spec, "volumeMode", "Filesystem");
        if let Some(host) = spec.get_mut("hostPath").filter(|host| host.is_object())
            && host.get("type").is_none()
        {
            set(host, "type", "");
        }
    }
}

pub(super) fn admit_volume(volume: &mut Value) {
    add_finalizer(volume, "kubernetes.io/pv-protection");
}

/// Adds a finalizer that is not there yet.
pub(super) fn add_finalizer(object: &mut Value, finalizer: &str) {
    let Some(meta) = ensure_object(object, "metadata") else {
        return;
    };
    let mut finalizers: Vec<Value> = items(meta, "finalizers").cloned().collect();
    if !finalizers.iter().any(|known| known == finalizer) {
        finalizers.push(json!(finalizer));
        set(meta, "finalizers", finalizers);
    }
}

pub(super) fn validate_claim(claim: &Value, errors: &mut Errors) {
    let spec = claim.get("spec").unwrap_or(&Value::Null);
    if present(spec, "accessModes").is_none() {
        errors.push(FieldError::required(
            &SPEC.child("accessModes"),
            "at least 1 access mode is required",
        ));
    }
    if let Some(selector) = spec.get("selector") {
        selectors::validate(&SPEC.child("selector"), selector, errors);
    }
    validate_modes(spec, errors);
    let path = SPEC.child("resources");
    let path = path.key("storage");
    match spec.pointer("/resources/requests/storage") {
        None => errors.push(FieldError::required(&path, "")),
        Some(amount) => {
            if quantity(amount).is_some_and(|q| q.is_zero() || q.is_negative()) {
                errors.push(FieldError::invalid(
                    &path,
                    amount,
                    "must be greater than zero",
                ));
            } else {
                resources::validate_amount(&path, "storage", amount, errors);
            }
        }
    }
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        for wrong in names::dns1123_subdomain(class) {
            errors.push(FieldError::invalid_str(
                &SPEC.child("storageClassName"),
                class,
                wrong,
            ));
        }
    }
    supported(&SPEC, spec, "volumeMode", &["Block", "Filesystem"], errors);
}

fn validate_modes(spec: &Value, errors: &mut Errors) {
    let path = SPEC.child("accessModes");
    let modes: Vec<&str> = items(spec, "accessModes")
        .filter_map(Value::as_str)
        .collect();
    for mode in &modes {
        if !ACCESS_MODES.contains(mode) {
            errors.push(FieldError::not_supported(
                &path,
                &(*mode).into(),
                ACCESS_MODES,
            ));
        }
    }
    let exclusive = |mode: &&str| *mode == "ReadWriteOncePod";
    if modes.iter().any(exclusive)
        && modes
            .iter()
            .any(|mode| !exclusive(mode) && ACCESS_MODES.contains(mode))
    {
        errors.push(FieldError::forbidden(
            &path,
            "may not use ReadWriteOncePod with other access modes",
        ));
    }
}

/// A claim is immutable, but for its volume, which is set once, and the size
/// of a bound one.
pub(super) fn validate_claim_update(claim: &Value, old: &Value, errors: &mut Errors) {
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
        }
        // A class may be set where there was none.
        if text_at(old, "/spec/storageClassName").is_empty()
            && old.pointer("/spec/storageClassName").is_none()
        {
            remove(&mut spec, "storageClassName");
        }
        spec
    };
    let (before, after) = (strip(old), strip(claim));
    if before != after {
        errors.push(FieldError::forbidden(
            &SPEC,
            "spec is immutable after creation except resources.requests and \
             volumeAttributesClassName for bound claims",
        ));
    }
    let size = |claim: &Value| {
        claim
            .pointer("/spec/resources/requests/storage")
            .and_then(quantity)
    };
    let capacity = old.pointer("/status/capacity/storage").and_then(quantity);
    if let (Some(new), Some(old)) = (size(claim), size(old))
        && new < old
        && capacity.is_some_and(|capacity| new <= capacity)
    {
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

pub(super) fn validate_volume(volume: &Value, errors: &mut Errors) {
    let spec = volume.get("spec").unwrap_or(&Value::Null);
    if present(spec, "accessModes").is_none() {
        errors.push(FieldError::required(&SPEC.child("accessModes"), ""));
    }
    validate_modes(spec, errors);
    let path = SPEC.child("capacity");
    if present(spec, "capacity").is_none() {
        errors.push(FieldError::required(&path, ""));
    }
    let storage = entries(spec, "capacity").any(|(name, _)| name == "storage");
    if !storage || entries(spec, "capacity").count() > 1 {
        errors.push(FieldError::not_supported(
            &path,
            spec.get("capacity").unwrap_or(&json!(null)),
            &["storage"],
        ));
    }
    for (name, amount) in entries(spec, "capacity") {
        let path = path.key(name);
        if quantity(amount).is_some_and(|q| q.is_zero() || q.is_negative()) {
            errors.push(FieldError::invalid(
                &path,
                amount,
                "must be greater than zero",
            ));
        }
    }
    supported(
        &SPEC,
        spec,
        "persistentVolumeReclaimPolicy",
        &["Delete", "Recycle", "Retain"],
        errors,
    );
    let sources = sources(spec);
    let sources = sources.as_object();
    if sources.is_none_or(serde_json::Map::is_empty) {
        errors.push(FieldError::required(&SPEC, "must specify a volume type"));
    }
    for source in sources.into_iter().flatten().skip(1) {
        errors.push(FieldError::forbidden(
            &SPEC.child(source.0),
            "may not specify more than 1 volume type",
        ));
    }
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        for wrong in names::dns1123_subdomain(class) {
            errors.push(FieldError::invalid_str(
                &SPEC.child("storageClassName"),
                class,
                wrong,
            ));
        }
    }
    supported(&SPEC, spec, "volumeMode", &["Block", "Filesystem"], errors);
}

pub(super) fn validate_volume_update(volume: &Value, old: &Value, errors: &mut Errors) {
    let spec = volume.get("spec").unwrap_or(&Value::Null);
    let old = old.get("spec").unwrap_or(&Value::Null);
    if sources(spec) != sources(old) {
        errors.push(FieldError::forbidden(
            &SPEC.child("persistentvolumesource"),
            "spec.persistentvolumesource is immutable after creation",
        ));
    }
    super::meta::validate_immutable(&Path::new("volumeMode"), spec, old, "volumeMode", errors);
}

/// Where the data is: what is left of the spec.
fn sources(spec: &Value) -> Value {
    let mut sources = spec.clone();
    for field in NOT_SOURCES {
        remove(&mut sources, field);
    }
    sources
}

#[cfg(test)]
mod data_source_tests {
    use super::*;

    #[test]
    fn both_fields_of_the_source_are_in_step() {
        let check = |spec: Value, old: Option<Value>, expected: Value| {
            let mut claim = json!({ "spec": spec });
            let old = old.map(|spec| json!({ "spec": spec }));
            prepare_claim(&mut claim, old.as_ref());
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
