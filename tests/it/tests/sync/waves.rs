//! Waves in order, each behind a gate, and what interrupts a wait.

use serde_json::json;

use crate::stage::{Happened, Stage, bundle, config_map, deployment, job, widget, with};

/// Becomes ready, but not before somebody takes this annotation away.
const STALL: (&str, &str) = ("actor.reeve.dev/stall", "true");

#[tokio::test(start_paused = true)]
async fn each_wave_is_healthy_before_the_next_begins() {
    let stage = Stage::new().await;
    let objects = [
        job("c", 5),
        widget("a", -3),
        deployment("b", 0),
        config_map("settings", -5),
    ];
    stage.bundle("one", &objects).await;
    stage.pass(30).await;
    stage.one_after_another(&["Widget/a", "Deployment/b", "Job/c"]);
    assert_eq!(stage.unit("one").await, None, "all is well");
    assert_eq!(
        stage.counts().await,
        json!({"total": 1, "ready": 1, "failing": 0})
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_of_one_wave_goes_together() {
    let stage = Stage::new().await;
    let slow = with(widget("slow", 1), &[("actor.reeve.dev/ready-after", "20s")]);
    stage
        .bundle("one", &[slow, widget("fast", 1), widget("last", 2)])
        .await;
    stage.pass(60).await;
    let made = |name: &str| stage.when(Happened::Made, name).unwrap();
    assert!(made("Widget/fast").abs_diff(made("Widget/slow")).as_secs() < 1);
    stage.one_after_another(&["Widget/slow", "Widget/last"]);
}

/// What was healthy before the change does not pass the gate after it.
#[tokio::test(start_paused = true)]
async fn old_health_does_not_count() {
    let stage = Stage::new().await;
    let sized = |name: &str, wave, size: i64| {
        let mut widget = widget(name, wave);
        widget["spec"]["size"] = json!(size);
        with(widget, &[("actor.reeve.dev/ready-after", "5s")])
    };
    let both = |size| [sized("a", 0, size), sized("b", 1, size)];
    stage.bundle("one", &both(1)).await;
    stage.pass(30).await;
    stage.forget();
    stage.bundle("one", &both(2)).await;
    stage.pass(1).await;
    assert_eq!(
        stage.world.get(&widget("a", 0)).await.unwrap()["spec"]["size"],
        2
    );
    assert_eq!(
        stage.world.get(&widget("b", 1)).await.unwrap()["spec"]["size"],
        1,
        "a has not seen its own change yet"
    );
    stage.pass(30).await;
    assert_eq!(
        stage.world.get(&widget("b", 1)).await.unwrap()["spec"]["size"],
        2
    );
    let (healthy, changed) = (
        stage.when(Happened::Healthy, "Widget/a").unwrap(),
        stage.when(Happened::Changed, "Widget/b").unwrap(),
    );
    assert!(healthy <= changed, "{healthy:?} {changed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stuck_wave_is_explained() {
    let stage = Stage::new().await;
    let objects = [
        widget("a", 0),
        with(widget("b", 1), &[STALL]),
        widget("c", 2),
    ];
    stage.bundle("one", &objects).await;
    stage.pass(10).await;
    let sync = stage.sync("one").await;
    let blocked = &sync["blockedBy"];
    assert_eq!(sync["progress"], "Waiting", "{sync}");
    assert_eq!(blocked["wave"], 1, "{sync}");
    assert_eq!(blocked["phase"], "Sync", "{sync}");
    assert_eq!(blocked["object"], "Widget apps/b", "{sync}");
    assert!(!blocked["reason"].as_str().unwrap().is_empty(), "{sync}");
    let since = blocked["since"].as_str().unwrap().to_owned();
    assert!(since.starts_with("2023-11-14T22:13:"), "{since}");
    assert!(!stage.exists(&widget("c", 2)).await);
    // It is the same wait a while later.
    stage.pass(60).await;
    assert_eq!(
        stage.sync("one").await["blockedBy"]["since"],
        since.as_str()
    );
    // Healed, it goes on by itself.
    let healed = with(widget("b", 1), &[]);
    stage.annotate(&healed, STALL.0, json!(null)).await;
    stage
        .bundle("one", &[widget("a", 0), healed, widget("c", 2)])
        .await;
    stage.pass(10).await;
    assert!(stage.exists(&widget("c", 2)).await);
    assert_eq!(stage.unit("one").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_newer_desired_state_interrupts_a_wait() {
    let stage = Stage::new().await;
    let wrong = with(widget("a", 0), &[STALL]);
    stage.bundle("one", &[wrong, widget("b", 1)]).await;
    stage.pass(20).await;
    assert!(!stage.exists(&widget("b", 1)).await);
    // The fix comes while the first is still waited for.
    let fixed = with(widget("a", 0), &[("actor.reeve.dev/stall", "false")]);
    stage.bundle("one", &[fixed, widget("c", 1)]).await;
    stage.pass(10).await;
    assert!(stage.exists(&widget("c", 1)).await);
    assert!(
        !stage.exists(&widget("b", 1)).await,
        "the older one is over"
    );
    assert_eq!(stage.unit("one").await, None);
}

#[tokio::test(start_paused = true)]
async fn drift_of_a_complete_sync_is_repaired_without_gates() {
    let stage = Stage::new().await;
    let objects = [widget("a", 0), widget("b", 1), widget("c", 2)];
    stage.bundle("one", &objects).await;
    stage.pass(20).await;
    // The first is unwell, which is no reason to leave the last as it is.
    stage
        .annotate(&widget("a", 0), STALL.0, json!("true"))
        .await;
    stage.pass(5).await;
    let size = json!({"spec": {"size": 9}});
    stage.world.edit(&widget("c", 2), size).await;
    stage.pass(5).await;
    let repaired = stage.world.get(&widget("c", 2)).await.unwrap();
    assert_eq!(repaired["spec"]["size"], 1);
    stage.world.delete(&widget("b", 1)).await;
    stage.pass(5).await;
    assert!(stage.exists(&widget("b", 1)).await);
}

#[tokio::test(start_paused = true)]
async fn a_restart_goes_on_where_the_sync_was() {
    let mut stage = Stage::new().await;
    let slow = with(widget("b", 1), &[("actor.reeve.dev/ready-after", "30s")]);
    stage
        .bundle("one", &[widget("a", 0), slow, widget("c", 2)])
        .await;
    stage.pass(5).await;
    stage.forget();
    stage.restart().await;
    stage.pass(10).await;
    assert!(!stage.exists(&widget("c", 2)).await);
    assert_eq!(stage.all(Happened::Made), Vec::<String>::new());
    stage.pass(40).await;
    assert_eq!(stage.all(Happened::Made), ["Widget/c"]);
    // Converged, a restart writes nothing.
    stage.world.writes();
    stage.restart().await;
    assert_eq!(stage.world.writes(), 0);
    assert_eq!(stage.unit("one").await, None);
    assert!(stage.exists(&bundle("one")).await);
}

/// A rule in CEL, in the place of what is known of the kind.
#[tokio::test(start_paused = true)]
async fn an_object_may_say_when_it_is_healthy() {
    let rule = (
        "reeve.dev/health",
        "has(self.spec) && self.spec.open == 'yes'",
    );
    let text = ("reeve.dev/health", "self.data.other == 'yes'");
    let wrong = ("reeve.dev/health", "self.spec.open ==");
    for (object, patch, waits) in [
        (
            with(widget("a", 0), &[STALL, rule]),
            json!({"spec": {"open": "yes"}}),
            "Widget apps/a is Progressing",
        ),
        (
            with(config_map("a", 0), &[text]),
            json!({"data": {"other": "yes"}}),
            "ConfigMap apps/a is Progressing",
        ),
        (
            with(widget("a", 0), &[wrong]),
            json!({}),
            "its health rule cannot be used",
        ),
    ] {
        let stage = Stage::new().await;
        stage
            .bundle("one", &[object.clone(), config_map("b", 1)])
            .await;
        stage.pass(30).await;
        assert!(!stage.exists(&config_map("b", 1)).await, "{object}");
        let (_, message) = stage.said("one", "Ready").await;
        assert!(message.contains(waits), "{message}");
        if patch != json!({}) {
            // Fields that are not ours, which the rule reads.
            stage.world.edit(&object, patch).await;
            stage.pass(10).await;
            assert!(stage.exists(&config_map("b", 1)).await, "{object}");
            assert_eq!(stage.unit("one").await, None);
        }
    }
}
