//! What operators are told by Events, once each.

use serde_json::{Value, json};

use crate::stage::{APPS, Stage, config_map, job, widget, with};

/// Reason and message of the Events on a Bundle, oldest first.
async fn events(stage: &Stage, bundle: &str) -> Vec<(String, String)> {
    let like = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "", "namespace": APPS},
    });
    let mut events = stage.world.list(&like).await;
    events.retain(|event| event["involvedObject"]["name"] == bundle);
    events.retain(|event| event["reportingComponent"] == "reeve.dev/agent");
    let text = |event: &Value, field: &str| event[field].as_str().unwrap().to_owned();
    let both = |event: &Value| (text(event, "reason"), text(event, "message"));
    events.iter().map(both).collect()
}

#[tokio::test(start_paused = true)]
async fn trouble_that_stays_is_told_once() {
    let mut wrong = config_map("wrong", 0);
    wrong["data"] = json!({"key": {"is": "no text"}});
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": APPS},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let slow = with(widget("slow", 0), &[("actor.reeve.dev/ready-after", "10h")]);
    let hook = with(
        job("before", 0),
        &[
            ("reeve.dev/hook", "PreSync"),
            ("actor.reeve.dev/fail", "exit"),
        ],
    );
    let unobeyed = ("reeve.dev/sync-options", "ServerSideApply=false,Pru=1");
    let odd = with(config_map("odd", 0), &[unobeyed]);
    for (first, then, expected) in [
        (vec![], vec![wrong], "ApplyFailed ConfigMap apps/wrong"),
        (
            vec![],
            vec![slow],
            "WaveTimedOut Sync wave 0: Widget apps/slow",
        ),
        (
            vec![],
            vec![hook],
            "HookFailed PreSync wave 0: Job apps/before",
        ),
        (
            vec![claim, widget("w", 0)],
            vec![widget("w", 0)],
            "DeletionHeld PersistentVolumeClaim apps/data",
        ),
        (
            vec![],
            vec![odd],
            "AnnotationNotObeyed ConfigMap apps/odd: annotation reeve.dev/sync-options",
        ),
    ] {
        let mut stage = Stage::new().await;
        if !first.is_empty() {
            stage.bundle("one", &first).await;
            stage.pass(10).await;
            assert_eq!(events(&stage, "one").await, [], "{expected}");
        }
        stage.bundle("one", &then).await;
        stage.pass(400).await;
        let told = events(&stage, "one").await;
        let (reason, text) = expected.split_once(' ').unwrap();
        let right =
            |(found, message): &&(String, String)| found == reason && message.contains(text);
        assert!(
            told.iter().any(|event| right(&event)),
            "{expected}: {told:#?}"
        );
        // It stays so for an hour, and another agent finds it so.
        stage.pass(3600).await;
        stage.restart().await;
        assert_eq!(events(&stage, "one").await, told, "{expected}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_only_takes_its_time_is_not_told() {
    let stage = Stage::new().await;
    let slow = with(
        widget("slow", 0),
        &[("actor.reeve.dev/ready-after", "200s")],
    );
    stage.bundle("one", &[slow, config_map("a", 1)]).await;
    stage.pass(250).await;
    assert!(stage.exists(&config_map("a", 1)).await);
    assert_eq!(events(&stage, "one").await, []);
}
