//! What fails at Flux's sources and Kustomizations: conditions, messages and generations of
//! each, for as long as it fails, and afterwards.

use serde_json::{Value, json};

use crate::deliverers::{charts, flux, git, kustomization, message, object};
use crate::world::{World, after, conditions, has};

const STORED: [&str; 2] = ["Ready=True Succeeded", "ArtifactInStorage=True Succeeded"];

/// A source of each kind, its reason for what cannot be fetched, what it says of that, and
/// what it says to be at meanwhile.
const SOURCES: [(&str, &str, &str, &str); 4] = [
    (
        "GitRepository",
        "GitOperationFailed",
        "failed to checkout and determine revision: asked for by annotation",
        "processing object: new generation -1 -> 1",
    ),
    (
        "OCIRepository",
        "OCIArtifactPullFailed",
        "failed to pull artifact from 'oci://registry.example.com/charts/web': asked for by annotation",
        "building artifact: new revision '6.5.0@",
    ),
    (
        "HelmRepository",
        "Failed",
        "failed to fetch Helm repository index: asked for by annotation",
        "processing object: new generation -1 -> 1",
    ),
    (
        "Bucket",
        "BucketOperationFailed",
        "failed to confirm existence of 'files' bucket: asked for by annotation",
        "processing object: new generation -1 -> 1",
    ),
];

/// Why one of each kind is not tried at all, when it is asked to stall.
const INVALID: [&str; 4] = [
    "failed to parse url 'https://git.example.com/a': asked for by annotation",
    "URL validation failed for 'oci://registry.example.com/charts/web': asked for by annotation",
    "invalid Helm repository URL: asked for by annotation",
    "failed to parse STS endpoint '': asked for by annotation",
];

fn source(kind: &str, annotations: &[(&str, &str)]) -> Value {
    match kind {
        "GitRepository" => git("web", annotations),
        "OCIRepository" => charts("web", annotations),
        "HelmRepository" => {
            let spec = json!({"url": "https://charts.example.com", "interval": "1h"});
            object(kind, "source", "web", annotations, spec)
        }
        _ => {
            let spec = json!({"bucketName": "files", "endpoint": "s3.example.com"});
            object(kind, "source", "web", annotations, spec)
        }
    }
}

/// Asserts that a source says what it says when nothing can be fetched.
async fn fails(world: &World, (kind, reason, why, progress): (&str, &str, &str, &str)) -> Value {
    let found = world.get(kind, "web").await;
    let said = conditions(&found);
    for expected in [
        "Reconciling=True ProgressingWithRetry".to_owned(),
        format!("Ready=False {reason}"),
        format!("FetchFailed=True {reason}"),
    ] {
        assert!(said.contains(&expected), "{kind}: {said:?}");
    }
    assert_eq!(message(&found, "Ready"), why, "{kind}");
    assert_eq!(message(&found, "FetchFailed"), why, "{kind}");
    let told = message(&found, "Reconciling");
    assert!(told.starts_with(progress), "{kind}: {told}");
    found
}

#[tokio::test(start_paused = true)]
async fn sources_of_each_kind_cannot_be_fetched() {
    let world = flux().await;
    for (kind, ..) in SOURCES {
        world.create(source(kind, &[("fail", "fetch")])).await;
    }
    after(1.5).await;
    for told in SOURCES {
        let found = fails(&world, told).await;
        // No generation is observed before something was fetched, and nothing is outdated.
        has(
            &found["status"],
            json!({"observedGeneration": -1, "artifact": null}),
        );
        assert_eq!(conditions(&found).len(), 3, "{found:#}");
    }
    for (kind, ..) in SOURCES {
        world.annotate(kind, "web", "fail", None).await;
    }
    after(1.5).await;
    for (kind, ..) in SOURCES {
        let found = world.get(kind, "web").await;
        assert_eq!(conditions(&found), STORED, "{kind}");
        has(&found["status"], json!({"observedGeneration": 1}));
    }
    // What was stored stays, when what comes after it cannot be fetched.
    for (kind, ..) in SOURCES {
        world.annotate(kind, "web", "fail", Some("fetch")).await;
        world.annotate(kind, "web", "revision", Some("next")).await;
    }
    after(1.5).await;
    for (kind, reason, why, _) in SOURCES {
        let progress = match kind {
            "OCIRepository" => "building artifact: new revision 'next@",
            _ => "reconciliation in progress",
        };
        let found = fails(&world, (kind, reason, why, progress)).await;
        let said = conditions(&found);
        let is_outdated = said
            .iter()
            .any(|c| c == "ArtifactOutdated=True NewRevision");
        assert_eq!(is_outdated, kind == "OCIRepository", "{kind}: {said:?}");
        assert!(said.iter().any(|c| c == "ArtifactInStorage=True Succeeded"));
        assert_ne!(found["status"]["artifact"], Value::Null);
        has(&found["status"], json!({"observedGeneration": 1}));
    }
}

