//! Waiting for what comes of a request.

use super::{Request, TargetArgs, find, rollback};
use crate::output;
use anyhow::Context as _;
use kube::Client;
use kube::api::{Api, ListParams};
use reeve_api::{Plugin, Unit};
use reeve_core::ObjectReference;
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The agent reports what it did within about a quarter of a second.
const INTERVAL: Duration = Duration::from_millis(200);

/// What is waited for.
pub(super) enum Goal {
    /// The units that were asked for have run and are well.
    Handled {
        request: String,
        /// What was asked.
        what: Request,
        primary: Option<ObjectReference>,
    },
    /// The plugin does nothing any more.
    Suspended,
    /// The plugin goes on.
    Resumed,
    /// Nothing under these keys is to be taken away any more, by this `Unit`.
    Forgotten { unit: String, keys: Vec<String> },
    /// None of these tokens is held any more.
    Approved(Vec<String>),
    /// The version with this token runs, for some units at least. Why it does not is what
    /// it was held for until the agent has taken the word in.
    VersionApproved { token: String, held_for: String },
    /// The version with this token runs no more.
    RolledBack(String),
    /// The newest version is not kept from running any more, or the one with this token,
    /// which was gone back from, runs again.
    GoneForward {
        left: Option<String>,
        /// What was said of the newest version before.
        said: String,
    },
}

/// How far it is.
enum Progress {
    /// Not yet; this is how it stands.
    Under(String),
    /// It is done.
    Well(String),
    /// It is done, and this is not well.
    Trouble(Vec<String>),
}

/// Waits until a goal is reached, telling how it stands whenever that changes.
pub(super) async fn wait(
    client: &Client,
    target: &TargetArgs,
    goal: &Goal,
) -> anyhow::Result<ExitCode> {
    let name = &target.plugin;
    let until = Instant::now() + target.timeout;
    let mut told = String::new();
    loop {
        let plugin = find(client, target).await?;
        let units: Api<Unit> = Api::namespaced(client.clone(), &target.connection.namespace);
        let units = units.list(&ListParams::default()).await;
        let mut units = units.context("cannot list units")?.items;
        units.retain(|unit| unit.spec.plugin == *name);
        match progress(goal, &plugin, &units) {
            Progress::Well(how) => {
                output::tell(format_args!("{name}: {how}"));
                return Ok(ExitCode::SUCCESS);
            }
            Progress::Trouble(problems) => {
                for problem in problems {
                    output::tell(format_args!("{name}: {problem}"));
                }
                output::complain(format_args!(
                    "plugin {name} is not well; `reeve get plugins -o wide` and `reeve get units \
                     {name} -o wide` say more"
                ));
                return Ok(ExitCode::FAILURE);
            }
            Progress::Under(how) if Instant::now() >= until => {
                output::complain(format_args!(
                    "not done within {} s: {how}; is an agent running? `reeve get plugins -o wide` \
                     says how it stands",
                    target.timeout.as_secs()
                ));
                return Ok(ExitCode::FAILURE);
            }
            Progress::Under(how) => {
                if how != told {
                    output::tell(format_args!("{name}: {how}"));
                    told = how;
                }
            }
        }
        sleep(INTERVAL).await;
    }
}

fn progress(goal: &Goal, plugin: &Plugin, units: &[Unit]) -> Progress {
    let status = plugin.status.clone().unwrap_or_default();
    let ready = status.conditions.iter().find(|one| one.type_ == "Ready");
    let reason = ready.map(|one| one.reason.as_str()).unwrap_or_default();
    let current = status.observed_generation == plugin.metadata.generation;
    match goal {
        Goal::Suspended if current && reason == "Suspended" => {
            Progress::Well("nothing of it runs".to_owned())
        }
        Goal::Suspended => Progress::Under("not taken up yet".to_owned()),
        Goal::Resumed if !current || reason == "Suspended" => {
            Progress::Under("not taken up yet".to_owned())
        }
        Goal::Handled { request, what, .. }
            if handled(&status, *what).as_deref() != Some(request) =>
        {
            Progress::Under("not done yet".to_owned())
        }
        Goal::Approved(tokens) => {
            let held = super::approve::held(plugin, units);
            let left = held
                .iter()
                .filter(|one| tokens.contains(&one.token))
                .count();
            match left {
                0 => Progress::Well("what was approved no longer waits for it".to_owned()),
                left => Progress::Under(format!("{left} still waiting")),
            }
        }
        Goal::Forgotten { unit, keys } => {
            let mut units = units.iter();
            let unit = units.find(|one| one.metadata.name.as_ref() == Some(unit));
            let status = unit.and_then(|unit| unit.status.as_ref());
            let mut actions = status.into_iter().flat_map(|status| &status.actions);
            match actions.any(|one| one.state == "Retiring" && keys.contains(&one.key)) {
                true => Progress::Under("not forgotten yet".to_owned()),
                false => Progress::Well("it is forgotten".to_owned()),
            }
        }
        Goal::RolledBack(_) | Goal::GoneForward { .. } | Goal::VersionApproved { .. } => {
            versions(goal, &status)
        }
        Goal::Resumed | Goal::Handled { .. } => {
            let primary = match goal {
                Goal::Handled { primary, .. } => primary.as_ref(),
                _ => None,
            };
            wellness(&status, units, primary)
        }
    }
}

