//! `reeve undo`.

use crate::connection::ConnectionArgs;
use crate::output::print;
use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, ValueEnum};
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind, TypeMeta};
use kube::{Client, ResourceExt as _};
use reeve_api::{JournalEntry, Operation};
use reeve_core::journal::{MAX_CONTENT, put_back, restorable};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Restore what the agent deleted or overwrote
///
/// The agent writes each deletion into its journal before it sends it (`kubectl
/// get journal`). This restores the objects of the named entries as they were, as
/// yourself: you need the right to create them. Without names it lists what can be
/// restored. A restored object belongs to nobody; if a plugin still wants an
/// object of that name, its unit reports a conflict until you delete one or the
/// other.
#[derive(Args)]
pub(crate) struct UndoArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Entries to restore, by name
    #[arg(value_name = "ENTRY")]
    entries: Vec<String>,
    /// Every entry of this plugin
    #[arg(long, value_name = "NAME", conflicts_with = "entries")]
    plugin: Option<String>,
    /// With --plugin: only entries that are at most this old, such as 90s, 15m or 2h
    #[arg(long, value_name = "AGE", requires = "plugin", value_parser = parse_age)]
    since: Option<std::time::Duration>,
    /// Show what would be restored; change nothing
    #[arg(long)]
    dry_run: bool,
    /// Form of the answer
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

fn line(text: &str) -> anyhow::Result<()> {
    print(format_args!("{text}\n"))
}

/// What came of one entry.
struct Restored {
    entry: String,
    object: String,
    result: Result<&'static str, String>,
    omitted: Vec<String>,
}

pub(crate) async fn run(args: UndoArgs) -> anyhow::Result<ExitCode> {
    let client = args.connection.client().await?;
    let journal: Api<JournalEntry> = Api::namespaced(client.clone(), &args.connection.namespace);
    if args.entries.is_empty() && args.plugin.is_none() {
        return list(&journal, args.output).await;
    }
    let mut entries = Vec::new();
    match &args.plugin {
        Some(plugin) => {
            let oldest = args
                .since
                .and_then(|age| std::time::SystemTime::now().checked_sub(age));
            for entry in all(&journal).await? {
                let recent = oldest.is_none_or(|oldest| {
                    entry
                        .creation_timestamp()
                        .is_some_and(|made| std::time::SystemTime::from(made.0) >= oldest)
                });
                if entry.spec.plugin == *plugin && recent {
                    entries.push(entry);
                }
            }
            if entries.is_empty() {
                bail!("the journal has no such entry of plugin {plugin}; `reeve undo` lists all");
            }
        }
        None => {
            for name in &args.entries {
                let entry = journal.get_opt(name).await?;
                entries.push(entry.with_context(|| {
                    format!("the journal has no entry {name}; `reeve undo` lists what it has")
                })?);
            }
        }
    }
    let mut restored = Vec::new();
    for entry in &entries {
        let result = restore(&client, entry, args.dry_run).await;
        restored.push(Restored {
            entry: entry.name_any(),
            object: describe(entry),
            result: result.map_err(|error| format!("{error:#}")),
            omitted: entry.spec.omitted.clone(),
        });
    }
    report(&restored, args.output)?;
    let failed = restored.iter().any(|one| one.result.is_err());
    Ok(ExitCode::from(u8::from(failed)))
}

async fn all(journal: &Api<JournalEntry>) -> anyhow::Result<Vec<JournalEntry>> {
    let entries = journal.list(&ListParams::default()).await;
    let mut entries = entries
        .context("cannot read the journal; is this the agent's namespace, and are the CRDs of this version installed (`reeve crds`)?")?
        .items;
    entries.sort_by_key(kube::ResourceExt::name_any);
    Ok(entries)
}

