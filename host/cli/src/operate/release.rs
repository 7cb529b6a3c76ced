//! `reeve release`.

use super::FIELD_MANAGER;
use crate::connection::ConnectionArgs;
use crate::kinds;
use crate::looking::select;
use crate::output;
use anyhow::Context as _;
use clap::Args;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{GroupVersionKind, PartialObjectMeta};
use kube::{Client, ResourceExt as _};
use reeve_api::Plugin;
use reeve_core::ObjectReference;
use reeve_core::ownership::finalizers;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Let primaries go that wait for a plugin which is gone
///
/// While a plugin has objects in order, or where garbage collection does not follow,
/// its primaries carry a finalizer, and wait for it when they are deleted. Where the
/// plugin does not run any more, this takes the finalizer off, with your own rights:
/// list and patch on the primaries. What is left of their objects stays, and
/// `kubectl get KIND -A -l reeve.dev/plugin=NAME` finds it.
#[derive(Args)]
#[command(after_help = "Exit codes: 0 none of them waits for the plugin any more; 2 it failed.")]
pub(crate) struct ReleaseArgs {
    /// Name of the plugin
    plugin: String,
    /// Only this primary, such as alice or Profile/alice
    #[arg(long, value_name = "PRIMARY")]
    unit: Option<String>,
    /// Kind of the primaries, such as profiles.kubeflow.org; taken from the Plugin
    /// unless it is gone too
    #[arg(long)]
    kind: Option<String>,
    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) async fn run(args: ReleaseArgs) -> anyhow::Result<ExitCode> {
    let name = &args.plugin;
    let client = args.connection.client().await?;
    let kind = match &args.kind {
        Some(text) => kinds::find(&client, text).await?.kind,
        None => recorded_kind(&client, &args).await?,
    };
    let gvk = GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
    let (resource, _) = kube::discovery::pinned_kind(&client, &gvk)
        .await
        .with_context(|| format!("the cluster does not serve {kind}"))?;
    let everywhere: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let listed = everywhere.list_metadata(&ListParams::default()).await;
    let mut held = listed.with_context(|| format!("cannot list {kind}"))?.items;
    let ours = finalizers(name);
    held.retain(|one| one.finalizers().iter().any(|text| ours.contains(text)));
    if let Some(unit) = &args.unit {
        let references: Vec<ObjectReference> = held
            .iter()
            .map(|one| ObjectReference::new(kind.clone(), one.namespace(), one.name_any()))
            .collect();
        let meant = select(&references, unit).with_context(|| format!("plugin {name}"))?;
        held.retain(|one| {
            (one.namespace(), one.name_any()) == (meant.namespace.clone(), meant.name.clone())
        });
    }
    if held.is_empty() {
        output::tell(format_args!("{name}: no {} waits for it", kind.kind));
    }
    for primary in held {
        let api: Api<DynamicObject> = match primary.namespace() {
            Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
            None => everywhere.clone(),
        };
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let object = primary.name_any();
        let patch = without(&primary, &ours);
        let patched = api.patch(&object, &params, &Patch::Merge(&patch)).await;
        patched.with_context(|| format!("cannot change {} {object}", kind.kind))?;
        output::tell(format_args!(
            "{name}: {} {object} no longer waits",
            kind.kind
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// A patch that leaves all finalizers but these, if nobody has changed them meanwhile.
fn without(primary: &PartialObjectMeta<DynamicObject>, ours: &[String]) -> Value {
    let there = primary.finalizers();
    let left: Vec<&String> = there.iter().filter(|one| !ours.contains(one)).collect();
    json!({"metadata": {
        "resourceVersion": primary.resource_version(),
        "finalizers": left,
    }})
}

/// The kind that the Plugin says it works for.
async fn recorded_kind(
    client: &Client,
    args: &ReleaseArgs,
) -> anyhow::Result<reeve_core::GroupVersionKind> {
    let name = &args.plugin;
    let plugins: Api<Plugin> = Api::namespaced(client.clone(), &args.connection.namespace);
    let found = plugins.get_opt(name).await;
    let found = found.with_context(|| format!("cannot read plugin {name}"))?;
    let kind = found
        .and_then(|plugin| plugin.status?.primary_kind)
        .and_then(|kind| kinds::parse(&kind));
    kind.with_context(|| {
        format!(
            "no Plugin {name} says for which kind it works; name the kind, for example --kind \
             profiles.kubeflow.org"
        )
    })
}
