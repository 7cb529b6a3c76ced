//! Objects that are made where there is nothing of their name, and left alone after that.

use serde_json::{Value, json};

use crate::stage::{Stage, bundle, config_map, with};

/// As Flux writes it.
const IF_NOT_PRESENT: (&str, &str) = ("kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent");

fn objects(value: &str) -> [Value; 2] {
    let mut first = with(config_map("a", 0), &[IF_NOT_PRESENT]);
    let mut second = config_map("b", 1);
    for object in [&mut first, &mut second] {
        object["data"]["key"] = json!(value);
    }
    [first, second]
}

async fn values(stage: &Stage) -> [Value; 2] {
    let [first, second] = objects("");
    let value = async |object: Value| {
        let live = stage.world.get(&object).await.unwrap_or_default();
        live["data"]["key"].clone()
    };
    [value(first).await, value(second).await]
}

#[tokio::test(start_paused = true)]
async fn another_answer_changes_what_comes_after_it() {
    let stage = Stage::new().await;
    stage.bundle("one", &objects("old")).await;
    stage.pass(5).await;
    assert_eq!(values(&stage).await, ["old", "old"]);
    stage.bundle("one", &objects("new")).await;
    stage.pass(5).await;
    assert_eq!(values(&stage).await, ["old", "new"]);
    assert_eq!(stage.unit("one").await, None, "all is well");
    // Nor is what others make of it changed back.
    let [first, _] = objects("");
    let edited = json!({"data": {"key": "theirs"}});
    stage.world.edit(&first, edited).await;
    stage.pass(5).await;
    assert_eq!(values(&stage).await, ["theirs", "new"]);
    stage.world.delete(&first).await;
    stage.pass(5).await;
    assert_eq!(values(&stage).await, ["new", "new"]);
}

#[tokio::test(start_paused = true)]
async fn what_somebody_else_has_is_left_alone() {
    for policy in [json!({}), json!({"adoption": "Always"})] {
        let stage = Stage::with_plugin(policy.clone()).await;
        let [first, _] = objects("");
        let mut theirs = config_map("a", 0);
        theirs["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("annotations");
        theirs["data"]["key"] = json!("theirs");
        stage.world.apply(&theirs).await;
        let before = stage.world.get(&theirs).await;
        stage.bundle("one", &objects("ours")).await;
        stage.pass(5).await;
        assert_eq!(values(&stage).await, ["theirs", "ours"], "{policy}");
        assert_eq!(stage.unit("one").await, None, "{policy}");
        assert_eq!(stage.world.get(&theirs).await, before, "{policy}");
        // When it is gone there is room.
        stage.world.delete(&theirs).await;
        stage.pass(70).await;
        assert_eq!(values(&stage).await, ["ours", "ours"], "{policy}");
        // It is the unit's own, and goes with it.
        stage.world.delete(&bundle("one")).await;
        stage.pass(10).await;
        assert!(!stage.exists(&first).await, "{policy}");
    }
}
