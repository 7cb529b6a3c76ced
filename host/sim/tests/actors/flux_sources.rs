//! Sources of Flux, and what holds for all of its kinds.

use reeve_test_support::definitions;
use serde_json::{Value, json};

use crate::deliverers::{
    FLUX, charts, flux, git, history, kustomization, message, object, of_projects, release, with,
};
use crate::world::{after, conditions, has};

#[tokio::test(start_paused = true)]
async fn a_repository_stores_what_it_fetched() {
    let world = flux().await;
    world.create(git("a", &[])).await;
    after(0.5).await;
    let found = world.get("GitRepository", "a").await;
    assert_eq!(
        conditions(&found),
        ["Reconciling=True Progressing", "Ready=Unknown Progressing"]
    );
    assert_eq!(
        found["metadata"]["finalizers"],
        json!(["finalizers.fluxcd.io"])
    );
    after(1.0).await;
    let found = world.get("GitRepository", "a").await;
    assert_eq!(conditions(&found), STORED);
    let artifact = &found["status"]["artifact"];
    let revision = artifact["revision"].as_str().unwrap();
    assert!(revision.starts_with("main@sha1:"), "{revision}");
    assert_eq!(
        message(&found, "Ready"),
        format!("stored artifact for revision '{revision}'")
    );
    has(&found["status"], json!({"observedGeneration": 1}));

    // What upstream has now takes its time; the older artifact stays until then.
    world
        .annotate("GitRepository", "a", "revision", Some("main@sha1:c0ffee"))
        .await;
    after(0.5).await;
    let found = world.get("GitRepository", "a").await;
    assert_eq!(found["status"]["artifact"]["revision"], *revision);
    assert_eq!(
        message(&found, "Reconciling"),
        "building artifact: new upstream revision 'main@sha1:c0ffee'"
    );
    assert_eq!(
        message(&found, "ArtifactOutdated"),
        "new upstream revision 'main@sha1:c0ffee'"
    );
    after(1.0).await;
    let found = world.get("GitRepository", "a").await;
    has(
        &found["status"]["artifact"],
        json!({"revision": "main@sha1:c0ffee"}),
    );
    assert_eq!(conditions(&found), STORED);

    // Requests are answered; one that is suspended fetches nothing.
    let request = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "one"}}});
    world.patch("GitRepository", "a", request).await;
    world.settle().await;
    let found = world.get("GitRepository", "a").await;
    has(&found["status"], json!({"lastHandledReconcileAt": "one"}));
    world
        .patch("GitRepository", "a", json!({"spec": {"suspend": true}}))
        .await;
    world
        .annotate("GitRepository", "a", "revision", Some("main@sha1:f00d"))
        .await;
    after(5.0).await;
    has(
        &world.get("GitRepository", "a").await["status"],
        json!({"observedGeneration": 1, "artifact": {"revision": "main@sha1:c0ffee"}}),
    );
    world.delete("GitRepository", "a").await;
    world.settle().await;
    assert_eq!(world.get("GitRepository", "a").await, Value::Null);
}

const STORED: [&str; 2] = ["Ready=True Succeeded", "ArtifactInStorage=True Succeeded"];

