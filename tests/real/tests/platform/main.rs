//! A platform of 23 applications, 28 dependencies and 10 waves as one unit, on a real
//! API server with simulated nodes: rolled out, mended, changed, kept as it is, and taken
//! down. The embedded cluster tells the same story.

mod history;
mod stage;

use anyhow::{Context as _, Result, ensure};
use reeve_test_support::platform::{self, WAVES, applications, full};
use reeve_test_support::workloads::{annotated, job};
use serde_json::{Value, json};

use history::{Happened, History};
use stage::{PLUGIN, Stage};

/// Namespace of the cluster with GPUs, so to say, and of the one without.
const GPU: &str = "gpu";
const PLAIN: &str = "plain";
/// The Bundle in each.
const NAME: &str = "platform";

#[test]
fn a_platform_is_rolled_out_kept_and_taken_down_in_order() -> Result<()> {
    let stage = Stage::new(&[GPU, PLAIN])?;
    // Both at once, since units do not wait for one another.
    let mut plain = platform::objects(PLAIN, false);
    plain.extend(hooks());
    stage.bundle(PLAIN, NAME, &json!({"objects": plain}))?;
    a_degraded_operator_holds_up_all_later_waves(&stage)?;
    a_fix_goes_on(&stage)?;
    what_has_no_edge_goes_together(&stage)?;
    without_gpus_there_are_fewer(&stage)?;
    a_change_waits_for_the_new_revision(&stage)?;
    drift_is_repaired_where_it_is(&stage)?;
    all_of_it_goes_in_reverse(&stage)?;
    it_ends_in_order_before_its_primary_does(&stage)
}

/// What runs when the platform without GPUs ends, before and after.
fn hooks() -> [Value; 2] {
    [("before", "PreDelete"), ("after", "PostDelete")]
        .map(|(name, phase)| annotated(job(PLAIN, name), &[("reeve.dev/hook", phase)]))
}

fn all_healthy() -> Value {
    let objects = platform::changed(GPU, |name, object| {
        if name == "gpu-cluster-policy" {
            // Whoever waited for it would be late.
            object["metadata"]["annotations"]["actor.reeve.dev/ready-after"] = json!("2s");
        }
    });
    json!({"objects": objects})
}

fn a_degraded_operator_holds_up_all_later_waves(stage: &Stage) -> Result<()> {
    let broken = platform::changed(GPU, |name, object| {
        if name == "gpu-operator" {
            object["spec"]["progressDeadlineSeconds"] = json!(2);
            let broken = json!({"actor.reeve.dev/fail": "image-pull"});
            object["spec"]["template"]["metadata"]["annotations"] = broken;
        }
    });
    stage.bundle(GPU, NAME, &json!({"objects": broken}))?;
    let degraded = |status: Option<&Value>| {
        status.is_some_and(|status| status["sync"]["blockedBy"]["status"] == "Degraded")
    };
    let unit = stage.wait_for_unit((GPU, NAME), "the operator is degraded", degraded)?;
    let unit = unit.context("no unit")?;
    let blocked = &unit["status"]["sync"]["blockedBy"];
    ensure!(
        blocked["object"] == "Deployment gpu/gpu-operator"
            && blocked["wave"] == -2
            && blocked["since"].is_string(),
        "{blocked}"
    );
    let history = History::of(&stage.cluster, GPU)?;
    let made = history.applications(Happened::Made);
    ensure!(made.len() == 9, "{made:?}");
    ensure!(history.waves(Happened::Made) == WAVES[..6], "{made:?}");
    Ok(())
}

/// The fix interrupts the wait.
fn a_fix_goes_on(stage: &Stage) -> Result<()> {
    stage.bundle(GPU, NAME, &all_healthy())?;
    stage.wait_for_all((GPU, NAME), 23)?;
    let history = History::of(&stage.cluster, GPU)?;
    ensure!(history.applications(Happened::Made).len() == 23);
    let waves = history.waves(Happened::Made);
    ensure!(waves == WAVES, "{waves:?}");
    history.is_in_waves()?;
    // Each of 28 edges, the one inside a wave too.
    for one in applications() {
        for need in &one.needs {
            history.made_after(&full(&one.name), &full(need))?;
        }
    }
    Ok(())
}

