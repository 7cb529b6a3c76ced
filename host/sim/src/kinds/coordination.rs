//! Leases.

use serde_json::Value;

use super::edit::{ensure_object, integer};
use super::row::Kind;
use crate::field::{Errors, FieldError, Path};

const SPEC: Path<'static> = Path::new("spec");

pub(super) const ROWS: &[Kind] =
    &[
        Kind::namespaced(("coordination.k8s.io", "v1"), "Lease", "leases")
            .created_on_update()
            .conditional()
            .gated(&["spec.strategy", "spec.preferredHolder"])
            .defaulted(|lease| {
                ensure_object(lease, "spec");
            })
            .validated(validate),
    ];

fn validate(lease: &Value, errors: &mut Errors) {
    let spec = lease.get("spec").unwrap_or(&Value::Null);
    if let Some(seconds) = integer(spec, "leaseDurationSeconds").filter(|n| *n <= 0) {
        errors.push(FieldError::invalid(
            &SPEC.child("leaseDurationSeconds"),
            &seconds.into(),
            "must be greater than 0",
        ));
    }
    if let Some(count) = integer(spec, "leaseTransitions").filter(|n| *n < 0) {
        errors.push(FieldError::invalid(
            &SPEC.child("leaseTransitions"),
            &count.into(),
            "must be greater than or equal to 0",
        ));
    }
}
