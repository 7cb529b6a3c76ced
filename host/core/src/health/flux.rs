//! HelmReleases and HelmRepositories of Flux.
//!
//! helm-controller advances `status.observedGeneration` only when a release is
//! ready or stalled, and leaves conditions of the last generation in place while
//! it works on the next. So a condition counts only if it says itself that it is
//! of the present generation, and a stall is looked at before the status' own
//! generation.

use super::object::{Condition, Object};
use super::{Context, Health};

pub(super) fn helm_release(object: Object<'_>, _: &Context<'_>) -> Health {
    let generation = object.generation();
    let current = |kind: &str| {
        object
            .conditions()
            .find(|condition| condition.kind == kind)
            .filter(|condition| generation.is_none() || condition.observed == generation)
    };
    if object.is_true("/spec/suspend") {
        return Health::suspended("it is suspended");
    }
    if let Some(stalled) = current("Stalled").filter(|c| c.is_true()) {
        return Health::degraded(stalled.says());
    }
    let ready = current("Ready");
    let last_error = ready.filter(|condition| condition.is_false());
    let waiting = |what: &str| match last_error {
        Some(error) => Health::progressing(format!("{what}; last error: {}", error.says())),
        None => Health::progressing(what),
    };
    let observed = object.int("/status/observedGeneration");
    if observed.is_none() || generation.is_some_and(|_| observed != generation) {
        return waiting("its controller is not done with this generation");
    }
    if let Some(reconciling) = current("Reconciling").filter(|c| c.is_true()) {
        return waiting(&reconciling.says());
    }
    match ready {
        Some(condition) if condition.is_true() => Health::healthy(),
        Some(condition) if condition.reason == "DependencyNotReady" => {
            Health::progressing(condition.says())
        }
        // It is tried again all the same, and may recover.
        Some(condition) if Condition::is_false(condition) => Health::degraded(condition.says()),
        Some(condition) => Health::progressing(condition.says()),
        None => Health::progressing("it has not been reconciled yet"),
    }
}

/// A HelmRepository of type `oci` is only an address: source-controller never
/// gives it a status, and the one that it is created with says for ever that it
/// is in progress (flux2 issue 5149, source-controller issues 1930 and 2135).
pub(super) fn helm_repository(object: Object<'_>, _: &Context<'_>) -> Health {
    if object.text("/spec/type") == Some("oci") {
        return Health::healthy();
    }
    super::generic::before(object).unwrap_or_else(|| super::generic::after(object))
}

#[cfg(test)]
mod tests {
    use super::super::HealthStatus::*;
    use super::super::testing::{check, with};
    use serde_json::{Value, json};

    fn condition(kind: &str, status: &str, reason: &str, generation: i64) -> Value {
        json!({"type": kind, "status": status, "reason": reason,
            "observedGeneration": generation})
    }

    #[test]
    fn a_release_is_read_from_the_top() {
        let release = json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": "istiod", "generation": 2},
            "spec": {"interval": "30m"},
            "status": {"observedGeneration": 2, "conditions": [
                condition("Ready", "True", "UpgradeSucceeded", 2),
                condition("Released", "True", "UpgradeSucceeded", 2),
            ]},
        });
        let conditions = |conditions: &[Value]| ("/status/conditions", json!(conditions));
        let observed = |generation: i64| ("/status/observedGeneration", json!(generation));
        let ready = |status, reason| condition("Ready", status, reason, 2);
        let working = "its controller is not done with this generation";
        for (changes, status, message) in [
            (vec![], Healthy, ""),
            (
                vec![("/spec/suspend", json!(true))],
                Suspended,
                "it is suspended",
            ),
            (
                vec![
                    observed(1),
                    conditions(&[condition("Stalled", "True", "RetriesExceeded", 2)]),
                ],
                Degraded,
                "Stalled: RetriesExceeded",
            ),
            // A stall over the generation before is history.
            (
                vec![
                    observed(1),
                    conditions(&[condition("Stalled", "True", "RetriesExceeded", 1)]),
                ],
                Progressing,
                working,
            ),
            (vec![observed(-1), conditions(&[])], Progressing, working),
            (vec![("/status", json!({}))], Progressing, working),
            (
                vec![observed(1), conditions(&[ready("False", "UpgradeFailed")])],
                Progressing,
                "its controller is not done with this generation; last error: Ready: UpgradeFailed",
            ),
            (
                vec![conditions(&[
                    ready("False", "InstallFailed"),
                    condition("Reconciling", "True", "ProgressingWithRetry", 2),
                ])],
                Progressing,
                "Reconciling: ProgressingWithRetry; last error: Ready: InstallFailed",
            ),
            (
                vec![conditions(&[
                    ready("True", "InstallSucceeded"),
                    condition("Reconciling", "True", "Progressing", 2),
                ])],
                Progressing,
                "Reconciling: Progressing",
            ),
            (
                vec![conditions(&[ready("False", "DependencyNotReady")])],
                Progressing,
                "Ready: DependencyNotReady",
            ),
            (
                vec![conditions(&[ready("False", "UpgradeFailed")])],
                Degraded,
                "Ready: UpgradeFailed",
            ),
            (
                vec![conditions(&[ready("Unknown", "Progressing")])],
                Progressing,
                "Ready: Progressing",
            ),
            (
                vec![conditions(&[condition(
                    "Ready",
                    "True",
                    "InstallSucceeded",
                    1,
                )])],
                Progressing,
                "it has not been reconciled yet",
            ),
            (
                vec![conditions(&[])],
                Progressing,
                "it has not been reconciled yet",
            ),
        ] {
            check(&with(&release, &changes), status, message);
        }
    }

    #[test]
    fn an_oci_repository_is_only_an_address() {
        let repository = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmRepository",
            "metadata": {"generation": 1}, "spec": {"type": "oci", "url": "oci://example.com/a"},
            "status": {"observedGeneration": -1},
        });
        check(&repository, Healthy, "");
        let http = with(&repository, &[("/spec/type", Value::Null)]);
        let message = "its status is of generation -1, not yet of 1";
        check(&http, Progressing, message);
        let ready = json!({"observedGeneration": 1,
            "conditions": [condition("Ready", "True", "Succeeded", 1)]});
        check(&with(&http, &[("/status", ready)]), Healthy, "");
    }
}
