//! Pods: Argo CD's rule, and kstatus's for Pods that no node takes.

use super::object::{Condition, Object, readable};
use super::{Context, Health};
use std::time::Duration;

/// How long a Pod may be unschedulable before it counts as failed. kstatus waits
/// 15 seconds; a cluster that first has to add a node needs longer to begin.
const UNSCHEDULABLE: Duration = Duration::from_secs(60);

pub(super) fn pod(object: Object<'_>, context: &Context<'_>) -> Health {
    let policy = object.text("/spec/restartPolicy").unwrap_or("Always");
    let runs_on = policy == "Always" || context.overrides.ignore_restart_policy;
    if runs_on && let Some(problem) = waiting_for_nothing(object) {
        return Health::degraded(problem);
    }
    match object.text("/status/phase") {
        Some("Succeeded") => Health::healthy(),
        Some("Failed") => Health::degraded(failure(object)),
        Some("Running") if runs_on => running(object),
        // A Pod of finite life is done when it has ended, not when it runs.
        Some("Running") => Health::progressing("it is running"),
        None | Some("Pending") => pending(object, context),
        Some(phase) => Health::unknown(readable(&format!("its phase is {phase}"))),
    }
}

/// Containers first: those of the Pod, then those that prepare it.
fn containers(object: Object<'_>) -> impl Iterator<Item = Object<'_>> {
    let own = object.items("/status/containerStatuses");
    own.chain(object.items("/status/initContainerStatuses"))
}

/// A container that waits for a reason that waiting does not cure. The pattern
/// is Argo CD's: `ErrImagePull`, `CreateContainerConfigError`, `CrashLoopBackOff`
/// and whatever else is named so.
fn waiting_for_nothing(object: Object<'_>) -> Option<String> {
    containers(object).find_map(|container| {
        let reason = container.text("/state/waiting/reason")?;
        let hopeless =
            reason.starts_with("Err") || reason.ends_with("Error") || reason.ends_with("BackOff");
        hopeless.then(|| {
            let name = container.text("/name").unwrap_or("?");
            let message = container.text("/state/waiting/message").unwrap_or("");
            describe(&[&format!("container {name}"), reason, message])
        })
    })
}

fn failure(object: Object<'_>) -> String {
    let said = [
        object.text("/status/reason"),
        object.text("/status/message"),
    ];
    let said: Vec<_> = said.into_iter().flatten().collect();
    if !said.is_empty() {
        return describe(&said);
    }
    let ended = containers(object).find_map(|container| {
        let ended = Object(container.at("/state/terminated")?);
        let code = ended.count("/exitCode");
        let reason = ended.text("/reason").unwrap_or("");
        (code != 0 || reason == "OOMKilled").then(|| {
            let name = container.text("/name").unwrap_or("?");
            let code = format!("exit code {code}");
            let message = ended.text("/message").unwrap_or("");
            describe(&[&format!("container {name}"), reason, &code, message])
        })
    });
    ended.unwrap_or_else(|| "it failed".to_owned())
}

fn running(object: Object<'_>) -> Health {
    if object.condition("Ready").is_some_and(Condition::is_true) {
        return Health::healthy();
    }
    let ended_before = object
        .items("/status/containerStatuses")
        .find(|container| container.at("/lastState/terminated").is_some());
    match ended_before {
        Some(container) => {
            let name = container.text("/name").unwrap_or("?");
            Health::degraded(readable(&format!(
                "container {name} has ended before and is not ready"
            )))
        }
        None => Health::progressing("it is not ready yet"),
    }
}

fn pending(object: Object<'_>, context: &Context<'_>) -> Health {
    let scheduled = object.condition("PodScheduled");
    let Some(condition) = scheduled.filter(|c| c.is_false() && c.reason == "Unschedulable") else {
        return Health::progressing("it is not running yet");
    };
    let since = condition
        .since
        .or_else(|| object.time("/metadata/creationTimestamp"));
    // A time that lies ahead is a clock that differs: it counts as just now.
    let waited = since.map_or(Duration::ZERO, |since| {
        Duration::try_from(context.now.duration_since(since)).unwrap_or(Duration::ZERO)
    });
    match UNSCHEDULABLE.checked_sub(waited) {
        None | Some(Duration::ZERO) => Health::degraded(condition.says()),
        Some(left) => Health {
            recheck_after: Some(left),
            ..Health::progressing(condition.says())
        },
    }
}

fn describe(parts: &[&str]) -> String {
    let parts: Vec<_> = parts
        .iter()
        .copied()
        .filter(|part| !part.is_empty())
        .collect();
    readable(&parts.join(": "))
}

#[cfg(test)]
mod tests {
    use super::super::HealthStatus::{self, *};
    use super::super::health;
    use super::super::testing::{check, check_in, context, with};
    use serde_json::{Value, json};
    use std::time::Duration;

    fn pod(restart_policy: &str, status: impl Into<Value>) -> Value {
        let status = status.into();
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "creationTimestamp": "2026-11-21T11:00:00Z"},
            "spec": {"restartPolicy": restart_policy}, "status": status})
    }

    fn waiting(reason: &str) -> Value {
        json!({"phase": "Pending", "containerStatuses": [
            {"name": "main", "state": {"waiting": {"reason": reason, "message": "no"}}}]})
    }

    #[test]
    fn a_pod_that_runs_on() {
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let unready = json!([{"type": "Ready", "status": "False"}]);
        let ended = json!([{"name": "main", "lastState": {"terminated": {"exitCode": 1}}}]);
        let looping_init = json!({"phase": "Pending", "initContainerStatuses": [
            {"name": "prepare", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]});
        let cases: Vec<(Value, HealthStatus, &str)> = vec![
            (json!({}), Progressing, "it is not running yet"),
            (
                json!({"phase": "Pending"}),
                Progressing,
                "it is not running yet",
            ),
            (
                waiting("ContainerCreating"),
                Progressing,
                "it is not running yet",
            ),
            (
                waiting("ErrImagePull"),
                Degraded,
                "container main: ErrImagePull: no",
            ),
            (
                waiting("CreateContainerConfigError"),
                Degraded,
                "container main: CreateContainerConfigError: no",
            ),
            (
                waiting("ImagePullBackOff"),
                Degraded,
                "container main: ImagePullBackOff: no",
            ),
            (
                looping_init,
                Degraded,
                "container prepare: CrashLoopBackOff",
            ),
            (
                json!({"phase": "Running", "conditions": ready}),
                Healthy,
                "",
            ),
            (
                json!({"phase": "Running", "conditions": unready}),
                Progressing,
                "it is not ready yet",
            ),
            (
                json!({"phase": "Running", "conditions": ready, "containerStatuses": ended}),
                Healthy,
                "",
            ),
            (
                json!({"phase": "Running", "conditions": unready, "containerStatuses": ended}),
                Degraded,
                "container main has ended before and is not ready",
            ),
            (json!({"phase": "Succeeded"}), Healthy, ""),
            (
                json!({"phase": "Unknown"}),
                HealthStatus::Unknown,
                "its phase is Unknown",
            ),
        ];
        for (status, expected, message) in cases {
            check(&pod("Always", status), expected, message);
        }
    }

    #[test]
    fn a_failure_names_its_cause() {
        for (status, message) in [
            (json!({"phase": "Failed"}), "it failed"),
            (
                json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}),
                "Evicted: low on memory",
            ),
            (
                json!({"phase": "Failed", "containerStatuses": [
                    {"name": "fine", "state": {"terminated": {"exitCode": 0}}},
                    {"name": "main", "state": {"terminated":
                        {"exitCode": 137, "reason": "OOMKilled"}}},
                ]}),
                "container main: OOMKilled: exit code 137",
            ),
        ] {
            check(&pod("Never", status), Degraded, message);
        }
    }

    #[test]
    fn a_pod_of_finite_life_is_done_when_it_has_ended() {
        let ready =
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        for policy in ["Never", "OnFailure"] {
            check(&pod(policy, ready.clone()), Progressing, "it is running");
            check(&pod(policy, json!({"phase": "Succeeded"})), Healthy, "");
            // A kubelet may yet succeed where a Job would retry.
            let message = "it is not running yet";
            check(
                &pod(policy, waiting("ImagePullBackOff")),
                Progressing,
                message,
            );

            let mut context = context();
            context.overrides.ignore_restart_policy = true;
            check_in(&pod(policy, ready.clone()), &context, Healthy, "");
        }
    }

    #[test]
    fn a_pod_that_no_node_takes_fails_after_a_minute() {
        let unschedulable = |since: Value| {
            pod(
                "Always",
                json!({"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                 "message": "0/3 nodes", "lastTransitionTime": since}]}),
            )
        };
        let message = "PodScheduled: Unschedulable: 0/3 nodes";
        for (since, status, recheck) in [
            (json!("2026-11-21T11:59:50Z"), Progressing, Some(50)),
            (json!("2026-11-21T11:59:01Z"), Progressing, Some(1)),
            (json!("2026-11-21T11:59:00Z"), Degraded, None),
            (json!("2026-11-21T09:00:00Z"), Degraded, None),
            (json!("2026-11-21T12:30:00Z"), Progressing, Some(60)),
            // Without a time of its own, that of the Pod.
            (json!(null), Degraded, None),
            (json!("soon"), Degraded, None),
        ] {
            let object = unschedulable(since);
            check(&object, status, message);
            let recheck = recheck.map(Duration::from_secs);
            assert_eq!(health(&object, &context()).recheck_after, recheck);
        }
        let ageless = with(
            &unschedulable(json!(null)),
            &[("/metadata/creationTimestamp", Value::Null)],
        );
        let recheck = Some(Duration::from_secs(60));
        assert_eq!(health(&ageless, &context()).recheck_after, recheck);
    }
}