#[tokio::test(start_paused = true)]
async fn sources_of_each_kind_stall() {
    let world = flux().await;
    for ((kind, ..), why) in SOURCES.into_iter().zip(INVALID) {
        world.create(source(kind, &[("stall", "true")])).await;
        world.settle().await;
        let found = world.get(kind, "web").await;
        assert_eq!(
            conditions(&found),
            [
                "Stalled=True URLInvalid",
                "Ready=False URLInvalid",
                "FetchFailed=True URLInvalid"
            ],
            "{kind}"
        );
        for condition in ["Stalled", "Ready", "FetchFailed"] {
            assert_eq!(message(&found, condition), why, "{kind}");
        }
        has(&found["status"], json!({"observedGeneration": 1}));
    }
}

#[tokio::test(start_paused = true)]
async fn charts_wait_for_their_source_and_cannot_be_pulled() {
    let world = flux().await;
    let of = |annotations: &[(&str, &str)]| {
        let spec = json!({
            "chart": "web", "version": "4.x", "interval": "1h",
            "sourceRef": {"kind": "HelmRepository", "name": "web"},
        });
        object("HelmChart", "source", "web", annotations, spec)
    };
    let expect = async |reason: &str, why: &str, progress: &str| {
        let found = world.get("HelmChart", "web").await;
        assert_eq!(
            conditions(&found),
            [
                "Reconciling=True ProgressingWithRetry".to_owned(),
                format!("Ready=False {reason}"),
                format!("FetchFailed=True {reason}"),
            ]
        );
        assert_eq!(message(&found, "Ready"), why);
        assert_eq!(message(&found, "Reconciling"), progress);
        has(&found["status"], json!({"observedGeneration": -1}));
    };
    let begins = "processing object: new generation -1 -> 1";
    world.create(of(&[("fail", "fetch")])).await;
    world.settle().await;
    expect(
        "SourceUnavailable",
        "failed to get source: HelmRepository.source.toolkit.fluxcd.io \"web\" not found",
        begins,
    )
    .await;
    world
        .create(source("HelmRepository", &[("ready-after", "5s")]))
        .await;
    world.settle().await;
    expect(
        "NoSourceArtifact",
        "no artifact available for HelmRepository source 'web'",
        begins,
    )
    .await;
    after(6.5).await;
    expect(
        "ChartPullError",
        "chart pull error: failed to download chart for remote reference: asked for by annotation",
        "building artifact: new 'web' chart with version '4.0.0'",
    )
    .await;
    world.annotate("HelmChart", "web", "fail", None).await;
    after(1.5).await;
    let found = world.get("HelmChart", "web").await;
    assert_eq!(
        conditions(&found),
        [
            "Ready=True ChartPullSucceeded",
            "ArtifactInStorage=True ChartPullSucceeded"
        ]
    );
    has(&found["status"], json!({"observedGeneration": 1}));
}

/// A way in which a Kustomization fails: reason, messages of `Ready` and of what it is
/// at, whether its revision was attempted, and how that is kept in its history.
const KUSTOMIZATIONS: [(&str, &str, &str, &str, bool, bool); 4] = [
    (
        "fetch",
        "ArtifactFailed",
        "failed to download archive: asked for by annotation",
        "Fetching manifests",
        false,
        false,
    ),
    (
        "build",
        "BuildFailed",
        "kustomize build failed: asked for by annotation",
        "Building manifests",
        true,
        false,
    ),
    (
        "apply",
        "ReconciliationFailed",
        "failed to apply: asked for by annotation",
        "Detecting drift",
        true,
        true,
    ),
    (
        "health",
        "HealthCheckFailed",
        "health check failed after 1s: asked for by annotation",
        "Running health checks",
        true,
        true,
    ),
];

