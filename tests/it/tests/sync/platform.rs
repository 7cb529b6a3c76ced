//! A platform of 23 applications, 28 dependencies and 10 waves, as one unit: each
//! application is a Deployment, a Job or a custom resource.

use reeve_test_support::platform::{self, WAVES, application, applications, full};
use serde_json::{Value, json};
use std::time::Duration;

use crate::stage::{APPS, Happened, Stage, bundle, deployment, token, widget};

fn platform(gpu: bool) -> Vec<Value> {
    platform::objects(APPS, gpu)
}

/// The applications with changes to some.
fn changed(change: impl Fn(&str, &mut Value)) -> Vec<Value> {
    platform::changed(APPS, change)
}

fn wave_of(full: &str) -> i64 {
    application(full).unwrap().wave
}

/// Applications to which something happened, those of the platform.
fn ours(stage: &Stage, what: Happened) -> Vec<String> {
    let mut all = stage.all(what);
    all.retain(|full| application(full).is_some());
    all
}

fn when(stage: &Stage, what: Happened, name: &str) -> Duration {
    let found = stage.when(what, &full(name));
    found.unwrap_or_else(|| panic!("{name} was never {what:?}"))
}

/// Waves in the order in which something first happened in them.
fn waves(stage: &Stage, what: Happened) -> Vec<i64> {
    let mut waves: Vec<i64> = ours(stage, what).iter().map(|full| wave_of(full)).collect();
    waves.dedup();
    waves
}

/// Of every two applications in different waves, the one of the later wave was made
/// when the other was healthy.
fn in_waves(stage: &Stage) {
    let made = ours(stage, Happened::Made);
    for before in &made {
        for after in made.iter().filter(|after| wave_of(before) < wave_of(after)) {
            stage.one_after_another(&[before, after]);
        }
    }
}

async fn rolled_out(gpu: bool) -> Stage {
    let stage = Stage::new().await;
    stage.bundle("platform", &platform(gpu)).await;
    stage.pass(120).await;
    assert_eq!(stage.unit("platform").await, None);
    stage
}

