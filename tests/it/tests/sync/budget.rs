//! The budget of withdrawals, over many units and over restarts.

use reeve_core::prune::BUDGET;
use reeve_it::plugin_reference;
use serde_json::{Value, json};

use crate::stage::{APPS, Stage, bundle, config, config_map, token};

/// More units than the budget, each with objects enough that shares do not count.
const UNITS: usize = 130;

async fn fill(stage: &Stage) {
    for unit in 0..UNITS {
        let object = |which: &str| config_map(&format!("u{unit}-{which}"), 0);
        let objects = ["a", "b", "c", "d", "last"].map(object);
        stage.bundle(&format!("u{unit}"), &objects).await;
    }
    stage.pass(5).await;
    assert_eq!(left(stage, "").await, UNITS * 5);
    // A version that would delete so much is held before it runs. What is left to the
    // budget is what nobody could see coming.
    let policy = json!({"spec": {"upgrade": {"shadow": "Off"}}});
    let plugin = plugin_reference("courier");
    stage.world.edit(&plugin, policy).await;
    stage.world.settle().await;
}

async fn left(stage: &Stage, ending: &str) -> usize {
    let objects = stage.world.list(&config_map("", 0)).await;
    let ours = objects.iter().filter(|object| {
        let name = object["metadata"]["name"].as_str().unwrap();
        name.starts_with('u') && name.ends_with(ending)
    });
    ours.count()
}

fn mistaken() -> Value {
    let mut mistaken = config();
    mistaken["forget"] = json!("-last");
    mistaken
}

async fn held(stage: &Stage) -> String {
    let held = stage
        .world
        .plugin_condition("courier", "DeletionsHeld")
        .await;
    assert_eq!(held.status, "True", "{held:?}");
    held.message
}

#[tokio::test(start_paused = true)]
async fn a_version_that_forgets_one_object_of_each_unit_stops_early() {
    let mut stage = Stage::new().await;
    fill(&stage).await;
    stage.deliver(mistaken()).await;
    stage.pass(60).await;
    assert_eq!(left(&stage, "-last").await, UNITS - BUDGET);
    assert_eq!(left(&stage, "").await, UNITS * 5 - BUDGET);
    let message = held(&stage).await;
    assert!(message.starts_with("30 deletions are held"), "{message}");

    // Starting anew is no way to a new budget, however often.
    for _ in 0..3 {
        stage.restart().await;
        stage.pass(120).await;
        assert_eq!(left(&stage, "-last").await, UNITS - BUDGET);
    }
    // Nor is time, while something is held.
    stage.pass(2 * 3600).await;
    assert_eq!(left(&stage, "-last").await, UNITS - BUDGET);
    let message = held(&stage).await;
    assert!(message.starts_with("30 deletions are held"), "{message}");

    // What a person approves goes, also when the agent restarts in between.
    let token = token(&message);
    stage.world.stop().await;
    let key = "reeve.dev/approve-deletion";
    stage
        .annotate(&plugin_reference("courier"), key, json!(token))
        .await;
    stage.world.start();
    stage.world.settle().await;
    stage.pass(120).await;
    assert_eq!(left(&stage, "-last").await, 0);
    assert_eq!(left(&stage, "").await, UNITS * 4);
    let over = stage
        .world
        .plugin_condition("courier", "DeletionsHeld")
        .await;
    assert_eq!(over.status, "", "{over:?}");
}

#[tokio::test(start_paused = true)]
async fn a_mended_version_ends_what_is_held() {
    let mut stage = Stage::new().await;
    fill(&stage).await;
    stage.deliver(mistaken()).await;
    stage.pass(60).await;
    held(&stage).await;
    stage.restart().await;
    stage.deliver(config()).await;
    stage.pass(60).await;
    assert_eq!(left(&stage, "-last").await, UNITS, "made again");
    let over = stage
        .world
        .plugin_condition("courier", "DeletionsHeld")
        .await;
    assert_eq!(over.status, "", "{over:?}");
}

/// The primaries live; that they are no longer selected may be a mistake as well.
#[tokio::test(start_paused = true)]
async fn a_version_that_selects_nobody_stops_early() {
    let mut stage = Stage::new().await;
    fill(&stage).await;
    let mut mistaken = config();
    mistaken["selector"] = json!("taem=a");
    stage.deliver(mistaken).await;
    stage.pass(60).await;
    assert_eq!(left(&stage, "").await, UNITS * 5 - BUDGET);
    let message = held(&stage).await;
    assert!(message.contains("may withdraw 100 objects"), "{message}");
    // Neither time nor another start is a new budget.
    stage.restart().await;
    stage.pass(2 * 3600).await;
    assert_eq!(left(&stage, "").await, UNITS * 5 - BUDGET);
    // Seeing all of them again is more than the mistaken version saw.
    stage.deliver(config()).await;
    stage.pass(5).await;
    stage.world.approve("courier").await;
    stage.pass(60).await;
    assert_eq!(left(&stage, "").await, UNITS * 5, "made again");
}