/// What only prose orders goes together: neither waits for the other's health.
fn what_has_no_edge_goes_together(stage: &Stage) -> Result<()> {
    let history = History::of(&stage.cluster, GPU)?;
    history.made_together(&full("nim-operator"), &full("gpu-cluster-policy"))
}

fn without_gpus_there_are_fewer(stage: &Stage) -> Result<()> {
    // Its hooks are not there yet.
    stage.wait_for_all((PLAIN, NAME), 16)?;
    let history = History::of(&stage.cluster, PLAIN)?;
    let without: Vec<_> = WAVES.into_iter().filter(|wave| *wave != -3).collect();
    let waves = history.waves(Happened::Made);
    ensure!(waves == without, "{waves:?}");
    history.is_in_waves()
}

/// What needs another waits until that has observed its new revision: that it was healthy
/// before does not count.
fn a_change_waits_for_the_new_revision(stage: &Stage) -> Result<()> {
    let before = History::of(&stage.cluster, GPU)?.len();
    let both = platform::changed(GPU, |name, object| {
        if name.starts_with("splunk") {
            object["spec"]["size"] = json!(2);
            object["metadata"]["annotations"]["actor.reeve.dev/ready-after"] = json!("2s");
        }
    });
    stage.bundle(GPU, NAME, &json!({"objects": both}))?;
    for name in ["splunk-otel", "splunk-reporter"] {
        let generation = json!(2);
        let widget = ("widget", GPU, name);
        stage.wait_for_value(widget, "/status/observedGeneration", &generation)?;
    }
    stage.wait_for_all((GPU, NAME), 23)?;
    let history = History::of(&stage.cluster, GPU)?.since(before);
    let observed = history.first(Happened::Reported, "Widget/splunk-otel")?;
    let started = history.first(Happened::Changed, "Widget/splunk-reporter")?;
    ensure!(observed <= started, "{observed} {started}");
    let made = history.all(Happened::Made);
    ensure!(made.is_empty(), "{made:?}");
    Ok(())
}

fn drift_is_repaired_where_it_is(stage: &Stage) -> Result<()> {
    let before = History::of(&stage.cluster, GPU)?.len();
    let replicas = r#"{"spec":{"replicas":3}}"#;
    let patch = [
        "patch",
        "deployment",
        "gpu-operator",
        "-n",
        GPU,
        "-p",
        replicas,
    ];
    stage.cluster.kubectl(&patch)?;
    stage
        .cluster
        .kubectl(&["delete", "widget", "nim-llm", "-n", GPU])?;
    stage.wait_for_value(
        ("deployment", GPU, "gpu-operator"),
        "/spec/replicas",
        &json!(1),
    )?;
    stage.wait_for_all((GPU, NAME), 23)?;
    let history = History::of(&stage.cluster, GPU)?.since(before);
    ensure!(
        history.all(Happened::Made) == ["Widget/nim-llm"],
        "{history:?}"
    );
    let changed = history.all(Happened::Changed);
    ensure!(
        changed
            .iter()
            .all(|name| *name == "Deployment/gpu-operator"),
        "{changed:?}"
    );
    Ok(())
}

