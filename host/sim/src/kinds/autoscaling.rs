//! HorizontalPodAutoscalers in both versions, which are stored as v2.

mod annotated;
mod metrics;
mod versions;

use serde_json::{Value, json};

use self::versions::{to_v1, to_v2};
use super::edit::{default_to, ensure_object, integer, present, set, text};
use super::row::Kind;
use super::statuses;
use super::stored::Stored;
use super::verbs::Subresource;
use crate::field::{Errors, FieldError, Path};
use crate::names;

const SPEC: Path<'static> = Path::new("spec");
const STATUS: &[Subresource] = &[Subresource::STATUS];

const V2: Kind = Kind::namespaced(
    ("autoscaling", "v2"),
    "HorizontalPodAutoscaler",
    "horizontalpodautoscalers",
)
.short(&["hpa"])
.categories(&["all"])
.subresources(STATUS)
.status(r#"{"currentMetrics":null,"desiredReplicas":0}"#)
.quantities(&[
    "spec.behavior.scaleDown.tolerance",
    "spec.behavior.scaleUp.tolerance",
])
.atomic_quantities(METRICS)
.restless_quantities(TARGETS)
.defaulted(default_v2)
.validated(validate)
.status_validated(statuses::validate_autoscaler);

pub(super) const ROWS: &[Kind] = &[
    V2,
    Kind::namespaced(
        ("autoscaling", "v1"),
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
    )
    .short(&["hpa"])
    .categories(&["all"])
    .subresources(STATUS)
    .stored(Stored {
        kind: &V2,
        there: to_v2,
        back: to_v1,
    })
    .status(r#"{"currentReplicas":0,"desiredReplicas":0}"#)
    .defaulted(default_v1)
    .status_validated(statuses::validate_autoscaler),
];

const CPU_PERCENT: i64 = 80;

/// Where metrics have quantities, below the given list of them and what is in each.
macro_rules! amounts_of {
    ($($list:literal $inside:literal),*) => {
        &[$(
            concat!($list, "[].resource.", $inside, ".averageValue"),
            concat!($list, "[].resource.", $inside, ".value"),
            concat!($list, "[].containerResource.", $inside, ".averageValue"),
            concat!($list, "[].containerResource.", $inside, ".value"),
            concat!($list, "[].pods.", $inside, ".averageValue"),
            concat!($list, "[].pods.", $inside, ".value"),
            concat!($list, "[].object.", $inside, ".averageValue"),
            concat!($list, "[].object.", $inside, ".value"),
            concat!($list, "[].external.", $inside, ".averageValue"),
            concat!($list, "[].external.", $inside, ".value"),
        )*]
    };
}

/// Where what is aimed at has quantities.
const TARGETS: &[&str] = amounts_of!("spec.metrics" "target");
/// As [`TARGETS`], and what was measured.
const METRICS: &[&str] = amounts_of!("spec.metrics" "target", "status.currentMetrics" "current");

fn default_v1(autoscaler: &mut Value) {
    if let Some(spec) = ensure_object(autoscaler, "spec") {
        default_to(spec, "minReplicas", 1);
    }
    // By what it goes without any metric is known only where all of them are.
    *autoscaler = to_v1(&to_v2(autoscaler));
}

fn default_v2(autoscaler: &mut Value) {
    versions::drop_annotations(autoscaler);
    let Some(spec) = ensure_object(autoscaler, "spec") else {
        return;
    };
    default_to(spec, "minReplicas", 1);
    if present(spec, "metrics").is_none() {
        set(
            spec,
            "metrics",
            json!([{
                "type": "Resource",
                "resource": {
                    "name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": CPU_PERCENT},
                },
            }]),
        );
    }
    let Some(behavior) = spec.get_mut("behavior").filter(|b| b.is_object()) else {
        return;
    };
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    if let Some(up) = ensure_object(behavior, "scaleUp") {
        default_to(up, "stabilizationWindowSeconds", 0);
        default_to(up, "selectPolicy", "Max");
        default_to(up, "policies", json!([pods, percent]));
    }
    if let Some(down) = ensure_object(behavior, "scaleDown") {
        default_to(down, "selectPolicy", "Max");
        default_to(down, "policies", json!([percent]));
    }
}

fn validate(autoscaler: &Value, errors: &mut Errors) {
    let spec = autoscaler.get("spec").unwrap_or(&Value::Null);
    let min = integer(spec, "minReplicas");
    let max = integer(spec, "maxReplicas").unwrap_or(0);
    if let Some(min) = min.filter(|min| *min < 1) {
        errors.push(FieldError::invalid(
            &SPEC.child("minReplicas"),
            &min.into(),
            "must be greater than or equal to 1",
        ));
    }
    match max {
        0 => errors.push(FieldError::required(
            &SPEC.child("maxReplicas"),
            "must be set and greater than 0",
        )),
        ..0 => errors.push(FieldError::invalid(
            &SPEC.child("maxReplicas"),
            &max.into(),
            "must be greater than or equal to 1",
        )),
        _ => {}
    }
    if min.is_some_and(|min| max < min) {
        errors.push(FieldError::invalid(
            &SPEC.child("maxReplicas"),
            &max.into(),
            "must be greater than or equal to `minReplicas`",
        ));
    }
    let target = spec.get("scaleTargetRef").unwrap_or(&Value::Null);
    validate_reference(&SPEC.child("scaleTargetRef"), target, false, errors);
    metrics::validate_metrics(spec, errors);
    metrics::validate_behavior(spec, errors);
}

/// Checks a reference to an object; what is scaled has a group, and what is measured
/// need not.
fn validate_reference(path: &Path<'_>, reference: &Value, may_be_core: bool, errors: &mut Errors) {
    for field in ["kind", "name"] {
        let value = text(reference, field);
        if value.is_empty() {
            errors.push(FieldError::required(&path.child(field), ""));
        }
        for wrong in names::path_segment(value) {
            errors.push(FieldError::invalid_str(&path.child(field), value, wrong));
        }
    }
    let version = text(reference, "apiVersion");
    let is_core = may_be_core || text(reference, "kind") == "ReplicationController";
    if version.split('/').count() > 2 {
        let why = format!("unexpected GroupVersion string: {version}");
        errors.push(FieldError::invalid_str(
            &path.child("apiVersion"),
            version,
            why,
        ));
    } else if !version.contains('/') && !is_core {
        errors.push(FieldError::invalid_str(
            &path.child("apiVersion"),
            version,
            "apiVersion must specify API group",
        ));
    }
}
