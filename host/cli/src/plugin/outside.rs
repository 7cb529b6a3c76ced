//! What a plugin needs of the outside, as commands show it.

use anyhow::Context as _;
use kube::api::Api;
use reeve_agent::needs::{self, Granting, Need};
use reeve_api::{Capabilities, Plugin, PluginSpec};
use reeve_core::Manifest;
use serde_json::{Value, json};

/// The policy of a plugin, if there is one.
pub(super) async fn policy(
    client: &kube::Client,
    namespace: &str,
    name: &str,
) -> anyhow::Result<Option<PluginSpec>> {
    let plugin = plugin(client, namespace, name).await?;
    Ok(plugin.map(|plugin| plugin.spec))
}

/// What there is to a plugin besides its ConfigMaps.
pub(super) async fn plugin(
    client: &kube::Client,
    namespace: &str,
    name: &str,
) -> anyhow::Result<Option<Plugin>> {
    let plugins: Api<Plugin> = Api::namespaced(client.clone(), namespace);
    match plugins.get_opt(name).await {
        Ok(plugin) => Ok(plugin),
        // The CRDs may come later.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read Plugin {namespace}/{name}")),
    }
}

/// What a manifest needs under a policy.
pub(super) fn needs(
    manifest: &Manifest,
    capabilities: Option<&Capabilities>,
    namespace: &str,
) -> Vec<Need> {
    let none = Capabilities::default();
    needs::needs(manifest, capabilities.unwrap_or(&none), namespace)
}

/// One line for each need. Where it is not known what is granted, nothing is said of
/// it.
pub(super) fn lines(needs: &[Need], policy_is_known: bool) -> Vec<String> {
    let line = |need: &Need| {
        let Need {
            who,
            description,
            what,
            standing,
            by,
            ..
        } = need;
        let mut line = format!("{who}: {what}");
        if !description.is_empty() {
            line.push_str(&format!(" ({description})"));
        }
        if policy_is_known {
            line.push_str(&format!(": {}", standing.as_str()));
        }
        if !by.is_empty() {
            line.push_str(&format!(" by {}", by.join(" and by ")));
        }
        line
    };
    needs.iter().map(line).collect()
}

/// The same for programs.
pub(super) fn in_json(needs: &[Need], policy_is_known: bool) -> Value {
    let need = |need: &Need| {
        json!({
            "who": need.who,
            "description": need.description,
            "what": need.what,
            "granted": policy_is_known.then_some(match need.standing {
                Granting::Whole => "whole",
                Granting::Part => "part",
                Granting::Nothing => "nothing",
            }),
            "by": need.by,
        })
    };
    needs.iter().map(need).collect()
}

/// What an operator has to add to `spec.capabilities`, as lines of YAML.
pub(super) fn to_add(needs: &[Need]) -> anyhow::Result<Option<String>> {
    let Some(missing) = needs::missing(needs) else {
        return Ok(None);
    };
    let spec = json!({"spec": {"capabilities": missing}});
    let text = serde_saphyr::to_string(&spec).context("cannot write YAML")?;
    Ok(Some(text))
}
