//! Kustomizations of Flux, and stalls.

use serde_json::{Value, json};

use crate::deliverers::{charts, flux, git, kustomization, message, release};
use crate::world::{after, conditions, has};

#[tokio::test(start_paused = true)]
async fn a_kustomization_applies_what_its_source_has() {
    let world = flux().await;
    world
        .create(kustomization("a", &[], json!({"wait": true})))
        .await;
    world.settle().await;
    let found = world.get("Kustomization", "a").await;
    assert_eq!(conditions(&found), ["Ready=False ArtifactFailed"]);
    world.create(git("a", &[])).await;
    after(1.5).await;
    let found = world.get("Kustomization", "a").await;
    assert_eq!(
        conditions(&found),
        [
            "Reconciling=True Progressing",
            "Ready=Unknown Progressing",
            "Healthy=Unknown Progressing"
        ]
    );
    after(1.0).await;
    let found = world.get("Kustomization", "a").await;
    assert_eq!(
        conditions(&found),
        [
            "Ready=True ReconciliationSucceeded",
            "Healthy=True Succeeded"
        ]
    );
    let source = world.get("GitRepository", "a").await;
    let revision = &source["status"]["artifact"]["revision"];
    has(
        &found["status"],
        json!({
            "observedGeneration": 1,
            "lastAppliedRevision": revision,
            "lastAttemptedRevision": revision,
            "inventory": {"entries": []},
            "history": [{"lastReconciledStatus": "ReconciliationSucceeded", "totalReconciliations": 1}],
        }),
    );

    // The next revision fails at first.
    world
        .annotate("Kustomization", "a", "fail", Some("health"))
        .await;
    world
        .annotate("Kustomization", "a", "fail-times", Some("1"))
        .await;
    world
        .annotate("GitRepository", "a", "revision", Some("main@sha1:c0ffee"))
        .await;
    after(2.5).await;
    let found = world.get("Kustomization", "a").await;
    assert_eq!(
        conditions(&found),
        [
            "Reconciling=True ProgressingWithRetry",
            "Ready=False HealthCheckFailed",
            "Healthy=False HealthCheckFailed"
        ]
    );
    has(
        &found["status"],
        json!({"lastAppliedRevision": revision, "lastAttemptedRevision": "main@sha1:c0ffee"}),
    );
    after(605.0).await;
    let found = world.get("Kustomization", "a").await;
    assert_eq!(
        message(&found, "Ready"),
        "Applied revision: main@sha1:c0ffee"
    );
    let history = found["status"]["history"].as_array().unwrap();
    let outcomes: Vec<_> = history.iter().map(|h| &h["lastReconciledStatus"]).collect();
    assert_eq!(
        outcomes[..2],
        ["ReconciliationSucceeded", "HealthCheckFailed"]
    );
    world.delete("Kustomization", "a").await;
    world.settle().await;
    assert_eq!(world.get("Kustomization", "a").await, Value::Null);
}

#[tokio::test(start_paused = true)]
async fn kustomizations_of_one_source_follow_each_other_with_each_revision() {
    let world = flux().await;
    world.create(git("a", &[])).await;
    let slow = [("ready-after", "5s")];
    world.create(kustomization("first", &slow, json!({}))).await;
    let needs = json!({"dependsOn": [{"name": "first"}]});
    world.create(kustomization("second", &[], needs)).await;
    after(40.0).await;
    assert_eq!(
        conditions(&world.get("Kustomization", "second").await),
        ["Ready=True ReconciliationSucceeded"]
    );
    let suspend = |suspend: bool| json!({"spec": {"suspend": suspend}});
    let revision = Some("main@sha1:c0ffee");
    world
        .annotate("Kustomization", "first", "ready-after", None)
        .await;
    world
        .patch(
            "Kustomization",
            "first",
            json!({"spec": {"interval": "5m"}}),
        )
        .await;
    after(3.0).await;
    // One that is suspended is ready with what it had, as long as nobody changes it.
    world
        .annotate("Kustomization", "first", "ignore", Some("true"))
        .await;
    world
        .annotate("GitRepository", "a", "revision", revision)
        .await;
    after(1.5).await;
    let found = world.get("Kustomization", "second").await;
    assert_eq!(conditions(&found), ["Ready=False DependencyNotReady"]);
    assert_eq!(
        message(&found, "Ready"),
        "dependency 'default/first' revision is not up to date"
    );
    world.patch("Kustomization", "first", suspend(true)).await;
    after(31.0).await;
    let found = world.get("Kustomization", "second").await;
    assert_eq!(
        message(&found, "Ready"),
        "dependency 'default/first' is not ready"
    );
    world
        .annotate("Kustomization", "first", "ignore", None)
        .await;
    world.patch("Kustomization", "first", suspend(false)).await;
    after(40.0).await;
    let found = world.get("Kustomization", "second").await;
    assert_eq!(
        message(&found, "Ready"),
        "Applied revision: main@sha1:c0ffee"
    );
}

#[tokio::test(start_paused = true)]
async fn a_stall_lasts_as_long_as_it_is_asked_for() {
    let world = flux().await;
    world.create(charts("web", &[])).await;
    world.create(git("a", &[])).await;
    let stalled = [("stall", "true")];
    world.create(release("web", &stalled, json!({}))).await;
    world.create(kustomization("a", &stalled, json!({}))).await;
    after(3.0).await;
    assert_eq!(
        conditions(&world.get("HelmRelease", "web").await),
        [
            "Stalled=True RetriesExceeded",
            "Ready=False InstallFailed",
            "Released=False InstallFailed"
        ]
    );
    assert_eq!(
        conditions(&world.get("Kustomization", "a").await),
        ["Stalled=True AccessDenied", "Ready=False AccessDenied"]
    );
    world.annotate("HelmRelease", "web", "stall", None).await;
    world.annotate("Kustomization", "a", "stall", None).await;
    after(3.0).await;
    let found = world.get("HelmRelease", "web").await;
    assert_eq!(conditions(&found)[0], "Ready=True InstallSucceeded");
    assert_eq!(
        conditions(&world.get("Kustomization", "a").await),
        ["Ready=True ReconciliationSucceeded"]
    );
}
