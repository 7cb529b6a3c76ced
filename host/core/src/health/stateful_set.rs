//! StatefulSets: kstatus's rule, except that `OnDelete` still waits for its Pods.

use super::object::Object;
use super::{Context, Health};

pub(super) fn stateful_set(object: Object<'_>, _: &Context<'_>) -> Health {
    let wanted = object.int("/spec/replicas").unwrap_or(1);
    let existing = object.count("/status/replicas");
    let ready = object.count("/status/readyReplicas");
    let on_delete = object.text("/spec/updateStrategy/type") == Some("OnDelete");
    if existing < wanted {
        return Health::progressing(format!("{existing} of {wanted} replicas exist"));
    }
    if ready < wanted {
        return Health::progressing(format!("{ready} of {wanted} replicas are ready"));
    }
    if existing > wanted {
        let extra = existing - wanted;
        return Health::progressing(format!("{extra} replicas are still to go"));
    }
    // Under OnDelete, Pods become new when somebody deletes them; nothing to
    // wait for.
    if on_delete {
        return Health::healthy();
    }
    let updated = object.count("/status/updatedReplicas");
    if let Some(partition) = object.int("/spec/updateStrategy/rollingUpdate/partition") {
        let wanted = wanted.saturating_sub(partition).max(0);
        if updated < wanted {
            return Health::progressing(format!("{updated} of {wanted} replicas are updated"));
        }
        return Health::healthy();
    }
    let current = object.count("/status/currentReplicas");
    if current < wanted {
        return Health::progressing(format!("{current} of {wanted} replicas are current"));
    }
    if object.text("/status/currentRevision") != object.text("/status/updateRevision") {
        return Health::progressing("the update to its new revision is not complete");
    }
    Health::healthy()
}

#[cfg(test)]
mod tests {
    use super::super::HealthStatus::*;
    use super::super::testing::{check, with};
    use serde_json::json;

    #[test]
    fn each_strategy_has_its_own_end() {
        let done = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "db", "generation": 2},
            "spec": {"replicas": 3, "updateStrategy": {"type": "RollingUpdate"}},
            "status": {
                "observedGeneration": 2, "replicas": 3, "readyReplicas": 3,
                "currentReplicas": 3, "updatedReplicas": 3,
                "currentRevision": "db-1", "updateRevision": "db-1",
            },
        });
        let on_delete = ("/spec/updateStrategy", json!({"type": "OnDelete"}));
        let partition = |partition: i64| {
            let strategy = json!({"type": "RollingUpdate",
                "rollingUpdate": {"partition": partition}});
            ("/spec/updateStrategy", strategy)
        };
        let updated = |count: i64| ("/status/updatedReplicas", json!(count));
        let ready = |count: i64| ("/status/readyReplicas", json!(count));
        for (changes, status, message) in [
            (vec![], Healthy, ""),
            (
                vec![("/status/observedGeneration", json!(0))],
                Progressing,
                "its status is of generation 0, not yet of 2",
            ),
            (
                vec![("/status/observedGeneration", json!(null))],
                Progressing,
                "its controller has not seen it yet",
            ),
            (
                vec![("/status/replicas", json!(1))],
                Progressing,
                "1 of 3 replicas exist",
            ),
            (vec![ready(2)], Progressing, "2 of 3 replicas are ready"),
            (
                vec![("/status/replicas", json!(4))],
                Progressing,
                "1 replicas are still to go",
            ),
            (vec![on_delete.clone(), updated(0)], Healthy, ""),
            (
                vec![on_delete, ready(1)],
                Progressing,
                "1 of 3 replicas are ready",
            ),
            (
                vec![partition(1), updated(1)],
                Progressing,
                "1 of 2 replicas are updated",
            ),
            (vec![partition(1), updated(2)], Healthy, ""),
            (vec![partition(9), updated(0)], Healthy, ""),
            (
                vec![partition(0), updated(2)],
                Progressing,
                "2 of 3 replicas are updated",
            ),
            (
                vec![("/status/currentReplicas", json!(2))],
                Progressing,
                "2 of 3 replicas are current",
            ),
            (
                vec![("/status/updateRevision", json!("db-2"))],
                Progressing,
                "the update to its new revision is not complete",
            ),
        ] {
            check(&with(&done, &changes), status, message);
        }
    }
}
