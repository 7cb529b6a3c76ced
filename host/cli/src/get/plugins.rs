//! `reeve get plugins`.

use super::{ConnectionArgs, ListOutput, Readiness, age};
use crate::columns::table;
use crate::looking::print_json;
use crate::output;
use crate::output::on_one_line;
use anyhow::Context as _;
use clap::Args;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use reeve_api::Plugin;
use serde_json::{Value, json};

/// List plugins, those first that are not ready, have failing units, or whose newest
/// version does not run
#[derive(Args)]
pub(super) struct PluginsArgs {
    /// Form of the list
    #[arg(long, short, value_enum, default_value_t = ListOutput::Text)]
    output: ListOutput,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// A plugin as it is listed.
struct Row {
    name: String,
    readiness: Readiness,
    suspended: bool,
    version: String,
    digest: Option<String>,
    total: u32,
    failing: u32,
    /// What is wrong besides, by the types of conditions.
    raised: Vec<String>,
    /// Why the newest version does not run.
    refused: Option<String>,
}

impl Row {
    fn of(plugin: &Plugin) -> Self {
        let status = plugin.status.clone().unwrap_or_default();
        let counts = status.units.unwrap_or_default();
        Self {
            name: plugin.name_any(),
            readiness: Readiness::of(&status.conditions),
            suspended: plugin.spec.suspend,
            version: status.version.unwrap_or_default(),
            digest: status.digest,
            total: counts.total,
            failing: counts.failing,
            raised: raised(&status.conditions),
            refused: refused(&status.conditions).map(str::to_owned),
        }
    }

    fn is_well(&self) -> bool {
        self.readiness.ready
            && self.failing == 0
            && self.raised.is_empty()
            && self.refused.is_none()
    }
}

/// Conditions that stand only while something is wrong; which of them there are, the
/// documentation of the `Plugin` says.
fn raised(conditions: &[Condition]) -> Vec<String> {
    const RAISED: [&str; 4] = [
        "DeletionsHeld",
        "SourcesStale",
        "ArtifactStale",
        "UnitsUnwritten",
    ];
    let ours = |one: &&Condition| one.status == "True" && RAISED.contains(&&*one.type_);
    let raised = conditions.iter().filter(ours);
    raised.map(|one| one.type_.clone()).collect()
}

/// Why the newest version does not run, unless somebody wants it so, or some units run it.
fn refused(conditions: &[Condition]) -> Option<&str> {
    const WANTED: [&str; 2] = ["RolledBack", "Canary"];
    let mut loaded = conditions.iter().filter(|one| one.type_ == "Loaded");
    let loaded = loaded.find(|one| one.status == "False")?;
    (!WANTED.contains(&loaded.reason.as_str())).then_some(&loaded.reason)
}

pub(super) async fn run(args: PluginsArgs) -> anyhow::Result<()> {
    let client = args.connection.client().await?;
    let plugins: Api<Plugin> = Api::namespaced(client, &args.connection.namespace);
    let plugins = plugins.list(&ListParams::default()).await;
    let plugins = plugins.context(super::units::WHERE)?.items;
    let mut rows: Vec<Row> = plugins.iter().map(Row::of).collect();
    rows.sort_by(|a, b| (a.is_well(), &a.name).cmp(&(b.is_well(), &b.name)));
    if args.output == ListOutput::Json {
        let all: Vec<Value> = rows.iter().map(in_json).collect();
        return print_json(&json!({"plugins": all}));
    }
    if rows.is_empty() {
        let namespace = &args.connection.namespace;
        return output::print(format_args!("no plugins in namespace {namespace}\n"));
    }
    let well = rows.iter().filter(|row| row.is_well()).count();
    let text = in_text(&rows, args.output == ListOutput::Wide, Timestamp::now());
    output::print(format_args!(
        "{text}\n{} well, {} not\n",
        crate::columns::counted(well, "plugin"),
        rows.len() - well
    ))
}

fn in_text(rows: &[Row], wide: bool, now: Timestamp) -> String {
    let cells = |row: &Row| {
        let mut reason = row.readiness.reason.clone();
        for raised in &row.raised {
            reason.push_str(", ");
            reason.push_str(raised);
        }
        // Where nothing runs, that is the reason.
        let newest = row.refused.iter().filter(|_| row.readiness.ready);
        for refused in newest {
            reason.push_str(", newest version ");
            reason.push_str(refused);
        }
        [
            row.name.clone(),
            row.readiness.status.clone(),
            row.version.clone(),
            row.total.to_string(),
            row.failing.to_string(),
            age(row.readiness.since, now),
            reason,
        ]
    };
    if !wide {
        let head = [
            "NAME", "READY", "VERSION", "UNITS", "FAILING", "SINCE", "REASON",
        ];
        let rows: Vec<_> = rows.iter().map(cells).collect();
        return table(head, &rows);
    }
    let head = [
        "NAME", "READY", "VERSION", "UNITS", "FAILING", "SINCE", "REASON", "DIGEST", "MESSAGE",
    ];
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            let [a, b, c, d, e, f, g] = cells(row);
            let digest = row.digest.clone().unwrap_or_default();
            let message = on_one_line(&row.readiness.message);
            [a, b, c, d, e, f, g, digest, message]
        })
        .collect();
    table(head, &rows)
}

