//! `reeve plugin rollback`.

use super::outcome::{Goal, wait};
use super::{TargetArgs, change, find};
use crate::output;
use anyhow::{Context as _, bail};
use clap::Args;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;
use reeve_api::{GoodVersion, Plugin, PluginStatus, ROLL_BACK_ANNOTATION};
use reeve_core::upgrade;
use serde_json::json;
use std::process::ExitCode;

/// Go back to the version that ran before
///
/// The agent keeps that version, with its configuration, and runs it at once: neither
/// what it asks for nor what it would do is for anybody to approve again. The ConfigMap
/// stays as it is. The version that ran is not taken up again, also after a restart,
/// until --undo; one that is newer takes over as any does. A newest version that is held
/// or does not load does not run: then there is nothing to go back from, and --running
/// says that the one that runs is meant. Sets the annotation reeve.dev/roll-back of the
/// Plugin, for which you need get and patch on it.
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 it was asked, and with --wait it is done; 1 with --wait, it could \
    not be done, or not in time; 2 it could not be asked."
)]
pub(crate) struct RollbackArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Go forward again, to what the ConfigMap has or, while that does not run, to the
    /// version that was gone back from
    #[arg(long)]
    undo: bool,
    /// Leave the version that runs, although the newest one is another and does not run
    #[arg(long, conflicts_with = "undo")]
    running: bool,
}

pub(crate) async fn run(args: RollbackArgs) -> anyhow::Result<ExitCode> {
    let target = &args.target;
    let name = &target.plugin;
    let client = target.connection.client().await?;
    let plugin = find(&client, target).await?;
    let goal = if args.undo {
        if !plugin.annotations().contains_key(ROLL_BACK_ANNOTATION) {
            output::tell(format_args!("{name}: is not rolled back"));
            return Ok(ExitCode::SUCCESS);
        }
        let patch = json!({"metadata": {"annotations": {ROLL_BACK_ANNOTATION: null}}});
        change(&client, target, &patch).await?;
        let left = plugin.status.as_ref();
        let left = left.and_then(|status| status.rolled_back_from.clone());
        let left = left.and_then(|left| token(&left.digest, &left.config_digest));
        output::tell(format_args!("{name}: asked to go forward again"));
        let said = loaded(&plugin).map(|loaded| loaded.message.clone());
        Goal::GoneForward {
            left,
            said: said.unwrap_or_default(),
        }
    } else {
        let (token, previous) = wanted(&plugin, args.running)?;
        let patch = json!({"metadata": {"annotations": {ROLL_BACK_ANNOTATION: token}}});
        change(&client, target, &patch).await?;
        output::tell(format_args!(
            "{name}: asked to go back to {}",
            previous.digest
        ));
        Goal::RolledBack(token)
    };
    if !target.wait {
        return Ok(ExitCode::SUCCESS);
    }
    wait(&client, target, &goal).await
}

/// The token of the version that runs, and the one to go back to.
fn wanted(plugin: &Plugin, leave_running: bool) -> anyhow::Result<(String, GoodVersion)> {
    let name = plugin.name_any();
    let status = plugin.status.clone().unwrap_or_default();
    let running = running(&status)
        .filter(|_| status.digest.is_some())
        .with_context(|| {
            format!("no version of plugin {name} runs; deliver the one that is to run")
        })?;
    let is_back = |one: &&Condition| one.type_ == "Loaded" && one.reason == "RolledBack";
    if let Some(loaded) = status.conditions.iter().find(is_back) {
        bail!("plugin {name} is rolled back already: {}", loaded.message);
    }
    let left = status.rolled_back_from.as_ref();
    let left = left.and_then(|left| token(&left.digest, &left.config_digest));
    if left.is_some() && plugin.annotations().get(ROLL_BACK_ANNOTATION) == left.as_ref() {
        bail!(
            "plugin {name} is rolled back already; --undo returns to the version that was gone \
             back from"
        );
    }
    let canary = status.canary.as_ref();
    let canary = canary.filter(|canary| canary.phase == "Progressing");
    // Some units run another, and what all others run is the one to go back to.
    let (running, previous) = match canary {
        Some(canary) => {
            let token = token(&canary.digest, &canary.config_digest);
            (token.unwrap_or(running), status.last_good)
        }
        None => (running, status.previous),
    };
    let newest = status.conditions.iter().find(|one| is_refused(one));
    if let Some(newest) = newest.filter(|_| canary.is_none() && !leave_running) {
        bail!(
            "the newest version of plugin {name} does not run ({}: {}), so there is nothing to go \
             back from: {} runs. To leave that too, add --running",
            newest.reason,
            newest.message,
            status.digest.unwrap_or_default(),
        );
    }
    let previous = previous.with_context(|| {
        format!(
            "no version of plugin {name} is known that ran before the one that runs; deliver the \
             one that is to run"
        )
    })?;
    match &plugin.spec.digest {
        Some(pinned) if *pinned != previous.digest => bail!(
            "spec.digest of plugin {name} lets nothing but {pinned} run, and the version before is \
             {}; change spec.digest first",
            previous.digest
        ),
        _ => Ok((running, previous)),
    }
}

