//! The whole story on a real API server, told with kubectl, `reeve` and Helm. The chart
//! is installed, plugins are granted what they ask for, and the agent is a process of
//! its own that runs as the chart's ServiceAccount, under exactly its rules.

mod account;
mod labels;
mod policy;
mod stage;
mod versions;

use std::fs;

use anyhow::{Context, Result, ensure};
use reeve_real::eventually;
use reeve_test_support::component;
use serde_json::Value;

use stage::{AGENT, NAMESPACE, Stage};

const READY: (&str, &str, &str) = ("Ready", "True", "Running");

/// The object that quotas keeps for a Profile.
fn quota(profile: &str) -> (&'static str, &str, &'static str) {
    ("resourcequota", profile, "quotas")
}

/// The object that limitranges keeps for a Profile.
fn limits(profile: &str) -> (&'static str, &str, &'static str) {
    ("limitrange", profile, "default-container-limits")
}

const PODS: &str = "/spec/hard/pods";
const GPUS: &str = "/spec/hard/requests.nvidia.com~1gpu";
const STORAGE: &str = "/spec/hard/requests.storage";

/// Both plugins, installed and granted, have converged for these Profiles.
fn converged(profiles: &[&str]) -> Result<Stage> {
    let stage = Stage::new()?
        .with_profile_crd()?
        .with_profiles(profiles)?
        .with_agent()?;
    for plugin in ["quotas", "limitranges"] {
        stage.deliver(plugin, &component(plugin))?;
        stage.grant(plugin)?;
    }
    for profile in profiles {
        stage.wait_for(quota(profile), PODS, "100")?;
        stage.wait_for(limits(profile), "/spec/limits/0/default/cpu", "250m")?;
    }
    for plugin in ["quotas", "limitranges"] {
        stage.wait_for_condition(plugin, READY)?;
    }
    Ok(stage)
}

#[test]
fn profiles_are_provisioned_and_kept_so() -> Result<()> {
    let stage = converged(&["ann", "bob"])?;
    let kubectl = |line: &str| -> Result<String> {
        stage.cluster.kubectl(&line.split(' ').collect::<Vec<_>>())
    };

    // The API server says who wrote it, and for whom.
    let written = stage.wait_for(quota("ann"), PODS, "100")?;
    let managers = written["metadata"]["managedFields"].to_string();
    ensure!(managers.contains("\"reeve/quotas\""), "{managers}");
    let owner = &written["metadata"]["ownerReferences"][0];
    ensure!(
        owner["kind"] == "Profile" && owner["name"] == "ann",
        "{owner}"
    );

    // An edit by hand is put back.
    let edit = r#"{"spec":{"hard":{"pods":"7"}}}"#;
    let patch = ["patch", "resourcequota", "quotas", "-n", "ann", "-p", edit];
    stage.cluster.kubectl(&patch)?;
    stage.wait_for(quota("ann"), PODS, "100")?;

    // Labels that cannot be used are reported, and hurt nobody else.
    labels::check(&stage)?;

    // What was deleted by hand is made again.
    kubectl("delete limitrange default-container-limits -n ann")?;
    stage.wait_for(limits("ann"), "/spec/limits/0/type", "Container")?;

    // A label decides, and its removal restores the default.
    kubectl("label profile ann quotas.statcan.gc.ca/gpu=5")?;
    stage.wait_for(quota("ann"), GPUS, "5")?;
    kubectl("label profile ann quotas.statcan.gc.ca/gpu-")?;
    stage.wait_for(quota("ann"), GPUS, "2")?;

    // The Profile goes, and what was made for it; nothing else does.
    kubectl("delete profile ann")?;
    stage.wait_for_end(quota("ann"))?;
    stage.wait_for_end(limits("ann"))?;
    stage.wait_for(quota("bob"), PODS, "100")?;

    // A plugin goes, and what it made stays.
    kubectl(&format!("delete configmap limitranges -n {NAMESPACE}"))?;
    stage.wait_for_condition("limitranges", ("Ready", "False", "ConfigMapAbsent"))?;
    stage.wait_for(limits("bob"), "/spec/limits/0/type", "Container")?;
    // Nobody repairs it any more, while the other plugin goes on.
    kubectl("label limitrange default-container-limits -n bob reeve.dev/unit=x --overwrite")?;
    kubectl("label resourcequota quotas -n bob reeve.dev/unit=x --overwrite")?;
    eventually("the quota is repaired", || {
        let quota = stage
            .get("resourcequota", "bob", "quotas")?
            .context("it is gone")?;
        ensure!(
            quota["metadata"]["labels"]["reeve.dev/unit"] != "x",
            "{quota}"
        );
        Ok(())
    })?;
    stage.wait_for(limits("bob"), "/metadata/labels/reeve.dev~1unit", "x")?;
    account::check(&stage)
}

/// The component of quotas with another default for storage: a constant of four bytes,
/// in the place of the one that is there.
fn with_storage(component: &[u8], limit: &[u8; 4]) -> Result<Vec<u8>> {
    let is_default = |bytes: &&[u8]| bytes == b"100T";
    let places: Vec<usize> = (0..component.len())
        .filter(|&at| component.get(at..at + 4).as_ref().is_some_and(is_default))
        .collect();
    ensure!(
        places.len() == 1,
        "the default for storage is at {places:?}"
    );
    let mut changed = component.to_vec();
    changed[places[0]..places[0] + 4].copy_from_slice(limit);
    Ok(changed)
}

