//! HorizontalPodAutoscalers: Argo CD's rule, for showing. Metrics arrive late or
//! never, so no wave waits for them.

use super::object::{Condition, Object};
use super::{Context, Health};

const CANNOT_SCALE: [&str; 2] = ["FailedGetScale", "FailedUpdateScale"];
const CANNOT_MEASURE: [&str; 6] = [
    "FailedGetResourceMetric",
    "FailedGetObjectMetric",
    "FailedGetPodsMetric",
    "FailedGetExternalMetric",
    "FailedComputeMetricsReplicas",
    "InvalidSelector",
];

pub(super) fn autoscaler(object: Object<'_>, _: &Context<'_>) -> Health {
    Health {
        gates: false,
        ..verdict(object)
    }
}

fn verdict(object: Object<'_>) -> Health {
    let broken = |kind: &str, reasons: &[&str]| {
        object
            .condition(kind)
            .filter(|c| c.is_false() && reasons.contains(&c.reason))
    };
    let broken =
        broken("AbleToScale", &CANNOT_SCALE).or_else(|| broken("ScalingActive", &CANNOT_MEASURE));
    if let Some(condition) = broken {
        return Health::degraded(condition.says());
    }
    let works = |kind| object.condition(kind).is_some_and(Condition::is_true);
    if works("AbleToScale") || works("ScalingLimited") {
        return Health::healthy();
    }
    Health::progressing("it has not scaled yet")
}

#[cfg(test)]
mod tests {
    use super::super::HealthStatus::*;
    use super::super::testing::{check, context};
    use super::super::{Gate, gate, health};
    use serde_json::json;

    #[test]
    fn missing_metrics_show_but_hold_nothing_up() {
        let able = json!({"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale"});
        for (conditions, status, message) in [
            (json!(null), Progressing, "it has not scaled yet"),
            (json!([able]), Healthy, ""),
            (
                json!([{"type": "ScalingLimited", "status": "True"}]),
                Healthy,
                "",
            ),
            (
                json!([able, {"type": "ScalingActive", "status": "False",
                    "reason": "FailedGetResourceMetric", "message": "no metrics"}]),
                Degraded,
                "ScalingActive: FailedGetResourceMetric: no metrics",
            ),
            (
                json!([able, {"type": "ScalingActive", "status": "False",
                    "reason": "ScalingDisabled"}]),
                Healthy,
                "",
            ),
            (
                json!([{"type": "AbleToScale", "status": "False", "reason": "FailedGetScale"}]),
                Degraded,
                "AbleToScale: FailedGetScale",
            ),
            (
                json!([{"type": "AbleToScale", "status": "False", "reason": "BackoffBoth"}]),
                Progressing,
                "it has not scaled yet",
            ),
        ] {
            let object = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
                "status": {"conditions": conditions}});
            check(&object, status, message);
            assert_eq!(gate(Some(&object), None, &context()), Gate::Pass);
            assert!(!health(&object, &context()).gates);
        }
    }
}
