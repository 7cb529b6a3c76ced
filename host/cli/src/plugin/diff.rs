//! `reeve plugin diff`.

use crate::looking::{LookArgs, Output, print_json};
use crate::output;
use crate::plan::{self, Differing};
use anyhow::Context as _;
use clap::Args;
use kube::api::Api;
use reeve_api::{Plugin, PluginStatus, ShadowStatus};
use serde_json::json;
use std::fmt::Write as _;
use std::process::ExitCode;

/// Show what the newest version of a plugin would do
///
/// First what the agent has found: before a new component or configuration takes over,
/// it is asked about every unit, and what it would do is counted. Then, of some units,
/// object by object and field by field, what the version in the ConfigMap would do now.
/// It is run here as `reeve plan` runs it, with your own rights: nothing is changed.
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 nothing would be done; 1 something would be; 2 it could not be told."
)]
pub(crate) struct DiffArgs {
    /// Name of the plugin
    name: String,
    /// Show as many units that differ; others are looked at until there are so many
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    units: usize,
    /// Show units that are as they should be too, and the marks of ownership on
    /// objects
    #[arg(long, short)]
    verbose: bool,
    /// Form of the answer
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    look: LookArgs,
}

pub(crate) async fn run(args: DiffArgs) -> anyhow::Result<ExitCode> {
    let (name, connection) = (&args.name, &args.look.connection);
    let client = connection.client().await?;
    let plugins: Api<Plugin> = Api::namespaced(client, &connection.namespace);
    let plugin = plugins.get_opt(name).await;
    let plugin = plugin.with_context(|| format!("cannot read plugin {name}"))?;
    let status = plugin.and_then(|plugin| plugin.status).unwrap_or_default();
    let now = plan::differing(&args.look, name, args.units, args.verbose).await?;
    match args.output {
        Output::Json => print_json(&json!({
            "plugin": name,
            "running": status.digest,
            "shadow": status.shadow,
            "canary": status.canary,
            "lookedAt": now.looked,
            "units": now.units,
            "plan": now.json,
        }))?,
        Output::Text => {
            let mut text = found(&status);
            text.push_str(&now.text);
            text.push_str(&rest(&now));
            output::print(text)?;
        }
    }
    Ok(ExitCode::from(u8::from(now.differs)))
}

/// What the agent has found, and what became of it.
fn found(status: &PluginStatus) -> String {
    let mut text = String::new();
    if let Some(canary) = &status.canary {
        let at = canary
            .started_at
            .as_ref()
            .map(|at| format!(" since {}", at.0));
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "canary of {}{}: {}, {} units first, {} of them newly failing",
            canary.digest,
            at.unwrap_or_default(),
            canary.phase,
            canary.units,
            canary.failing,
        );
    }
    let Some(shadow) = &status.shadow else {
        text.push_str("no version has been held against another yet\n\n");
        return text;
    };
    let ShadowStatus {
        digest,
        verdict,
        units,
        unchanged,
        failing,
        trapped,
        failing_alike,
        waiting,
        created,
        changed,
        deleted,
        effects,
        owned,
        examples,
        finished_at,
        ..
    } = shadow;
    let at = finished_at.as_ref().map(|at| format!(" at {}", at.0));
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "shadow run of {digest}{}: {verdict}",
        at.unwrap_or_default()
    );
    let _ = writeln!(
        text,
        "  objects  {created} to create, {changed} to change, {deleted} to delete; there are {owned}"
    );
    let mut line =
        format!("  units    {unchanged} of {units} as they are, {failing} newly failing");
    for (count, what) in [
        (*trapped, "of these by a trap or a limit"),
        (*failing_alike, "failing as before"),
        (*waiting, "waiting"),
    ] {
        if count > 0 {
            let _ = write!(line, ", {count} {what}");
        }
    }
    let _ = writeln!(text, "{line}");
    if *effects > 0 {
        let _ = writeln!(text, "  outside  {effects} effects to make or take away");
    }
    for example in examples {
        let _ = writeln!(text, "    {example}");
    }
    let mut conditions = status.conditions.iter();
    if let Some(loaded) = conditions.find(|one| one.type_ == "Loaded" && one.status == "False") {
        let _ = writeln!(text, "  {}: {}", loaded.reason, loaded.message);
    }
    text.push('\n');
    text
}

/// What was not looked at.
fn rest(now: &Differing) -> String {
    if now.looked == now.units {
        return String::new();
    }
    format!(
        "{} of {} units looked at; --units shows more\n",
        now.looked, now.units
    )
}
