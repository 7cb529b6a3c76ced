//! Applications of Argo CD take the statuses that its controller would write.

use serde_json::{Value, json};

use crate::deliverers::{of_projects, with};
use crate::world::{World, addressed, after, has};

const KINDS: &[&str] = &["Application.argoproj.io"];

/// A world with a definition as that of Argo CD is: it has no status subresource.
async fn world() -> World {
    let world = with(KINDS);
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    for (plural, kind) in [
        ("applications", "Application"),
        ("appprojects", "AppProject"),
    ] {
        world
            .create(json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.argoproj.io")},
                "spec": {
                    "group": "argoproj.io",
                    "scope": "Namespaced",
                    "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
                    "versions": [{
                        "name": "v1alpha1",
                        "served": true,
                        "storage": true,
                        "schema": {"openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": open, "status": open, "operation": open},
                        }},
                    }],
                },
            }))
            .await;
    }
    world
}

fn application(name: &str, annotations: &[(&str, &str)], policy: Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "annotations": addressed(annotations)},
        "spec": {
            "project": "default",
            "source": {"repoURL": "https://git.example.com/a", "path": ".", "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "web"},
            "syncPolicy": policy,
        },
    })
}

fn automated() -> Value {
    json!({"automated": {"prune": true}, "syncOptions": ["CreateNamespace=true"]})
}

/// How an Application compares, how healthy it is, and how its operation stands.
async fn stands(world: &World, name: &str) -> String {
    let found = world.get("Application", name).await;
    let at = |pointer: &str| {
        found
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or("-")
            .to_owned()
    };
    let phase = at("/status/operationState/phase");
    format!(
        "{} {} {phase}",
        at("/status/sync/status"),
        at("/status/health/status")
    )
}

#[tokio::test(start_paused = true)]
async fn an_automated_application_is_synced_and_becomes_healthy() {
    let world = world().await;
    world
        .create(application(
            "web",
            &[("ready-after", "10s"), ("complete-after", "3s")],
            automated(),
        ))
        .await;
    world.settle().await;
    assert_eq!(stands(&world, "web").await, "OutOfSync Missing Running");
    let found = world.get("Application", "web").await;
    has(
        &found["operation"],
        json!({"initiatedBy": {"automated": true}, "retry": {"limit": 5}, "sync": {"prune": true, "syncOptions": ["CreateNamespace=true"]}}),
    );
    has(
        &found["status"]["sync"],
        json!({"comparedTo": {"source": found["spec"]["source"], "destination": found["spec"]["destination"]}}),
    );
    after(3.0).await;
    assert_eq!(stands(&world, "web").await, "Synced Progressing Succeeded");
    let found = world.get("Application", "web").await;
    assert_eq!(found["operation"], Value::Null);
    let revision = found["status"]["sync"]["revision"].as_str().unwrap();
    assert_eq!(revision.len(), 40);
    has(
        &found["status"],
        json!({
            "operationState": {"message": "successfully synced (all tasks run)", "syncResult": {"revision": revision}},
            "history": [{"id": 0, "revision": revision, "initiatedBy": {"automated": true}}],
            "sourceType": "Directory",
            "conditions": null,
        }),
    );
    after(10.0).await;
    assert_eq!(stands(&world, "web").await, "Synced Healthy Succeeded");

    // Another revision is another sync. What is compared is always what is asked for now.
    world
        .annotate("Application", "web", "revision", Some("v2"))
        .await;
    after(1.0).await;
    assert_eq!(stands(&world, "web").await, "OutOfSync Healthy Running");
    after(3.0).await;
    assert_eq!(stands(&world, "web").await, "Synced Progressing Succeeded");
    after(10.0).await;
    world
        .patch(
            "Application",
            "web",
            json!({"spec": {"destination": {"namespace": "other"}}}),
        )
        .await;
    // The same revision has been synced; to somewhere else it is healed only.
    after(3600.0).await;
    assert_eq!(stands(&world, "web").await, "OutOfSync Healthy Succeeded");
    let heal = json!({"spec": {"syncPolicy": {"automated": {"selfHeal": true}}}});
    world.patch("Application", "web", heal).await;
    world.settle().await;
    assert_eq!(stands(&world, "web").await, "OutOfSync Healthy Running");
    after(20.0).await;
    assert_eq!(stands(&world, "web").await, "Synced Healthy Succeeded");
    let found = world.get("Application", "web").await;
    has(
        &found["status"]["sync"]["comparedTo"],
        json!({"destination": {"namespace": "other"}}),
    );
    assert_eq!(found["status"]["history"].as_array().unwrap().len(), 3);
    let events = world.events("web").await;
    assert_eq!(
        events
            .iter()
            .filter(|e| e.starts_with("OperationStarted: Initiated automated sync to '"))
            .count(),
        3,
        "{events:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_policy_somebody_has_to_ask() {
    let world = world().await;
    world.create(application("web", &[], json!({}))).await;
    after(60.0).await;
    assert_eq!(stands(&world, "web").await, "OutOfSync Missing -");
    let operation = json!({"initiatedBy": {"username": "admin"}, "sync": {"revision": "main"}});
    world
        .patch("Application", "web", json!({"operation": operation}))
        .await;
    after(0.5).await;
    assert_eq!(stands(&world, "web").await, "OutOfSync Missing Running");
    after(3.0).await;
    assert_eq!(stands(&world, "web").await, "Synced Healthy Succeeded");
    let found = world.get("Application", "web").await;
    assert_eq!(found["operation"], Value::Null);
    has(
        &found["status"]["history"],
        json!([{"initiatedBy": {"username": "admin"}}]),
    );

    // A request to compare is answered by its removal, and by the time.
    let before = found["status"]["reconciledAt"].clone();
    after(60.0).await;
    let refresh = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "hard"}}});
    world.patch("Application", "web", refresh).await;
    world.settle().await;
    let found = world.get("Application", "web").await;
    assert_eq!(
        found["metadata"]["annotations"]["argocd.argoproj.io/refresh"],
        Value::Null
    );
    assert_ne!(found["status"]["reconciledAt"], before);

    // What is synced as it was is healthy all the time.
    world
        .patch("Application", "web", json!({"operation": {"sync": {}}}))
        .await;
    after(1.1).await;
    assert_eq!(stands(&world, "web").await, "Synced Healthy Succeeded");
    let version =
        || async { world.get("Application", "web").await["metadata"]["resourceVersion"].clone() };
    let before = version().await;
    after(30.0 * 24.0 * 3600.0).await;
    assert_eq!(version().await, before, "nothing happens");
}