fn in_json(row: &Row) -> Value {
    json!({
        "name": row.name,
        "ready": row.readiness.ready,
        "reason": row.readiness.reason,
        "message": row.readiness.message,
        "since": row.readiness.since.map(|since| since.to_string()),
        "suspended": row.suspended,
        "deletionsHeld": row.raised.iter().any(|one| one == "DeletionsHeld"),
        "raised": row.raised,
        "refused": row.refused,
        "version": row.version,
        "digest": row.digest,
        "units": {"total": row.total, "failing": row.failing},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_api::condition;

    #[test]
    fn a_plugin_whose_document_cannot_be_had_is_not_well() {
        for (kind, status, well) in [
            ("SourcesStale", "True", false),
            ("SourcesStale", "False", true),
            ("Reconciling", "True", true),
        ] {
            let now = Timestamp::UNIX_EPOCH;
            let mut plugin = Plugin::new("p", reeve_api::PluginSpec::default());
            plugin.status = Some(reeve_api::PluginStatus {
                conditions: vec![
                    condition("Ready", "True", "Running", "", None, now),
                    condition(kind, status, "SourceFailing", "", None, now),
                ],
                ..reeve_api::PluginStatus::default()
            });
            let row = Row::of(&plugin);
            assert_eq!(row.is_well(), well, "{kind} {status}");
            let text = in_text(&[row], false, now);
            assert_eq!(text.contains("Running, SourcesStale"), !well, "{text}");
        }
    }

    #[test]
    fn a_newest_version_that_is_refused_is_not_well() {
        for (status, reason, well) in [
            ("True", "Running", true),
            ("False", "ConfigInvalid", false),
            ("False", "UpgradeHeld", false),
            ("False", "RolledBack", true),
            ("False", "Canary", true),
            ("Unknown", "Loading", true),
        ] {
            let now = Timestamp::UNIX_EPOCH;
            let mut plugin = Plugin::new("p", reeve_api::PluginSpec::default());
            plugin.status = Some(reeve_api::PluginStatus {
                conditions: vec![
                    condition("Ready", "True", "Running", "m", None, now),
                    condition("Loaded", status, reason, "m", None, now),
                ],
                ..reeve_api::PluginStatus::default()
            });
            let row = Row::of(&plugin);
            assert_eq!(row.is_well(), well, "{reason}");
            let text = in_text(&[row], false, now);
            let told = text.contains(&format!("Running, newest version {reason}"));
            assert_eq!(told, !well, "{text}");
        }
    }
}