fn all_of_it_goes_in_reverse(stage: &Stage) -> Result<()> {
    stage.bundle(GPU, NAME, &json!({"objects": [], "empty": true}))?;
    // So much at once is for a person to say.
    let held = |status: Option<&Value>| {
        let conditions = status.and_then(|status| status["conditions"].as_array());
        let mut all = conditions.into_iter().flatten();
        all.any(|one| one["type"] == "Ready" && one["reason"] == "DeletionHeld")
    };
    let unit = stage.wait_for_unit((GPU, NAME), "the deletions are held", held)?;
    ensure!(stage.objects(GPU)?.len() == 23);
    let unit = unit.context("no unit")?;
    let message = unit["status"]["conditions"].to_string();
    let (_, command) = message
        .split_once(&format!("`reeve approve {PLUGIN} "))
        .with_context(|| format!("no command in {message}"))?;
    let token = command.split('`').next().context("no token")?;
    stage
        .cluster
        .reeve(&["approve", PLUGIN, token, "--namespace", "reeve-system"])?;
    stage.wait_until_empty(GPU)?;
    let history = History::of(&stage.cluster, GPU)?;
    let reverse: Vec<_> = WAVES.into_iter().rev().collect();
    let waves = history.waves(Happened::Deleted);
    ensure!(waves == reverse, "{waves:?}");
    ensure!(history.applications(Happened::Deleted).len() == 23);
    let collected = history.applications(Happened::Collected);
    ensure!(
        collected.contains(&full("gpu-operator").as_str()),
        "nothing had to be waited for: {collected:?}"
    );
    history.is_in_reverse()
}

/// The finalizer and the hooks are within what `reeve plugin grant` gives; what else
/// there is of a primary is not.
fn it_ends_in_order_before_its_primary_does(stage: &Stage) -> Result<()> {
    let bundle = stage.get("bundle", PLAIN, NAME)?;
    let finalizers = &bundle["metadata"]["finalizers"];
    ensure!(
        *finalizers == json!(["hooks.reeve.dev/courier"]),
        "{finalizers}"
    );
    let account = "system:serviceaccount:reeve-system:courier";
    for (patch, allowed) in [
        (
            r#"{"metadata":{"finalizers":["hooks.reeve.dev/courier","reeve.dev/courier"]}}"#,
            true,
        ),
        (
            r#"{"metadata":{"finalizers":["hooks.reeve.dev/courier"]}}"#,
            true,
        ),
        (
            r#"{"metadata":{"finalizers":["hooks.reeve.dev/courier","example.com/x"]}}"#,
            false,
        ),
        (r#"{"metadata":{"labels":{"a":"b"}}}"#, false),
        (r#"{"spec":{"objects":[]}}"#, false),
        (r#"{"other":{}}"#, false),
    ] {
        let patch = [
            "patch",
            "bundle",
            NAME,
            "-n",
            PLAIN,
            "--type=merge",
            "-p",
            patch,
        ];
        let done = stage
            .cluster
            .kubectl(&[&patch[..], &["--as", account]].concat());
        match done {
            Ok(_) => ensure!(allowed, "{patch:?} was not refused"),
            Err(error) => {
                let text = format!("{error:#}");
                let refused = text.contains("may change nothing but the finalizers");
                ensure!(!allowed && refused, "{patch:?}: {text}");
            }
        }
    }
    stage
        .cluster
        .kubectl(&["delete", "bundle", NAME, "-n", PLAIN, "--wait=false"])?;
    stage.wait_for_end("bundle", PLAIN, NAME)?;
    stage.wait_until_empty(PLAIN)?;
    let history = History::of(&stage.cluster, PLAIN)?;
    let waves = history.waves(Happened::Deleted);
    let reverse: Vec<_> = WAVES.into_iter().rev().filter(|wave| *wave != -3).collect();
    ensure!(waves == reverse, "{waves:?}");
    history.is_in_reverse()?;
    let deleted = history.applications(Happened::Deleted);
    let (first, last) = (
        deleted.first().context("none")?,
        deleted.last().context("none")?,
    );
    let before = history.first(Happened::Made, "Job/before")?;
    let after = history.first(Happened::Made, "Job/after")?;
    ensure!(
        before <= history.first(Happened::Deleted, first)?,
        "{history:?}"
    );
    ensure!(
        history.first(Happened::Deleted, last)? <= after,
        "{history:?}"
    );
    Ok(())
}
