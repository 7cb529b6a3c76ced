//! Objects that are made anew count as deletions do.

use reeve_it::plugin_reference;
use serde_json::{Value, json};

use crate::stage::{APPS, Stage, token};

/// More than a plugin may withdraw within an hour.
const MANY: usize = 104;

/// ConfigMaps that cannot be changed.
fn sealed(value: &str) -> Vec<Value> {
    let object = |number| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("c{number}"), "namespace": APPS},
            "data": {"key": value}, "immutable": true,
        })
    };
    (0..MANY).map(object).collect()
}

/// How many have this value.
async fn count(stage: &Stage, value: &str) -> usize {
    let all = stage.world.list(&sealed(value)[0]).await;
    let with = all.iter().filter(|one| one["data"]["key"] == value);
    with.count()
}

#[tokio::test(start_paused = true)]
async fn a_version_that_makes_everything_anew_stops_early() {
    let stage = Stage::with_plugin(json!({"recreate": true})).await;
    stage.bundle("one", &sealed("old")).await;
    stage.pass(10).await;
    assert_eq!(count(&stage, "old").await, MANY);
    stage.bundle("one", &sealed("new")).await;
    stage.pass(60).await;
    let made = count(&stage, "new").await;
    assert_eq!(made, 100, "the budget");
    assert_eq!(count(&stage, "old").await, MANY - made);
    let (reason, message) = stage.said("one", "Ready").await;
    assert_eq!(reason, "DeletionHeld", "{message}");
    assert!(message.starts_with("4 deletions are held"), "{message}");
    // Who leads next knows what was spent.
    let mut stage = stage;
    stage.restart().await;
    stage.pass(60).await;
    assert_eq!(count(&stage, "new").await, 100);
    let (_, message) = stage.said("one", "Ready").await;
    let key = "reeve.dev/approve-deletion";
    stage
        .annotate(&plugin_reference("courier"), key, json!(token(&message)))
        .await;
    stage.pass(30).await;
    assert_eq!(count(&stage, "new").await, MANY);
    assert_eq!(stage.unit("one").await, None);
}