/// How far it is to run another version.
fn versions(goal: &Goal, status: &reeve_api::PluginStatus) -> Progress {
    let mut conditions = status.conditions.iter();
    let Some(loaded) = conditions.find(|one| one.type_ == "Loaded") else {
        return Progress::Under("it is being loaded".to_owned());
    };
    let digest = status.digest.clone().unwrap_or_default();
    let runs = Progress::Well(format!("{digest} runs"));
    let trouble = Progress::Trouble(vec![format!("{}: {}", loaded.reason, loaded.message)]);
    let under = Progress::Under("not taken up yet".to_owned());
    let canary = status.canary.as_ref();
    let canary = canary.and_then(|one| rollback::token(&one.digest, &one.config_digest));
    match (goal, loaded.reason.as_str()) {
        (Goal::RolledBack(_), "RollbackFailed") => trouble,
        (Goal::RolledBack(token), "Canary") if canary.as_ref() == Some(token) => under,
        (Goal::RolledBack(token), _) => match rollback::running(status) {
            Some(running) if running != *token => runs,
            _ => under,
        },
        (Goal::VersionApproved { token, held_for }, reason) => match reason {
            _ if rollback::running(status).as_ref() == Some(token) => runs,
            "Canary" if canary.as_ref() == Some(token) => Progress::Well(loaded.message.clone()),
            "Running" | "Loading" | "Canary" | "Unreachable" | "Syncing" => under,
            reason if reason == held_for => {
                Progress::Under(format!("{reason}: {}", loaded.message))
            }
            _ => trouble,
        },
        (Goal::GoneForward { left, said }, reason) => {
            let running = rollback::running(status);
            match reason {
                "Running" => runs,
                "Canary" => Progress::Well(loaded.message.clone()),
                "Loading" | "Unreachable" | "Syncing" => under,
                _ if loaded.message == *said => under,
                reason if running.is_some() && running == *left => Progress::Well(format!(
                    "{digest} runs again; the newest version does not: {reason}: {}",
                    loaded.message
                )),
                _ => trouble,
            }
        }
        _ => under,
    }
}

/// The last request that is done.
fn handled(status: &reeve_api::PluginStatus, what: Request) -> &Option<String> {
    match what {
        Request::Reconcile => &status.last_handled_reconcile_at,
        Request::Retry => &status.last_handled_retry_at,
        Request::Sync => &status.last_handled_sync_at,
    }
}

