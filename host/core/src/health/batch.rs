//! Jobs as Flux reads them, and CronJobs.
//!
//! kstatus calls a running Job current and Argo CD calls a resumed one healthy;
//! neither can hold back a wave. Here only a Job that has completed is healthy.

use super::object::{Object, readable};
use super::{Context, Health, HealthStatus};

pub(super) fn job(object: Object<'_>, _: &Context<'_>) -> Health {
    let holds = |kind| object.condition(kind).filter(|c| c.is_true());
    if let Some(failed) = holds("Failed") {
        return Health::degraded(failed.says());
    }
    if holds("Complete").is_some() {
        return Health::healthy();
    }
    if object.is_true("/spec/suspend") {
        return Health::suspended("it is suspended");
    }
    let (active, failed) = (
        object.count("/status/active"),
        object.count("/status/failed"),
    );
    Health::progressing(format!(
        "it is running: {active} Pods active, {failed} failed"
    ))
}

/// A CronJob is healthy once it exists; what its last run did is told, but a
/// wave cannot wait for a schedule.
pub(super) fn cron_job(object: Object<'_>, _: &Context<'_>) -> Health {
    let scheduled = object.time("/status/lastScheduleTime");
    let succeeded = object.time("/status/lastSuccessfulTime");
    let running = object.items("/status/active").next().is_some();
    let message = if object.is_true("/spec/suspend") {
        "it is suspended".to_owned()
    } else {
        match scheduled {
            Some(at) if !running && succeeded.is_none_or(|success| success < at) => {
                readable(&format!("its run of {at} did not succeed"))
            }
            _ => String::new(),
        }
    };
    Health::new(HealthStatus::Healthy, message)
}

#[cfg(test)]
mod tests {
    use super::super::HealthStatus::*;
    use super::super::testing::{check, with};
    use serde_json::{Value, json};

    #[test]
    fn only_completion_is_health_of_a_job() {
        let running = json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate"},
            "spec": {}, "status": {"active": 1, "failed": 2},
        });
        let conditions = |conditions: Value| vec![("/status/conditions", conditions)];
        let suspended = ("/spec/suspend", json!(true));
        for (changes, status, message) in [
            (
                vec![],
                Progressing,
                "it is running: 1 Pods active, 2 failed",
            ),
            (
                vec![("/status", json!({}))],
                Progressing,
                "it is running: 0 Pods active, 0 failed",
            ),
            (
                conditions(json!([{"type": "Complete", "status": "True"}])),
                Healthy,
                "",
            ),
            (
                conditions(json!([
                    {"type": "SuccessCriteriaMet", "status": "True"},
                    {"type": "Complete", "status": "False"},
                ])),
                Progressing,
                "it is running: 1 Pods active, 2 failed",
            ),
            (
                conditions(json!([{"type": "Failed", "status": "True",
                    "reason": "BackoffLimitExceeded"}])),
                Degraded,
                "Failed: BackoffLimitExceeded",
            ),
            (
                conditions(json!([{"type": "Failed", "status": "False"}])),
                Progressing,
                "it is running: 1 Pods active, 2 failed",
            ),
            (vec![suspended.clone()], Suspended, "it is suspended"),
            (
                vec![
                    suspended,
                    (
                        "/status/conditions",
                        json!([{"type": "Complete", "status": "True"}]),
                    ),
                ],
                Healthy,
                "",
            ),
            // A resumed one keeps the condition, with the status False.
            (
                conditions(json!([{"type": "Suspended", "status": "False"}])),
                Progressing,
                "it is running: 1 Pods active, 2 failed",
            ),
        ] {
            check(&with(&running, &changes), status, message);
        }
    }

    #[test]
    fn a_schedule_never_holds_anything_up() {
        let object = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "report"},
            "spec": {"schedule": "0 * * * *"},
            "status": {"lastScheduleTime": "2026-11-21T11:00:00Z",
                "lastSuccessfulTime": "2026-11-21T11:02:00Z"},
        });
        let failed = "its run of 2026-11-21T11:00:00Z did not succeed";
        for (changes, message) in [
            (vec![], ""),
            (vec![("/status", json!({}))], ""),
            (vec![("/status/lastSuccessfulTime", Value::Null)], failed),
            (
                vec![("/status/lastSuccessfulTime", json!("2026-11-21T10:02:00Z"))],
                failed,
            ),
            (
                vec![
                    ("/status/lastSuccessfulTime", Value::Null),
                    ("/status/active", json!([{"name": "report-1"}])),
                ],
                "",
            ),
            (vec![("/spec/suspend", json!(true))], "it is suspended"),
            (vec![("/status/lastScheduleTime", json!("noon"))], ""),
        ] {
            check(&with(&object, &changes), Healthy, message);
        }
    }
}