#[tokio::test(start_paused = true)]
async fn kustomizations_fail_in_each_way_and_are_tried_again() {
    let world = flux().await;
    world.create(git("a", &[])).await;
    after(2.0).await;
    let source = world.get("GitRepository", "a").await;
    let revision = source["status"]["artifact"]["revision"].as_str().unwrap();
    let spec = json!({"wait": true, "retryInterval": "2m"});
    for (failure, ..) in KUSTOMIZATIONS {
        let failing = [("fail", failure), ("fail-times", "2")];
        world
            .create(kustomization(failure, &failing, spec.clone()))
            .await;
    }
    for attempt in 1..=2 {
        after(0.5).await;
        for (failure, _, _, progress, ..) in KUSTOMIZATIONS {
            let found = world.get("Kustomization", failure).await;
            let expected = format!("{progress} for revision {revision} with a timeout of 9m30s");
            assert_eq!(message(&found, "Reconciling"), expected);
            assert_eq!(message(&found, "Ready"), "Reconciliation in progress");
            let said = conditions(&found);
            let checks = said.iter().any(|c| c == "Healthy=Unknown Progressing");
            assert_eq!(checks, failure == "health", "{failure}: {said:?}");
        }
        after(1.0).await;
        for (failure, reason, why, progress, attempted, kept) in KUSTOMIZATIONS {
            let found = world.get("Kustomization", failure).await;
            let mut expected = vec![
                "Reconciling=True ProgressingWithRetry".to_owned(),
                format!("Ready=False {reason}"),
            ];
            if failure == "health" {
                expected.push("Healthy=False HealthCheckFailed".to_owned());
                assert_eq!(message(&found, "Healthy"), "asked for by annotation");
            }
            assert_eq!(conditions(&found), expected);
            assert_eq!(message(&found, "Ready"), why);
            let at = format!("{progress} for revision {revision} with a timeout of 9m30s");
            assert_eq!(message(&found, "Reconciling"), at);
            let attempted = if attempted {
                json!(revision)
            } else {
                Value::Null
            };
            let history = match kept {
                true => json!([{"lastReconciledStatus": reason, "totalReconciliations": attempt}]),
                false => Value::Null,
            };
            let inventory = match failure {
                "health" => json!({"entries": []}),
                _ => Value::Null,
            };
            has(
                &found["status"],
                json!({
                    "observedGeneration": -1,
                    "lastAttemptedRevision": attempted,
                    "lastAppliedRevision": null,
                    "history": history,
                    "inventory": inventory,
                }),
            );
        }
        after(119.5).await;
    }
    after(1.5).await;
    for (failure, ..) in KUSTOMIZATIONS {
        let found = world.get("Kustomization", failure).await;
        assert_eq!(
            conditions(&found),
            [
                "Ready=True ReconciliationSucceeded",
                "Healthy=True Succeeded"
            ],
            "{failure}"
        );
        has(
            &found["status"],
            json!({"observedGeneration": 1, "lastAppliedRevision": revision}),
        );
    }
}

#[tokio::test(start_paused = true)]
async fn kustomizations_wait_for_what_is_not_ready() {
    let world = flux().await;
    let needs = |rule: Option<&str>| {
        let mut need = json!({"name": "early"});
        if let Some(rule) = rule {
            need["readyExpr"] = json!(rule);
        }
        json!({"dependsOn": [need]})
    };
    let expect = async |name: &str, expected: &[&str], why: &str| {
        let found = world.get("Kustomization", name).await;
        assert_eq!(conditions(&found), expected, "{name}");
        assert_eq!(message(&found, "Ready"), why, "{name}");
        found
    };
    world.create(kustomization("late", &[], needs(None))).await;
    let ruled = needs(Some("dep.metadata.name == 'other'"));
    world.create(kustomization("ruled", &[], ruled)).await;
    world
        .create(kustomization("broken", &[], needs(Some("dep."))))
        .await;
    world.settle().await;
    let absent = "GitRepository.source.toolkit.fluxcd.io \"a\" not found";
    expect("late", &["Ready=False ArtifactFailed"], absent).await;
    world.create(git("a", &[("ready-after", "10s")])).await;
    world.settle().await;
    let empty = "Source artifact not found, retrying in 30s";
    expect("late", &["Ready=False ArtifactFailed"], empty).await;
    after(31.0).await;
    let waits = &["Ready=False DependencyNotReady"];
    let absent = "dependency 'default/early' not found: kustomizations.kustomize.toolkit.fluxcd.io \"early\" not found";
    let found = expect("late", waits, absent).await;
    has(
        &found["status"],
        json!({"observedGeneration": -1, "lastAttemptedRevision": null}),
    );
    let failing = [("fail", "build")];
    world
        .create(kustomization("early", &failing, json!({})))
        .await;
    after(31.0).await;
    let unready = "dependency 'default/early' is not ready";
    expect("late", waits, unready).await;
    let ruled = "dependency 'default/early' is not ready according to readyExpr eval";
    expect("ruled", waits, ruled).await;
    let found = world.get("Kustomization", "broken").await;
    assert_eq!(
        conditions(&found),
        [
            "Stalled=True InvalidCELExpression",
            "Ready=False InvalidCELExpression"
        ]
    );
    has(&found["status"], json!({"observedGeneration": 1}));
    world.annotate("Kustomization", "early", "fail", None).await;
    after(40.0).await;
    let found = world.get("Kustomization", "late").await;
    assert_eq!(conditions(&found), ["Ready=True ReconciliationSucceeded"]);
}
