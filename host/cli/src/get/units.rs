//! `reeve get units`.

use super::{ConnectionArgs, ListOutput, Readiness, age};
use crate::columns::table;
use crate::kinds;
use crate::looking::print_json;
use crate::output;
use crate::output::on_one_line;
use anyhow::{Context as _, bail};
use clap::Args;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt as _};
use reeve_api::{Plugin, PrimaryReference, Unit};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What may be wrong when our kinds cannot be listed.
pub(super) const WHERE: &str = "cannot list what the agent reports; is this the agent's namespace (--namespace), and are \
     its CRDs installed (`reeve crds`)?";

/// List units, those in trouble first
///
/// A unit is one plugin and one of its primaries. The agent reports only those that
/// somebody should know about; --all adds the primaries of which it reports nothing,
/// which are well.
#[derive(Args)]
pub(super) struct UnitsArgs {
    /// Only those of this plugin
    plugin: Option<String>,
    /// Units that are well, too; for that you need list on their primaries
    #[arg(long)]
    all: bool,
    /// Form of the list
    #[arg(long, short, value_enum, default_value_t = ListOutput::Text)]
    output: ListOutput,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// A unit as it is listed.
struct Row {
    plugin: String,
    primary: PrimaryReference,
    readiness: Readiness,
    failures: u32,
    blocked_by: Option<Value>,
    blocked_text: String,
    plan: Option<Value>,
}

impl Row {
    fn of(unit: &Unit) -> Self {
        let status = unit.status.clone().unwrap_or_default();
        let blocked = status.sync.and_then(|sync| sync.blocked_by);
        Self {
            plugin: unit.spec.plugin.clone(),
            primary: unit.spec.primary.clone(),
            readiness: Readiness::of(&status.conditions),
            failures: status.failures,
            blocked_text: match &blocked {
                None => String::new(),
                Some(blocked) => format!("{} ({})", blocked.object, blocked.status),
            },
            blocked_by: blocked.map(|blocked| json!(blocked)),
            plan: status.plan.map(|plan| json!(plan)),
        }
    }

    /// A unit of which nothing is reported.
    fn well(plugin: &str, primary: PrimaryReference) -> Self {
        Self {
            plugin: plugin.to_owned(),
            primary,
            readiness: Readiness {
                ready: true,
                status: "True".to_owned(),
                reason: "Running".to_owned(),
                message: String::new(),
                since: None,
            },
            failures: 0,
            blocked_by: None,
            blocked_text: String::new(),
            plan: None,
        }
    }

    /// A unit of which nothing is reported, where that may be for want of room.
    fn untold(plugin: &str, primary: PrimaryReference, of: u32) -> Self {
        let well = Self::well(plugin, primary);
        Self {
            readiness: Readiness {
                ready: false,
                status: "Unknown".to_owned(),
                reason: "Untold".to_owned(),
                message: format!(
                    "{of} units in trouble have no Unit object; `reeve reconcile {plugin} --unit {}` \
                     says whether this is one of them",
                    well.primary.name
                ),
                since: None,
            },
            ..well
        }
    }

