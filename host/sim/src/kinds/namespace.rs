//! Namespaces: the label of the name, the finalizer, the phase.

use serde_json::{Value, json};

use super::claim;
use super::edit::{ensure_object, items, set, text_at};
use crate::field::{Errors, FieldError, Path};
use crate::names;

/// The finalizer that goes last, once the namespace is empty.
pub(crate) const FINALIZER: &str = "kubernetes";
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(super) fn default(namespace: &mut Value) {
    let name = text_at(namespace, "/metadata/name").to_owned();
    if name.is_empty() {
        return;
    }
    if let Some(labels) =
        ensure_object(namespace, "metadata").and_then(|meta| ensure_object(meta, "labels"))
    {
        set(labels, NAME_LABEL, name);
    }
    claim::default_phase(namespace, "Active");
}

pub(super) fn prepare_create(namespace: &mut Value) {
    // A name that was made has no label yet.
    default(namespace);
    let Some(spec) = ensure_object(namespace, "spec") else {
        return;
    };
    if items(spec, "finalizers").any(|finalizer| finalizer == FINALIZER) {
        return;
    }
    let mut finalizers: Vec<Value> = items(spec, "finalizers").cloned().collect();
    finalizers.push(json!(FINALIZER));
    set(spec, "finalizers", finalizers);
}

pub(super) fn validate(namespace: &Value, errors: &mut Errors) {
    let spec = namespace.get("spec").unwrap_or(&Value::Null);
    let path = Path::new("spec");
    let path = path.child("finalizers");
    for finalizer in items(spec, "finalizers") {
        let finalizer = finalizer.as_str().unwrap_or_default();
        for wrong in names::qualified_name(finalizer) {
            errors.push(FieldError::invalid_str(&path, finalizer, wrong));
        }
        if !names::is_known_finalizer(finalizer) {
            errors.push(FieldError::invalid_str(
                &path,
                finalizer,
                "name is neither a standard finalizer name nor is it fully qualified",
            ));
        }
    }
}

pub(super) fn prepare_update(namespace: &mut Value, old: &Value) {
    if let Some(finalizers) = old.pointer("/spec/finalizers")
        && let Some(spec) = ensure_object(namespace, "spec")
    {
        set(spec, "finalizers", finalizers.clone());
    }
}

pub(super) fn validate_status(namespace: &Value, _old: &Value, errors: &mut Errors) {
    let dying = !text_at(namespace, "/metadata/deletionTimestamp").is_empty();
    let phase = text_at(namespace, "/status/phase");
    let (allowed, condition) = if dying {
        ("Terminating", "is not empty")
    } else {
        ("Active", "is empty")
    };
    if phase != allowed {
        let status = Path::new("status");
        errors.push(FieldError::invalid_str(
            &status.child("Phase"),
            phase,
            format!("may only be '{allowed}' if `deletionTimestamp` {condition}"),
        ));
    }
}