/// What is said of the newest version.
pub(super) fn loaded(plugin: &Plugin) -> Option<&Condition> {
    let status = plugin.status.as_ref()?;
    status.conditions.iter().find(|one| one.type_ == "Loaded")
}

/// Whether a condition says that a newest version does not run, for which another does.
fn is_refused(condition: &Condition) -> bool {
    let in_between = ["Loading", "Canary", "RollbackFailed"];
    let newest = condition.type_ == "Loaded" && condition.status == "False";
    newest && !in_between.contains(&condition.reason.as_str())
}

/// The token of what runs, or ran last.
pub(super) fn running(status: &PluginStatus) -> Option<String> {
    let good = status.last_good.as_ref()?;
    token(&good.digest, &good.config_digest)
}

pub(super) fn token(digest: &str, config_digest: &str) -> Option<String> {
    let (component, config) = (digest.parse().ok()?, config_digest.parse().ok()?);
    Some(upgrade::token(&component, &config))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::jiff::Timestamp;
    use reeve_api::{PluginSpec, condition};
    use reeve_core::Digest;

    fn version(text: &str) -> GoodVersion {
        GoodVersion {
            digest: Digest::of(text.as_bytes()).to_string(),
            config_digest: Digest::of(b"{}").to_string(),
        }
    }

    /// A plugin of which one version runs and another ran before.
    fn two_versions() -> Plugin {
        let mut plugin = Plugin::new("p", PluginSpec::default());
        plugin.status = Some(PluginStatus {
            digest: Some(version("new").digest),
            last_good: Some(version("new")),
            previous: Some(version("old")),
            ..PluginStatus::default()
        });
        plugin
    }

    fn check(change: impl FnOnce(&mut Plugin), expected: Result<&str, &str>) {
        let mut plugin = two_versions();
        change(&mut plugin);
        let found = wanted(&plugin, false);
        let found = found.map(|(_, previous)| previous.digest);
        let found = found.map_err(|error| error.to_string());
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, version(expected).digest),
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
            (found, expected) => panic!("{found:?} is not {expected:?}"),
        }
    }

    #[test]
    fn what_cannot_be_gone_back_to_is_said() {
        let status = |plugin: &mut Plugin, change: fn(&mut PluginStatus)| {
            change(plugin.status.as_mut().unwrap());
        };
        check(|_| (), Ok("old"));
        check(
            |plugin| status(plugin, |status| status.previous = None),
            Err("is known that ran before"),
        );
        check(
            |plugin| status(plugin, |status| status.digest = None),
            Err("no version of plugin p runs"),
        );
        check(
            |plugin| {
                status(plugin, |status| {
                    let now = Timestamp::UNIX_EPOCH;
                    let back = condition("Loaded", "False", "RolledBack", "from x", None, now);
                    status.conditions.push(back);
                });
            },
            Err("is rolled back already: from x"),
        );
        let refused = |plugin: &mut Plugin| {
            status(plugin, |status| {
                let now = Timestamp::UNIX_EPOCH;
                let held = condition("Loaded", "False", "UpgradeHeld", "too much", None, now);
                status.conditions.push(held);
            });
        };
        check(
            refused,
            Err("does not run (UpgradeHeld: too much), so there is nothing"),
        );
        let mut plugin = two_versions();
        refused(&mut plugin);
        assert_eq!(wanted(&plugin, true).unwrap().1, version("old"));
        check(
            |plugin| {
                let new = version("new");
                let token = token(&new.digest, &new.config_digest).unwrap();
                plugin
                    .annotations_mut()
                    .insert(ROLL_BACK_ANNOTATION.to_owned(), token);
                plugin.status.as_mut().unwrap().rolled_back_from = Some(new);
            },
            Err("is rolled back already; --undo"),
        );
        check(
            |plugin| plugin.spec.digest = Some(version("new").digest),
            Err("change spec.digest first"),
        );
        check(
            |plugin| plugin.spec.digest = Some(version("old").digest),
            Ok("old"),
        );
    }
}
