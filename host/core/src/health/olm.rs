//! Subscriptions and CatalogSources of the Operator Lifecycle Manager.
//!
//! Subscriptions as Argo CD reads them; Argo CD has no rule for CatalogSources.
//! A Subscription at its latest known version says nothing of the operator's own
//! ClusterServiceVersion: whoever needs that waits for the kinds that it brings.

use super::object::{Object, readable};
use super::{Context, Health};

const FAILURES: [&str; 4] = [
    "CatalogSourcesUnhealthy",
    "InstallPlanFailed",
    "InstallPlanMissing",
    "ResolutionFailed",
];

pub(super) fn subscription(object: Object<'_>, _: &Context<'_>) -> Health {
    let holds = |kind: &str| object.condition(kind).filter(|c| c.is_true());
    if let Some(condition) = FAILURES.iter().find_map(|kind| holds(kind)) {
        return Health::degraded(condition.says());
    }
    let state = object.text("/status/state");
    if state == Some("UpgradeFailed") {
        return Health::degraded("its upgrade failed");
    }
    if let Some(condition) = holds("InstallPlanPending") {
        return Health::progressing(condition.says());
    }
    let installed = object.text("/status/installedCSV").is_some();
    match state {
        None => Health::progressing("it is not resolved yet"),
        // The first installation is an upgrade from nothing.
        Some("UpgradePending") if !installed => Health::progressing("it is not installed yet"),
        Some(_) => Health::healthy(),
    }
}

pub(super) fn catalog_source(object: Object<'_>, _: &Context<'_>) -> Health {
    match object.text("/status/connectionState/lastObservedState") {
        Some("READY") => Health::healthy(),
        Some(state) => Health::progressing(readable(&format!("its connection is {state}"))),
        None => Health::progressing("it has not been connected to yet"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::HealthStatus::*;
    use super::super::testing::check;
    use serde_json::{Value, json};

    #[test]
    fn a_subscription_has_to_be_resolved_and_installed() {
        let healthy = json!({"type": "CatalogSourcesUnhealthy", "status": "False"});
        let mut cases: Vec<(Value, _, String)> = vec![
            (json!({}), Progressing, "it is not resolved yet".into()),
            (
                json!({"conditions": [healthy]}),
                Progressing,
                "it is not resolved yet".into(),
            ),
            (
                json!({"state": "AtLatestKnown", "installedCSV": "nfd.v1", "conditions": [healthy]}),
                Healthy,
                String::new(),
            ),
            (
                json!({"state": "UpgradePending", "currentCSV": "nfd.v1"}),
                Progressing,
                "it is not installed yet".into(),
            ),
            (
                json!({"state": "UpgradeAvailable", "installedCSV": "nfd.v1"}),
                Healthy,
                String::new(),
            ),
            (
                json!({"state": "UpgradePending", "installedCSV": "nfd.v1", "conditions": [
                    {"type": "InstallPlanPending", "status": "True", "reason": "RequiresApproval"}]}),
                Progressing,
                "InstallPlanPending: RequiresApproval".into(),
            ),
            (
                json!({"state": "UpgradeFailed"}),
                Degraded,
                "its upgrade failed".into(),
            ),
        ];
        for failure in super::FAILURES {
            let conditions = json!([{"type": failure, "status": "True", "reason": "X"}]);
            let status = json!({"state": "AtLatestKnown", "conditions": conditions});
            cases.push((status, Degraded, format!("{failure}: X")));
        }
        for (status, expected, message) in cases {
            let object = json!({"apiVersion": "operators.coreos.com/v1alpha1",
                "kind": "Subscription", "spec": {"name": "nfd"}, "status": status});
            check(&object, expected, &message);
        }
    }

    #[test]
    fn a_catalog_has_to_answer() {
        for (state, status, message) in [
            (json!("READY"), Healthy, ""),
            (
                json!("TRANSIENT_FAILURE"),
                Progressing,
                "its connection is TRANSIENT_FAILURE",
            ),
            (json!(null), Progressing, "it has not been connected to yet"),
        ] {
            let object = json!({"apiVersion": "operators.coreos.com/v1alpha1",
                "kind": "CatalogSource",
                "status": {"connectionState": {"lastObservedState": state}}});
            check(&object, status, message);
        }
    }
}
