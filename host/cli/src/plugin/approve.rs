//! `reeve plugin approve`.

use super::describe::describe;
use super::source;
use crate::connection::ConnectionArgs;
use crate::output::print;
use anyhow::Context as _;
use clap::Args;
use kube::api::{Api, Patch, PatchParams};
use reeve_api::{APPROVE_ASKS_ANNOTATION, Plugin};
use reeve_core::Asks;
use serde_json::json;
use std::process::ExitCode;

/// Let a held version do what it asks for beyond the one before
///
/// A new version that asks for more than the one that ran before is held, and the
/// old one goes on. This shows what it asks for, and approves just that: a version
/// that asks for something else again is held again. Approving grants no rights;
/// see `reeve plugin grant`.
#[derive(Args)]
pub(crate) struct ApproveArgs {
    /// Name of the plugin
    name: String,
    /// Show what would be approved; change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
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
    let before = plugin.status.and_then(|status| status.asks);
    let source = source::from_cluster(&client, namespace, name).await?;
    let manifest = describe(&source).await?.manifest(&source).await?;
    let asks = Asks::of(&manifest);
    let more = match &before {
        Some(before) => asks.beyond(before),
        None => Vec::new(),
    };
    if more.is_empty() {
        print(format_args!(
            "plugin {name} asks for nothing that needs an approval\n"
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for line in &more {
        text.push_str("+ ");
        text.push_str(line);
        text.push('\n');
    }
    if args.dry_run {
        text.push_str("not approved: this is a dry run\n");
        print(text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let token = asks.token();
    let patch = json!({"metadata": {"annotations": {APPROVE_ASKS_ANNOTATION: token}}});
    plugins
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .with_context(|| format!("cannot annotate Plugin {namespace}/{name}"))?;
    text.push_str("approved\n");
    print(text)?;
    Ok(ExitCode::SUCCESS)
}
