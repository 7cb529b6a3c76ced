//! Custom resources.

use reeve_sim::Actors;
use serde_json::{Value, json};

use crate::world::{World, addressed, after, conditions, has};

async fn with_widgets() -> World {
    let world = World::with(Actors {
        kinds: vec!["Widget.example.com".parse().unwrap()],
        ..Actors::default()
    });
    world.create(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })).await;
    world
}

fn widget(annotations: &[(&str, &str)]) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "a", "annotations": addressed(annotations)}, "spec": {"size": 1}})
}

/// Creates a widget; for each time, in seconds, what generation is observed and all
/// conditions.
async fn check(annotations: &[(&str, &str)], moments: &[(f64, Value, &[&str])]) {
    let world = with_widgets().await;
    world.create(widget(annotations)).await;
    let mut passed = 0.0;
    for (at, observed, expected) in moments {
        after(at - passed).await;
        passed = *at;
        let found = world.get("Widget", "a").await;
        has(&found["status"], json!({"observedGeneration": observed}));
        assert_eq!(conditions(&found), *expected, "at {at} s");
    }
}

const WORKING: &[&str] = &["Reconciling=True Progressing", "Ready=Unknown Progressing"];
const READY: &[&str] = &["Ready=True ReconciliationSucceeded"];

#[tokio::test(start_paused = true)]
async fn somebody_reconciles_them() {
    check(&[], &[(0.5, json!(null), WORKING), (1.5, json!(1), READY)]).await;
    check(
        &[("ready-after", "10s")],
        &[(9.0, json!(null), WORKING), (11.0, json!(1), READY)],
    )
    .await;
    check(
        &[("stall", "true")],
        &[(
            1.0,
            json!(1),
            &["Stalled=True Stalled", "Ready=False Stalled"],
        )],
    )
    .await;
    check(
        &[("degrade-after", "10s"), ("recover-after", "5s")],
        &[
            (10.0, json!(1), READY),
            (12.0, json!(1), &["Ready=False Degraded"]),
            (17.0, json!(1), READY),
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn each_generation_takes_its_time() {
    let world = with_widgets().await;
    world.create(widget(&[])).await;
    after(2.0).await;
    world
        .patch("Widget", "a", json!({"spec": {"size": 2}}))
        .await;
    after(0.5).await;
    let found = world.get("Widget", "a").await;
    has(
        &found,
        json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}}),
    );
    let mut now = conditions(&found);
    now.sort();
    assert_eq!(
        now,
        ["Ready=Unknown Progressing", "Reconciling=True Progressing"]
    );
    after(1.0).await;
    let found = world.get("Widget", "a").await;
    has(&found, json!({"status": {"observedGeneration": 2}}));
    assert_eq!(conditions(&found), READY);
    let managers = found["metadata"]["managedFields"].as_array().unwrap();
    assert!(
        managers
            .iter()
            .any(|m| m["manager"] == "widget-controller" && m["subresource"] == "status")
    );
}

#[tokio::test(start_paused = true)]
async fn nobody_reconciles_kinds_that_were_not_asked_for() {
    let world = with_widgets().await;
    world.server.set_actors(Some(Actors::default()));
    world.create(widget(&[])).await;
    after(10.0).await;
    assert_eq!(world.get("Widget", "a").await["status"], Value::Null);
    world
        .annotate("Widget", "a", "ready-after", Some("1s"))
        .await;
    after(2.0).await;
    assert_eq!(conditions(&world.get("Widget", "a").await), READY);
}
