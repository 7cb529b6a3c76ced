//! DaemonSets: kstatus's rule; `OnDelete` does not wait for updated Pods (Argo CD).

use super::object::Object;
use super::{Context, Health};

pub(super) fn daemon_set(object: Object<'_>, _: &Context<'_>) -> Health {
    // It is always written, also when it is zero.
    let Some(wanted) = object.int("/status/desiredNumberScheduled") else {
        return Health::progressing("its controller has not counted nodes yet");
    };
    let on_delete = object.text("/spec/updateStrategy/type") == Some("OnDelete");
    let updated = ("updatedNumberScheduled", "are updated");
    for (field, what) in [
        ("currentNumberScheduled", "are scheduled"),
        updated,
        ("numberAvailable", "are available"),
        ("numberReady", "are ready"),
    ] {
        if on_delete && field == updated.0 {
            continue;
        }
        let count = object.count(&format!("/status/{field}"));
        if count < wanted {
            return Health::progressing(format!("{count} of {wanted} Pods {what}"));
        }
    }
    Health::healthy()
}

#[cfg(test)]
mod tests {
    use super::super::HealthStatus::*;
    use super::super::testing::{check, with};
    use serde_json::{Value, json};

    #[test]
    fn every_node_has_its_pod() {
        let done = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": "agent", "generation": 1},
            "spec": {"updateStrategy": {"type": "RollingUpdate"}},
            "status": {
                "observedGeneration": 1, "desiredNumberScheduled": 5,
                "currentNumberScheduled": 5, "updatedNumberScheduled": 5,
                "numberAvailable": 5, "numberReady": 5, "numberMisscheduled": 0,
            },
        });
        let less = |field: &'static str| vec![(field, json!(4))];
        let on_delete = json!({"type": "OnDelete"});
        for (changes, status, message) in [
            (vec![], Healthy, ""),
            (
                less("/status/currentNumberScheduled"),
                Progressing,
                "4 of 5 Pods are scheduled",
            ),
            (
                less("/status/updatedNumberScheduled"),
                Progressing,
                "4 of 5 Pods are updated",
            ),
            (
                less("/status/numberAvailable"),
                Progressing,
                "4 of 5 Pods are available",
            ),
            (
                less("/status/numberReady"),
                Progressing,
                "4 of 5 Pods are ready",
            ),
            (
                vec![
                    ("/status/updatedNumberScheduled", Value::Null),
                    ("/spec/updateStrategy", on_delete.clone()),
                ],
                Healthy,
                "",
            ),
            (
                vec![
                    ("/status/numberReady", json!(1)),
                    ("/spec/updateStrategy", on_delete),
                ],
                Progressing,
                "1 of 5 Pods are ready",
            ),
            (
                vec![("/status/desiredNumberScheduled", Value::Null)],
                Progressing,
                "its controller has not counted nodes yet",
            ),
            (
                vec![("/status/desiredNumberScheduled", json!(0))],
                Healthy,
                "",
            ),
            (
                vec![("/status/observedGeneration", Value::Null)],
                Progressing,
                "its controller has not seen it yet",
            ),
        ] {
            check(&with(&done, &changes), status, message);
        }
    }
}
