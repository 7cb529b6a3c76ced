//! New versions: looked at before they take over, held, let through, taken back, and run
//! for some units first. And calls that are kept and made again elsewhere.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, ensure};
use reeve_real::eventually;
use reeve_test_support::{component, guest};
use serde_json::{Value, json};

use crate::stage::{NAMESPACE, Stage};
use crate::{PODS, STORAGE, quota, with_storage};

const PROFILES: [&str; 10] = [
    "ann", "bob", "cyd", "dan", "eve", "fay", "gil", "hal", "ivy", "jim",
];
const PLUGIN: &str = "chameleon";

/// So many objects for each Profile, of this size, or something else that it does.
fn config(reconcile: &Value) -> Value {
    json!({
        "primary": "Profile.v1.kubeflow.org",
        "scope": "namespace-named-like-primary",
        "reconcile": reconcile,
    })
}

fn objects(count: usize, bytes: usize) -> Value {
    config(&json!({"do": "objects", "count": count, "bytes": bytes}))
}

/// A cluster in which the plugin has made four objects for each Profile.
fn fleet() -> Result<Stage> {
    let stage = Stage::new()?
        .with_profile_crd()?
        .with_profiles(&PROFILES)?
        .with_agent()?;
    let first = objects(4, 10);
    let component = guest(PLUGIN);
    stage
        .cluster
        .deliver(NAMESPACE, PLUGIN, &component, Some(&first))?;
    stage.grant(PLUGIN)?;
    stage.wait_for_condition(PLUGIN, ("Loaded", "True", "Running"))?;
    eventually("all objects are there", || {
        let made = made(&stage)?;
        ensure!(made.len() == 40, "there are {}", made.len());
        Ok(())
    })?;
    Ok(stage)
}

/// The objects of the plugin, each with its resourceVersion and its data.
fn made(stage: &Stage) -> Result<BTreeMap<String, (String, String)>> {
    let text = stage.cluster.kubectl(&[
        "get",
        "configmaps",
        "-A",
        "-l",
        &format!("reeve.dev/plugin={PLUGIN}"),
        "--output=json",
    ])?;
    let list: Value = serde_json::from_str(&text)?;
    let items = list["items"].as_array().context("a list has items")?;
    let made = items.iter().map(|object| {
        let metadata = &object["metadata"];
        let name = format!("{}/{}", metadata["namespace"], metadata["name"]);
        let version = metadata["resourceVersion"].to_string();
        (name, (version, object["data"].to_string()))
    });
    Ok(made.collect())
}

/// Another configuration for the plugin: another version.
fn configure(stage: &Stage, config: &Value) -> Result<()> {
    let patch = json!({"data": {"config.yaml": config.to_string()}});
    patch_object(stage, "configmap", &patch)
}

fn patch_object(stage: &Stage, kind: &str, patch: &Value) -> Result<()> {
    let patch = patch.to_string();
    let kubectl = [
        "patch",
        kind,
        PLUGIN,
        "-n",
        NAMESPACE,
        "--type=merge",
        "-p",
        &patch,
    ];
    stage.cluster.kubectl(&kubectl).map(drop)
}

fn wait_for_phase(stage: &Stage, phase: &str) -> Result<Value> {
    let plugin = ("plugin", NAMESPACE, PLUGIN);
    let plugin = stage.wait_for(plugin, "/status/canary/phase", phase)?;
    Ok(plugin["status"].clone())
}

#[test]
fn a_version_that_would_delete_much_is_held_let_through_and_taken_back() -> Result<()> {
    let stage = fleet()?;
    let before = made(&stage)?;

    // Three of four objects less for each: found before anything is done.
    configure(&stage, &objects(1, 10))?;
    let held = ("Loaded", "False", "UpgradeHeld");
    let message = stage.wait_for_condition(PLUGIN, held)?;
    ensure!(message.contains("reeve plugin approve"), "{message}");
    let shadow = stage.plugin(PLUGIN)?["status"]["shadow"].clone();
    for (field, value) in [
        ("verdict", json!("Held")),
        ("units", json!(10)),
        ("owned", json!(40)),
        ("deleted", json!(30)),
    ] {
        ensure!(shadow[field] == value, "{field}: {shadow}");
    }
    let (code, said) = stage.cluster.reeve_ended(&["plugin", "diff", PLUGIN])?;
    ensure!(code == Some(1), "{code:?}: {said}");
    ensure!(said.contains("chameleon-ann-1"), "{said}");
    ensure!(made(&stage)? == before, "something was written");

    // Let through, it is still asked about what is deleted, and another word takes it back.
    stage.reeve(&["plugin", "approve", PLUGIN])?;
    stage.wait_for_condition(PLUGIN, ("Loaded", "True", "Running"))?;
    stage.wait_for_condition(PLUGIN, ("DeletionsHeld", "True", "DeletionHeld"))?;
    stage.reeve(&["plugin", "rollback", PLUGIN, "--wait"])?;
    stage.wait_for_condition(PLUGIN, ("Loaded", "False", "RolledBack"))?;
    let plugin = stage.wait_for(("plugin", NAMESPACE, PLUGIN), "/status/units/ready", 10)?;
    ensure!(plugin["status"]["units"]["failing"] == 0, "{plugin}");
    eventually("all objects are as they were", || {
        let after = made(&stage)?;
        let data = |made: &BTreeMap<String, (String, String)>| -> Vec<(String, String)> {
            let each = made.iter();
            each.map(|(name, (_, data))| (name.clone(), data.clone()))
                .collect()
        };
        ensure!(data(&after) == data(&before), "{after:?}");
        Ok(())
    })
}

