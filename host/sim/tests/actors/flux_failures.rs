//! HelmReleases of Flux that fail: remedies, retries, and their end.

use serde_json::json;

use crate::deliverers::{charts, flux, history, message, release};
use crate::world::{after, conditions, has};

const STALLED: [&str; 3] = [
    "Stalled=True RetriesExceeded",
    "Ready=False InstallFailed",
    "Released=False InstallFailed",
];

#[tokio::test(start_paused = true)]
async fn the_first_failure_is_the_last_where_nothing_is_said_of_retries() {
    let world = flux().await;
    world.create(charts("web", &[])).await;
    world
        .create(release("web", &[("fail", "install")], json!({})))
        .await;
    after(3.0).await;
    let found = world.get("HelmRelease", "web").await;
    assert_eq!(conditions(&found), STALLED);
    assert_eq!(
        message(&found, "Stalled"),
        "Failed to install after 1 attempt(s)"
    );
    has(
        &found["status"],
        json!({"observedGeneration": 1, "failures": 1, "installFailures": 1}),
    );
    assert!(history(&found)[0].ends_with("failed install"), "{found:#}");
    // Nobody tries again by himself, even when it would go well.
    world.annotate("HelmRelease", "web", "fail", None).await;
    after(3600.0).await;
    assert_eq!(conditions(&world.get("HelmRelease", "web").await), STALLED);
    let both = json!({
        "reconcile.fluxcd.io/requestedAt": "x",
        "reconcile.fluxcd.io/resetAt": "x",
    });
    let reset = json!({"metadata": {"annotations": both}});
    world.patch("HelmRelease", "web", reset).await;
    after(2.0).await;
    let found = world.get("HelmRelease", "web").await;
    assert_eq!(
        conditions(&found),
        [
            "Ready=True UpgradeSucceeded",
            "Released=True UpgradeSucceeded"
        ]
    );
    has(
        &found["status"],
        json!({"lastHandledResetAt": "x", "lastHandledReconcileAt": "x", "failures": null}),
    );
    // Force makes another release of what is in sync.
    let both = json!({
        "reconcile.fluxcd.io/requestedAt": "y",
        "reconcile.fluxcd.io/forceAt": "y",
    });
    let force = json!({"metadata": {"annotations": both}});
    world.patch("HelmRelease", "web", force).await;
    after(60.0).await;
    let found = world.get("HelmRelease", "web").await;
    has(&found["status"], json!({"lastHandledForceAt": "y"}));
    assert!(history(&found)[0].starts_with("v3 "), "{found:#}");
}

#[tokio::test(start_paused = true)]
async fn failures_are_taken_back_as_often_as_was_said() {
    let world = flux().await;
    world.create(charts("web", &[])).await;
    let remediation = json!({"install": {"remediation": {"retries": 2}}});
    let failing = [("fail", "install"), ("fail-times", "2")];
    world.create(release("web", &failing, remediation)).await;
    after(2.2).await;
    let found = world.get("HelmRelease", "web").await;
    assert_eq!(
        conditions(&found),
        [
            "Reconciling=True ProgressingWithRetry",
            "Ready=False InstallFailed",
            "Released=False InstallFailed",
            "Remediated=True UninstallSucceeded",
        ]
    );
    // No generation is observed that nobody is done with.
    assert_ne!(found["status"]["observedGeneration"], json!(1));
    let last = &history(&found)[0];
    assert!(
        last.ends_with("uninstalling uninstall-remediation"),
        "{last}"
    );
    after(5.0).await;
    let found = world.get("HelmRelease", "web").await;
    assert_eq!(
        conditions(&found),
        [
            "Ready=True InstallSucceeded",
            "Released=True InstallSucceeded"
        ]
    );
    has(
        &found["status"],
        json!({"failures": 2, "observedGeneration": 1}),
    );
    // Helm knows nothing of what was uninstalled.
    assert!(history(&found)[0].starts_with("v1 "), "{found:#}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_upgrade_is_rolled_back_and_tried_again() {
    let world = flux().await;
    world.create(charts("web", &[])).await;
    let remediation = json!({"upgrade": {"remediation": {"retries": 1}}});
    world
        .create(release("web", &[("fail", "upgrade")], remediation))
        .await;
    after(3.0).await;
    let values = json!({"spec": {"values": {"replicas": 3}}});
    world.patch("HelmRelease", "web", values).await;
    after(1.2).await;
    let found = world.get("HelmRelease", "web").await;
    assert_eq!(
        conditions(&found),
        [
            "Reconciling=True ProgressingWithRetry",
            "Ready=False RollbackSucceeded",
            "Released=False UpgradeFailed",
            "Remediated=True RollbackSucceeded",
        ]
    );
    after(10.0).await;
    let found = world.get("HelmRelease", "web").await;
    assert_eq!(
        message(&found, "Stalled"),
        "Failed to upgrade after 2 attempt(s)"
    );
    has(
        &found["status"],
        json!({"upgradeFailures": 2, "observedGeneration": 2}),
    );
    let states: Vec<_> = found["status"]["history"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    let states: Vec<_> = states
        .iter()
        .map(|r| format!("v{} {}", r["version"], r["status"].as_str().unwrap()))
        .collect();
    assert_eq!(states, ["v5 deployed", "v4 failed", "v3 superseded"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_to_be_retried_is_retried_at_its_interval() {
    let world = flux().await;
    world.create(charts("web", &[])).await;
    let strategy = json!({"name": "RetryOnFailure", "retryInterval": "1.5m"});
    let strategy = json!({"install": {"strategy": strategy}});
    world
        .create(release("web", &[("fail", "install")], strategy))
        .await;
    after(3.0).await;
    let found = world.get("HelmRelease", "web").await;
    assert_eq!(
        conditions(&found),
        [
            "Reconciling=True ProgressingWithRetry",
            "Ready=False InstallFailed",
            "Released=False InstallFailed"
        ]
    );
    assert_eq!(message(&found, "Reconciling"), "retrying after 1m30s");
    after(70.0).await;
    has(
        &world.get("HelmRelease", "web").await["status"],
        json!({"failures": 1}),
    );
    after(30.0).await;
    let found = world.get("HelmRelease", "web").await;
    assert_eq!(
        conditions(&found),
        [
            "Ready=True UpgradeSucceeded",
            "Released=True UpgradeSucceeded"
        ]
    );
}