/// How all units are, or one.
fn wellness(
    status: &reeve_api::PluginStatus,
    units: &[Unit],
    primary: Option<&ObjectReference>,
) -> Progress {
    let Some(counts) = &status.units else {
        let ready = status.conditions.iter().find(|one| one.type_ == "Ready");
        return match ready {
            Some(ready) if ready.reason != "Loading" => {
                Progress::Trouble(vec![format!("{}: {}", ready.reason, ready.message)])
            }
            _ => Progress::Under("it is being loaded".to_owned()),
        };
    };
    let about = |unit: &&Unit| {
        let found = &unit.spec.primary;
        primary.is_none_or(|primary| {
            (&found.namespace, &found.name) == (&primary.namespace, &primary.name)
        })
    };
    let mut waiting = Vec::new();
    let mut problems = Vec::new();
    for unit in units.iter().filter(about) {
        let conditions = unit.status.iter().flat_map(|status| &status.conditions);
        let mut conditions = conditions.filter(|one| one.type_ == "Ready");
        let Some(ready) = conditions.find(|one| one.status != "True") else {
            continue;
        };
        let spec = &unit.spec.primary;
        let name = match &spec.namespace {
            Some(namespace) => format!("{} {namespace}/{}", spec.kind, spec.name),
            None => format!("{} {}", spec.kind, spec.name),
        };
        let line = format!("{name}: {}: {}", ready.reason, ready.message);
        if ["Waiting", "NamespaceAbsent"].contains(&ready.reason.as_str()) {
            waiting.push(line);
        } else {
            problems.push(line);
        }
    }
    if !problems.is_empty() {
        return Progress::Trouble(problems);
    }
    if let Some(first) = waiting.into_iter().next() {
        return Progress::Under(first);
    }
    match primary {
        Some(primary) => Progress::Well(format!("{primary} is as it should be")),
        None if counts.ready == counts.total => {
            Progress::Well(format!("{0} of {0} units ready", counts.total))
        }
        // What is wrong with the others is reported in a moment.
        None => Progress::Under(format!("{} of {} units ready", counts.ready, counts.total)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::jiff::Timestamp;
    use reeve_api::{PluginSpec, PluginStatus, UnitCounts, UnitSpec, UnitStatus, condition};
    use reeve_core::GroupVersionKind;

    fn plugin(handled: &str, ready: (&str, &str), units: Option<(u32, u32)>) -> Plugin {
        let mut plugin = Plugin::new("p", PluginSpec::default());
        let (status, reason) = ready;
        plugin.metadata.generation = Some(1);
        plugin.status = Some(PluginStatus {
            observed_generation: Some(1),
            last_handled_reconcile_at: Some(handled.to_owned()),
            units: units.map(|(total, ready)| UnitCounts {
                total,
                ready,
                failing: total - ready,
                waiting: 0,
                untold: 0,
            }),
            conditions: vec![condition(
                "Ready",
                status,
                reason,
                "message",
                None,
                Timestamp::UNIX_EPOCH,
            )],
            ..PluginStatus::default()
        });
        plugin
    }

    fn unit(name: &str, reason: &str) -> Unit {
        let mut unit = Unit::new("u", UnitSpec::default());
        unit.spec.primary.kind = "Profile".to_owned();
        unit.spec.primary.name = name.to_owned();
        let now = Timestamp::UNIX_EPOCH;
        unit.status = Some(UnitStatus {
            conditions: vec![condition("Ready", "False", reason, "why", None, now)],
            ..UnitStatus::default()
        });
        unit
    }

    #[test]
    fn a_request_is_done_when_it_is_handled_and_all_is_well() {
        let running = ("True", "Running");
        let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
        let alice = ObjectReference::new(kind, None, "alice");
        for (plugin, units, primary, expected) in [
            (
                plugin("0", running, Some((1, 1))),
                vec![],
                None,
                "under: not done yet",
            ),
            (
                plugin("1", running, Some((2, 2))),
                vec![],
                None,
                "well: 2 of 2 units ready",
            ),
            (
                plugin("1", running, Some((2, 1))),
                vec![unit("alice", "Trapped")],
                None,
                "trouble: Profile alice: Trapped: why",
            ),
            (
                plugin("1", running, Some((2, 1))),
                vec![unit("alice", "Waiting")],
                None,
                "under: Profile alice: Waiting: why",
            ),
            (
                plugin("1", running, Some((2, 1))),
                vec![],
                None,
                "under: 1 of 2 units ready",
            ),
            (
                plugin("1", running, Some((2, 1))),
                vec![unit("bob", "Trapped")],
                Some(alice),
                "well: Profile alice is as it should be",
            ),
            (
                plugin("1", ("False", "NotAComponent"), None),
                vec![],
                None,
                "trouble: NotAComponent: message",
            ),
            (
                plugin("1", ("False", "Loading"), None),
                vec![],
                None,
                "under: it is being loaded",
            ),
        ] {
            let goal = Goal::Handled {
                request: "1".to_owned(),
                what: Request::Reconcile,
                primary,
            };
            let found = match progress(&goal, &plugin, &units) {
                Progress::Under(how) => format!("under: {how}"),
                Progress::Well(how) => format!("well: {how}"),
                Progress::Trouble(problems) => format!("trouble: {}", problems.join(", ")),
            };
            assert_eq!(found, expected);
        }
    }
}