#[tokio::test(start_paused = true)]
async fn a_failed_sync_is_tried_again_and_not_for_ever() {
    let world = world().await;
    let mut policy = automated();
    policy["retry"] =
        json!({"limit": 2, "backoff": {"duration": "10s", "factor": 2, "maxDuration": "1m"}});
    world
        .create(application("web", &[("fail", "apply")], policy))
        .await;
    after(2.0).await;
    let found = world.get("Application", "web").await;
    has(
        &found["status"]["operationState"],
        json!({
            "phase": "Running",
            "retryCount": 1,
            "message": "one or more objects failed to apply, reason: asked for by annotation. Retrying attempt #1 at 12:00AM.",
        }),
    );
    after(60.0).await;
    assert_eq!(stands(&world, "web").await, "OutOfSync Missing Failed");
    let found = world.get("Application", "web").await;
    assert_eq!(found["operation"], Value::Null);
    let message =
        "one or more objects failed to apply, reason: asked for by annotation (retried 2 times).";
    has(
        &found["status"]["operationState"],
        json!({"message": message, "retryCount": 2}),
    );
    let revision = found["status"]["sync"]["revision"].as_str().unwrap();
    has(
        &found["status"]["conditions"],
        json!([{"type": "SyncError", "message": format!("Failed last sync attempt to [{revision}]: {message}")}]),
    );
    // The next revision is another matter.
    world.annotate("Application", "web", "fail", None).await;
    after(60.0).await;
    assert_eq!(stands(&world, "web").await, "OutOfSync Missing Failed");
    world
        .annotate("Application", "web", "revision", Some("v2"))
        .await;
    after(5.0).await;
    assert_eq!(stands(&world, "web").await, "Synced Healthy Succeeded");
    assert_eq!(
        world.get("Application", "web").await["status"]["conditions"],
        Value::Null
    );
}

#[tokio::test(start_paused = true)]
async fn a_sync_that_hangs_is_terminated_by_hand() {
    let world = world().await;
    world
        .create(application("web", &[("stall", "true")], automated()))
        .await;
    after(3600.0).await;
    assert_eq!(stands(&world, "web").await, "OutOfSync Missing Running");
    world
        .patch(
            "Application",
            "web",
            json!({"status": {"operationState": {"phase": "Terminating"}}}),
        )
        .await;
    world.settle().await;
    assert_eq!(stands(&world, "web").await, "OutOfSync Missing Failed");
    let found = world.get("Application", "web").await;
    assert_eq!(found["operation"], Value::Null);
    has(
        &found["status"]["operationState"],
        json!({"message": "Operation terminated"}),
    );
}