#[tokio::test(start_paused = true)]
async fn what_cannot_be_fetched_is_tried_again() {
    let world = flux().await;
    world
        .create(charts("web", &[("fail", "fetch"), ("fail-times", "2")]))
        .await;
    after(1.5).await;
    let found = world.get("OCIRepository", "web").await;
    assert_eq!(
        conditions(&found),
        [
            "Reconciling=True ProgressingWithRetry",
            "Ready=False OCIArtifactPullFailed",
            "FetchFailed=True OCIArtifactPullFailed",
        ]
    );
    assert_eq!(found["status"]["artifact"], Value::Null);
    // The pauses are 750 ms and 1.5 s.
    after(2.0).await;
    let found = world.get("OCIRepository", "web").await;
    assert_eq!(conditions(&found), STORED);
    let events = world.events("web").await;
    let mut reasons: Vec<_> = events.iter().filter_map(|e| e.split(':').next()).collect();
    reasons.sort_unstable();
    assert_eq!(reasons, ["NewArtifact", "OCIArtifactPullFailed"]);
    world.annotate("OCIRepository", "web", "fail", None).await;
    world
        .annotate("OCIRepository", "web", "stall", Some("true"))
        .await;
    world.settle().await;
    let found = world.get("OCIRepository", "web").await;
    assert_eq!(
        conditions(&found)[..2],
        ["Stalled=True URLInvalid", "Ready=False URLInvalid"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_oci_helm_repository_never_has_a_status() {
    let world = flux().await;
    let repository = |name: &str, kind: &str, scheme: &str| {
        let url = format!("{scheme}://charts.example.com/stable");
        let spec = json!({"type": kind, "url": url, "interval": "1h"});
        object("HelmRepository", "source", name, &[], spec)
    };
    world.create(repository("oci", "oci", "oci")).await;
    world.create(repository("index", "default", "https")).await;
    after(2.0).await;
    let found = world.get("HelmRepository", "oci").await;
    assert_eq!(found["status"]["conditions"], Value::Null);
    assert_eq!(found["metadata"]["finalizers"], Value::Null);
    let found = world.get("HelmRepository", "index").await;
    assert_eq!(conditions(&found), STORED);
    let path = found["status"]["artifact"]["path"].as_str().unwrap();
    assert!(
        path.starts_with("helmrepository/default/index/index-sha256:"),
        "{path}"
    );
}

#[tokio::test(start_paused = true)]
async fn sources_that_nobody_plays_count_as_there() {
    let world = with(&["HelmRelease.helm.toolkit.fluxcd.io"]);
    let group = "helm.toolkit.fluxcd.io";
    world
        .create(definitions::open(
            "helmreleases",
            "HelmRelease",
            group,
            "v2",
        ))
        .await;
    world.create(release("web", &[], json!({}))).await;
    after(1.5).await;
    let found = world.get("HelmRelease", "web").await;
    assert_eq!(
        conditions(&found),
        [
            "Ready=True InstallSucceeded",
            "Released=True InstallSucceeded"
        ]
    );
    assert_eq!(history(&found), ["v1 1.0.0 deployed install"]);
}

#[tokio::test(start_paused = true)]
async fn nobody_writes_when_nothing_happens() {
    let world = flux().await;
    world.create(charts("web", &[])).await;
    world.create(git("a", &[])).await;
    world.create(release("web", &[], json!({}))).await;
    world.create(kustomization("a", &[], json!({}))).await;
    after(60.0).await;
    let versions = async || {
        let mut versions = Vec::new();
        for (kind, name) in [
            ("OCIRepository", "web"),
            ("GitRepository", "a"),
            ("HelmRelease", "web"),
            ("Kustomization", "a"),
        ] {
            let found = world.get(kind, name).await;
            assert!(conditions(&found)[0].starts_with("Ready=True"), "{kind}");
            versions.push(found["metadata"]["resourceVersion"].clone());
        }
        versions
    };
    let before = versions().await;
    after(7.0 * 24.0 * 3600.0).await;
    assert_eq!(versions().await, before);
}

#[tokio::test(start_paused = true)]
async fn the_definitions_of_flux_take_the_statuses() {
    let Some(definitions) = of_projects(FLUX) else {
        return;
    };
    let world = with(FLUX);
    for definition in definitions {
        world.create(definition).await;
    }
    world.create(git("a", &[])).await;
    world.create(charts("web", &[])).await;
    world
        .create(kustomization("a", &[], json!({"wait": true})))
        .await;
    let tested = json!({"test": {"enable": true}, "driftDetection": {"mode": "enabled"}});
    world.create(release("web", &[], tested)).await;
    let remediation = json!({"install": {"remediation": {"retries": 1}}});
    world
        .create(release("bad", &[("fail", "install")], remediation))
        .await;
    let spec = json!({"type": "oci", "url": "oci://charts.example.com"});
    world
        .create(object("HelmRepository", "source", "oci", &[], spec))
        .await;
    after(60.0).await;
    assert_eq!(
        conditions(&world.get("Kustomization", "a").await),
        [
            "Ready=True ReconciliationSucceeded",
            "Healthy=True Succeeded"
        ]
    );
    let found = world.get("HelmRelease", "web").await;
    assert_eq!(
        conditions(&found),
        [
            "Ready=True TestSucceeded",
            "Drifted=False NoDriftDetected",
            "Released=True InstallSucceeded",
            "TestSuccess=True TestSucceeded",
        ]
    );
    let hooks = &found["status"]["history"][0]["testHooks"];
    has(hooks, json!({"web-test": {"phase": "Succeeded"}}));
    let found = world.get("HelmRelease", "bad").await;
    assert_eq!(
        message(&found, "Stalled"),
        "Failed to install after 2 attempt(s)"
    );
    let found = world.get("HelmRepository", "oci").await;
    assert_eq!(found["status"]["conditions"], Value::Null);
}
