//! The parts of the plugin as they are installed.

use super::TargetArgs;
use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use reeve_agent::delivery;
use reeve_api::{PLUGIN_CONFIG_MAP_LABEL, Plugin};
use serde_json::Value;

/// The role of the part that makes Packs of the desired state.
pub(super) const DESIRED_STATE: &str = "DesiredState";
/// The role of a part that does not say.
pub(super) const RELEASES: &str = "Releases";

/// A part.
pub(super) struct Part {
    /// The plugin that it is.
    pub(super) plugin: String,
    pub(super) role: String,
    pub(super) config: Value,
    /// Why it does not run, or not as it was delivered last, once it was looked at.
    pub(super) trouble: Option<Halt>,
}

/// What keeps a part from running, or its newest version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Halt {
    pub(super) reason: String,
    pub(super) message: String,
    /// Whether an earlier version runs.
    pub(super) runs: bool,
    /// Whether it goes on by itself, as when it has just been delivered.
    pub(super) passes: bool,
}

impl Halt {
    /// None where the newest version runs.
    pub(super) fn of(plugin: Option<&Plugin>) -> Option<Self> {
        let status = plugin.and_then(|plugin| plugin.status.as_ref());
        let Some(status) = status else {
            return Some(Self {
                reason: "NotSeen".to_owned(),
                message: "no agent has looked at it yet; is one running?".to_owned(),
                runs: false,
                passes: true,
            });
        };
        let find = |kind: &str| status.conditions.iter().find(|one| one.type_ == kind);
        // What the agent tries again, it says to be on its way. What has not been delivered
        // yet, it does not.
        const TO_COME: [&str; 3] = ["ConfigMapAbsent", "ComponentAbsent", "PartsMissing"];
        let passes = find("Reconciling").is_some_and(|one| one.status == "True");
        let halt = |condition: &Condition, runs| Self {
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            runs,
            passes: passes || TO_COME.contains(&&*condition.reason),
        };
        match (find("Ready"), find("Loaded")) {
            (Some(ready), _) if ready.status != "True" => Some(halt(ready, false)),
            (Some(_), Some(loaded)) if loaded.status == "False" => Some(halt(loaded, true)),
            (Some(_), _) => None,
            (None, _) => Some(Self {
                reason: "NotSeen".to_owned(),
                message: "the agent has not said yet whether it runs".to_owned(),
                runs: false,
                passes: true,
            }),
        }
    }

    /// What it is, on one line.
    pub(super) fn said(&self) -> String {
        let how = match self.runs {
            true => "an earlier version runs",
            false => "it does not run",
        };
        format!("{how}: {}", crate::output::on_one_line(&self.message))
    }
}

/// All parts, in the order of their names.
///
/// # Errors
///
/// When ConfigMaps cannot be listed, or there is no part.
pub(super) async fn find(client: &Client, target: &TargetArgs) -> anyhow::Result<Vec<Part>> {
    let (name, namespace) = (&target.plugin, &target.connection.namespace);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let labelled = ListParams::default().labels(&format!("{PLUGIN_CONFIG_MAP_LABEL}=true"));
    let maps = maps.list(&labelled).await;
    let maps = maps.with_context(|| format!("cannot list ConfigMaps in namespace {namespace}"))?;
    let is_part = |map: &&ConfigMap| {
        map.name_any() == *name || delivery::component_of(map) == Some(name.as_str())
    };
    let parts: anyhow::Result<Vec<Part>> =
        maps.items.iter().filter(is_part).map(Part::of).collect();
    let mut parts = parts?;
    if parts.is_empty() {
        bail!(
            "no plugin in namespace {namespace} is ConfigMap {name}, or names it as its \
             component; `helm install packs charts/packs -n {namespace}` installs them, and \
             --namespace and --plugin say where they are"
        );
    }
    parts.sort_by(|one, other| one.plugin.cmp(&other.plugin));
    Ok(parts)
}

/// Looks at how parts run, which only who shows it has to know.
///
/// # Errors
///
/// When Plugins cannot be listed.
pub(super) async fn look(
    client: &Client,
    target: &TargetArgs,
    parts: &mut [Part],
) -> anyhow::Result<()> {
    let namespace = &target.connection.namespace;
    let plugins: Api<Plugin> = Api::namespaced(client.clone(), namespace);
    let plugins = plugins.list(&ListParams::default()).await;
    let plugins = plugins.with_context(|| format!("cannot list plugins in {namespace}"))?;
    for part in parts {
        let mut all = plugins.items.iter();
        part.trouble = Halt::of(all.find(|one| one.name_any() == part.plugin));
    }
    Ok(())
}

/// The part that makes Packs of the desired state.
///
/// # Errors
///
/// When there is none.
pub(super) fn desired_state(parts: &[Part]) -> anyhow::Result<&Part> {
    let found = parts.iter().find(|part| part.role == DESIRED_STATE);
    found.context(
        "no part has `role: DesiredState` in its config.yaml, so nothing makes Packs of a desired \
         state; install it (parts.desiredState.enabled of the chart), or make Packs with kubectl",
    )
}

impl Part {
    fn of(map: &ConfigMap) -> anyhow::Result<Self> {
        let plugin = map.name_any();
        let text = map.data.as_ref().and_then(|data| data.get("config.yaml"));
        let config = match text {
            None => Value::Object(serde_json::Map::new()),
            Some(text) => match delivery::parse_config(text) {
                Ok(json) => serde_json::from_slice(&json)?,
                Err(problem) => bail!("config.yaml of ConfigMap {plugin} is no YAML: {problem}"),
            },
        };
        let role = config["role"].as_str().unwrap_or(RELEASES).to_owned();
        Ok(Self {
            plugin,
            role,
            config,
            trouble: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_does_not_run_goes_on_by_itself_or_does_not() {
        let of = |conditions: &[(&str, &str, &str)]| {
            let conditions = conditions.iter().map(|(kind, status, reason)| {
                json!({"type": kind, "status": status, "reason": reason, "message": "m",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"})
            });
            let plugin = json!({
                "apiVersion": "reeve.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": "a"},
                "spec": {}, "status": {"conditions": conditions.collect::<Vec<_>>()},
            });
            let plugin: Plugin = serde_json::from_value(plugin).unwrap();
            Halt::of(Some(&plugin)).map(|halt| (halt.runs, halt.passes))
        };
        let (ready, loaded) = (("Ready", "True", "R"), ("Loaded", "True", "R"));
        let halted = |reason| ("Ready", "False", reason);
        assert_eq!(of(&[ready, loaded]), None);
        assert_eq!(of(&[ready, ("Loaded", "False", "R")]), Some((true, false)));
        // Nobody has said anything of it.
        assert_eq!(of(&[]), Some((false, true)));
        assert!(Halt::of(None).is_some_and(|halt| halt.passes));
        for reason in ["Trapped", "Forbidden"] {
            assert_eq!(of(&[halted(reason)]), Some((false, false)));
            let tried = ("Reconciling", "True", reason);
            assert_eq!(of(&[halted(reason), tried]), Some((false, true)));
        }
        assert_eq!(of(&[halted("PartsMissing")]), Some((false, true)));
    }
}
