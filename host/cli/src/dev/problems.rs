//! Tells what does not work, each problem once while it lasts.
//!
//! The agent logs the same problems; `reeve dev` keeps its logs below that level,
//! since whoever reads its output wants to be told once.

use crate::output;
use reeve_agent::{Agent, AgentStatus, UnitSummary};
use std::collections::BTreeMap;

/// Tells the problems of the agent, of plugins and of units as they come, until the
/// agent ends.
pub(crate) async fn tell(agent: &Agent) {
    let mut known = BTreeMap::new();
    let mut status = agent.status();
    loop {
        let now = status.borrow_and_update().clone();
        let now = problems(&now, &agent.units().await);
        for line in news(&known, &now) {
            output::tell(line);
        }
        known = now;
        if status.changed().await.is_err() {
            return;
        }
    }
}

/// What is wrong, by where it is wrong.
fn problems(status: &AgentStatus, units: &[UnitSummary]) -> BTreeMap<String, String> {
    let agent = (!status.own_watches.is_empty())
        .then(|| ("agent".to_owned(), status.own_watches.join("; ")));
    let plugins = status
        .plugins
        .iter()
        .filter_map(|plugin| Some((plugin.name.clone(), plugin.problem.clone()?)));
    let units = units.iter().filter_map(|unit| {
        let place = format!("{} for {}", unit.plugin, unit.primary);
        Some((place, unit.problem.clone()?))
    });
    agent.into_iter().chain(plugins).chain(units).collect()
}

/// A line for each problem that is new or has changed.
fn news<'a>(
    known: &'a BTreeMap<String, String>,
    now: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = String> + 'a {
    now.iter()
        .filter(|(place, problem)| known.get(*place) != Some(problem))
        .map(|(place, problem)| format!("{place}: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_agent::PluginReport;
    use reeve_core::{GroupVersionKind, ObjectReference};

    fn seen(plugin: Option<&str>, unit: Option<&str>) -> BTreeMap<String, String> {
        let status = AgentStatus {
            plugins: vec![PluginReport {
                name: "quotas".into(),
                digest: None,
                problem: plugin.map(Into::into),
                units: Default::default(),
            }],
            ..AgentStatus::default()
        };
        let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
        let unit = UnitSummary {
            plugin: "quotas".into(),
            primary: ObjectReference::new(kind, None, "alice"),
            objects: Vec::new(),
            ready: unit.is_none(),
            problem: unit.map(Into::into),
        };
        problems(&status, &[unit])
    }

    #[test]
    fn a_problem_is_told_when_it_comes_and_when_it_changes() {
        let mut known = BTreeMap::new();
        for (plugin, unit, expected) in [
            (None, None, vec![]),
            (Some("Forbidden: a"), None, vec!["quotas: Forbidden: a"]),
            (
                Some("Forbidden: a"),
                Some("Trapped: b"),
                vec!["quotas for Profile alice: Trapped: b"],
            ),
            (
                None,
                Some("Trapped: c"),
                vec!["quotas for Profile alice: Trapped: c"],
            ),
            (None, None, vec![]),
            (Some("Forbidden: a"), None, vec!["quotas: Forbidden: a"]),
        ] {
            let now = seen(plugin, unit);
            let told: Vec<String> = news(&known, &now).collect();
            assert_eq!(told, expected);
            known = now;
        }
    }
}
