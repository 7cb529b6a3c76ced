//! What kstatus asks of every object, before and after the rule of its kind.

use super::Health;
use super::object::Object;

/// The steps before a kind's own rule: a status of another generation, work in
/// progress, or a stall ends the matter.
pub(super) fn before(object: Object<'_>) -> Option<Health> {
    if let Some(behind) = behind(object) {
        return Some(behind);
    }
    if let Some(condition) = object.condition("Reconciling").filter(|c| c.is_true()) {
        return Some(Health::progressing(condition.says()));
    }
    if let Some(condition) = object.condition("Stalled").filter(|c| c.is_true()) {
        return Some(Health::degraded(condition.says()));
    }
    None
}

/// Whether the status speaks of another generation than the present one. Not
/// only of an older one: a restored object may carry the status of its former
/// life.
pub(super) fn behind(object: Object<'_>) -> Option<Health> {
    let observed = object.int("/status/observedGeneration")?;
    let generation = object.generation()?;
    (observed != generation).then(|| {
        Health::progressing(format!(
            "its status is of generation {observed}, not yet of {generation}"
        ))
    })
}

/// As [`before`], for kinds whose controller is known to report what it has
/// seen: as long as it has reported nothing, it has seen nothing.
pub(super) fn before_observed(object: Object<'_>) -> Option<Health> {
    if object.int("/status/observedGeneration").is_none() {
        return Some(Health::progressing("its controller has not seen it yet"));
    }
    before(object)
}

/// The steps for kinds without a rule: the condition `Ready` where there is one.
///
/// A `Ready` that is False is never a failure by itself (kstatus): most
/// controllers are not ready before they are. The time limit of the wave decides.
pub(super) fn after(object: Object<'_>) -> Health {
    if let Some(condition) = object.condition("Ready") {
        return if condition.is_true() {
            Health::healthy()
        } else {
            Health::progressing(condition.says())
        };
    }
    let stale = object
        .conditions()
        .any(|condition| condition.kind == "Ready");
    if stale {
        return Health::progressing("its Ready condition is of an older generation");
    }
    Health::healthy()
}

#[cfg(test)]
mod tests {
    use super::super::HealthStatus::*;
    use super::super::testing::{check, with};
    use serde_json::{Value, json};

    #[test]
    fn a_custom_resource_is_read_as_kstatus_reads_it() {
        let resource = json!({"apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"generation": 3}, "status": {}});
        let conditions = |conditions: Value| with(&resource, &[("/status/conditions", conditions)]);
        let observed = |generation: i64| {
            with(
                &resource,
                &[("/status/observedGeneration", json!(generation))],
            )
        };
        for (object, status, message) in [
            (resource.clone(), Healthy, ""),
            (observed(3), Healthy, ""),
            (
                observed(2),
                Progressing,
                "its status is of generation 2, not yet of 3",
            ),
            (
                observed(4),
                Progressing,
                "its status is of generation 4, not yet of 3",
            ),
            (
                observed(-1),
                Progressing,
                "its status is of generation -1, not yet of 3",
            ),
            (
                conditions(json!([{"type": "Ready", "status": "True"}])),
                Healthy,
                "",
            ),
            (
                conditions(json!([{"type": "Ready", "status": "False", "reason": "Broken"}])),
                Progressing,
                "Ready: Broken",
            ),
            (
                conditions(json!([{"type": "Ready", "status": "Unknown"}])),
                Progressing,
                "Ready",
            ),
            (conditions(json!([{"type": "Ready"}])), Progressing, "Ready"),
            (
                conditions(json!([{"type": "Ready", "status": "True", "observedGeneration": 2}])),
                Progressing,
                "its Ready condition is of an older generation",
            ),
            (
                conditions(json!([
                    {"type": "Ready", "status": "True"},
                    {"type": "Reconciling", "status": "True", "message": "rolling"},
                ])),
                Progressing,
                "Reconciling: rolling",
            ),
            (
                conditions(json!([
                    {"type": "Ready", "status": "True"},
                    {"type": "Stalled", "status": "True", "reason": "NoQuota"},
                ])),
                Degraded,
                "Stalled: NoQuota",
            ),
            (
                conditions(json!([
                    {"type": "Reconciling", "status": "False"},
                    {"type": "Stalled", "status": "False"},
                ])),
                Healthy,
                "",
            ),
            (conditions(json!("none")), Healthy, ""),
            (conditions(json!([1, null, {"type": 5}])), Healthy, ""),
        ] {
            check(&object, status, message);
        }
    }
}
