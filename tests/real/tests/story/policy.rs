//! What the policy of a Plugin says, where a real API server has to agree: who owns
//! what after a write of `managedFields`.

use anyhow::{Context as _, Result, ensure};
use reeve_real::eventually;
use reeve_test_support::{component, samples};
use serde_json::{Value, json};

use crate::stage::{NAMESPACE, Stage};
use crate::{PODS, quota};

/// The managers of an object that applied or updated it, its status aside.
fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array();
    let entries = entries.into_iter().flatten();
    entries
        .filter(|entry| entry["subresource"].is_null())
        .map(|entry| {
            let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
            format!("{} {}", text("manager"), text("operation"))
        })
        .collect()
}

fn policy(spec: &Value) -> Value {
    let mut plugin = json!({
        "apiVersion": "reeve.dev/v1alpha1", "kind": "Plugin",
        "metadata": {"name": "quotas", "namespace": NAMESPACE},
    });
    plugin["spec"] = spec.clone();
    plugin
}

#[test]
fn a_quota_is_taken_over_and_a_field_of_it_given_up() -> Result<()> {
    let mut stage = Stage::new()?.with_profile_crd()?.with_profiles(&["ann"])?;
    // As kubectl applies it from the client, with a field that the plugin shares and
    // one that it does not know.
    let theirs = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "quotas", "namespace": "ann", "labels": {"team": "x"}},
        "spec": {"hard": {"pods": "100", "count/cronjobs.batch": "5"}},
    });
    let adopting = json!({"adoption": "IfUnowned", "adoptFrom": ["kubectl-client-side-apply"]});
    stage.apply(&[theirs, policy(&adopting)])?;
    stage.start_agent()?;
    stage.deliver("quotas", &component("quotas"))?;
    stage.grant("quotas")?;
    let label = "/metadata/labels/reeve.dev~1plugin";
    let adopted = stage.wait_for(quota("ann"), label, "quotas")?;
    ensure!(managers(&adopted) == ["reeve/quotas Apply"], "{adopted}");
    let hard = &adopted["spec"]["hard"];
    ensure!(hard.get("count/cronjobs.batch").is_none(), "{hard}");
    ensure!(
        adopted["metadata"]["labels"].get("team").is_none(),
        "{adopted}"
    );
    let journal = [
        "get",
        "journal",
        "-n",
        NAMESPACE,
        "-o",
        "jsonpath={.items[*].spec.operation}",
    ];
    let journal = stage.cluster.kubectl(&journal)?;
    ensure!(journal == "Overwrite", "{journal}");

    // What was lost can be had back; what the plugin wants it takes again.
    let undo = ["undo", "--namespace", NAMESPACE, "--plugin", "quotas"];
    let said = stage.cluster.reeve(&undo)?;
    ensure!(said.contains("put back"), "{said}");
    stage.wait_for(quota("ann"), "/spec/hard/count~1cronjobs.batch", "5")?;
    stage.wait_for(quota("ann"), "/metadata/labels/team", "x")?;
    stage.wait_for(quota("ann"), PODS, "100")?;
    stage.wait_for(quota("ann"), label, "quotas")?;

    // From now on the number of pods is somebody else's. It keeps its value.
    let mut giving = adopting;
    giving["ignore"] = json!([{"kind": "ResourceQuota", "jsonPointers": ["/spec/hard/pods"]}]);
    stage.apply(&[policy(&giving)])?;
    let pods = "f:pods";
    let what = "the pods are nobody's";
    let released = eventually(what, || {
        let quota = stage.get("resourcequota", "ann", "quotas")?;
        let quota = quota.context("it is gone")?;
        let fields = quota["metadata"]["managedFields"].as_array();
        let own = fields.into_iter().flatten();
        let mut own = own.filter(|entry| entry["manager"] == "reeve/quotas");
        let own = own.next().context("no entry of ours")?.to_string();
        ensure!(!own.contains(pods), "{own}");
        Ok(quota)
    })?;
    ensure!(released.pointer(PODS) == Some(&json!("100")), "{released}");
    let edit = r#"{"spec":{"hard":{"pods":"7"}}}"#;
    let patch = ["patch", "resourcequota", "quotas", "-n", "ann", "-p", edit];
    stage.cluster.kubectl(&patch)?;
    // A field that is ours is put back, the other stays.
    let edit = r#"{"metadata":{"labels":{"reeve.dev/unit":"x"}}}"#;
    let patch = ["patch", "resourcequota", "quotas", "-n", "ann", "-p", edit];
    let unit = released.pointer("/metadata/labels/reeve.dev~1unit");
    let unit = unit.and_then(Value::as_str).context("no label")?;
    stage.cluster.kubectl(&patch)?;
    let after = stage.wait_for(quota("ann"), "/metadata/labels/reeve.dev~1unit", unit)?;
    ensure!(after.pointer(PODS) == Some(&json!("7")), "{after}");

    // Converged, a restart writes nothing: not before every unit has run again, and
    // a new tenant has been served.
    stage.start_agent()?;
    stage.wait_for_readiness(true)?;
    stage.apply(&[samples::namespace("zoe"), samples::profile("zoe")])?;
    // Not the pods: those are nobody's now.
    stage.wait_for(quota("zoe"), crate::GPUS, "2")?;
    let ready = r#"reeve_units{plugin="quotas",state="ready"} 2"#;
    eventually("the new agent has run both units", || {
        let (_, metrics) = stage.agent()?.ask("/metrics")?;
        ensure!(metrics.contains(ready), "{metrics}");
        Ok(())
    })?;
    let restarted = stage.wait_for(quota("ann"), PODS, "7")?;
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    ensure!(version(&restarted) == version(&after), "{restarted}");
    Ok(())
}
