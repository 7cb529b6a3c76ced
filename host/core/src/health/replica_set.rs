//! ReplicaSets: Argo CD's failure, kstatus's counts.

use super::object::Object;
use super::{Context, Health};

pub(super) fn replica_set(object: Object<'_>, _: &Context<'_>) -> Health {
    let failure = object.condition("ReplicaFailure");
    if let Some(failure) = failure.filter(|condition| condition.is_true()) {
        return Health::degraded(failure.says());
    }
    let wanted = object.int("/spec/replicas").unwrap_or(1);
    for (field, what) in [
        ("fullyLabeledReplicas", "are fully labelled"),
        ("availableReplicas", "are available"),
        ("readyReplicas", "are ready"),
    ] {
        let count = object.count(&format!("/status/{field}"));
        if count < wanted {
            return Health::progressing(format!("{count} of {wanted} replicas {what}"));
        }
    }
    let extra = object.count("/status/replicas").saturating_sub(wanted);
    if extra > 0 {
        return Health::progressing(format!("{extra} replicas are still to go"));
    }
    Health::healthy()
}

#[cfg(test)]
mod tests {
    use super::super::HealthStatus::*;
    use super::super::testing::{check, with};
    use serde_json::json;

    #[test]
    fn a_failure_to_create_pods_is_one() {
        let done = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": "web-1", "generation": 1},
            "spec": {"replicas": 2},
            "status": {"observedGeneration": 1, "replicas": 2, "fullyLabeledReplicas": 2,
                "availableReplicas": 2, "readyReplicas": 2},
        });
        let failure = |status: &str| {
            let condition = json!([{"type": "ReplicaFailure", "status": status,
                "reason": "FailedCreate", "message": "exceeded quota"}]);
            vec![("/status/conditions", condition)]
        };
        let one = |field: &'static str| vec![(field, json!(1))];
        for (changes, status, message) in [
            (vec![], Healthy, ""),
            (
                failure("True"),
                Degraded,
                "ReplicaFailure: FailedCreate: exceeded quota",
            ),
            (failure("False"), Healthy, ""),
            (
                one("/status/fullyLabeledReplicas"),
                Progressing,
                "1 of 2 replicas are fully labelled",
            ),
            (
                one("/status/availableReplicas"),
                Progressing,
                "1 of 2 replicas are available",
            ),
            (
                one("/status/readyReplicas"),
                Progressing,
                "1 of 2 replicas are ready",
            ),
            (
                vec![("/status/replicas", json!(3))],
                Progressing,
                "1 replicas are still to go",
            ),
        ] {
            check(&with(&done, &changes), status, message);
        }
    }
}