#[test]
fn a_version_runs_for_some_first_and_returns_or_goes_on() -> Result<()> {
    let stage = fleet()?;
    let before = made(&stage)?;
    let canary = json!({"units": 3, "seconds": 40, "maxFailing": 0});
    let policy = json!({"spec": {"upgrade": {"shadow": "Off", "canary": canary}}});
    patch_object(&stage, "plugin", &policy)?;

    configure(&stage, &config(&json!({"do": "trap"})))?;
    let message = stage.wait_for_condition(PLUGIN, ("Loaded", "False", "CanaryReturned"))?;
    ensure!(message.contains("was run for 3 units first"), "{message}");
    let plugin = ("plugin", NAMESPACE, PLUGIN);
    stage.wait_for(plugin, "/status/units/ready", 10)?;
    ensure!(made(&stage)? == before, "a version that traps wrote");

    configure(&stage, &objects(4, 20))?;
    wait_for_phase(&stage, "Progressing")?;
    let changed = |stage: &Stage| -> Result<usize> {
        let made = made(stage)?;
        let same = made
            .iter()
            .filter(|(name, one)| before.get(*name) == Some(*one));
        Ok(made.len() - same.count())
    };
    // It is passed only after forty seconds, of which this needs a few.
    eventually("three units are under the new version", || {
        let changed = changed(&stage)?;
        ensure!(changed == 12, "{changed} objects have changed");
        Ok(())
    })?;
    wait_for_phase(&stage, "Passed")?;
    stage.wait_for_condition(PLUGIN, ("Loaded", "True", "Running"))?;
    eventually("all units are", || {
        let changed = changed(&stage)?;
        ensure!(changed == 40, "{changed} objects have changed");
        Ok(())
    })
}

#[test]
fn a_call_is_kept_and_made_again_elsewhere() -> Result<()> {
    let stage = crate::converged(&["ann"])?;
    stage.wait_for(quota("ann"), PODS, "100")?;
    let folder = stage.cluster.folder();
    let recording = folder.join("ann.recording.json").display().to_string();
    let running = component("quotas").display().to_string();
    stage.reeve(&["record", "quotas/ann", "--file", &recording])?;

    let (code, said) =
        stage
            .cluster
            .reeve_ended(&["replay", &recording, "--component", &running])?;
    ensure!(code == Some(0), "{code:?}: {said}");
    // Another version answers something else, and what is shown.
    let other = folder.join("other.wasm");
    fs::write(&other, with_storage(&fs::read(&running)?, b"200T")?)?;
    let other = other.display().to_string();
    let (code, said) = stage
        .cluster
        .reeve_ended(&["replay", &recording, "--with", &other])?;
    ensure!(code == Some(2), "{code:?}: {said}");
    ensure!(said.contains("100T") && said.contains("200T"), "{said}");
    // And it is no recording of it.
    let (code, said) = stage
        .cluster
        .reeve_ended(&["replay", &recording, "--component", &other])?;
    ensure!(code == Some(1), "{code:?}: {said}");

    // What was recorded is a scenario of the plugin, which plays without a cluster.
    let plugin = folder.join("plugin");
    fs::create_dir_all(plugin.join("scenarios"))?;
    let plugin = plugin.display().to_string();
    let test = [
        "test",
        &plugin,
        "--from",
        &recording,
        "--component",
        &running,
    ];
    let (code, said) = stage.cluster.reeve_ended(&test)?;
    ensure!(code == Some(0), "{code:?}: {said}");
    let quota = stage.wait_for(quota("ann"), STORAGE, "100T")?;
    ensure!(quota.pointer(PODS) == Some(&"100".into()), "{quota}");
    Ok(())
}