#[tokio::test(start_paused = true)]
async fn clusters_with_gpus_get_23_applications_in_10_waves() {
    let stage = rolled_out(true).await;
    let made = ours(&stage, Happened::Made);
    assert_eq!(made.len(), 23);
    assert_eq!(waves(&stage, Happened::Made), WAVES);
    in_waves(&stage);
    let edges: usize = applications().iter().map(|one| one.needs.len()).sum();
    assert_eq!(edges, 28);
    for one in applications() {
        for need in &one.needs {
            stage.one_after_another(&[&full(need), &full(&one.name)]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn clusters_without_gpus_get_16_applications_in_9_waves() {
    let stage = rolled_out(false).await;
    assert_eq!(ours(&stage, Happened::Made).len(), 16);
    let without: Vec<_> = WAVES.into_iter().filter(|wave| *wave != -3).collect();
    assert_eq!(waves(&stage, Happened::Made), without);
    in_waves(&stage);
}

/// One of 28 edges is inside a wave, which is divided for it.
#[tokio::test(start_paused = true)]
async fn a_dependency_inside_a_wave_is_respected() {
    let stage = rolled_out(true).await;
    stage.one_after_another(&["Widget/tetragon-catalogsource", "Widget/tetragon"]);
    let first = ["lvms-operator", "clickhouse-operator", "cilium-config"];
    let catalog = when(&stage, Happened::Made, "tetragon-catalogsource");
    for name in first {
        let together = when(&stage, Happened::Made, name).abs_diff(catalog);
        assert!(together < Duration::from_secs(1), "{name}");
    }
}

/// What only prose orders goes together.
#[tokio::test(start_paused = true)]
async fn what_has_no_edge_goes_together() {
    let stage = rolled_out(true).await;
    let (operator, policy) = (
        when(&stage, Happened::Made, "nim-operator"),
        when(&stage, Happened::Made, "gpu-cluster-policy"),
    );
    assert!(operator.abs_diff(policy) < Duration::from_secs(1));
    let mut tiers = applications().iter().map(|one| one.tier);
    assert!(tiers.all(|tier| (1..=4).contains(&tier)));
}

#[tokio::test(start_paused = true)]
async fn a_degraded_operator_holds_up_all_later_waves_and_a_fix_goes_on() {
    let stage = Stage::new().await;
    let broken = changed(|name, object| {
        if name == "gpu-operator" {
            object["spec"]["progressDeadlineSeconds"] = json!(20);
            let broken = json!({"actor.reeve.dev/fail": "image-pull"});
            object["spec"]["template"]["metadata"]["annotations"] = broken;
        }
    });
    stage.bundle("platform", &broken).await;
    stage.pass(90).await;
    let made = ours(&stage, Happened::Made);
    assert!(made.iter().all(|full| wave_of(full) <= -2), "{made:?}");
    assert_eq!(made.len(), 9);
    let blocked = stage.sync("platform").await["blockedBy"].clone();
    assert_eq!(
        blocked["object"], "Deployment apps/gpu-operator",
        "{blocked}"
    );
    assert_eq!(blocked["wave"], -2, "{blocked}");
    assert_eq!(blocked["status"], "Degraded", "{blocked}");
    assert!(blocked["since"].is_string(), "{blocked}");
    assert_eq!(stage.said("platform", "Ready").await.0, "Degraded");
    // The fix interrupts the wait.
    stage.bundle("platform", &platform(true)).await;
    stage.pass(120).await;
    assert_eq!(ours(&stage, Happened::Made).len(), 23);
    assert_eq!(stage.unit("platform").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_change_waits_for_the_new_revision_of_what_it_needs() {
    let stage = rolled_out(true).await;
    stage.forget();
    let both = changed(|name, object| {
        if name.starts_with("splunk") {
            object["spec"]["size"] = json!(2);
            object["metadata"]["annotations"]["actor.reeve.dev/ready-after"] = json!("7s");
        }
    });
    stage.bundle("platform", &both).await;
    stage.pass(60).await;
    let observed = when(&stage, Happened::Healthy, "splunk-otel");
    let started = when(&stage, Happened::Changed, "splunk-reporter");
    assert!(observed <= started, "{observed:?} {started:?}");
    let changed = when(&stage, Happened::Changed, "splunk-otel");
    assert!(observed >= changed + Duration::from_secs(7));
    assert_eq!(ours(&stage, Happened::Made), Vec::<String>::new());
    assert_eq!(stage.unit("platform").await, None);
}

#[tokio::test(start_paused = true)]
async fn what_is_as_it_should_be_is_not_written() {
    let mut stage = rolled_out(true).await;
    stage.pass(600).await;
    // Asked for once more, of which nothing is to be told, and by another agent.
    stage
        .annotate(&bundle("platform"), "reeve.dev/reconcile-at", json!("1"))
        .await;
    stage.world.writes();
    stage.pass(600).await;
    assert_eq!(stage.world.writes(), 0);
    stage.restart().await;
    stage.pass(600).await;
    assert_eq!(stage.world.writes(), 0);
}

#[tokio::test(start_paused = true)]
async fn drift_is_repaired_where_it_is() {
    let stage = rolled_out(true).await;
    let replicas = json!({"spec": {"replicas": 3}});
    stage
        .world
        .edit(&deployment("gpu-operator", 0), replicas)
        .await;
    stage.world.delete(&widget("nim-llm", 0)).await;
    stage.pass(20).await;
    let operator = stage.world.get(&deployment("gpu-operator", 0)).await;
    assert_eq!(operator.unwrap()["spec"]["replicas"], 1);
    assert!(stage.exists(&widget("nim-llm", 0)).await);
    let jobs = ours(&stage, Happened::Made);
    let jobs = jobs.iter().filter(|full| full.starts_with("Job/"));
    assert_eq!(jobs.count(), 3, "no Job has run again");
}

#[tokio::test(start_paused = true)]
async fn all_of_it_goes_in_reverse() {
    let stage = rolled_out(true).await;
    stage
        .bundle_with("platform", json!({"objects": [], "empty": true}))
        .await;
    stage.pass(10).await;
    // So much at once is for a person to say.
    assert_eq!(ours(&stage, Happened::Gone), Vec::<String>::new());
    let (reason, message) = stage.said("platform", "Ready").await;
    assert_eq!(reason, "DeletionHeld", "{message}");
    let token = token(&message);
    let plugin = reeve_it::plugin_reference("courier");
    stage
        .annotate(&plugin, "reeve.dev/approve-deletion", json!(token))
        .await;
    stage.pass(60).await;
    let reverse: Vec<_> = WAVES.into_iter().rev().collect();
    assert_eq!(waves(&stage, Happened::Gone), reverse);
    assert_eq!(ours(&stage, Happened::Gone).len(), 23);
    assert_eq!(stage.unit("platform").await, None);
}