#[test]
fn a_plugin_is_swapped_and_a_broken_one_is_not() -> Result<()> {
    let stage = converged(&["ann"])?;
    let digest = |stage: &Stage| -> Result<String> {
        let plugin = stage.plugin("quotas")?;
        let digest = plugin["status"]["digest"].as_str();
        Ok(digest.context("no digest")?.to_owned())
    };
    let first = digest(&stage)?;

    // The old version goes on while the new one is refused. (What is no text
    // kubectl puts where components are looked for.)
    stage.replace("quotas", b"\xff no component")?;
    stage.wait_for_condition("quotas", ("Loaded", "False", "NotAComponent"))?;
    ensure!(digest(&stage)? == first, "the running component changed");
    let label = ["label", "profile", "ann", "quotas.statcan.gc.ca/pods=7"];
    stage.cluster.kubectl(&label)?;
    stage.wait_for(quota("ann"), PODS, "7")?;

    // A version that gives everybody twice the room: what is there is changed, in place.
    let before = stage.wait_for(quota("ann"), STORAGE, "100T")?;
    let second = with_storage(&fs::read(component("quotas"))?, b"200T")?;
    stage.replace("quotas", &second)?;
    let after = stage.wait_for(quota("ann"), STORAGE, "200T")?;
    ensure!(
        after["metadata"]["uid"] == before["metadata"]["uid"],
        "{after}"
    );
    ensure!(after.pointer(PODS) == Some(&"7".into()), "{after}");
    stage.wait_for_condition("quotas", READY)?;
    stage.wait_for_condition("quotas", ("Loaded", "True", "Running"))?;
    ensure!(digest(&stage)? != first, "the old component still runs");
    stage
        .cluster
        .kubectl(&["label", "profile", "ann", "quotas.statcan.gc.ca/pods-"])?;
    stage.wait_for(quota("ann"), PODS, "100")?;
    Ok(())
}

#[test]
fn what_is_lacking_is_said_and_then_made_up_for() -> Result<()> {
    let stage = Stage::new()?.with_agent()?;
    stage.deliver("quotas", &component("quotas"))?;

    // Each in its turn: the kind, the account, the rights.
    let message = stage.wait_for_condition("quotas", ("Ready", "False", "KindNotServed"))?;
    ensure!(message.contains("Profile"), "{message}");

    stage.install_profile_crd()?;
    let lacking = ("Ready", "False", "ServiceAccountUnusable");
    let message = stage.wait_for_condition("quotas", lacking)?;
    ensure!(message.contains("reeve.dev/plugin: quotas"), "{message}");

    // Of what is granted, one half after the other: the account that agrees, its rights,
    // those of the agent to look, and to be that account.
    let stage = stage.with_profiles(&["ann"])?;
    let named = |object: &Value, end: &str| {
        let name = object["metadata"]["name"].as_str();
        name.is_some_and(|name| name.starts_with("reeve-plugin-") && name.ends_with(end))
    };
    let agent = format!("\"{AGENT}\" cannot list resource \"profiles\"");
    let mut message = String::new();
    for (part, lacking) in [
        (
            "ServiceAccount",
            &[
                "system:serviceaccount:reeve-system:quotas is not granted",
                "get, list, watch profiles",
                "create, delete, patch resourcequotas",
            ][..],
        ),
        ("-account", &["the agent may not list and watch", &agent]),
        ("-agent", &["the agent may not impersonate"]),
    ] {
        stage.grant_of("quotas", |object| {
            object["kind"] == part || named(object, part)
        })?;
        // It would look by itself, within ten seconds.
        stage.reeve(&["retry", "quotas"])?;
        message = stage.wait_for_words("quotas", ("Granted", "False", "Forbidden"), lacking)?;
        let made = stage.get("resourcequota", "ann", "quotas")?;
        ensure!(made.is_none(), "with {part} alone it wrote {made:?}");
    }

    // What it tells to do is done.
    let command = message.split('`').nth(1).context("no command")?;
    let command: Vec<_> = command.split(' ').collect();
    ensure!(command.first() == Some(&"reeve"), "{command:?}");
    stage.reeve(&command[1..])?;
    stage.wait_for(quota("ann"), PODS, "100")?;
    stage.wait_for_condition("quotas", READY)?;
    Ok(())
}

#[test]
fn the_agent_outlives_the_api_server() -> Result<()> {
    let mut stage = converged(&["ann"])?;
    let made = stage.wait_for(quota("ann"), PODS, "100")?["metadata"]["uid"].clone();

    // Gone while it runs.
    stage.wait_for_readiness(true)?;
    stage.cluster.stop_api_server();
    stage.wait_until_not_ready("connection refused")?;
    stage.cluster.start_api_server()?;
    stage.wait_for_readiness(true)?;
    ensure!(stage.agent_is_running()?, "the agent gave up");
    let label = ["label", "profile", "ann", "quotas.statcan.gc.ca/pods=7"];
    stage.cluster.kubectl(&label)?;
    stage.wait_for(quota("ann"), PODS, "7")?;

    // Gone when it starts.
    stage.cluster.stop_api_server();
    stage.start_agent()?;
    stage.wait_until_not_ready("connection refused")?;
    stage.cluster.start_api_server()?;
    stage.wait_for_readiness(true)?;
    let label = ["label", "profile", "ann", "quotas.statcan.gc.ca/pods-"];
    stage.cluster.kubectl(&label)?;
    let after = stage.wait_for(quota("ann"), PODS, "100")?;
    ensure!(after["metadata"]["uid"] == made, "it was lost: {after}");
    Ok(())
}
