//! A platform of 23 applications, 28 dependencies and 10 waves, as one unit: each
//! application is a Deployment, a Job or a custom resource.

use serde_json::{Value, json};
use std::time::Duration;

use crate::stage::{Happened, Stage, deployment, job, token, widget, with};

/// Name, tier, wave, and what it needs.
type Row = (&'static str, u8, i64, &'static [&'static str]);

const PLATFORM: [Row; 23] = [
    ("argocd-config", 1, -15, &[]),
    ("platform-idms", 1, -10, &["argocd-config"]),
    ("sealed-secrets-controller", 1, -8, &["platform-idms"]),
    ("platform-catalogsources", 1, -5, &["platform-idms"]),
    ("sealed-secrets", 1, -5, &["sealed-secrets-controller"]),
    ("sealed-secrets-gpu", 3, -5, &["sealed-secrets-controller"]),
    ("nfd-operator", 3, -3, &["platform-catalogsources"]),
    ("hubble-timescape-scc", 2, -2, &[]),
    (
        "gpu-operator",
        3,
        -2,
        &["platform-catalogsources", "nfd-operator"],
    ),
    ("lvms-operator", 1, -1, &["platform-catalogsources"]),
    (
        "tetragon-catalogsource",
        2,
        -1,
        &["platform-catalogsources"],
    ),
    ("clickhouse-operator", 2, -1, &["platform-catalogsources"]),
    ("tetragon", 2, -1, &["tetragon-catalogsource"]),
    ("cilium-config", 2, -1, &[]),
    (
        "hubble-timescape",
        2,
        0,
        &[
            "clickhouse-operator",
            "hubble-timescape-scc",
            "sealed-secrets",
        ],
    ),
    ("nfd-instance", 3, 0, &["nfd-operator"]),
    (
        "vector-exporter",
        2,
        1,
        &["hubble-timescape", "sealed-secrets"],
    ),
    ("gpu-cluster-policy", 3, 1, &["gpu-operator"]),
    (
        "nim-operator",
        3,
        1,
        &["platform-catalogsources", "gpu-operator"],
    ),
    ("splunk-otel", 4, 1, &["sealed-secrets"]),
    ("intersight-otel", 4, 1, &["sealed-secrets"]),
    (
        "nim-llm",
        3,
        2,
        &["nim-operator", "sealed-secrets-gpu", "gpu-cluster-policy"],
    ),
    ("splunk-reporter", 4, 2, &["splunk-otel", "sealed-secrets"]),
];

const WAVES: [i64; 10] = [-15, -10, -8, -5, -3, -2, -1, 0, 1, 2];

/// Operators run, what configures is done once, the rest is reconciled by others.
fn kind(name: &str) -> &'static str {
    if name.ends_with("operator") || name.ends_with("controller") {
        "Deployment"
    } else if name.ends_with("config") || name.ends_with("idms") {
        "Job"
    } else {
        "Widget"
    }
}

fn full(name: &str) -> String {
    format!("{}/{name}", kind(name))
}

fn application(row: &Row) -> Value {
    let (name, _, wave, needs) = *row;
    let object = match kind(name) {
        "Deployment" => deployment(name, wave),
        "Job" => job(name, wave),
        _ => widget(name, wave),
    };
    let needs: Vec<String> = needs.iter().map(|need| full(need)).collect();
    if needs.is_empty() {
        object
    } else {
        with(object, &[("reeve.dev/depends-on", &needs.join(","))])
    }
}

fn platform(gpu: bool) -> Vec<Value> {
    let rows = PLATFORM.iter().filter(|(_, tier, ..)| gpu || *tier != 3);
    rows.map(application).collect()
}

/// The applications with changes to some.
fn changed(change: impl Fn(&str, &mut Value)) -> Vec<Value> {
    let mut objects = platform(true);
    for object in &mut objects {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        change(&name, object);
    }
    objects
}

fn wave_of(full: &str) -> i64 {
    let (_, name) = full.split_once('/').unwrap();
    let row = PLATFORM.iter().find(|(known, ..)| *known == name);
    row.unwrap().2
}

/// Applications to which something happened, those of the platform.
fn ours(stage: &Stage, what: Happened) -> Vec<String> {
    let mut all = stage.all(what);
    all.retain(|full| {
        let (_, name) = full.split_once('/').unwrap();
        PLATFORM.iter().any(|(known, ..)| *known == name)
    });
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
    let edges: usize = PLATFORM.iter().map(|(_, _, _, needs)| needs.len()).sum();
    assert_eq!(edges, 28);
    for (name, _, _, needs) in PLATFORM {
        for need in needs {
            stage.one_after_another(&[&full(need), &full(name)]);
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
    let tiers: Vec<u8> = PLATFORM.iter().map(|(_, tier, ..)| *tier).collect();
    assert!(tiers.iter().all(|tier| (1..=4).contains(tier)));
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
async fn drift_is_repaired_where_it_is() {
    let stage = rolled_out(true).await;
    stage.world.writes();
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
