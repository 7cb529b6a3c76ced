//! `reeve plugin approve`.

use super::describe::describe;
use super::source;
use crate::compile::CacheArgs;
use crate::connection::ConnectionArgs;
use crate::output::print;
use anyhow::Context as _;
use clap::Args;
use kube::api::{Api, Patch, PatchParams};
use reeve_agent::delivery::Package;
use reeve_api::{
    APPROVE_ASKS_ANNOTATION, APPROVE_UPGRADE_ANNOTATION, Plugin, PluginStatus, ShadowStatus,
};
use reeve_core::{Asks, Digest, upgrade};
use serde_json::json;
use std::process::ExitCode;

/// Let a held version run
///
/// A new version that asks for more than the one that ran before is held, and so is one
/// that would delete, change or break more than an upgrade may; the old one goes on.
/// This shows what it asks for beyond, and what it would do as far as the agent has
/// found, and approves just that version for it: another component or configuration is
/// held again. Approving grants no rights; see `reeve plugin grant`.
#[derive(Args)]
pub(crate) struct ApproveArgs {
    /// Name of the plugin
    name: String,
    /// Show what would be approved; change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    cache: CacheArgs,
}

pub(crate) async fn run(args: ApproveArgs) -> anyhow::Result<ExitCode> {
    let (name, namespace) = (&args.name, &args.connection.namespace);
    let client = args.connection.client().await?;
    let plugins: Api<Plugin> = Api::namespaced(client.clone(), namespace);
    let plugin = plugins.get_opt(name).await?.with_context(|| {
        format!(
            "there is no Plugin {namespace}/{name}; the agent makes it when its ConfigMap is there"
        )
    })?;
    let status = plugin.status.unwrap_or_default();
    let source = source::from_cluster(&client, namespace, name).await?;
    let manifest = describe(&source, &args.cache)
        .await?
        .manifest(&source)
        .await?;
    let asks = Asks::of(&manifest);
    let more = match &status.asks {
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
        annotations.insert(APPROVE_ASKS_ANNOTATION.to_owned(), json!(asks.token()));
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
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// What the agent holds the version in the ConfigMap for, with what approves it.
fn held_upgrade<'a>(
    status: &'a PluginStatus,
    package: &Package,
) -> Option<(String, &'a ShadowStatus)> {
    let shadow = status.shadow.as_ref()?;
    let config = Digest::of(&package.config);
    let is_this = shadow.digest == package.digest.to_string()
        && shadow.config_digest == config.to_string()
        && shadow.verdict == "Held";
    is_this.then(|| (upgrade::token(&package.digest, &config), shadow))
}
