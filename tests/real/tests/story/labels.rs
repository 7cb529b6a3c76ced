//! Labels of a Profile that cannot be used: the default holds, the unit and one event on the
//! Profile say which, and no other Profile notices.

use anyhow::{Context as _, Result, ensure};
use reeve_real::eventually;
use serde_json::Value;

use crate::stage::{NAMESPACE, Stage};
use crate::{GPUS, PODS, quota};

/// The reason in condition and event.
const REASON: &str = "UnusableLabels";

/// The Unit that says something about ann's quota, if there is one.
fn unit(stage: &Stage) -> Result<Option<Value>> {
    let units = stage.cluster.list("units", NAMESPACE)?;
    Ok(units.into_iter().find(|unit| {
        unit["spec"]["plugin"] == "quotas" && unit["spec"]["primary"]["name"] == "ann"
    }))
}

/// The events of the plugin on ann.
fn events(stage: &Stage) -> Result<Vec<Value>> {
    let mut events = stage.cluster.list("events", "")?;
    events.retain(|event| {
        let about = &event["involvedObject"];
        about["kind"] == "Profile" && about["name"] == "ann" && event["reason"] == REASON
    });
    Ok(events)
}

/// Gives ann labels that are none, and takes them away.
pub(crate) fn check(stage: &Stage) -> Result<()> {
    let label = |words: &str| {
        let mut line = vec!["label", "profile", "ann", "--overwrite"];
        line.extend(words.split(' '));
        stage.cluster.kubectl(&line)
    };
    let others = stage.wait_for(quota("bob"), PODS, "100")?;

    label("quotas.statcan.gc.ca/pods=two quotas.statcan.gc.ca/gpu=abc")?;
    let kept = stage.wait_for(quota("ann"), GPUS, "0")?;
    ensure!(kept.pointer(PODS) == Some(&"100".into()), "{kept}");
    eventually("unit and event say which labels", || {
        let unit = unit(stage)?.context("no unit")?;
        let conditions = unit["status"]["conditions"].as_array();
        let conditions = conditions.context("no conditions")?;
        let usable = conditions.iter().find(|one| one["type"] == "LabelsUsable");
        let usable = usable.with_context(|| format!("not in {conditions:?}"))?;
        ensure!(
            usable["status"] == "False" && usable["reason"] == REASON,
            "{usable}"
        );
        let events = events(stage)?;
        let event = events.first().context("no event")?;
        ensure!(event["type"] == "Warning", "{event}");
        for said in [usable, event] {
            let message = said["message"].as_str().unwrap_or_default();
            for part in ["pods=two", "using 100", "gpu=abc", "using 0", "Set each to"] {
                ensure!(message.contains(part), "`{part}` is not in: {message}");
            }
        }
        Ok(())
    })?;

    // A label that can be used is, and what was said is not said again.
    label("quotas.statcan.gc.ca/limits.cpu=7")?;
    stage.wait_for(quota("ann"), "/spec/hard/limits.cpu", "7")?;

    // Mended, the report goes.
    label("quotas.statcan.gc.ca/pods- quotas.statcan.gc.ca/gpu- quotas.statcan.gc.ca/limits.cpu-")?;
    stage.wait_for(quota("ann"), GPUS, "2")?;
    eventually("the unit has nothing to say", || {
        let unit = unit(stage)?;
        ensure!(unit.is_none(), "{unit:?}");
        Ok(())
    })?;
    let events = events(stage)?;
    ensure!(
        events.len() == 1 && events[0]["count"].as_u64().unwrap_or(1) == 1,
        "{events:?}"
    );
    let bob = stage.wait_for(quota("bob"), PODS, "100")?;
    ensure!(bob["spec"] == others["spec"], "{bob}");
    Ok(())
}
