//! A plugin that is an artifact in a real registry, on a real API server: pushed, signed,
//! pulled with a login, moved, and run on when the registry is gone.

mod stage;

use anyhow::{Result, ensure};
use reeve_real::{Registry, eventually};
use serde_json::json;

use stage::Stage;

#[test]
fn a_plugin_comes_from_a_registry_and_outlives_it() -> Result<()> {
    let mut stage = Stage::new()?;
    let first = stage.push("1", 1)?;
    stage.start_agent()?;
    // Nobody has signed it.
    stage.wait_for("Loaded", "Unsigned", "reeve plugin sign")?;
    stage.sign("1")?;
    stage.wait_until_runs(&first)?;
    eventually("the plugin works", || {
        let made = stage.cluster.get("configmap", "alice", "chameleon-alice")?;
        ensure!(made.is_some(), "nothing was made");
        Ok(())
    })?;
    let pinned = stage.plugin()?["status"]["source"]["artifact"].clone();
    ensure!(
        pinned == json!({"image": stage.image("1"), "digest": first.manifest}),
        "{pinned}"
    );

    // The same once more is the same; another under the same tag is a new version.
    ensure!(stage.push("1", 1)?.manifest == first.manifest);
    let second = stage.push("1", 2)?;
    stage.wait_for("Loaded", "Unsigned", &second.component)?;
    stage.still_runs(&first)?;
    stage.sign("1")?;
    stage.wait_until_runs(&second)?;

    // What is there and is no plugin is none, whoever pushed it.
    stage.push_nothing("1")?;
    stage.wait_for("Loaded", "WrongWorld", "")?;
    stage.still_runs(&second)?;
    stage.push("1", 2)?;
    stage.wait_until_runs(&second)?;

    // The login is changed, and changed back.
    stage.store_login("wrong-c4n4ry")?;
    stage.wait_for(
        "ArtifactStale",
        "RegistryDenied",
        "refuses the login `robot`",
    )?;
    stage.still_runs(&second)?;
    stage.store_login(Registry::PASSWORD)?;
    stage.wait_until_well()?;

    // The registry goes, and the agent is started anew without it.
    stage.registry.stop();
    stage.wait_for("ArtifactStale", "RegistryUnreachable", "cannot be reached")?;
    stage.kill_agent()?;
    stage.start_agent()?;
    stage.wait_until_runs(&second)?;
    stage.wait_for(
        "ArtifactStale",
        "RegistryUnreachable",
        "what was pulled before runs on",
    )?;
    stage.registry.resume()?;
    stage.wait_until_well()?;

    // A plan is made of what is in the registry, too.
    let plan = stage.reeve(&["plan", "chameleon", "--namespace", "reeve-system"])?;
    ensure!(plan.contains("chameleon"), "{plan}");
    let inspected = stage.reeve(&["plugin", "inspect", "chameleon"])?;
    ensure!(inspected.contains(&second.component), "{inspected}");

    for (what, text) in [
        ("the log", stage.log()?),
        ("the Plugin", stage.plugin()?.to_string()),
        (
            "events",
            stage
                .cluster
                .kubectl(&["get", "events", "-A", "-o", "json"])?,
        ),
    ] {
        ensure!(!text.contains("c4n4ry"), "a password is in {what}");
    }
    Ok(())
}