#[tokio::test(start_paused = true)]
async fn health_goes_and_comes_back() {
    let world = world().await;
    world
        .create(application(
            "web",
            &[("degrade-after", "30s"), ("recover-after", "10s")],
            automated(),
        ))
        .await;
    after(5.0).await;
    assert_eq!(stands(&world, "web").await, "Synced Healthy Succeeded");
    after(30.0).await;
    assert_eq!(stands(&world, "web").await, "Synced Degraded Succeeded");
    after(10.0).await;
    assert_eq!(stands(&world, "web").await, "Synced Healthy Succeeded");
    world
        .annotate("Application", "web", "fail", Some("health"))
        .await;
    world.settle().await;
    assert_eq!(stands(&world, "web").await, "Synced Degraded Succeeded");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_compared_is_unknown() {
    let world = world().await;
    world.create(application("web", &[], automated())).await;
    after(5.0).await;
    world
        .annotate("Application", "web", "fail", Some("compare"))
        .await;
    world.settle().await;
    assert_eq!(stands(&world, "web").await, "Unknown Unknown Succeeded");
    let found = world.get("Application", "web").await;
    has(
        &found["status"]["conditions"],
        json!([{"type": "ComparisonError"}]),
    );
    world.annotate("Application", "web", "fail", None).await;
    after(5.0).await;
    assert_eq!(stands(&world, "web").await, "Synced Healthy Succeeded");

    let mut lost = application("lost", &[], automated());
    lost["spec"]["project"] = json!("nowhere");
    world.create(lost).await;
    after(5.0).await;
    assert_eq!(stands(&world, "lost").await, "Unknown Unknown -");
    let found = world.get("Application", "lost").await;
    has(
        &found["status"]["conditions"],
        json!([{"type": "InvalidSpecError", "message": "Application referencing project nowhere which does not exist"}]),
    );
}

#[tokio::test(start_paused = true)]
async fn an_application_with_a_finalizer_takes_its_resources_along() {
    let world = world().await;
    let mut cascading = application("web", &[], automated());
    cascading["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    world.create(cascading).await;
    after(5.0).await;
    world.delete("Application", "web").await;
    after(0.5).await;
    assert_ne!(world.get("Application", "web").await, Value::Null);
    after(1.0).await;
    assert_eq!(world.get("Application", "web").await, Value::Null);
    let mut skipped = application("skipped", &[], automated());
    skipped["metadata"]["annotations"]["argocd.argoproj.io/skip-reconcile"] = json!("true");
    world.create(skipped).await;
    after(5.0).await;
    assert_eq!(stands(&world, "skipped").await, "- - -");
}

#[tokio::test(start_paused = true)]
async fn the_definition_of_argo_cd_takes_the_statuses() {
    let Some(definitions) = of_projects(KINDS) else {
        return;
    };
    let world = with(KINDS);
    for definition in definitions {
        world.create(definition).await;
    }
    world
        .create(application(
            "web",
            &[("fail", "apply"), ("fail-times", "1")],
            automated(),
        ))
        .await;
    let mut several = application("several", &[], automated());
    let spec = several["spec"].as_object_mut().unwrap();
    let source = spec.remove("source").unwrap();
    let chart =
        json!({"repoURL": "https://charts.example.com", "chart": "web", "targetRevision": "1.2.x"});
    spec.insert("sources".to_owned(), json!([source, chart]));
    world.create(several).await;
    after(60.0).await;
    for name in ["web", "several"] {
        assert_eq!(
            stands(&world, name).await,
            "Synced Healthy Succeeded",
            "{name}"
        );
    }
    let found = world.get("Application", "several").await;
    has(
        &found["status"]["history"][0]["revisions"],
        json!([found["status"]["sync"]["revisions"][0], "1.2.0"]),
    );
    has(
        &world.get("Application", "web").await["status"]["operationState"],
        json!({"retryCount": 1}),
    );
}

#[tokio::test(start_paused = true)]
async fn what_somebody_changed_is_healed_where_that_is_asked_for() {
    let world = world().await;
    let mut healing = automated();
    healing["automated"]["selfHeal"] = json!(true);
    world.create(application("left", &[], automated())).await;
    world.create(application("healed", &[], healing)).await;
    after(5.0).await;
    for name in ["left", "healed"] {
        world
            .annotate("Application", name, "fail", Some("drift"))
            .await;
        world
            .annotate("Application", name, "fail-times", Some("3"))
            .await;
    }
    after(0.5).await;
    assert_eq!(stands(&world, "left").await, "OutOfSync Healthy Succeeded");
    assert_eq!(stands(&world, "healed").await, "OutOfSync Healthy Running");
    // Three operations of a second each, and pauses of 2 and 6 seconds between them.
    for (second, expected) in [
        (1.0, "OutOfSync Healthy Succeeded 1"),
        (2.0, "OutOfSync Healthy Running 2"),
        (1.0, "OutOfSync Healthy Succeeded 2"),
        (5.0, "OutOfSync Healthy Succeeded 2"),
        (1.0, "OutOfSync Healthy Running 3"),
        (1.0, "Synced Healthy Succeeded 3"),
    ] {
        after(second).await;
        let found = world.get("Application", "healed").await;
        let times =
            &found["status"]["operationState"]["operation"]["sync"]["autoHealAttemptsCount"];
        let stood = format!("{} {times}", stands(&world, "healed").await);
        assert_eq!(stood, expected);
    }
    let found = world.get("Application", "healed").await;
    assert_eq!(found["status"]["history"].as_array().unwrap().len(), 4);
    // Nobody puts the other right.
    after(24.0 * 3600.0).await;
    assert_eq!(stands(&world, "left").await, "OutOfSync Healthy Succeeded");
    let found = world.get("Application", "left").await;
    assert_eq!(found["status"]["conditions"], Value::Null);
    // The next revision counts from the start.
    world
        .annotate("Application", "healed", "revision", Some("v2"))
        .await;
    world.annotate("Application", "healed", "fail", None).await;
    after(5.0).await;
    let found = world.get("Application", "healed").await;
    assert_eq!(stands(&world, "healed").await, "Synced Healthy Succeeded");
    has(
        &found["status"]["operationState"]["operation"]["sync"],
        json!({"autoHealAttemptsCount": null}),
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_suspended_is_neither_healthy_nor_broken() {
    let world = world().await;
    world
        .create(application("web", &[("fail", "suspend")], automated()))
        .await;
    after(5.0).await;
    assert_eq!(stands(&world, "web").await, "Synced Suspended Succeeded");
    // It stays so while the next revision is synced.
    world
        .annotate("Application", "web", "revision", Some("v2"))
        .await;
    after(0.5).await;
    assert_eq!(stands(&world, "web").await, "OutOfSync Suspended Running");
    world.annotate("Application", "web", "fail", None).await;
    after(5.0).await;
    assert_eq!(stands(&world, "web").await, "Synced Healthy Succeeded");
    let events = world.events("web").await;
    let resumed = "ResourceUpdated: Updated health status: Progressing -> Healthy";
    assert!(events.iter().any(|event| event == resumed), "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn hooks_fail_before_a_sync_and_after_it() {
    let world = world().await;
    let mut once = automated();
    once["retry"] = json!({"limit": 0});
    let slow = [("ready-after", "5s"), ("complete-after", "2s")];
    for (name, failure) in [("early", "pre-sync"), ("late", "post-sync")] {
        let annotations = [&slow[..], &[("fail", failure)]].concat();
        world
            .create(application(name, &annotations, once.clone()))
            .await;
    }
    let hook = |name: &str, kind: &str, phase: &str| {
        json!({"resources": [{
            "group": "batch", "version": "v1", "kind": "Job", "namespace": "web", "name": name,
            "hookType": kind, "syncPhase": kind, "hookPhase": phase,
        }]})
    };
    after(1.0).await;
    assert_eq!(stands(&world, "early").await, "OutOfSync Missing Running");
    let found = world.get("Application", "early").await;
    has(
        &found["status"]["operationState"],
        json!({
            "message": "waiting for completion of hook batch/Job/early-pre-sync",
            "syncResult": hook("early-pre-sync", "PreSync", "Running"),
        }),
    );
    // The one after a sync waits for what was synced to be healthy.
    assert_eq!(stands(&world, "late").await, "OutOfSync Missing Running");
    let found = world.get("Application", "late").await;
    has(
        &found["status"]["operationState"],
        json!({"message": "one or more tasks are running", "syncResult": {"resources": null}}),
    );
    after(5.0).await;
    assert_eq!(stands(&world, "early").await, "OutOfSync Missing Failed");
    assert_eq!(stands(&world, "late").await, "Synced Healthy Running");
    after(2.0).await;
    assert_eq!(stands(&world, "late").await, "Synced Healthy Failed");
    for (name, hook) in [
        ("early", hook("early-pre-sync", "PreSync", "Failed")),
        ("late", hook("late-post-sync", "PostSync", "Failed")),
    ] {
        let found = world.get("Application", name).await;
        has(
            &found["status"],
            json!({
                "history": null,
                "operationState": {
                    "phase": "Failed",
                    "message": "one or more synchronization tasks completed unsuccessfully",
                    "syncResult": hook,
                },
            }),
        );
    }
    // Nobody tries again what was tried; what is synced need not be.
    let found = world.get("Application", "early").await;
    has(
        &found["status"]["conditions"],
        json!([{"type": "SyncError"}]),
    );
    let found = world.get("Application", "late").await;
    assert_eq!(found["status"]["conditions"], Value::Null);
}