async fn list(journal: &Api<JournalEntry>, output: Output) -> anyhow::Result<ExitCode> {
    let entries = all(journal).await?;
    if output == Output::Json {
        line(&serde_json::to_string_pretty(&entries)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if entries.is_empty() {
        line("the journal is empty: nothing was deleted or overwritten")?;
    }
    for entry in &entries {
        let lost = match entry.spec.omitted.as_slice() {
            [] => String::new(),
            omitted => format!("; cannot restore {}", in_words(omitted)),
        };
        line(&format!(
            "{}  {:9}  {}  by {}: {}{lost}",
            entry.name_any(),
            format!("{:?}", entry.spec.operation),
            describe(entry),
            entry.spec.plugin,
            entry.spec.reason,
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Creates the object of an entry, or puts its values back.
async fn restore(
    client: &Client,
    entry: &JournalEntry,
    dry_run: bool,
) -> anyhow::Result<&'static str> {
    let spec = &entry.spec;
    let content = content(entry)?;
    let reference = &spec.object;
    let (group, version) = match reference.api_version.split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", reference.api_version.as_str()),
    };
    let kind = GroupVersionKind::gvk(group, version, &reference.kind);
    let (resource, _) = kube::discovery::pinned_kind(client, &kind)
        .await
        .with_context(|| format!("the cluster does not serve {} any more", reference.kind))?;
    let api = api(client, &resource, reference.namespace.as_deref());
    let params = PostParams {
        dry_run,
        field_manager: Some("reeve-undo".to_owned()),
    };
    let object = object(&resource, restorable(&content))?;
    match (spec.operation, api.get_opt(&reference.name).await?) {
        (_, None) => {
            api.create(&params, &object).await?;
            Ok(if dry_run {
                "would be created"
            } else {
                "created"
            })
        }
        (Operation::Delete, Some(_)) => {
            bail!("there is an object of that name again; delete it first if the old one is wanted")
        }
        (Operation::Recreate | Operation::Overwrite, Some(live)) => {
            let live = serde_json::to_value(live)?;
            let object: DynamicObject =
                serde_json::from_value(put_back(&live, &content, &spec.omitted))?;
            let replaced = api.replace(&reference.name, &params, &object).await;
            if spec.operation == Operation::Recreate && is_invalid(&replaced) {
                replaced.context(
                    "it was made anew since it cannot be changed, and cannot be changed back \
                     either; delete it, and this makes it as it was",
                )?;
            } else {
                replaced?;
            }
            Ok(if dry_run {
                "would be put back"
            } else {
                "put back; if the plugin still wants other values, it takes them again"
            })
        }
    }
}

/// Whether the API server refuses what was sent as such.
fn is_invalid<T>(answer: &Result<T, kube::Error>) -> bool {
    matches!(answer, Err(kube::Error::Api(status)) if status.code == 422)
}

fn content(entry: &JournalEntry) -> anyhow::Result<Value> {
    let Some(content) = &entry.spec.content else {
        bail!("its content was too large to be kept");
    };
    let compressed = STANDARD
        .decode(content)
        .context("spec.content of the entry is not base64")?;
    let json = zstd::bulk::decompress(&compressed, MAX_CONTENT)
        .context("spec.content of the entry cannot be unpacked")?;
    serde_json::from_slice(&json).context("spec.content of the entry is not JSON")
}

fn api(client: &Client, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    }
}

fn object(resource: &ApiResource, mut content: Value) -> anyhow::Result<DynamicObject> {
    if let Some(fields) = content.as_object_mut() {
        fields.entry("metadata").or_insert_with(|| json!({}));
    }
    let mut object: DynamicObject =
        serde_json::from_value(content).context("spec.content of the entry is no object")?;
    object.types = Some(TypeMeta {
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
    });
    Ok(object)
}

fn describe(entry: &JournalEntry) -> String {
    let object = &entry.spec.object;
    match &object.namespace {
        Some(namespace) => format!("{} {namespace}/{}", object.kind, object.name),
        None => format!("{} {}", object.kind, object.name),
    }
}

fn report(restored: &[Restored], output: Output) -> anyhow::Result<()> {
    if output == Output::Json {
        let all: Vec<Value> = restored
            .iter()
            .map(|one| {
                json!({
                    "entry": one.entry,
                    "object": one.object,
                    "result": one.result.as_ref().ok(),
                    "error": one.result.as_ref().err(),
                    "omitted": one.omitted,
                })
            })
            .collect();
        return line(&serde_json::to_string_pretty(&all)?);
    }
    for one in restored {
        let said = match &one.result {
            Ok(done) => (*done).to_owned(),
            Err(error) => format!("not restored: {error}"),
        };
        line(&format!("{}: {said}", one.object))?;
        if one.result.is_ok() && !one.omitted.is_empty() {
            line(&format!(
                "  without {}: set it yourself",
                in_words(&one.omitted)
            ))?;
        }
    }
    Ok(())
}

/// Left-out parts; the whole object is written as the empty pointer.
fn in_words(omitted: &[String]) -> String {
    let parts = omitted.iter().map(|pointer| match pointer.as_str() {
        "" => "its content, which was too large to be kept",
        pointer => pointer,
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// Reads `90s`, `15m`, `2h` or `3d`.
fn parse_age(text: &str) -> Result<std::time::Duration, String> {
    let error = || format!("`{text}` is no age: write a number and s, m, h or d, such as 15m");
    let unit = text.chars().next_back().ok_or_else(error)?;
    let number: u64 = text[..text.len() - unit.len_utf8()]
        .parse()
        .map_err(|_| error())?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        _ => return Err(error()),
    };
    let seconds = number.checked_mul(seconds).ok_or_else(error)?;
    Ok(std::time::Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_a_number_and_a_unit() {
        for (text, seconds) in [("90s", 90), ("15m", 900), ("2h", 7200), ("1d", 86400)] {
            assert_eq!(parse_age(text).map(|age| age.as_secs()), Ok(seconds));
        }
        for text in [
            "",
            "s",
            "5",
            "-1h",
            "1é",
            "99999999999999999999s",
            "999999999999999999d",
        ] {
            assert!(parse_age(text).unwrap_err().contains("is no age"), "{text}");
        }
    }
}