#[tokio::test(start_paused = true)]
async fn a_primary_that_loses_its_label_loses_no_data() {
    let mut selecting = config();
    selecting["selector"] = json!("team=a");
    let stage = Stage::with(json!({}), selecting).await;
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": APPS},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    stage
        .bundle("one", &[config_map("u1", 0), claim.clone()])
        .await;
    let team = |team: Value| json!({"metadata": {"labels": {"team": team}}});
    stage.world.edit(&bundle("one"), team(json!("a"))).await;
    stage.pass(10).await;
    assert_eq!(left(&stage, "").await, 1);
    stage.world.edit(&bundle("one"), team(Value::Null)).await;
    stage.pass(10).await;
    assert_eq!(left(&stage, "").await, 0);
    assert!(stage.exists(&claim).await);
    let (reason, message) = stage.said("one", "Ready").await;
    assert_eq!(reason, "DeletionHeld", "{message}");
    assert!(message.contains("loses data"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn what_must_not_exist_counts_as_well() {
    let mut stage = Stage::new().await;
    let count = BUDGET + 20;
    for number in 0..count {
        let mut object = config_map(&format!("u{number}"), 0);
        object["metadata"]["labels"] = json!({"theirs": "true"});
        stage.world.apply(&object).await;
    }
    let absent = |from: usize, to: usize| -> Value {
        let reference = |number: usize| json!({"kind": "ConfigMap.v1", "namespace": APPS, "name": format!("u{number}")});
        (from..to).map(reference).collect()
    };
    stage
        .bundle_with(
            "one",
            json!({"objects": [config_map("mine", 0)], "absent": absent(0, 60)}),
        )
        .await;
    stage.pass(5).await;
    assert_eq!(left(&stage, "").await, count - 60);
    stage.restart().await;
    stage
        .bundle_with(
            "two",
            json!({"objects": [config_map("other", 0)], "absent": absent(60, count)}),
        )
        .await;
    stage.pass(5).await;
    assert_eq!(left(&stage, "").await, count - 60, "60 more are too many");
    let (reason, message) = stage.said("two", "Ready").await;
    assert_eq!(reason, "DeletionHeld");
    assert!(message.starts_with("60 deletions are held"), "{message}");
    // The window passes, and nobody wants so much any more.
    stage
        .bundle_with(
            "two",
            json!({"objects": [config_map("other", 0)], "absent": absent(60, 70)}),
        )
        .await;
    stage.pass(2 * 3600).await;
    let (reason, message) = stage.said("two", "Ready").await;
    assert_eq!(left(&stage, "").await, count - 70, "{reason} {message}");
}

/// Its Plugin says how much it may withdraw, and another word on that holds at once.
#[tokio::test(start_paused = true)]
async fn a_plugin_has_a_budget_of_its_own() {
    let mut stage = Stage::with_plugin(json!({"limits": {"deletionsPerHour": 3}})).await;
    let count = 8;
    let first: Vec<Value> = (0..count)
        .map(|n| config_map(&format!("u{n}"), 0))
        .collect();
    stage.bundle("one", &first).await;
    stage.pass(5).await;
    assert_eq!(left(&stage, "").await, count);
    // One after another, as units withdraw.
    for (asked, expected) in [(1, 7), (3, 5), (4, 5)] {
        stage.bundle("one", &first[asked..]).await;
        stage.pass(5).await;
        assert_eq!(left(&stage, "").await, expected, "{asked}");
    }
    let message = held(&stage).await;
    let why = "the plugin may withdraw 3 objects within 60 minutes over all its units";
    assert!(message.contains(why), "{message}");
    let set = async |stage: &Stage, deletions: u32| {
        let patch = json!({"spec": {"limits": {"deletionsPerHour": deletions}}});
        stage.world.edit(&plugin_reference("courier"), patch).await;
        stage.pass(5).await;
    };
    set(&stage, 4).await;
    assert_eq!(left(&stage, "").await, 4);
    let over = stage
        .world
        .plugin_condition("courier", "DeletionsHeld")
        .await;
    assert_eq!(over.status, "", "{over:?}");
    // None without a word; a restart knows that as well.
    set(&stage, 0).await;
    stage.restart().await;
    stage.bundle("one", &first[5..]).await;
    stage.pass(60).await;
    assert_eq!(left(&stage, "").await, 4);
    let message = held(&stage).await;
    assert!(message.contains("may withdraw 0 objects"), "{message}");
}