    fn primary(&self) -> String {
        let PrimaryReference {
            kind,
            namespace,
            name,
            ..
        } = &self.primary;
        match namespace {
            Some(namespace) => format!("{kind} {namespace}/{name}"),
            None => format!("{kind} {name}"),
        }
    }
}

pub(super) async fn run(args: UnitsArgs) -> anyhow::Result<()> {
    let client = args.connection.client().await?;
    let namespace = &args.connection.namespace;
    let everything = ListParams::default();
    let plugins: Api<Plugin> = Api::namespaced(client.clone(), namespace);
    let mut plugins = plugins.list(&everything).await.context(WHERE)?.items;
    if let Some(wanted) = &args.plugin {
        let names: Vec<String> = plugins.iter().map(kube::ResourceExt::name_any).collect();
        plugins.retain(|plugin| plugin.name_any() == *wanted);
        if plugins.is_empty() {
            bail!(
                "there is no plugin {wanted} in namespace {namespace}; there are: {}",
                names.join(", ")
            );
        }
    }
    let units: Api<Unit> = Api::namespaced(client.clone(), namespace);
    let units = units.list(&everything).await.context(WHERE)?.items;
    let reported = units.iter().filter(|unit| says_something(unit));
    let mut rows: Vec<Row> = reported.map(Row::of).collect();
    rows.retain(|row| args.plugin.as_ref().is_none_or(|name| row.plugin == *name));
    if args.all {
        for plugin in &plugins {
            add_well(&client, plugin, &mut rows).await?;
        }
    }
    rows.sort_by_cached_key(|row| (row.readiness.ready, row.plugin.clone(), row.primary()));
    if args.output == ListOutput::Json {
        let all: Vec<Value> = rows.iter().map(in_json).collect();
        let counts: Vec<Value> = plugins.iter().map(counts_json).collect();
        return print_json(&json!({"units": all, "plugins": counts}));
    }
    let mut text = String::new();
    if !rows.is_empty() {
        let wide = args.output == ListOutput::Wide;
        text.push_str(&in_text(&rows, wide, Timestamp::now()));
        text.push('\n');
    }
    for plugin in &plugins {
        text.push_str(&counts_text(plugin));
    }
    if plugins.is_empty() {
        text.push_str(&format!("no plugins in namespace {namespace}\n"));
    }
    output::print(text)
}

/// Whether something is reported of a unit; else its object only remembers names.
fn says_something(unit: &Unit) -> bool {
    let status = unit.status.as_ref();
    status.is_none_or(|status| status.secrets.is_empty() || !status.conditions.is_empty())
}

/// Adds the primaries of a plugin of which nothing is reported: they are well, unless there are
/// more in trouble than are told of.
async fn add_well(client: &Client, plugin: &Plugin, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    let name = plugin.name_any();
    let status = plugin.status.clone().unwrap_or_default();
    let kind = status.primary_kind.as_deref().and_then(kinds::parse);
    let (Some(kind), Some(counts)) = (kind, status.units) else {
        // Nothing runs, so nothing is known to be well.
        return Ok(());
    };
    let gvk = GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
    let (resource, _) = kube::discovery::pinned_kind(client, &gvk)
        .await
        .with_context(|| format!("the cluster does not serve {}", kind.kind))?;
    let primaries: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let listed = primaries.list_metadata(&ListParams::default()).await;
    let listed = listed.with_context(|| format!("cannot list the primaries of plugin {name}"))?;
    let reported: BTreeSet<(Option<String>, String)> = rows
        .iter()
        .filter(|row| row.plugin == name)
        .map(|row| (row.primary.namespace.clone(), row.primary.name.clone()))
        .collect();
    let known = usize::try_from(counts.total).unwrap_or(usize::MAX);
    if listed.items.len() > known {
        bail!(
            "plugin {name} has {known} units, but there are {} objects of kind {}: it selects some \
             of them, or has not seen all yet, and which ones cannot be told from here; `reeve \
             plan {name} --verbose` lists its units",
            listed.items.len(),
            kind.kind
        );
    }
    for object in listed.items {
        let key = (object.namespace(), object.name_any());
        if !reported.contains(&key) {
            let primary = primary(&resource, &key, object.uid());
            rows.push(match counts.untold {
                0 => Row::well(&name, primary),
                untold => Row::untold(&name, primary, untold),
            });
        }
    }
    Ok(())
}

fn primary(
    resource: &ApiResource,
    (namespace, name): &(Option<String>, String),
    uid: Option<String>,
) -> PrimaryReference {
    PrimaryReference {
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
        namespace: namespace.clone(),
        name: name.clone(),
        uid: uid.unwrap_or_default(),
    }
}

fn in_text(rows: &[Row], wide: bool, now: Timestamp) -> String {
    let cells = |row: &Row| {
        [
            row.plugin.clone(),
            row.primary(),
            row.readiness.status.clone(),
            age(row.readiness.since, now),
            row.failures.to_string(),
            row.readiness.reason.clone(),
            row.blocked_text.clone(),
        ]
    };
    if !wide {
        let head = [
            "PLUGIN",
            "PRIMARY",
            "READY",
            "SINCE",
            "FAILURES",
            "REASON",
            "BLOCKED BY",
        ];
        let rows: Vec<_> = rows.iter().map(cells).collect();
        return table(head, &rows);
    }
    let head = [
        "PLUGIN",
        "PRIMARY",
        "READY",
        "SINCE",
        "FAILURES",
        "REASON",
        "BLOCKED BY",
        "MESSAGE",
    ];
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            let [a, b, c, d, e, f, g] = cells(row);
            [a, b, c, d, e, f, g, on_one_line(&row.readiness.message)]
        })
        .collect();
    table(head, &rows)
}

fn in_json(row: &Row) -> Value {
    json!({
        "plugin": row.plugin,
        "primary": {
            "apiVersion": row.primary.api_version,
            "kind": row.primary.kind,
            "namespace": row.primary.namespace,
            "name": row.primary.name,
        },
        "ready": row.readiness.ready,
        "reason": row.readiness.reason,
        "message": row.readiness.message,
        "since": row.readiness.since.map(|since| since.to_string()),
        "failures": row.failures,
        "blockedBy": row.blocked_by,
        "plan": row.plan,
    })
}

fn counts_json(plugin: &Plugin) -> Value {
    let counts = plugin
        .status
        .as_ref()
        .and_then(|status| status.units.clone());
    let counts = counts.unwrap_or_default();
    json!({
        "name": plugin.name_any(),
        "total": counts.total,
        "ready": counts.ready,
        "failing": counts.failing,
    })
}

fn counts_text(plugin: &Plugin) -> String {
    let name = plugin.name_any();
    let status = plugin.status.clone().unwrap_or_default();
    let Some(counts) = status.units else {
        let readiness = Readiness::of(&status.conditions);
        return format!(
            "{name}: does not run ({}); see `reeve get plugins -o wide`\n",
            readiness.reason
        );
    };
    let failing = match counts.failing {
        0 => String::new(),
        failing => format!(", {failing} failing"),
    };
    format!(
        "{name}: {} of {} units ready{failing}\n",
        counts.ready, counts.total
    )
}
