//! `reeve plugin approve`.

use super::describe::describe;
use super::source;
use crate::compile::CacheArgs;
use crate::operate::{TargetArgs, await_approved};
use crate::output::print;
use anyhow::Context as _;
use clap::Args;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Api, Patch, PatchParams};
use reeve_agent::delivery::Package;
use reeve_api::{
    APPROVE_ASKS_ANNOTATION, APPROVE_UPGRADE_ANNOTATION, CanaryStatus, Plugin, PluginStatus,
    Reason, ShadowStatus,
};
use reeve_cluster::Cluster;
use reeve_core::{Asks, Digest, upgrade};
use serde_json::json;
use std::process::ExitCode;

/// Let a held version run
///
/// A new version that asks for more than the one that ran before is held, and so is one
/// that would delete, change or break more than an upgrade may; the old one goes on.
/// This shows what it asks for beyond, and what it would do as far as the agent has
/// found, and approves just that version for it: another component or configuration is
/// held again, unless it asks for no more than what runs by then. One that ran for some
/// units first and was taken back since they failed may take over by that too. Approving grants no rights; see `reeve plugin grant`.
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 it was approved, or nothing needs it, and with --wait it runs; 1 \
    with --wait, it does not run, or not in time; 2 it could not be approved."
)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Show what would be approved; change nothing
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    #[command(flatten)]
    cache: CacheArgs,
}

pub(crate) async fn run(args: ApproveArgs) -> anyhow::Result<ExitCode> {
    let target = &args.target;
    let (name, namespace) = (&target.plugin, &target.connection.namespace);
    let client = target.connection.client().await?;
    let plugins: Api<Plugin> = Api::namespaced(client.clone(), namespace);
    let plugin = plugins.get_opt(name).await?.with_context(|| {
        format!(
            "there is no Plugin {namespace}/{name}; the agent makes it when its ConfigMap is there"
        )
    })?;
    let status = plugin.status.clone().unwrap_or_default();
    let source = source::from_cluster(&client, namespace, name).await?;
    let manifest = describe(&source, &args.cache)
        .await?
        // Whether wildcards are allowed is for the agent to say.
        .manifest(&source, Some(&Cluster::new(client.clone())))
        .await?;
    let asks = Asks::of(&manifest);
    let (component, config) = (&source.package.digest, Digest::of(&source.package.config));
    let canary = status.canary.as_ref().map(|canary| &canary.asks);
    let canary = canary.filter(|lines| !lines.is_empty());
    let more = match &status.asks {
        // Either of two versions that run is enough, and not what they ask for together.
        Some(_) if canary.is_some_and(|lines| asks.beyond(lines).is_empty()) => Vec::new(),
        Some(before) => asks.beyond(before),
        None => Vec::new(),
    };
    let upgrade = held_upgrade(&status, &source.package);
    let mut text = String::new();
    let mut annotations = serde_json::Map::new();
    if !more.is_empty() {
        for line in &more {
            text.push_str("+ ");
            text.push_str(line);
            text.push('\n');
        }
        let token = asks.token(component, &config);
        annotations.insert(APPROVE_ASKS_ANNOTATION.to_owned(), json!(token));
    }
    if let Some((token, shadow)) = upgrade {
        text.push_str(&format!(
            "~ create {}, change {}, delete {} of {} objects; {} of {} units newly failing\n",
            shadow.created,
            shadow.changed,
            shadow.deleted,
            shadow.owned,
            shadow.failing,
            shadow.units
        ));
        for example in &shadow.examples {
            text.push_str(&format!("  {example}\n"));
        }
        annotations.insert(APPROVE_UPGRADE_ANNOTATION.to_owned(), json!(token));
    }
    if let Some((token, canary)) = returned_canary(&status, &source.package) {
        text.push_str(&format!(
            "~ ran for {} units first, {} of which failed that did not before\n",
            canary.units, canary.failing
        ));
        let token = upgrade::token_for_all(&token);
        annotations.insert(APPROVE_UPGRADE_ANNOTATION.to_owned(), json!(token));
    }
    if annotations.is_empty() {
        print(format_args!(
            "plugin {name} has nothing that needs an approval\n"
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.dry_run {
        text.push_str("not approved: this is a dry run\n");
        print(text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let patch = json!({"metadata": {"annotations": annotations}});
    plugins
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .with_context(|| format!("cannot annotate Plugin {namespace}/{name}"))?;
    text.push_str("approved\n");
    if let Some(other) = held_otherwise(&status) {
        text.push_str(&format!(
            "it does not run by that alone: {}: {}\n",
            other.reason, other.message
        ));
    }
    print(text)?;
    let token = upgrade::token(component, &config);
    await_approved(&client, target, &plugin, token).await
}

/// What keeps the newest version from running and is nothing that an approval could change.
fn held_otherwise(status: &PluginStatus) -> Option<&Condition> {
    const APPROVABLE: [Reason; 5] = [
        Reason::Canary,
        Reason::ApprovalRequired,
        Reason::UpgradeHeld,
        Reason::CanaryReturned,
        Reason::RolledBack,
    ];
    let mut conditions = status.conditions.iter();
    conditions.find(|one| {
        let is_approvable = |reason: &Reason| one.reason == reason.to_string();
        one.type_ == "Loaded" && one.status == "False" && !APPROVABLE.iter().any(is_approvable)
    })
}

/// What the agent holds the version in the ConfigMap for, with what approves it.
fn held_upgrade<'a>(
    status: &'a PluginStatus,
    package: &Package,
) -> Option<(String, &'a ShadowStatus)> {
    let shadow = status.shadow.as_ref()?;
    let token = token_of(package, &shadow.digest, &shadow.config_digest)?;
    (shadow.verdict == "Held").then_some((token, shadow))
}

/// What the agent found when it ran the version in the ConfigMap for some units first, if
/// it was taken back.
fn returned_canary<'a>(
    status: &'a PluginStatus,
    package: &Package,
) -> Option<(String, &'a CanaryStatus)> {
    let mut conditions = status.conditions.iter();
    conditions.find(|one| one.type_ == "Loaded" && one.reason == "CanaryReturned")?;
    let canary = status.canary.as_ref()?;
    let token = token_of(package, &canary.digest, &canary.config_digest)?;
    Some((token, canary))
}

/// The token of a package, if it is of this version.
fn token_of(package: &Package, digest: &str, config_digest: &str) -> Option<String> {
    let config = Digest::of(&package.config);
    let same = digest == package.digest.to_string() && config_digest == config.to_string();
    same.then(|| upgrade::token(&package.digest, &config))
}
