//! PodDisruptionBudgets.

use serde_json::Value;

use super::edit::{as_printed, ensure_object};
use super::pod_validation::supported;
use super::row::Kind;
use super::strategy::{validate_at_most_all, validate_share};
use super::verbs::Subresource;
use super::{selectors, statuses};
use crate::field::{Errors, FieldError, Path};

const V1: (&str, &str) = ("policy", "v1");
const SPEC: Path<'static> = Path::new("spec");

pub(super) const ROWS: &[Kind] = &[Kind::namespaced(
    V1,
    "PodDisruptionBudget",
    "poddisruptionbudgets",
)
.conditional()
.short(&["pdb"])
.subresources(&[Subresource::STATUS])
.status(r#"{"currentHealthy":0,"desiredHealthy":0,"disruptionsAllowed":0,"expectedPods":0}"#)
.generation_of_spec()
.defaulted(|budget| {
    ensure_object(budget, "spec");
})
.validated(validate)
.status_validated(statuses::validate_budget)];

fn validate(budget: &Value, errors: &mut Errors) {
    let spec = budget.get("spec").unwrap_or(&Value::Null);
    let shares = ["minAvailable", "maxUnavailable"];
    if shares.iter().all(|field| spec.get(field).is_some()) {
        let printed = as_printed(
            spec,
            &[
                ("MinAvailable", "minAvailable"),
                ("Selector", "selector"),
                ("MaxUnavailable", "maxUnavailable"),
                ("UnhealthyPodEvictionPolicy", "unhealthyPodEvictionPolicy"),
            ],
        );
        errors.push(FieldError::invalid(
            &SPEC,
            &printed,
            "minAvailable and maxUnavailable cannot be both set",
        ));
    }
    for field in shares {
        validate_share(&SPEC.child(field), spec.get(field), errors);
        validate_at_most_all(&SPEC.child(field), spec.get(field), errors);
    }
    if let Some(selector) = spec.get("selector") {
        selectors::validate(&SPEC.child("selector"), selector, errors);
    }
    supported(
        &SPEC,
        spec,
        "unhealthyPodEvictionPolicy",
        &["AlwaysAllow", "IfHealthyBudget"],
        errors,
    );
}
