//! Deployments: kstatus's rule, and Argo CD's for paused ones.

use super::object::Object;
use super::{Context, Health};

/// What an absent deadline was written as before it could be left out.
const NO_DEADLINE: i64 = i32::MAX as i64;

pub(super) fn deployment(object: Object<'_>, _: &Context<'_>) -> Health {
    if object.is_true("/spec/paused") {
        return Health::suspended("its rollout is paused");
    }
    let progress = object.condition("Progressing");
    if let Some(progress) = progress.filter(|c| c.reason == "ProgressDeadlineExceeded") {
        return Health::degraded(progress.says());
    }
    let wanted = object.int("/spec/replicas").unwrap_or(1);
    let existing = object.count("/status/replicas");
    let updated = object.count("/status/updatedReplicas");
    let ready = object.count("/status/readyReplicas");
    let available = object.count("/status/availableReplicas");
    if existing < wanted {
        return Health::progressing(format!("{existing} of {wanted} replicas exist"));
    }
    if updated < wanted {
        return Health::progressing(format!("{updated} of {wanted} replicas are updated"));
    }
    if existing > updated || existing > wanted {
        let old = existing - updated.min(wanted);
        return Health::progressing(format!("{old} old replicas are still to go"));
    }
    if available < updated {
        return Health::progressing(format!(
            "{available} of {updated} updated replicas are available"
        ));
    }
    if ready < wanted {
        return Health::progressing(format!("{ready} of {wanted} replicas are ready"));
    }
    // Only with a deadline does the controller keep this condition up to date.
    let deadline = object.int("/spec/progressDeadlineSeconds");
    let has_deadline = deadline.is_some_and(|seconds| seconds != NO_DEADLINE);
    let rolled_out = progress.is_some_and(|c| c.is_true() && c.reason == "NewReplicaSetAvailable");
    if has_deadline && !rolled_out {
        return Health::progressing("its new ReplicaSet is not yet reported as available");
    }
    if !object.condition("Available").is_some_and(|c| c.is_true()) {
        return Health::progressing("it is not yet reported as available");
    }
    Health::healthy()
}

#[cfg(test)]
mod tests {
    use super::super::HealthStatus::*;
    use super::super::testing::{check, with};
    use serde_json::json;

    #[test]
    fn a_rollout_ends_when_all_of_it_is_new_and_available() {
        let done = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "generation": 4},
            "spec": {"replicas": 3, "progressDeadlineSeconds": 600},
            "status": {
                "observedGeneration": 4, "replicas": 3, "updatedReplicas": 3,
                "readyReplicas": 3, "availableReplicas": 3,
                "conditions": [
                    {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
                    {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
                ],
            },
        });
        let late = json!([{"type": "Progressing", "status": "False",
            "reason": "ProgressDeadlineExceeded", "message": "web-1 has timed out"}]);
        let rolling = json!([
            {"type": "Available", "status": "True"},
            {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"},
        ]);
        let unavailable = json!([
            {"type": "Available", "status": "False"},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
        ]);
        for (changes, status, message) in [
            (vec![], Healthy, ""),
            (
                vec![("/spec/paused", json!(true))],
                Suspended,
                "its rollout is paused",
            ),
            (
                vec![
                    ("/status/observedGeneration", json!(3)),
                    ("/spec/paused", json!(true)),
                ],
                Progressing,
                "its status is of generation 3, not yet of 4",
            ),
            (
                vec![("/status/observedGeneration", json!(null))],
                Progressing,
                "its controller has not seen it yet",
            ),
            (
                vec![("/status", json!({}))],
                Progressing,
                "its controller has not seen it yet",
            ),
            (
                vec![("/status/conditions", late)],
                Degraded,
                "Progressing: ProgressDeadlineExceeded: web-1 has timed out",
            ),
            (
                vec![("/status/replicas", json!(2))],
                Progressing,
                "2 of 3 replicas exist",
            ),
            (
                vec![("/status/updatedReplicas", json!(1))],
                Progressing,
                "1 of 3 replicas are updated",
            ),
            (
                vec![("/status/replicas", json!(5))],
                Progressing,
                "2 old replicas are still to go",
            ),
            (
                vec![
                    ("/status/replicas", json!(5)),
                    ("/status/updatedReplicas", json!(5)),
                ],
                Progressing,
                "2 old replicas are still to go",
            ),
            (
                vec![("/status/availableReplicas", json!(null))],
                Progressing,
                "0 of 3 updated replicas are available",
            ),
            (
                vec![("/status/readyReplicas", json!(2))],
                Progressing,
                "2 of 3 replicas are ready",
            ),
            (
                vec![("/status/conditions", rolling.clone())],
                Progressing,
                "its new ReplicaSet is not yet reported as available",
            ),
            (
                vec![
                    ("/status/conditions", rolling.clone()),
                    ("/spec/progressDeadlineSeconds", json!(2_147_483_647)),
                ],
                Healthy,
                "",
            ),
            (
                vec![
                    ("/status/conditions", rolling),
                    ("/spec/progressDeadlineSeconds", json!(null)),
                ],
                Healthy,
                "",
            ),
            (
                vec![("/status/conditions", unavailable)],
                Progressing,
                "it is not yet reported as available",
            ),
            // The default is one replica, and zero is a number like any other.
            (
                vec![("/spec/replicas", json!(null))],
                Progressing,
                "2 old replicas are still to go",
            ),
            (
                vec![
                    ("/spec/replicas", json!(0)),
                    ("/status/replicas", json!(null)),
                    ("/status/updatedReplicas", json!(null)),
                    ("/status/readyReplicas", json!(null)),
                    ("/status/availableReplicas", json!(null)),
                ],
                Healthy,
                "",
            ),
        ] {
            check(&with(&done, &changes), status, message);
        }
    }
}
