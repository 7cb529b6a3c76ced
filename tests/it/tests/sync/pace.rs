//! How many writes are under way at once, and that one which is ends.

use serde_json::{Value, json};
use std::time::Duration;

use crate::stage::{Stage, config_map, widget};

fn slowed(stage: &Stage, fault: &str) {
    stage.world.server.set_faults(vec![fault.parse().unwrap()]);
}

#[tokio::test(start_paused = true)]
async fn four_writes_of_a_unit_are_under_way_at_once() {
    let stage = Stage::new().await;
    slowed(
        &stage,
        "latency: delay=10s, verb=patch, resource=configmaps",
    );
    let objects: Vec<Value> = (0..30)
        .map(|i| config_map(&format!("c{i:02}"), 0))
        .collect();
    stage.bundle("one", &objects).await;
    // Each time four are answered the next four are sent.
    for (after, expected) in [(5, 0), (10, 4), (10, 8), (10, 12)] {
        tokio::time::sleep(Duration::from_secs(after)).await;
        let mut all = stage.world.list(&config_map("", 0)).await;
        all.retain(|object| {
            object["metadata"]["name"]
                .as_str()
                .unwrap()
                .starts_with('c')
        });
        assert_eq!(all.len(), expected);
    }
    stage.pass(100).await;
    assert_eq!(stage.unit("one").await, None);
}

/// A newer answer waits for the apply of an older one to end.
#[tokio::test(start_paused = true)]
async fn a_newer_state_interrupts_no_apply() {
    let stage = Stage::new().await;
    let sized = |size: i64| {
        let mut widget = widget("a", 0);
        widget["spec"]["size"] = json!(size);
        [widget, config_map("b", 1)]
    };
    slowed(
        &stage,
        "latency: delay=10s, verb=patch, resource=widgets.example.com",
    );
    stage.bundle("one", &sized(1)).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!stage.exists(&widget("a", 0)).await);
    stage.bundle("one", &sized(2)).await;
    // The first, as it was sent.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let size = async || stage.world.get(&widget("a", 0)).await.unwrap()["spec"]["size"].clone();
    assert_eq!(size().await, 1);
    // An object whose status is written meanwhile is looked at and applied once more.
    tokio::time::sleep(Duration::from_secs(22)).await;
    assert_eq!(size().await, 2);
    stage.world.server.set_faults(Vec::new());
    stage.pass(10).await;
    assert!(stage.exists(&config_map("b", 1)).await);
    assert_eq!(stage.unit("one").await, None);
}
