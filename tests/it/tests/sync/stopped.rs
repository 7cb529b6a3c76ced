//! Hooks and finalizers through stops of the plugin and questions without an answer.

use std::time::Duration;

use reeve_it::{config_map_reference, core_reference};
use reeve_sim::Outage;
use serde_json::{Value, json};

use crate::endings::{FINALIZER, finalizers, let_hold};
use crate::stage::{Happened, OTHER, Stage, bundle, config, config_map, job, widget, with};

/// A stage on which a sync with a hook has ended, and its primary waits for its end.
async fn stage() -> Stage {
    let stage = Stage::new().await;
    let_hold(&stage).await;
    let before = with(job("before", 0), &[("reeve.dev/hook", "PreSync")]);
    stage.bundle("one", &[before, widget("a", 0), far()]).await;
    stage.pass(30).await;
    assert_eq!(runs(&stage), 1);
    assert_eq!(finalizers(&stage).await, json!([FINALIZER]));
    stage
}

fn far() -> Value {
    let mut object = config_map("far", 0);
    object["metadata"]["namespace"] = json!(OTHER);
    object
}

/// How often the hook was run.
fn runs(stage: &Stage) -> usize {
    let made = stage.all(Happened::Made);
    made.iter().filter(|made| **made == "Job/before").count()
}

fn faults(stage: &Stage, texts: &[&str]) {
    let faults = texts.iter().map(|text| text.parse().unwrap());
    stage.world.server.set_faults(faults.collect());
}

/// The plugin stops in one way, and goes on.
#[tokio::test(start_paused = true)]
async fn a_stop_runs_no_hook_again() {
    for case in ["account", "config map", "annotation", "outage"] {
        let stage = stage().await;
        let world = &stage.world;
        let before = stage.unit("one").await.unwrap();
        match case {
            "account" => {
                let fault = "unavailable: verb=get, resource=serviceaccounts";
                faults(&stage, &[fault]);
                stage.pass(700).await;
                faults(&stage, &[]);
            }
            "config map" => {
                world.delete(&config_map_reference("courier")).await;
                stage.pass(5).await;
                stage.deliver(config()).await;
            }
            "annotation" => {
                let account = core_reference("ServiceAccount", reeve_it::NAMESPACE, "courier");
                for plugin in [Value::Null, json!("courier")] {
                    stage.annotate(&account, "reeve.dev/plugin", plugin).await;
                    stage.pass(700).await;
                }
            }
            _ => {
                world.server.faults().set_outage(Outage::Unavailable);
                tokio::time::sleep(Duration::from_secs(700)).await;
                world.server.faults().set_outage(Outage::None);
            }
        }
        stage.pass(60).await;
        let loaded = world.plugin_condition("courier", "Loaded").await;
        assert_eq!(loaded.status, "True", "{case}: {loaded:?}");
        assert_eq!(runs(&stage), 1, "{case}");
        let after = stage.unit("one").await.unwrap();
        let uid = |unit: &Value| unit["metadata"]["uid"].clone();
        assert_eq!(uid(&after), uid(&before), "{case}");
        assert_eq!(
            after["status"]["sync"]["hooks"],
            before["status"]["sync"]["hooks"]
        );
        assert_eq!(finalizers(&stage).await, json!([FINALIZER]), "{case}");
    }
}

/// Questions about rights that the agent has asked since this was last called.
fn asked(stage: &Stage) -> u64 {
    let requests = stage.world.server.requests();
    let reviews = requests
        .iter()
        .filter(|(call, _)| call.resource.starts_with("subjectaccessreviews"));
    reviews.map(|(_, count)| count).sum()
}

/// That nobody says whether primaries can wait is no reason to let them go.
#[tokio::test(start_paused = true)]
async fn a_review_that_fails_takes_no_finalizer_away() {
    let stage = stage().await;
    let run = async |how: &str| {
        stage
            .annotate(&bundle("one"), "reeve.dev/reconcile-at", json!(how))
            .await;
    };
    // How many questions there are at a time. The last of them is whether primaries
    // can be made to wait.
    let mut all = 0;
    for attempt in 0..5 {
        stage.pass(31).await;
        stage.world.server.reset_requests();
        run(&format!("{attempt}")).await;
        stage.pass(1).await;
        all = asked(&stage);
        if all > 0 {
            break;
        }
    }
    assert!(all > 1, "{all}");
    // The answers are asked for anew when they are 30 seconds old.
    stage.world.server.reset_requests();
    let slow = "latency: delay=1s, resource=subjectaccessreviews";
    faults(&stage, &[slow]);
    let mut waited = 0;
    while asked(&stage) < all - 1 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        waited += 1;
        assert!(waited < 10_000, "{} of {all}", asked(&stage));
    }
    assert_eq!(asked(&stage), all - 1);
    faults(&stage, &["unavailable: resource=subjectaccessreviews"]);
    stage.pass(3).await;
    assert_eq!(asked(&stage), all);
    run("last").await;
    stage.pass(3).await;
    assert_eq!(finalizers(&stage).await, json!([FINALIZER]));
}

#[tokio::test(start_paused = true)]
async fn a_right_to_hold_that_comes_later_holds_what_is_there() {
    let stage = Stage::new().await;
    stage.bundle("one", &[far(), widget("a", 0)]).await;
    stage.pass(10).await;
    assert_eq!(finalizers(&stage).await, Value::Null);
    let_hold(&stage).await;
    assert_eq!(finalizers(&stage).await, json!([FINALIZER]));
}
